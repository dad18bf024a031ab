"""The verdicts on lessons 3, 4, 6 and 7, compared with what PyTorch, XLA and Lightning themselves
say.
"""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process


ON_XLA = """
from course_lessons.tpu import exercises as ex
from course_utils.xla import start_xla

start_xla()

def reads(step, sync, batches):
    total = 0
    for batch in batches:
        total += step(batch).item()
        sync()
    return total / len(batches)

def fetches_at_the_end(step, sync, batches):
    losses = []
    for batch in batches:
        losses.append(step(batch))
        sync()
    return sum(loss.cpu() for loss in losses).item() / len(losses)

names = {}
exec("import torch\\n" + "\\n".join(str(one.solution()) for one in (ex.epoch, ex.fallback)), names)
for answer in (names["my_epoch"], reads, fetches_at_the_end):
    print(ex.epoch.check(answer))
for answer in (names["my_loss"], ex.robust_loss):
    print(ex.fallback.check(answer))
"""


@pytest.mark.usefixtures("needs_xla")
def test_where_xla_runs_its_counters_judge():
    done = subprocess.run(
        [sys.executable, "-c", ON_XLA], capture_output=True, text=True, timeout=240, check=True
    )
    solved, read, fetched, lowered, fell = done.stdout.splitlines()
    assert solved.startswith("epoch: right.")
    assert "10 executed, 0 to the device, 1 from it" in solved
    assert read.startswith("epoch: wrong. Before the last step the loop had read 9 values")
    assert fetched.startswith("epoch: wrong. The loop is fine, but after it you read 10 values")
    assert lowered.startswith("fallback: right. XLA counted") and "0 fallbacks" in lowered
    assert fell.startswith("fallback: wrong. Still a fallback: aten::huber_loss")


ON_EIGHT = """
import itertools

import numpy as np
import torch
from course_lessons.tpu.exercises import FALLBACKS, piece
from course_utils.xla import import_torch_xla, start_xla

torch_xla = import_torch_xla()
torch_xla.runtime.use_spmd()
from torch_xla.debug import metrics
from torch_xla.distributed.spmd import Mesh, mark_sharding

device, mesh = start_xla(), Mesh(np.arange(8), (4, 2), ("data", "model"))
for spec in itertools.permutations(["data", "model", None, None], 2):
    held = mark_sharding(torch.zeros(64, 1024).to(device), mesh, spec).local_shards[0].data.shape
    assert tuple(held) == piece(spec, (64, 1024)), spec
rows = torch.rand(8).to(device)
torch.nn.functional.huber_loss(rows, rows)
rows.median()
for name in FALLBACKS:
    assert f"aten::{name}" in metrics.executed_fallback_ops(), name
print("agreed")
"""


@pytest.mark.usefixtures("needs_xla")
def test_eight_devices_hold_the_pieces_and_fall_back_where_the_exercises_say_so():
    variables = {**os.environ, "CPU_NUM_DEVICES": "8", "PJRT_DEVICE": "CPU"}
    done = subprocess.run(
        [sys.executable, "-c", ON_EIGHT], env=variables, capture_output=True, text=True, timeout=240
    )
    assert done.stdout == "agreed\n", done.stderr
