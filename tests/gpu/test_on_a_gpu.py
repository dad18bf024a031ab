"""What only a real NVIDIA card can show. `make gpu` runs this file; elsewhere each test skips and
says so.

With COURSE_DRY=1, as `make gpu DRY=1` sets it, the tests that have a meaning on a CPU run there.
"""

import os
import re
import subprocess
import sys
import warnings

import pytest
import torch
from course_lessons.device_speed.image_step import cnn_step
from course_lessons.scripts import FOLDER
from gpu_programs import ERRORS, GOING_ON, PASSED, REFUSED, UNSEEN, WAITING, given_on

from course_tools.compare.workloads import using_tf32
from course_tools.timeline import Timeline
from course_tools.timeline.bottleneck import find_bottleneck
from course_tools.timeline.trace import run_profiled
from course_utils.devices import find_devices, pick_device, wait_for
from course_utils.timing import time_call
from course_utils.transfers import to_device

CPU = pick_device("cpu")
DRY = os.environ.get("COURSE_DRY") == "1" and not torch.cuda.is_available()
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
needs_cuda_or_dry = pytest.mark.skipif(
    not torch.cuda.is_available() and not DRY, reason="needs an NVIDIA GPU"
)


@pytest.fixture
def device():
    return pick_device("cpu" if DRY else "cuda")


@needs_cuda
def test_the_card_is_listed_with_its_memory_and_is_the_best_device():
    card = find_devices()[0]
    assert card.kind == "cuda" and card.name == torch.cuda.get_device_name(0)
    assert card.memory_bytes == pytest.approx(
        torch.cuda.get_device_properties(0).total_memory, rel=0.05
    )


@needs_cuda_or_dry
def test_a_step_has_the_loss_of_the_cpu(device):
    losses = []
    for one in (CPU, device):
        torch.manual_seed(42)
        with using_tf32(False):
            losses.append(cnn_step(one, 16)().item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


@needs_cuda_or_dry
def test_a_nested_batch_moves(device):
    batch = {"images": [torch.ones(2, 3)], "labels": (torch.zeros(2), "names")}
    moved = to_device(batch, device)
    image, (label, name) = moved["images"][0], moved["labels"]
    assert image.device.type == label.device.type == device.kind and name == "names"
    assert torch.equal(image.cpu(), batch["images"][0])


@needs_cuda
def test_a_pinned_copy_that_does_not_block_arrives(device):
    source = torch.arange(1_000_000).pin_memory()
    moved = to_device([source], device, non_blocking=True)[0]
    wait_for(device)
    assert torch.equal(moved.cpu(), source)


@needs_cuda
def test_pinned_memory_is_not_slower_for_large_copies(device):
    ordinary = torch.zeros(2**26, dtype=torch.uint8)
    ordinary_s, pinned_s = (
        time_call(lambda host=host: host.to("cuda"), device=device, max_s=0.3).median_s
        for host in (ordinary, ordinary.pin_memory())
    )
    assert pinned_s < 1.1 * ordinary_s


@needs_cuda
def test_the_timer_waits_for_the_device(device):
    matrix = torch.randn(4096, 4096, device=device.torch_device)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    ours = time_call(lambda: matrix @ matrix, device=device, max_s=0.5).median_s
    start.record()
    for _ in range(20):
        matrix @ matrix
    end.record()
    end.synchronize()
    assert ours == pytest.approx(start.elapsed_time(end) / 20e3, rel=0.2)


@needs_cuda_or_dry
def test_lightning_trains_on_the_device(device, tmp_path):
    pytest.importorskip("lightning")
    from course_lessons.data.models import AirRNN
    from course_lessons.lightning_training import Regression

    from course_utils.lightning import pl, trainer_kwargs

    data = torch.utils.data.TensorDataset(torch.rand(32, 12, 1), torch.rand(32, 12, 1))
    model = Regression(AirRNN())
    trainer = pl.Trainer(
        **trainer_kwargs(device),
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=8))
    assert trainer.strategy.root_device.type == device.kind and trainer.global_step == 4


@needs_cuda
def test_what_limits_a_loop_on_a_gpu_is_what_was_built_in(device):
    def tiny(batch):
        there = batch.to("cuda")
        for _ in range(500):
            there = there.neg()

    large = torch.ones(4096, 4096, device="cuda")
    found = find_bottleneck(lambda batch: large @ large, [None], device=device)
    assert find_bottleneck(tiny, [torch.ones(2)], device=device).limit == "launches"
    assert found.limit == "arithmetic"


@needs_cuda
def test_a_timeline_shows_the_stream_and_the_copies_and_that_the_host_goes_on(device):
    x, source = torch.ones(4096, 4096, device="cuda"), torch.ones(1024, 1024).pin_memory()

    def work():
        return source.to("cuda", non_blocking=True), x @ x, x @ x

    work()
    found = Timeline.of_trace(run_profiled(work, device))
    lanes = {lane.kind: lane for lane in found.lanes}
    assert {"host", "device", "copies"} <= lanes.keys()
    calls = [span for span in lanes["host"].work if span.name == "aten::matmul"]
    assert len(calls) == 2 and calls[-1].end_s < lanes["device"].work[-1].end_s
    assert lanes["host"].waits[-1].end_s >= lanes["device"].work[-1].end_s - 1e-4


@needs_cuda
@pytest.mark.process
@pytest.mark.parametrize("script", ["train_gpu.py", "train_fast.py", "train_ddp.py"])
def test_the_scripts_train_on_the_gpus_that_are_here_without_a_change(script, tmp_path):
    ranks = torch.cuda.device_count() if script == "train_ddp.py" else 1
    launch = [sys.executable]
    if script == "train_ddp.py":
        launch += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    options = ["--images", "600", "--batch", "128", "--epochs", "2"]
    options += ["--bits", "32"] if script != "train_gpu.py" else []
    lines = {}
    for device in ("cuda", "cpu"):
        done = subprocess.run(
            [*launch, str(FOLDER / script), *options, "--device", device],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        lines[device] = done.stdout
    assert "on cuda" in lines["cuda"] and "on cpu" in lines["cpu"]
    found, expected = [re.findall(r"loss (\S+)", lines[device]) for device in ("cuda", "cpu")]
    # TF32 rounds in the convolutions of newer cards.
    assert list(map(float, found)) == pytest.approx(list(map(float, expected)), rel=0.01)


NAMES = {"ids": lambda each: each.__name__}


@needs_cuda
@pytest.mark.parametrize("program", REFUSED, **NAMES)
def test_a_real_card_refuses_what_the_rehearsal_says_it_refuses(program):
    if program.__name__ == "fail_second_gpu" and torch.cuda.device_count() > 1:
        pytest.skip("there is a second GPU")
    with pytest.raises(ERRORS, match=REFUSED[program]):
        program("cuda")


@needs_cuda
@pytest.mark.parametrize("program", PASSED, **NAMES)
def test_a_real_card_accepts_what_the_rehearsal_says_it_accepts(program):
    assert program("cuda").device.type == "cuda"


@needs_cuda
@pytest.mark.parametrize("code", [each for each in (*WAITING, *GOING_ON) if each not in UNSEEN])
def test_a_real_card_waits_where_the_rehearsal_says_it_waits(code):
    exec(code, given_on("cuda"))  # libraries start, and may wait
    given = given_on("cuda")
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            exec(code, given)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert any("synchronizing" in str(each.message) for each in told) == (code in WAITING)
