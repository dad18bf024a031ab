"""Threads and processes that a program starts: each believes in the simulated GPUs too."""

import contextlib
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from course_tools.rehearsal.operations import Watch
from course_tools.rehearsal.placement import put, simulated_device
from course_tools.rehearsal.replacing import Replacement
from course_tools.rehearsal.setting import Setting
from course_tools.rehearsal.world import State, World

#: the variable with the folder in which each process that has used a GPU leaves a file
USED_FOLDER = "REHEARSAL_USED_FOLDER"


def replacements(world: World) -> Iterator[Replacement]:
    """Yield what is replaced of threads and processes."""
    yield from threads(world)
    yield from starts(world)
    yield from scripts(world)
    yield from sent()


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
    begin: Callable[..., Any]
    setting: Setting
    used_folder: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function with the same GPUs as in the process that started it."""
        with self.begin(self.setting, hide_real=True) as rehearsal:
            try:
                return self.target(*args, **kwargs)
            finally:
                if self.used_folder and rehearsal.report.touched:
                    leave_file(self.used_folder)
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
        """Run the function, and leave a file if it used a GPU."""
        try:
            return self.target(*args, **kwargs)
        finally:
            filled = any(card.highest_bytes for card in self.world.cards)
            used_folder = self.world.command.used_folder
            if used_folder and (self.world.seen.on_gpu or filled):
                leave_file(used_folder)


def leave_file(used_folder: str) -> None:
    """Let the rehearsal that started this process know that a GPU was used here."""
    with contextlib.suppress(OSError):  # it has ended already
        Path(used_folder, str(os.getpid())).touch()


def starts(world: World) -> Iterator[Replacement]:
    """Yield what lets a process of multiprocessing believe in the GPUs too.

    A forked process inherits everything, and fails if the GPU was used before, as with CUDA.
    """
    start = BaseProcess.start

    def start_rehearsed(process: Any) -> None:
        method = process._start_method or multiprocessing.get_start_method()
        if process._target is not None and method == "fork":
            process._target = Forked(process._target, world)
        elif process._target is not None:
            process._target = Rehearsed(
                process._target, world.begin, world.setting, world.command.used_folder
            )
        start(process)

    yield Replacement(BaseProcess, "start", start_rehearsed)


def scripts(world: World) -> Iterator[Replacement]:
    """Yield what rehearses a script that starts itself again, as launchers do."""
    popen = subprocess.Popen.__init__
    script = world.command.script

    def popen_rehearsed(self: Any, args: Any, *rest: Any, **options: Any) -> None:
        words = [str(each) for each in args] if isinstance(args, (list, tuple)) else []
        if len(words) > 1 and script[:1] != ("-m",):
            words[1] = os.path.abspath(words[1])  # a script, which may be named from here
        itself = [sys.executable, *script]
        if script and words[: len(itself)] == itself:
            args = [args[0], "-m", "course_tools.rehearsal", *world.setting.options(), *args[1:]]
            options["env"] = with_this_package(world, options.get("env") or os.environ)
        popen(self, args, *rest, **options)

    yield Replacement(subprocess.Popen, "__init__", popen_rehearsed)


def with_this_package(world: World, variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables with which another Python finds this package, and where to leave a file."""
    home = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [home, variables.get("PYTHONPATH", "")]))
    return {**variables, USED_FOLDER: world.command.used_folder, "PYTHONPATH": path}


def sent() -> Iterator[Replacement]:
    """Yield what sends a tensor to another process, and keeps where it is."""
    pickler: Any = ForkingPickler
    reducers = pickler._extra_reducers

    def reduce(tensor: Tensor) -> tuple[Any, ...]:
        device, (rebuild, parts) = simulated_device(tensor), reducers[type(tensor)](tensor)
        return (rebuild, parts) if device.type == "cpu" else (arrive, (str(device), rebuild, parts))

    def reduce_memory(storage: Any) -> tuple[Any, ...]:
        with torch._C._DisableTorchDispatch():  # a GPU shares its memory and copies nothing
            return reducers[type(storage)](storage)

    ours: dict[type, Any] = {cls: reduce for cls in reducers if issubclass(cls, Tensor)}
    ours[torch.UntypedStorage] = reduce_memory
    yield Replacement(ForkingPickler, "_extra_reducers", {**reducers, **ours})


def arrive(device: str, rebuild: Callable[..., Tensor], parts: tuple[Any, ...]) -> Tensor:
    """Return a tensor that another process has sent, on the GPU where it was."""
    tensor = rebuild(*parts)
    return tensor if State.world is None else put(tensor, State.world.device(device))
