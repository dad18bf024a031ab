"""Run a student's code so that it ends in time and leaves the process as it was."""

import _thread
import gc
import io
import multiprocessing
import os
import pickle
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn
from unittest.mock import patch

import torch

from course_utils.xla import started_xla

FORKS = sys.platform == "linux"  # elsewhere a copy of a process that has used PyTorch may crash
MOST_PRINTED = 10_000  # characters of what an answer prints that are shown
AGAIN_S = 0.5  # code that caught the first interruption gets another one after this many seconds


class TooLong(BaseException):
    """The time is up. It is not an Exception, so that a student's `except Exception` lets it
    through.
    """


def can_copy() -> bool:
    """Say whether a copy of this process can train: as a DataLoader's workers, on the CPU only."""
    # For a GPU, or XLA once it runs, the first backward pass on the CPU starts a thread, which a
    # copy would lack.
    return FORKS and not (torch.cuda.device_count() or torch.xpu.device_count() or started_xla())


def can_run_apart() -> bool:
    """Say whether a copy of this process can run an answer."""
    return (
        can_copy()
        and threading.current_thread() is threading.main_thread()
        and "torch_xla" not in sys.modules
    )


def in_processes(jobs: Sequence[Callable[[], Any]], limit_s: float, method: str) -> list[Any]:
    """Call functions at once, each in a process of its own, which ends with this call, whatever it
    is doing.

    The method is "fork" for copies of this process, or "spawn" for new ones, which import the
    functions. What they print is printed here, and what each of them returned comes back, or None
    where its process ended before.

    Raises:
        TooLong: after `limit_s` seconds, when the processes are killed.
        OSError: one could not be made.
    """
    context: Any = multiprocessing.get_context(method)
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which a copy does without
        processes = [
            context.Process(target=_write_down, args=(job, folder, len(jobs) == 1)) for job in jobs
        ]
        end_s = time.monotonic() + limit_s
        try:
            for process in processes:
                process.start()
            while any(process.is_alive() for process in processes):
                if time.monotonic() > end_s:
                    raise TooLong
                time.sleep(0.005)
            files = [Path(folder, str(process.pid)) for process in processes]
            told = [
                pickle.loads(file.read_bytes()) if file.exists() else (None, "") for file in files
            ]
        finally:
            _end([process for process in processes if process.pid])
    print(*(printed for _, printed in told), sep="", end="")
    return [said for said, _ in told]


def _write_down(job: Callable[[], Any], folder: str, alone: bool) -> NoReturn:
    """Write what a job returns and prints into a file, which is not open before, so that the job
    cannot spoil it.
    """
    try:
        if alone:
            os.setsid()  # what the job starts is in the group of this process, and ends with it
        torch.set_num_threads(1)  # those of a process that was copied are not here
        sys.stdout = sys.stderr = printed = _Tail()
        told = pickle.dumps([job(), printed.getvalue().encode(errors="backslashreplace").decode()])
        Path(folder, str(os.getpid())).write_bytes(told)
    finally:
        os._exit(0)  # a thread of the job may never end


def _end(processes: list[Any]) -> None:
    for process in processes:
        with suppress(AttributeError, ProcessLookupError, PermissionError):  # Windows has no groups
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    for process in processes:  # all are killed by now, if another interruption comes
        process.join()


class _Tail(io.StringIO):
    def write(self, text: str) -> int:
        return super().write(text[:MOST_PRINTED]) if self.tell() < MOST_PRINTED else len(text)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooLong inside the block when it takes longer than this many seconds.

    One long call into C, such as a huge matrix product, is interrupted when it ends. Outside the
    main thread nothing can be interrupted, and the block may take as long as it likes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    over, ended, main_thread = threading.Event(), threading.Event(), threading.get_ident()

    def stop(*_: object) -> None:
        raise TooLong if over.is_set() else KeyboardInterrupt

    def press_ctrl_c() -> None:
        while not ended.wait(AGAIN_S if over.is_set() else seconds):
            over.set()
            if hasattr(signal, "pthread_kill"):  # wakes the main thread as well, where it sleeps
                signal.pthread_kill(main_thread, signal.SIGINT)
            else:
                _thread.interrupt_main()

    before, clock = (
        signal.signal(signal.SIGINT, stop),
        threading.Thread(target=press_ctrl_c, daemon=True),
    )
    clock.start()
    try:
        yield
    finally:
        ended.set()
        clock.join()
        signal.signal(signal.SIGINT, before)


@contextmanager
def everything_restored() -> Iterator[None]:
    """Undo on leaving what an answer changed for the whole process, so that a lesson's results do
    not depend on it.
    """
    with ExitStack() as undo:
        undo.callback(_put_device_back, torch.empty(0).device)
        undo.callback(torch.set_default_dtype, torch.get_default_dtype())
        undo.callback(torch.set_num_threads, torch.get_num_threads())
        undo.callback(random.setstate, random.getstate())
        undo.callback(gc.enable if gc.isenabled() else gc.disable)
        undo.enter_context(patch.dict(os.environ))
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            yield


def _put_device_back(device: torch.device) -> None:
    if torch.empty(0).device != device:
        torch.set_default_device(device)  # after None, torch 2.9's get_default_device fails
