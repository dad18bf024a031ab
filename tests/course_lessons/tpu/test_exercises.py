"""The verdicts on answers for a TPU, compared with what XLA itself says."""

from types import SimpleNamespace

import pytest
import torch
from course_lessons.tpu import exercises as ex

from course_utils.xla import start_xla


def verdicts() -> list[str]:
    from torch_xla.debug import metrics

    names = {"torch": torch}
    exec(str(ex.fallback.solution()), names)
    answers = [names["my_loss"], ex.robust_loss, lambda p, t: (p - t).mean() * p.max().item()]
    said = [str(ex.fallback.check(answer)) for answer in answers]
    rows = torch.rand(8).to(start_xla())
    torch.nn.functional.huber_loss(rows, rows)
    rows.median()
    assert {f"aten::{name}" for name in ex.FALLBACKS} <= set(metrics.executed_fallback_ops())
    return said


@pytest.mark.slow
def test_where_xla_runs_its_counters_judge(in_xla):
    lowered, fell, read = in_xla(verdicts)
    assert lowered.startswith("fallback: right.")
    assert fell.startswith("fallback: wrong. Something still falls back")
    assert read.startswith("fallback: wrong. You read values yourself")


def test_what_was_recorded_before_an_answer_is_not_counted_and_all_that_it_recorded_is(monkeypatch):
    done = []

    class Counters:
        def __sub__(self, earlier):
            return SimpleNamespace(fallbacks=2, from_device=3)

    monkeypatch.setattr(ex, "run_recorded", lambda device: done.append("run"))
    monkeypatch.setattr(ex, "xla_counters", lambda: done.append("count") or Counters())
    found = ex._watch(SimpleNamespace(type="xla"), lambda: done.append("work") or "a loss")
    assert found == ("a loss", 2, 3)
    assert done == ["run", "count", "work", "run", "count"]
