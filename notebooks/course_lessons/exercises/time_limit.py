"""A time limit for an answer, where the system has one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


class TooLong(BaseException):
    """Raised when the time limit is reached.

    A BaseException, so that `except Exception` in an answer does not catch it.
    """


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooLong inside the block when it takes longer than this many seconds.

    One long call into C is interrupted when it ends. On Windows, and outside the main thread, there
    is no limit: the reader has the stop button.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not hasattr(signal, "setitimer") or not in_main_thread:
        yield
        return

    def stop(*_: object) -> NoReturn:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
