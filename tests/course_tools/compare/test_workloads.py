import pytest
import torch
from course_lessons.device_speed.image_step import CNN_STEP, cnn_step
from torch.utils.flop_counter import FlopCounterMode

from course_tools.compare.comparison import compare_devices
from course_tools.compare.workloads import (
    ELEMENTWISE,
    PRODUCT,
    Workload,
    build_seeded,
    using_tf32,
)
from course_utils.devices import pick_device

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = pick_device("cpu")


def test_a_step_trains():
    torch.manual_seed(42)
    step = cnn_step(CPU, 16)
    losses = [step().item() for _ in range(60)]
    assert losses[-1] < 0.9 * losses[0]


def test_a_cnn_step_takes_the_operations_of_its_layers():
    with FlopCounterMode(display=False) as counter:
        cnn_step(CPU, 8)()
    # Multiplications and additions of one image, forward: outputs x inputs to each, of every layer.
    convolutions = [6 * 28 * 28 * 75, 16 * 10 * 10 * 150, 16 * 5 * 5 * 144, 16 * 5 * 5 * 144]
    linears = [400 * 120, 120 * 84, 84 * 10]
    # Backward takes twice as many, once for the weights and once for the inputs, which the first
    # layer leaves out.
    assert counter.get_total_flops() == 2 * 8 * (3 * sum(convolutions + linears) - convolutions[0])


@pytest.mark.parametrize(
    ("precision", "close"), [("fp32", 1e-6), ("tf32", 1e-2), ("bf16", 3e-2), ("fp16", 1e-2)]
)
def test_a_step_in_every_precision_has_nearly_the_same_loss(precision, close):
    torch.manual_seed(42)
    expected = cnn_step(CPU, 4)()
    torch.manual_seed(42)
    found = cnn_step(CPU, 4, precision)()
    assert abs(found.item() - expected.item()) < close
    assert found.item() != expected.item() or precision not in ("bf16", "fp16")  # fewer bits


def switches():
    cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    if hasattr(cuda, "fp32_precision"):
        return [cuda.fp32_precision, cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision]
    return [cuda.allow_tf32, cudnn.allow_tf32]


# torch 2.9 warns whenever it is asked for the setting that spans its old and new switches, once a
# process.
@pytest.mark.filterwarnings("ignore:Please use the new API settings:UserWarning")
@pytest.mark.parametrize("allowed", [True, False])
def test_tf32_is_switched_inside_the_block_only(allowed):
    before, precision = switches(), torch.get_float32_matmul_precision()
    with pytest.raises(KeyError), using_tf32(allowed):
        assert set(switches()) <= ({"tf32", True} if allowed else {"ieee", False})
        raise KeyError
    assert switches() == before
    # torch raises here when its switches disagree
    assert torch.get_float32_matmul_precision() == precision


def test_building_a_work_leaves_every_generator_of_the_caller_alone(monkeypatch):
    monkeypatch.setattr(
        torch.cuda, "manual_seed_all", lambda seed: pytest.fail("this would reseed the GPU's")
    )
    before = torch.get_rng_state()
    build_seeded(CNN_STEP, 4, pick_device("cpu"), "fp32")
    assert torch.equal(torch.get_rng_state(), before)


def test_the_workloads_compute_what_they_say():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        left, right = torch.randn(5, 5), torch.randn(5, 5)
    assert torch.allclose(
        build_seeded(PRODUCT, 5, CPU, "fp32")(), (left.double() @ right.double()).float()
    )
    assert PRODUCT.items(10) == 2000
    with torch.random.fork_rng():
        torch.manual_seed(0)
        a, b = torch.randn(6), torch.randn(6)
    assert torch.allclose(build_seeded(ELEMENTWISE, 6, CPU, "fp32")(), a + 2 * b)
    halves = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    for work in (PRODUCT, ELEMENTWISE):
        assert {name: build_seeded(work, 2, CPU, name)().dtype for name in halves} == halves


def test_a_function_that_does_the_work_instead_of_returning_it_is_refused():
    wrong = r"workload 'at_once' returned Tensor, but .* a function without"
    with pytest.raises(TypeError, match=wrong) as refused:
        compare_devices(at_once, [4], ["cpu"])
    example = {"torch": torch}  # the one in the message runs
    exec(str(refused.value).partition("such as: ")[2], example)
    assert compare_devices(example["work"], [4], ["cpu"], max_s=0.01).work.workload == "work"


def at_once(size, device):
    return torch.ones(size, device=device)


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda size: torch.ones, r"takes \(size\), but is called as work\(size, device\)"),
        (lambda device, size: torch.ones, r"takes \(device, size\): swap them"),
        (Workload("w", lambda size: torch.ones), r"is called as build\(device=\.\.\., size="),
        (
            Workload("w", lambda size, device: torch.ones),
            r'def work\(size, device, precision="fp32"',
        ),
        (3, "'int' is no workload: pass a function"),
        (Workload("w", lambda **asked: lambda: {1}), r"'w' answered with set\. Return a tensor"),
    ],
)
def test_work_with_other_parameters_or_answers_is_refused_in_words(work, words):
    with pytest.raises(TypeError, match=words):
        compare_devices(work, [1], "cpu", max_s=0.01)
