"""Which of the signs that a failed run gave is its cause, whatever the order in which they
arrived.
"""

import itertools
import signal
import time

import pytest

from course_utils.launch.causes import Reports, describe_death

RAISED = ("rank 1", {"fault": "Traceback", "error": "ValueError: no target"})
# what the operating system says of a rank that has raised
EXITED = ("main", {"died": 1, "status": 1})
KILLED = ("main", {"died": 1, "status": -signal.SIGKILL})


def heard(*signs) -> Reports:
    reports = Reports(ranks=(0, 1))
    for who, message in [("main", {"hello": 1}), *signs]:
        reports.take(who, message)
    return reports


def cause(signs):
    return heard(*signs).cause(status=1)[0]


@pytest.mark.parametrize("signs", [*itertools.permutations([RAISED, EXITED])])
def test_a_rank_that_raised_is_said_to_have_raised_even_if_its_exit_is_noticed_first(signs):
    assert cause(signs) == "rank 1 raised ValueError: no target."


def test_a_rank_that_exits_without_a_word_is_said_to_have_exited():
    assert cause([EXITED]).startswith("rank 1 ended with exit status 1")


@pytest.mark.parametrize("signs", [*itertools.permutations([RAISED, KILLED])])
def test_a_rank_that_was_killed_is_said_to_have_been_killed(signs):
    assert "SIGKILL" in cause(signs)


PEER = ("rank 1", {"fault": "Traceback", "error": "RuntimeError: Connection reset by peer"})
TERMINATED = ("main", {"died": 0, "status": -signal.SIGTERM})
CLOSED = ("rank 0", {"closed": True})


def alive(rank):
    return f"rank {rank}", {"hello": rank + 100}


@pytest.mark.parametrize("signs", [(TERMINATED, PEER), (CLOSED, PEER, TERMINATED)])
def test_a_rank_that_was_asked_to_stop_is_named_and_not_the_one_that_lost_it(signs):
    text = cause([alive(0), alive(1), *signs])
    assert text.startswith("rank 0 was killed by signal 15") and "memory" not in text


def test_the_first_process_that_ends_without_a_word_is_named_before_who_lost_it():
    assert cause([alive(0), alive(1), CLOSED, PEER]).startswith("rank 0 ended with exit status")


def test_a_rank_that_leaves_with_status_0_is_named_even_if_who_lost_it_is_heard_first():
    reports = heard(alive(0), alive(1), PEER, CLOSED)
    # seen by its connection alone
    assert reports.cause(status=1)[0].startswith("rank 0 ended with exit status 0")
    reports.note_death("rank 0", 7)
    assert reports.cause(status=1)[0].startswith("rank 0 ended with exit status 7")


def test_a_rank_that_is_ended_because_another_raised_is_not_the_cause():
    assert cause([alive(0), alive(1), RAISED, CLOSED]) == "rank 1 raised ValueError: no target."


def test_the_end_of_a_rank_says_nothing_after_it_has_finished():
    finished = heard(alive(0), ("rank 0", {"finished": True}), CLOSED)
    finished.note_death("rank 0", 1)
    assert not finished.failed


def test_ranks_that_end_with_the_process_that_started_them_are_not_blamed():
    interrupted = (
        "rank 1",
        {"fault": "Traceback", "error": "KeyboardInterrupt: a person sent it SIGINT"},
    )
    reports = heard(alive(0), alive(1), interrupted, ("rank 0", {"closed": True}))
    for number in (signal.SIGTERM, signal.SIGABRT):
        assert reports.cause(-number)[0].startswith(
            f"the first process was killed by signal {number:d}"
        )
    assert reports.cause(1)[0].startswith("rank 1 raised KeyboardInterrupt")


def test_what_the_first_process_raises_counts_only_where_no_rank_has_said_more():
    echo = ("main", {"fault": "Traceback", "error": "ProcessRaisedException: rank 1"})
    assert cause([echo, RAISED]).startswith("rank 1 raised ValueError: no target.")
    assert cause([echo]) == "the first process raised ProcessRaisedException: rank 1."


def test_a_rank_that_failed_after_its_training_is_named_by_the_process_that_started_it():
    late = ("main", {"fault": "Traceback", "error": "OSError: No space left on device", "rank": 1})
    assert cause([alive(0), alive(1), late]) == "rank 1 raised OSError: No space left on device."


def test_a_lost_connection_is_known_below_the_first_line_of_an_error():
    nccl = "DistBackendError: NCCL error in: Utils.hpp\nLast error:\nConnection reset by peer"
    lost = ("rank 0", {"fault": "Traceback", "error": nccl})
    assert cause([alive(0), alive(1), lost, ("rank 1", {"closed": True})]).startswith(
        "rank 1 ended with exit status"
    )


# What torch 2.9 says, shortened.
UNUSED = """RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This \
error indicates that your module has parameters that were not used in producing loss. You can enable it, and by
making sure all `forward` function outputs participate in calculating loss.
Parameters which did not receive grad for rank 1: head.bias, head.weight
Parameter indices which did not receive grad for rank 1: 2 3"""


def test_parameters_without_a_gradient_are_named_once_whichever_ranks_notice_it():
    signs = [
        (f"rank {rank}", {"fault": UNUSED.replace("rank 1", f"rank {rank}"), "error": UNUSED})
        for rank in (1, 0)
    ]
    said = cause(signs)
    assert (
        said.startswith("rank 1 raised RuntimeError: the loss does not use")
        and said.count("head.weight") == 1
    )
    assert "Freeze or delete" in said and "rank 0" not in said and "2 3" not in said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("ValueError: one\ntwo", "ValueError: one"),
        (
            "ValueError: \nshapes differ:\n  (4,) and (5,)\n",
            "ValueError: shapes differ: (4,) and (5,)",
        ),
        ("AssertionError: ", "AssertionError"),
        (
            "OSError: Caught OSError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
            '  File "x.py", line 1\nOSError: [Errno 5] disk: 7.png\n',
            "OSError: [Errno 5] disk: 7.png (in DataLoader worker process 0)",
        ),
    ],
)
def test_of_an_error_of_many_lines_the_one_that_says_what_is_wrong_is_the_cause(error, said):
    assert cause([("rank 0", {"fault": "", "error": error})]) == f"rank 0 raised {said}."


def test_what_a_spawned_process_cannot_get_leads_to_the_way_out():
    where = "    ForkingPickler(file, protocol).dump(obj)"
    said = cause(
        [
            (
                "main",
                {
                    "fault": where,
                    "error": "AttributeError: Can't pickle local object 'f.<locals>.Net'",
                },
            )
        ]
    )
    assert said.endswith(
        "Net'. A spawned process finds only what a file defines at its top: define it there, or pass --strategy ddp."
    )


def later(monkeypatch, seconds):
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + seconds)


def test_what_loads_for_longer_than_the_timeout_before_it_trains_is_named(monkeypatch):
    reports = heard(("main", {"loading": True}))
    assert reports.silence(3) == ("", [])
    later(monkeypatch, 4)
    text, pids = reports.silence(3)
    assert text.startswith("the first process has been silent since") and pids == [1]
    assert "it is loading the lesson. The limit of 3 s" in text
    later(monkeypatch, 1000)
    assert reports.silence(3)[0].startswith("the first process"), "the ranks wait for it"
    reports.take("main", {"loading": False})
    assert reports.silence(3) == ("", [])


def test_while_a_lesson_loads_no_rank_is_late(monkeypatch):
    reports = heard()
    later(monkeypatch, 300)
    reports.take("main", {"loading": True})
    later(monkeypatch, 350)
    assert reports.silence(600) == ("", [])


def test_a_rank_that_never_starts_has_two_minutes_however_short_the_timeout(monkeypatch):
    reports = heard(alive(0), ("rank 0", {"step": 0, "where": "it waits"}))
    later(monkeypatch, 100)
    assert reports.silence(3) == ("", [])
    later(monkeypatch, 130)
    text, pids = reports.silence(3)
    assert (
        text.startswith("rank 1 has been silent")
        and "it has not begun to train" in text
        and "rank 0" not in text
    )
    assert "The limit of 120 s" in text and pids == []


def test_of_ranks_that_wait_for_each_other_the_one_behind_is_silent_and_a_clock_that_jumps_changes_nothing(
    monkeypatch,
):
    beat = {"step": 1, "where": "it waits"}
    reports = heard(alive(0), alive(1), ("rank 0", beat), ("rank 1", beat), ("rank 0", beat))
    monkeypatch.setattr(time, "time", lambda: 10**10)
    assert reports.silence(3) == ("", [])
    later(monkeypatch, 4)
    text, pids = reports.silence(3)
    assert (
        text.startswith("rank 1 has been silent since")
        and "for 4 s: after step 1, it waits" in text
    )
    assert "rank 0" not in text and pids == [101]


def test_after_a_fault_the_others_have_a_moment_and_after_a_lack_of_memory_a_longer_one(
    monkeypatch,
):
    now = time.monotonic()
    lacks = ("rank 1", {"fault": "", "error": "RuntimeError: CUDA out of memory"})
    assert heard().deadline_s > now + 10**9 and 0 < heard(RAISED).deadline_s - now < 5
    assert 20 < heard(lacks).deadline_s - now < 30 and heard(RAISED, lacks).deadline_s - now < 5
    assert heard(("rank 0", {"finished": True})).deadline_s > now + 10**9
    assert (
        heard(("rank 0", {"finished": True}), ("rank 1", {"finished": True})).deadline_s < now + 15
    )


def test_a_run_that_is_done_has_no_cause_though_its_processes_end_late():
    finished = [alive(0), alive(1), ("rank 0", {"finished": True})]
    finished += [("rank 1", {"finished": True}), ("rank 1", {"closed": True})]
    assert heard(*finished).cause(status=None) == ("", None)
    assert (
        heard(alive(0)).cause(status=0)[0].startswith("the first process ended with exit status 0")
    )


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (3, "exit status 3 after step 7"),
        (-signal.SIGTERM, "asked it to stop"),
        (-signal.SIGKILL, "memory runs out"),
        (-signal.SIGSEGV, "C++ or CUDA code"),
    ],
)
def test_what_ended_a_process_decides_what_to_try(status, said):
    others = {"asked it to stop", "memory runs out", "C++ or CUDA code"} - {said}
    text = describe_death("rank 1", status, step=7)
    assert said in text and not any(other in text for other in others)


def test_a_rank_that_aborts_because_another_raised_is_not_the_cause_but_one_that_aborts_alone_is():
    aborted = ("main", {"died": 0, "status": -signal.SIGABRT})
    assert cause([RAISED, aborted]) == "rank 1 raised ValueError: no target."
    assert cause([aborted]).startswith("rank 0 was killed by signal 6")


def test_of_two_ranks_that_died_the_one_that_nobody_ended_is_named():
    crashed = ("main", {"died": 1, "status": -signal.SIGSEGV})
    assert cause([TERMINATED, crashed]).startswith("rank 1 was killed by signal 11")


def test_a_rank_that_multiprocessing_ends_has_not_failed_unless_it_had_left_before():
    reports = heard(alive(0), alive(1))
    reports.note_death("rank 0", -signal.SIGTERM)
    assert not reports.failed
    reports.take(*CLOSED)
    reports.note_death("rank 0", -signal.SIGTERM)
    assert reports.failed and reports.cause(status=1)[0].startswith(
        "rank 0 was killed by signal 15"
    )


def test_who_raises_and_who_dies_has_failed_and_the_others_have_a_moment():
    for sign in (RAISED, KILLED):
        reports = heard(sign)
        assert reports.failed and reports.deadline_s < time.monotonic() + 5
    assert not heard(alive(0)).failed


@pytest.mark.parametrize("status", [7, None])
def test_a_first_process_that_is_a_rank_is_named_as_one_and_its_abort_does_not_hide_who_raised(
    status,
):
    alone = Reports(ranks=(0, 1))
    alone.take("rank 0", {"hello": 1})
    alone.take("rank 1", {"hello": 2})
    alone.take(*CLOSED)
    assert alone.cause(status)[0].startswith(f"rank 0 ended with exit status {status or 0}")
    alone = Reports(ranks=(0, 1))
    alone.take("rank 0", {"hello": 1})
    alone.take(*RAISED)
    assert alone.cause(-signal.SIGABRT)[0] == "rank 1 raised ValueError: no target."


def test_a_run_has_come_as_far_as_its_first_rank_and_keeps_what_else_it_is_told():
    steps = [
        ("rank 0", {"step": 3, "where": "it trains"}),
        ("rank 1", {"step": 2, "where": "it trains"}),
    ]
    reports = heard(alive(0), alive(1), *steps, ("rank 0", {"result": "a.ckpt"}))
    assert reports.step == 3 and reports.events == {"result": "a.ckpt"}
