"""Which of the signs that a failed run gave is its cause, whatever the order in which they arrived."""

import io
import itertools
import signal
from types import SimpleNamespace

import pytest

from course_utils.launch import supervise
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


PEER = ("rank 1", {"fault": "Traceback", "error": "RuntimeError: Connection reset by peer", "rank": 1})
TERMINATED = ("main", {"died": 0, "status": -signal.SIGTERM})
CLOSED = ("rank 0", {"closed": True})


def alive(rank):
    return f"rank {rank}", {"hello": {"rank": rank, "pid": rank + 100}}


@pytest.mark.parametrize("signs", [(TERMINATED, PEER), (CLOSED, PEER, TERMINATED)])
def test_a_rank_that_was_asked_to_stop_is_named_and_not_the_one_that_lost_it(signs):
    text = cause([alive(0), alive(1), *signs])
    assert text.startswith("rank 0 was killed by signal 15") and "memory" not in text


def test_the_first_process_that_ends_without_a_word_is_named_before_who_lost_it():
    assert cause([alive(0), alive(1), CLOSED, PEER]).startswith("rank 0 ended with exit status")


def test_what_is_stopped_or_loads_for_longer_than_the_timeout_before_it_trains_is_named(monkeypatch):
    arguments = {"devices": 2, "num_nodes": 1, "strategy": "ddp_spawn", "accelerator": "cpu"}
    run = Run(Options(lesson="air_rnn", timeout_s=3), arguments, find_cluster({}), View(io.StringIO(), bar=False))
    run.process = SimpleNamespace(pid=7)
    monkeypatch.setattr(supervise, "group_members", lambda group, stopped: [70] if group == 7 and stopped else [])
    run._take("main", {"loading": 71})
    assert run._stuck() == {}
    run._stopped[70] -= 4
    run._loading[71] -= 4
    found = {who: beat.where for who, beat in run._stuck().items()}
    assert found == {"process 70": "a signal has stopped it", "process 71": "it is loading the lesson"}
    run._take("main", {"loaded": 71})
    assert list(run._stuck()) == ["process 70"]
