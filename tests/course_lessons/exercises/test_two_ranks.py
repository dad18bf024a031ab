import subprocess
import sys

import pytest
from course_lessons.exercises.two_ranks import run_two_ranks

pytestmark = pytest.mark.process


SCRIPT = """
import os
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([1.0 + dist.get_rank()])
dist.all_reduce(total)
model = torch.nn.Linear(1, 1)
seen = [dist.get_rank(), dist.get_world_size(), total.item()]
dist.destroy_process_group()
"""


def test_two_ranks_meet_and_each_says_what_it_has():
    one, other = run_two_ranks(SCRIPT)
    assert (one["seen"], other["seen"]) == ([0, 2, 3.0], [1, 2, 3.0])
    assert len(one["weights"]) == 2


def test_two_ranks_train_beside_xla_too(in_xla):
    """PyTorch goes backward in no copy of a process that has started XLA, so these ranks are new
    processes.
    """
    one, _ = in_xla(run_two_ranks, f"{SCRIPT}model(total).sum().backward()")
    assert len(one["weights"]) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("raise ValueError('no data')", "ValueError: no data"),
        ("os._exit(3)", "before its last line"),
    ],
)
def test_a_rank_that_fails_is_an_error_and_nothing_goes_on(line, message):
    with pytest.raises(RuntimeError, match=message):
        run_two_ranks(f"import os\n{line}")


def test_a_script_without_the_names_that_are_read_has_seen_nothing_and_has_no_weights():
    assert run_two_ranks("x = 1") == [{"seen": [], "weights": []}] * 2


class Asked(Exception):
    """For which kind of process was asked."""


@pytest.mark.parametrize(("gpus", "kind"), [(0, "fork"), (1, "spawn")])
def test_ranks_are_copies_only_where_no_gpu_has_threads_that_a_copy_would_lack(
    gpus, kind, monkeypatch
):
    def get_context(kind):
        raise Asked(kind)

    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    monkeypatch.setattr("course_lessons.exercises.sandbox.FORKS", True)
    # no reason for new processes: they take seconds to start
    monkeypatch.setitem(sys.modules, "torch_xla", object())
    monkeypatch.setattr("multiprocessing.get_context", get_context)
    with pytest.raises(Asked, match=kind):
        run_two_ranks("")


def test_a_rank_that_is_a_new_process_imports_nothing_that_takes_its_time():
    code = "import sys, course_lessons.exercises.two_ranks; print(*{'lightning', 'matplotlib', 'pandas'} & {*sys.modules})"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "\n"
    )
