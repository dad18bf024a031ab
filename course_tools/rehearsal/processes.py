"""Threads, processes and their exchange: each is told about the GPUs that are not there."""

import threading
from collections.abc import Iterator
from typing import Any

import torch

from course_tools.rehearsal.lines import describe, spot
from course_tools.rehearsal.names import Name
from course_tools.rehearsal.operations import Watch
from course_tools.rehearsal.where import World


def names(running: World) -> Iterator[Name]:
    """Yield what is replaced of threads, processes, compilation and distributed training."""
    yield from threads(running)
    yield from compilers(running)


def threads(running: World) -> Iterator[Name]:
    """Yield what lets a thread that starts in a rehearsal be watched too."""
    start = threading.Thread.start

    def start_watched(thread: threading.Thread) -> None:
        run = thread.run

        def run_watched() -> None:
            with Watch(running):
                run()

        thread.run = run_watched  # type: ignore[method-assign]
        start(thread)

    yield Name(threading.Thread, "start", start_watched)


def compilers(running: World) -> Iterator[Name]:
    """Yield what leaves compilation out, and says so."""

    def compile_nothing(model: Any = None, **options: Any) -> Any:
        running.remark(f"Code was not compiled but ran as it stands: {describe(spot(2))}")
        return model if model is not None else (lambda function: function)

    def script_nothing(model: Any, *args: Any, **options: Any) -> Any:
        return compile_nothing(model)

    yield Name(torch, "compile", compile_nothing)
    yield Name(torch.jit, "script", script_nothing)
