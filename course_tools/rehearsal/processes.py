"""Threads, processes and their exchange: each is told about the GPUs that are not there."""

import functools
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
import torch.distributed as dist
from torch import Tensor
from torch.distributed import distributed_c10d as c10d
from torch.utils import _python_dispatch

from course_tools.rehearsal.lines import describe, frame_at, spot
from course_tools.rehearsal.names import MISSING, Name, everywhere, replaced
from course_tools.rehearsal.operations import TORCH, Watch
from course_tools.rehearsal.placement import State, World, fake_mode, place_of, put

#: the exchange between GPUs, which gloo takes the place of
BETWEEN_GPUS = {"nccl": "cuda", "xccl": "xpu"}


def names(running: World) -> Iterator[Name]:
    """Yield what is replaced of threads, processes, compilation and distributed training."""
    yield from threads(running)
    yield from processes(running)
    yield from compilers(running)
    yield from operations_on_functions(running)
    if dist.is_available():
        yield from exchange(running)


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
        tells = settings.pop("tells")
        with self.block(**settings, hide_real=True) as rehearsal:
            try:
                return self.target(*args, **kwargs)
            finally:
                if tells and rehearsal.report.on_gpu:
                    name = multiprocessing.current_process().name
                    print(f"rehearsal, {name}: {rehearsal.report!r}", file=sys.stderr)


def settings_of(running: World) -> dict[str, Any]:
    """Return what another process needs to rehearse the same."""
    card = running.cards[0]
    return {
        "kind": running.kind,
        "gpus": len(running.cards),
        "memory": card.total if card.limited else None,
        "capability": running.capability,
        "tells": bool(running.script),
    }


def command_of(running: World) -> list[str]:
    """Return the options with which a script is rehearsed in another process."""
    card = running.cards[0]
    memory = ["--memory", str(card.total)] if card.limited else []
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
        if method != "fork" and process._target is not None:
            process._target = Rehearsed(process._target, running.block, settings_of(running))
        start(process)

    def popen_rehearsed(self: Any, args: Any, *rest: Any, **options: Any) -> None:
        words = [str(each) for each in args] if isinstance(args, (list, tuple)) else []
        itself = [sys.executable, *running.script]
        if running.script and words[: len(itself)] == itself:
            args = [args[0], *command_of(running), *args[1:]]
            home = str(Path(__file__).resolve().parents[2])
            variables = dict(options.get("env") or os.environ)
            paths = [home, variables.get("PYTHONPATH", "")]
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


def compilers(running: World) -> Iterator[Name]:
    """Yield what leaves compilation out, and says so."""

    def compile_nothing(model: Any = None, **options: Any) -> Any:
        running.remark(f"Code was not compiled but ran as it stands: {describe(spot(2))}")
        return model if model is not None else (lambda function: function)

    script = torch.jit.script

    def script_nothing(model: Any, *args: Any, **options: Any) -> Any:
        if frame_at(1).f_code.co_filename.startswith(TORCH):  # which it needs for itself
            with replaced(each for each in running.before if each.value is not MISSING):
                return script(model, *args, **options)
        return compile_nothing(model)

    yield Name(torch, "compile", compile_nothing)
    yield Name(torch.jit, "script", script_nothing)


def operations_on_functions(running: World) -> Iterator[Name]:
    """Yield what runs the functions that torch.cond or flex_attention were given as they stand.

    PyTorch would trace them for the backward pass, with fake tensors of a GPU, which autograd then
    asks the driver for: the process ends there.
    """
    plain = torch._ops.HigherOrderOperator.__call__
    mode_of = _python_dispatch._get_current_dispatch_mode

    def call(operation: Any, *args: Any, **kwargs: Any) -> Any:
        kernel = operation.py_kernels.get(torch._C.DispatchKey.CompositeExplicitAutograd)
        if kernel is None or fake_mode() or torch._C._are_functorch_transforms_active():
            return plain(operation, *args, **kwargs)
        return kernel(*args, **kwargs)

    def _get_current_dispatch_mode() -> Any:
        mode = mode_of()
        return None if isinstance(mode, Watch) else mode  # these kernels insist on none

    asked = {"_get_current_dispatch_mode": _get_current_dispatch_mode}
    yield from everywhere(_python_dispatch, asked, "torch._higher_order_ops")
    yield Name(torch._ops.HigherOrderOperator, "__call__", call)


def exchange(running: World) -> Iterator[Name]:
    """Yield what lets processes exchange with gloo what NCCL would exchange between GPUs."""
    start, add = c10d.init_process_group, c10d.new_group
    ask, wait, choose = c10d.get_backend, c10d.barrier, c10d._get_object_coll_device
    asked_for: dict[str, str] = {}

    def without_gpus(backend: Any) -> tuple[Any, str]:
        """Return the backend that runs here, and the one that was asked for if it needs GPUs."""
        text = str(backend or "").lower()
        if BETWEEN_GPUS.get(text) == running.kind:
            return "gloo", text
        if any(each in text for each in BETWEEN_GPUS):
            return "gloo", ""  # one for each kind of device
        return backend, ""

    @functools.wraps(start)
    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> None:
        device = kwargs.pop("device_id", None)
        if device is not None:
            running.device(device)
        here, asked = without_gpus(backend)
        if here != backend:
            kwargs.pop("pg_options", None)
        start(here, *args, **kwargs)
        running.exchange_on_gpu = bool(asked)
        asked_for[""] = asked_for[group_name(None)] = asked

    @functools.wraps(add)
    def new_group(
        ranks: Any = None, timeout: Any = None, backend: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        kwargs.pop("device_id", None)
        here, asked = without_gpus(backend)
        if here != backend:
            kwargs.pop("pg_options", None)
        group = add(ranks, timeout, here, *args, **kwargs)
        if isinstance(group, dist.ProcessGroup):
            asked_for[group_name(group)] = asked if backend else asked_for.get("", "")
        return group

    def group_name(group: Any) -> str:
        return (group or c10d._get_default_group()).group_name

    @functools.wraps(ask)
    def get_backend(group: Any = None) -> Any:
        found = ask(group)
        return c10d.Backend(asked_for.get(group_name(group), "") or found)

    @functools.wraps(wait)
    def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
        return wait(group, async_op)

    @functools.wraps(choose)
    def _get_object_coll_device(group: Any = None) -> str:
        return running.kind if asked_for.get(group_name(group)) else choose(group)

    reduce = c10d.all_reduce

    @functools.wraps(reduce)
    def all_reduce(tensor: Any, op: Any = dist.ReduceOp.SUM, *args: Any, **kwargs: Any) -> Any:
        if op != dist.ReduceOp.AVG or tensor.is_floating_point():
            return reduce(tensor, op, *args, **kwargs)
        done = reduce(tensor, dist.ReduceOp.SUM, *args, **kwargs)
        if done is not None:
            done.wait()  # gloo cannot average whole numbers, as NCCL does
        group = args[0] if args else kwargs.get("group")
        tensor.div_(dist.get_world_size(group), rounding_mode="trunc")
        return done

    named = {
        "init_process_group": init_process_group,
        "new_group": new_group,
        "get_backend": get_backend,
        "barrier": barrier,
        "all_reduce": all_reduce,
        "is_nccl_available": lambda: running.kind == "cuda",
        "_get_object_coll_device": _get_object_coll_device,
    }
    yield from everywhere(c10d, named, "torch.distributed")
