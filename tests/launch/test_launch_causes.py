"""Which of the signs that a failed run gave is its cause, whatever the order in which they arrived."""

import io
import itertools
import signal
from types import SimpleNamespace

import pytest

from course_utils.launch.clusters import find_cluster
from course_utils.launch.options import Options
from course_utils.launch.supervise import Run
from course_utils.launch.view import View

RAISED = ("rank 1", {"fault": "Traceback", "error": "ValueError: no target", "rank": 1})
EXITED = ("main", {"died": 1, "status": 1})  # what the operating system says of a rank that has raised
KILLED = ("main", {"died": 1, "status": -signal.SIGKILL})


def cause(signs):
    arguments = {"devices": 2, "num_nodes": 1, "strategy": "ddp_spawn", "accelerator": "cpu"}
    run = Run(Options(lesson="air_rnn"), arguments, find_cluster({}), View(io.StringIO(), bar=False))
    run.process = SimpleNamespace(pid=0, returncode=1)
    for who, message in signs:
        run._take(who, message)
    return run._cause()


@pytest.mark.parametrize("signs", [*itertools.permutations([RAISED, EXITED])])
def test_a_rank_that_raised_is_said_to_have_raised_even_if_its_exit_is_noticed_first(signs):
    assert cause(signs) == "rank 1 raised ValueError: no target."


def test_a_rank_that_exits_without_a_word_is_said_to_have_exited():
    assert cause([EXITED]).startswith("rank 1 ended with exit status 1")


@pytest.mark.parametrize("signs", [*itertools.permutations([RAISED, KILLED])])
def test_a_rank_that_was_killed_is_said_to_have_been_killed(signs):
    assert "SIGKILL" in cause(signs)
