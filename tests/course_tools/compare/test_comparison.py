"""Comparisons: first the answers, then the times."""

import pytest
import torch
from course_lessons.device_speed.image_step import CNN_STEP, SUITE

from course_tools.compare.comparison import compare_devices, measure
from course_tools.compare.contestants import find_contestants
from course_tools.compare.workloads import PRODUCT, Workload
from course_utils.devices import Device

CPU = Device("cpu", 0, "a cpu")


@pytest.mark.parametrize("work", SUITE, ids=[work.name for work in SUITE])
def test_every_workload_answers_alike_in_every_precision_that_it_knows(work):
    for precision in work.precisions:
        found = compare_devices(work, [8], ["cpu"], precision=precision, max_s=0.01)
        assert len(found.measurements) == len(find_contestants(["cpu"]))


def test_a_function_of_your_own_is_compared():
    def outer(size, device):
        values = torch.arange(size, dtype=torch.float32, device=device)
        return lambda: values[:, None] * values

    found = compare_devices(outer, [4, 16], ["cpu"], max_s=0.01)
    assert (found.work.workload, found.sizes, found.work.unit) == ("outer", (4, 16), "calls")
    assert all(line.rate == pytest.approx(1 / line.median_s) for line in found.measurements)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"sizes": [1], "precision": "fp8"},
            "requested in precision 'fp8', but it knows fp32, tf32, bf16, fp16",
        ),
        (
            {"sizes": [1], "devices": ["cpu"], "max_s": 0},
            "needs work and a positive time, but got . works, max_s=0",
        ),
        ({"sizes": [1], "devices": []}, "devices is empty"),
    ],
)
def test_requests_that_cannot_be_met_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        compare_devices(PRODUCT, **arguments)


def test_tf32_is_a_precision_of_a_function_of_your_own_too():
    seen = []

    def ones(size, device):
        backend = torch.backends.cuda.matmul
        now = backend.fp32_precision if hasattr(backend, "fp32_precision") else backend.allow_tf32
        seen.append(now in ("tf32", True))
        return lambda: torch.ones(size, device=device)

    for precision in ("fp32", "tf32"):
        seen.clear()
        compare_devices(ones, [4], ["cpu"], precision=precision, max_s=0.01)
        measure("cpu", Workload.of(ones), 4, precision, max_s=0.01)
        assert set(seen) == {precision == "tf32"}


def test_the_callers_settings_stay_as_they_were():
    torch.manual_seed(5)
    before = torch.get_num_threads(), torch.get_rng_state().tolist()
    compare_devices(CNN_STEP, [4], ["cpu"], max_s=0.01)
    assert (torch.get_num_threads(), torch.get_rng_state().tolist()) == before


@pytest.mark.parametrize("sizes", [[], [0], [1, -2], [1.5], 0, ["8"]])
def test_sizes_that_are_none_are_refused(sizes):
    with pytest.raises(ValueError, match="it has to list whole numbers of at least 1"):
        compare_devices(PRODUCT, sizes, "cpu")
