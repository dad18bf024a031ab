"""Run a student's code so that it ends in time and leaves the process as it was."""

import _thread
import builtins
import gc
import io
import json
import os
import random
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import torch

FORKS = sys.platform == "linux"  # elsewhere a copy of a process that has used PyTorch may crash
MOST_PRINTED = 10_000  # characters of what an answer prints that are shown
AGAIN_S = 0.5  # code that caught the first interruption gets another one after this many seconds


class TooLong(BaseException):
    """The time is up. It is not an Exception, so that a student's `except Exception` lets it through."""


def can_run_apart() -> bool:
    """Say whether a copy of this process can run an answer: as a DataLoader's workers, it can use the CPU only."""
    # Where there is a GPU, the first backward pass on the CPU starts a thread for it, which a copy would lack.
    accelerated = torch.cuda.device_count() or torch.xpu.device_count() or "torch_xla" in sys.modules
    return FORKS and not accelerated and threading.current_thread() is threading.main_thread()


def run_apart(judge: Callable[[], tuple[str, str]], limit_s: float) -> tuple[str, str] | None:
    """Return what a function returns in a copy of this process, which ends with the call, whatever it is doing.

    Args:
        judge: what to run; what it prints is printed here.
        limit_s: seconds until the copy is killed.

    Returns:
        The function's two texts, or None where the copy ended before it had them.

    Raises:
        TooLong: the copy had to be killed.
        OSError: no copy could be made.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which the copy does without
        copy = os.fork()
    if not copy:
        _judge_and_exit(judge, writer)
    os.close(writer)
    said, end_s = b"", time.monotonic() + limit_s
    try:
        while b"\n" not in said:
            if not select.select([reader], [], [], max(0, end_s - time.monotonic()))[0]:
                raise TooLong
            if not (more := os.read(reader, 65536)):
                return None
            said += more
    finally:
        os.close(reader)
        for kill, number in ((os.killpg, copy), (os.kill, copy)):  # it may not have a group of its own yet
            with suppress(ProcessLookupError, PermissionError):
                kill(number, signal.SIGKILL)
        os.waitpid(copy, 0)
    try:
        status, message, printed = json.loads(said.partition(b"\n")[0])
    except ValueError:  # the answer has written to all files that are open
        return None
    print(printed.encode(errors="backslashreplace").decode(), end="")
    return status, message


class _Tail(io.StringIO):
    def write(self, text: str) -> int:
        return super().write(text[:MOST_PRINTED]) if self.tell() < MOST_PRINTED else len(text)


def _judge_and_exit(judge: Callable[[], tuple[str, str]], writer: int) -> NoReturn:
    try:
        os.setsid()
        torch.set_num_threads(1)  # those of the process that was copied are not here
        sys.stdout = sys.stderr = printed = _Tail()
        said = json.dumps([*judge(), printed.getvalue()])
        with os.fdopen(writer, "w") as pipe:
            pipe.write(f"{said}\n")
    finally:
        os._exit(0)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooLong inside the block when it takes longer than this many seconds.

    One long call into C, such as a huge matrix product, is interrupted when it ends. Outside the main thread nothing
    can be interrupted, and the block may take as long as it likes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with _alarm(seconds) if hasattr(signal, "setitimer") else _interruption(seconds):
        yield


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    left = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *left)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _interruption(seconds: float) -> Iterator[None]:
    """Do the same where there is no timer signal (Windows): another thread presses Ctrl-C."""
    due = threading.Event()

    def press() -> None:
        due.set()
        _thread.interrupt_main()

    timer = threading.Timer(seconds, press)
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if due.is_set():
            raise TooLong from None
        raise
    finally:
        timer.cancel()


@contextmanager
def everything_restored() -> Iterator[None]:
    """Undo on leaving what an answer changed for the whole process, so that a lesson's results do not depend on it.

    That is PyTorch's threads, default device and type, gradients on or off, the random numbers of Python and of
    PyTorch on the CPU, and Python's builtins, folder, environment, output, garbage collection and recursion limit.
    """
    known, folder, environment = vars(builtins), os.getcwd(), dict(os.environ)
    names = dict(known)
    output, collects, depth = (sys.stdout, sys.stderr), gc.isenabled(), sys.getrecursionlimit()
    threads, dtype, device = torch.get_num_threads(), torch.get_default_dtype(), torch.empty(0).device
    state = random.getstate()
    try:
        with torch.random.fork_rng(devices=[]), torch.set_grad_enabled(torch.is_grad_enabled()):
            yield
    finally:
        known.update(names)  # first of all: what follows uses them
        for name in known.keys() - names.keys():
            del known[name]
        sys.stdout, sys.stderr = output
        sys.setrecursionlimit(depth)
        (gc.enable if collects else gc.disable)()
        os.chdir(folder)
        if os.environ != environment:
            os.environ.clear()
            os.environ.update(environment)
        random.setstate(state)
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
        if torch.empty(0).device != device:
            torch.set_default_device(device)  # after None, torch 2.9's get_default_device fails
