"""Run a student's code so that it ends in time and leaves the process as it was."""

import _thread
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

AGAIN_S = 0.5  # code that caught the first interruption gets another one after this many seconds


class TooLong(BaseException):
    """The time is up. It is not an Exception, so that a student's `except Exception` lets it through."""


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

    That is PyTorch's threads, default device and type, gradients on or off, and the random numbers of Python and of
    PyTorch on the CPU.
    """
    threads, dtype, device = torch.get_num_threads(), torch.get_default_dtype(), torch.empty(0).device
    state = random.getstate()
    try:
        with torch.random.fork_rng(devices=[]), torch.set_grad_enabled(torch.is_grad_enabled()):
            yield
    finally:
        random.setstate(state)
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
        if torch.empty(0).device != device:
            torch.set_default_device(device)  # after None, torch 2.9's get_default_device fails
