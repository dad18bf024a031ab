"""Stop code that does not end by itself."""

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

AGAIN_S = 0.5  # code that caught the first interruption gets another one after this many seconds


class TooLong(BaseException):
    """The time is up. It is no Exception, so that a student's `except Exception` lets it through."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooLong inside the block when it takes longer than this many seconds.

    One long call into C, such as a huge product of matrices, is interrupted when it ends. Outside of the main thread
    nothing can be interrupted, and the block may take as long as it likes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
    elif hasattr(signal, "setitimer"):
        with _alarm(seconds):
            yield
    else:
        with _interruption(seconds):
            yield


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def raise_it(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, raise_it)
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
