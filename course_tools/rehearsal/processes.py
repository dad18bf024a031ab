"""Threads and processes that a program starts: each believes in the simulated GPUs too."""

import contextlib
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from course_tools.rehearsal.names import Name
from course_tools.rehearsal.operations import Watch
from course_tools.rehearsal.placement import State, World, place_of, put

#: the variable with the folder in which processes note that they used a GPU
NOTES = "REHEARSAL_NOTES"


def names(running: World) -> Iterator[Name]:
    """Yield what is replaced of threads and processes."""
    yield from threads(running)
    yield from processes(running)


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


@dataclass(frozen=True)
class Rehearsed:
    """A function that another process runs in a rehearsal of its own."""

    target: Callable[..., Any]
    block: Callable[..., Any]
    settings: dict[str, Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function with the same GPUs as in the process that started it."""
        settings = dict(self.settings)
        notes = settings.pop("notes")
        with self.block(**settings, hide_real=True) as rehearsal:
            try:
                return self.target(*args, **kwargs)
            finally:
                if notes and rehearsal.report.touched:
                    note(notes)
                    name = multiprocessing.current_process().name
                    print(f"rehearsal, {name}: {rehearsal.report!r}", file=sys.stderr)


@dataclass(frozen=True)
class Forked:
    """A function that a forked process runs in the rehearsal that it inherits."""

    target: Callable[..., Any]
    running: World

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function, and note if it used a GPU."""
        try:
            return self.target(*args, **kwargs)
        finally:
            filled = any(card.highest_bytes for card in self.running.cards)
            if self.running.notes and (self.running.on_gpu or filled):
                note(self.running.notes)


def note(notes: str) -> None:
    """Let the rehearsal that started this process know that a GPU was used here."""
    with contextlib.suppress(OSError):  # it has ended already
        Path(notes, str(os.getpid())).touch()


def settings_of(running: World) -> dict[str, Any]:
    """Return what another process needs to rehearse the same."""
    card = running.cards[0]
    return {
        "kind": running.kind,
        "gpus": len(running.cards),
        "memory": card.total_bytes if card.limited else None,
        "capability": running.capability,
        "notes": running.notes,
    }


def command_of(running: World) -> list[str]:
    """Return the options with which a script is rehearsed in another process."""
    card = running.cards[0]
    memory = ["--memory", str(card.total_bytes)] if card.limited else []
    capability = "{}.{}".format(*running.capability)
    command = ["-m", "course_tools.rehearsal", "--device", running.kind, "--hide-real"]
    return [*command, "--gpus", str(len(running.cards)), "--capability", capability, *memory]


def processes(running: World) -> Iterator[Name]:
    """Yield what lets a process that starts anew believe in the GPUs too.

    A forked process inherits everything, and fails if the GPU was used before, as with CUDA.
    """
    start, popen = BaseProcess.start, subprocess.Popen.__init__

    def start_rehearsed(process: Any) -> None:
        method = process._start_method or multiprocessing.get_start_method()
        if process._target is not None and method == "fork":
            process._target = Forked(process._target, running)
        elif process._target is not None:
            process._target = Rehearsed(process._target, running.block, settings_of(running))
        start(process)

    def popen_rehearsed(self: Any, args: Any, *rest: Any, **options: Any) -> None:
        words = [str(each) for each in args] if isinstance(args, (list, tuple)) else []
        if len(words) > 1 and running.script[:1] != ("-m",):
            words[1] = os.path.abspath(words[1])  # a script, which may be named from here
        itself = [sys.executable, *running.script]
        if running.script and words[: len(itself)] == itself:
            args = [args[0], *command_of(running), *args[1:]]
            home = str(Path(__file__).resolve().parents[2])
            variables = dict(options.get("env") or os.environ)
            paths = [home, variables.get("PYTHONPATH", "")]
            variables[NOTES] = running.notes
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
            options["env"] = variables
        popen(self, args, *rest, **options)

    pickler: Any = ForkingPickler
    reducers = pickler._extra_reducers

    def reduce(tensor: Tensor) -> tuple[Any, ...]:
        place, (rebuild, parts) = place_of(tensor), reducers[type(tensor)](tensor)
        return (rebuild, parts) if place.type == "cpu" else (arrive, (str(place), rebuild, parts))

    def reduce_memory(storage: Any) -> tuple[Any, ...]:
        with torch._C._DisableTorchDispatch():  # a GPU shares its memory and copies nothing
            return reducers[type(storage)](storage)

    ours: dict[type, Any] = {kind: reduce for kind in reducers if issubclass(kind, Tensor)}
    ours[torch.UntypedStorage] = reduce_memory
    yield Name(ForkingPickler, "_extra_reducers", {**reducers, **ours})
    yield Name(BaseProcess, "start", start_rehearsed)
    yield Name(subprocess.Popen, "__init__", popen_rehearsed)


def arrive(place: str, rebuild: Callable[..., Tensor], parts: tuple[Any, ...]) -> Tensor:
    """Return a tensor that another process has sent, on the GPU where it was."""
    tensor = rebuild(*parts)
    return tensor if State.world is None else put(tensor, State.world.device(place))
