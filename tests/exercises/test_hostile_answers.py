"""Answers that would hang or end the kernel, and answers that change what is not theirs."""

import contextlib
import ctypes
import gc
import io
import itertools
import os
import signal
import stat
import sys
import time

import pytest
import torch

from course_utils.exercises import exercise, frame, sandbox
from course_utils.exercises.sandbox import can_run_apart


@exercise("One.", "Two.", solution="", right="done")
def called(answer):
    """Write a function that does what it likes."""
    answer()
    yield from ()


class Nameless(BaseException):
    def __str__(self):
        raise GeneratorExit

    __repr__ = __str__


def raises(error):
    raise error


def swallows():
    while True:
        try:
            while True:
                time.sleep(0.01)
        except BaseException:
            continue


def prints_for_ever():
    while True:
        print("x" * 1000)


OF_THE_TESTS = set()  # files that were open before the answer was judged: rubbish in them would hang the run of tests


def write_to_all_files(text):
    for number in range(3, 100):
        with contextlib.suppress(OSError):
            if number not in OF_THE_TESTS and stat.S_ISFIFO(os.fstat(number).st_mode):
                os.write(number, text)


HOSTILE = {
    "a loop inside C": (lambda: sum(itertools.repeat(1)), "too long"),
    "swallows the limit": (swallows, "too long"),
    "prints for ever": (prints_for_ever, "too long"),
    "leaves Python": (lambda: os._exit(0), "error"),
    "crashes": (lambda: ctypes.string_at(0), "error"),
    "closes all files": (lambda: os.closerange(0, 1000), "right"),
    "closes all files and goes on": (lambda: os.closerange(0, 1000) or time.sleep(600), "too long"),
    "writes to all files": (lambda: write_to_all_files(b"rubbish\n"), "right"),
    "copies itself": (lambda: [os.fork() for _ in range(2)] and None, "right"),
    "stops itself": (lambda: os.kill(os.getpid(), signal.SIGSTOP), "too long"),
    "switches the limit off": (lambda: signal.signal(signal.SIGINT, signal.SIG_IGN) and time.sleep(600), "too long"),
    "raises what has no encoding": (lambda: raises(ValueError("\ud800")), "error"),
}
RAISED = [KeyboardInterrupt(), GeneratorExit(), SystemExit(3), Nameless(), MemoryError()]


@pytest.mark.process
@pytest.mark.skipif(not sandbox.FORKS, reason="only Linux makes a safe copy of a process that has used PyTorch")
@pytest.mark.parametrize("name", HOSTILE)
def test_an_answer_that_would_hang_or_end_the_kernel_gets_a_verdict(name, monkeypatch):
    monkeypatch.setattr(frame, "LIMIT_S", 1.0)
    monkeypatch.setattr(frame, "GRACE_S", 1.0)
    if not can_run_apart():
        pytest.skip("another test of this process has started XLA or a device")
    OF_THE_TESTS.clear()
    OF_THE_TESTS.update(map(int, os.listdir("/proc/self/fd")))
    answer, status = HOSTILE[name]
    verdict = called.check(answer)
    assert verdict.status == status and repr(verdict).encode()
    assert called.check(lambda: "and goes on").solved


@pytest.mark.process
@pytest.mark.skipif(not sandbox.FORKS, reason="only Linux makes a safe copy of a process that has used PyTorch")
def test_an_answer_may_print_what_has_no_encoding(monkeypatch):
    if not can_run_apart():
        pytest.skip("another test of this process has started XLA or a device")
    screen = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setattr(sys, "stdout", screen)
    assert called.check(lambda: print("\ud800")).solved
    screen.flush()
    assert screen.buffer.getvalue() == b"\\ud800\n"


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_whatever_an_answer_raises_is_a_verdict(error):
    verdict = called.check(lambda: raises(error))
    assert verdict.status == "error" and type(error).__name__ in verdict.message


def test_what_an_answer_changes_outside_of_torch_is_put_back(monkeypatch):
    monkeypatch.setattr(frame, "can_run_apart", lambda: False)  # a copy of this process would change nothing here
    before = (dict(os.environ), gc.isenabled())

    def change():
        os.environ["PATH"] = ""
        os.environ["CHANGED"] = "yes"
        gc.disable()

    assert called.check(change).solved
    assert before == (dict(os.environ), gc.isenabled())


@pytest.mark.process
@pytest.mark.skipif(torch.cuda.is_available(), reason="here is a GPU")
def test_an_answer_that_names_a_gpu_is_told_that_none_is_here_and_nothing_of_processes():
    verdict = called.check(lambda: torch.ones(1, device="cuda"))
    assert verdict.status == "error"
    assert "fork" not in verdict.message and "spawn" not in verdict.message
    assert any(words in verdict.message for words in ("sees none here", "no NVIDIA driver", "not compiled with CUDA"))


def test_what_a_lesson_has_switched_off_does_not_spoil_a_check():
    with torch.no_grad():
        assert called.check(lambda: torch.ones(1, requires_grad=True).sum().backward()).solved
        assert not torch.is_grad_enabled()
