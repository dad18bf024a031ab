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

from course_tools.rehearsal.operations import Watch
from course_tools.rehearsal.placement import State, World, put, simulated_device
from course_tools.rehearsal.replacing import Replacement

#: the variable with the folder in which processes note that they used a GPU
NOTES = "REHEARSAL_NOTES"


def replacements(world: World) -> Iterator[Replacement]:
    """Yield what is replaced of threads and processes."""
    yield from threads(world)
    yield from processes(world)


def threads(world: World) -> Iterator[Replacement]:
    """Yield what lets a thread that starts in a rehearsal be watched too."""
    start = threading.Thread.start

    def start_watched(thread: threading.Thread) -> None:
        run = thread.run

        def run_watched() -> None:
            with Watch(world):
                run()

        thread.run = run_watched  # type: ignore[method-assign]
        start(thread)

    yield Replacement(threading.Thread, "start", start_watched)


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
                    report = rehearsal.report
                    failed = isinstance(sys.exception(), Exception)
                    words = report.head if failed else repr(report)
                    print(f"rehearsal, {name}: {words}", file=sys.stderr)


@dataclass(frozen=True)
class Forked:
    """A function that a forked process runs in the rehearsal that it inherits."""

    target: Callable[..., Any]
    world: World

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function, and note if it used a GPU."""
        try:
            return self.target(*args, **kwargs)
        finally:
            filled = any(card.highest_bytes for card in self.world.cards)
            if self.world.notes and (self.world.on_gpu or filled):
                note(self.world.notes)


def note(notes: str) -> None:
    """Let the rehearsal that started this process know that a GPU was used here."""
    with contextlib.suppress(OSError):  # it has ended already
        Path(notes, str(os.getpid())).touch()


def settings_of(world: World) -> dict[str, Any]:
    """Return what another process needs to rehearse the same."""
    card = world.cards[0]
    return {
        "kind": world.kind,
        "gpus": len(world.cards),
        "memory": card.total_bytes if card.limited else None,
        "capability": world.capability,
        "notes": world.notes,
    }


def command_of(world: World) -> list[str]:
    """Return the options with which a script is rehearsed in another process."""
    card = world.cards[0]
    memory = ["--memory", str(card.total_bytes)] if card.limited else []
    capability = "{}.{}".format(*world.capability)
    command = ["-m", "course_tools.rehearsal", "--device", world.kind, "--hide-real"]
    return [*command, "--gpus", str(len(world.cards)), "--capability", capability, *memory]


def processes(world: World) -> Iterator[Replacement]:
    """Yield what lets a process that starts anew believe in the GPUs too.

    A forked process inherits everything, and fails if the GPU was used before, as with CUDA.
    """
    start, popen = BaseProcess.start, subprocess.Popen.__init__

    def start_rehearsed(process: Any) -> None:
        method = process._start_method or multiprocessing.get_start_method()
        if process._target is not None and method == "fork":
            process._target = Forked(process._target, world)
        elif process._target is not None:
            process._target = Rehearsed(process._target, world.block, settings_of(world))
        start(process)

    def popen_rehearsed(self: Any, args: Any, *rest: Any, **options: Any) -> None:
        words = [str(each) for each in args] if isinstance(args, (list, tuple)) else []
        if len(words) > 1 and world.script[:1] != ("-m",):
            words[1] = os.path.abspath(words[1])  # a script, which may be named from here
        itself = [sys.executable, *world.script]
        if world.script and words[: len(itself)] == itself:
            args = [args[0], *command_of(world), *args[1:]]
            home = str(Path(__file__).resolve().parents[2])
            variables = dict(options.get("env") or os.environ)
            paths = [home, variables.get("PYTHONPATH", "")]
            variables[NOTES] = world.notes
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
            options["env"] = variables
        popen(self, args, *rest, **options)

    pickler: Any = ForkingPickler
    reducers = pickler._extra_reducers

    def reduce(tensor: Tensor) -> tuple[Any, ...]:
        device, (rebuild, parts) = simulated_device(tensor), reducers[type(tensor)](tensor)
        return (rebuild, parts) if device.type == "cpu" else (arrive, (str(device), rebuild, parts))

    def reduce_memory(storage: Any) -> tuple[Any, ...]:
        with torch._C._DisableTorchDispatch():  # a GPU shares its memory and copies nothing
            return reducers[type(storage)](storage)

    ours: dict[type, Any] = {kind: reduce for kind in reducers if issubclass(kind, Tensor)}
    ours[torch.UntypedStorage] = reduce_memory
    yield Replacement(ForkingPickler, "_extra_reducers", {**reducers, **ours})
    yield Replacement(BaseProcess, "start", start_rehearsed)
    yield Replacement(subprocess.Popen, "__init__", popen_rehearsed)


def arrive(device: str, rebuild: Callable[..., Tensor], parts: tuple[Any, ...]) -> Tensor:
    """Return a tensor that another process has sent, on the GPU where it was."""
    tensor = rebuild(*parts)
    return tensor if State.world is None else put(tensor, State.world.device(device))
