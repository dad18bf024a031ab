"""The verdicts of lesson 5, compared with what XLA itself says."""

import subprocess
import sys

import pytest

ON_XLA = """
import torch
from course_lessons.tpu import exercises as ex
from course_utils.xla import start_xla
from torch_xla.debug import metrics

device = start_xla()
names = {"torch": torch}
exec(str(ex.fallback.solution()), names)
for answer in (names["my_loss"], ex.robust_loss, lambda p, t: (p - t).mean() * p.max().item()):
    print(ex.fallback.check(answer))
rows = torch.rand(8).to(device)
torch.nn.functional.huber_loss(rows, rows)
rows.median()
for name in ex.FALLBACKS:
    assert f"aten::{name}" in metrics.executed_fallback_ops(), name
"""


@pytest.mark.process
@pytest.mark.usefixtures("needs_xla")
def test_where_xla_runs_its_counters_judge():
    done = subprocess.run(
        [sys.executable, "-c", ON_XLA], capture_output=True, text=True, timeout=240, check=True
    )
    lowered, fell, read = done.stdout.splitlines()
    assert lowered.startswith("fallback: right.")
    assert fell.startswith("fallback: wrong. Something still falls back")
    assert read.startswith("fallback: wrong. You read values yourself")
