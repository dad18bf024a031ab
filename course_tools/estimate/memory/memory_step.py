"""Follow the memory of one training step, allocation by allocation, on tensors without data."""

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from course_tools.estimate.counting.fake_step import (
    CannotCount,
    FakeStep,
    Observer,
    operands,
    tensors,
)
from course_tools.estimate.memory.memory_model import MEMORY_PARTS, Moment

Optimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]


class Adam8bit(torch.optim.Optimizer):
    """The memory of 8-bit Adam, without its arithmetic: two bytes a number, and scales.

    bitsandbytes keeps each moment as one byte a number and one 32-bit scale a block of 256 numbers,
    and tensors of fewer than 4,096 numbers in 32 bits (bitsandbytes/optim/optimizer.py; blocks were
    of 2,048 numbers in older versions). One kernel updates in place.
    """

    block, smallest = 256, 4096

    def __init__(self, parameters: list[nn.Parameter]):
        super().__init__(parameters, {"fused": True})

    def step(self, closure: Any = None) -> Any:
        """Make the state."""
        for parameter in self.param_groups[0]["params"]:
            count = parameter.numel()
            kind, scales = torch.uint8, -(-count // self.block)
            if count < self.smallest:
                kind, scales = torch.float32, 0
            self.state[parameter] = {
                "moments": torch.empty(2 * count, dtype=kind, device="meta"),
                "scales": torch.empty(2 * scales, device="meta"),
            }


def _momentum(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": torch.optim.SGD,
    "momentum": _momentum,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adam8bit": Adam8bit,
}
REFUSE_SPARSE = (torch.optim.Adam, torch.optim.AdamW, Adam8bit)


class Tracker:
    """Notes after each operation how many bytes are in use, and for what.

    A storage counts until nothing holds it.
    """

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self.in_use = dict.fromkeys(MEMORY_PARTS, 0)  # bytes
        self._known: dict[int, tuple[str, int]] = {}

    def own(self, found: Iterable[Tensor], kind: str) -> None:
        """Count tensors under a kind from now on, whatever they counted as before."""
        for tensor in found:
            storage = tensor.untyped_storage()
            key, size = id(storage), storage.nbytes()
            if key in self._known:
                self._free(key)
            else:
                weakref.finalize(storage, self._free, key)
            self._known[key] = kind, size
            self.in_use[kind] += size

    def _free(self, key: int) -> None:
        kind, size = self._known.pop(key)
        self.in_use[kind] -= size

    def note(self, phase: str, func: Any, given: Any, out: Any) -> None:
        """Write down what is in use after an operation."""
        made = [x for x in operands(out) if id(x.untyped_storage()) not in self._known]
        self.own(made, "optimizer" if phase == "optimizer" else "activations")
        self.write(phase, func.overloadpacket.__name__)

    def write(self, phase: str, operation: str) -> None:
        """Write down what is in use now."""
        self.moments.append(Moment(phase, operation, **self.in_use))


def follow(
    step: FakeStep,
    make: Optimizer | None,
    keep_gradients: bool = False,
    also: Observer | None = None,
) -> list[Moment]:
    """Return every moment of a step in which the optimizer already has its state.

    The arguments are those of `estimate_memory`; `also` is called for each operation too. Without
    an optimizer, one moment stands for its update, with what is in use then.
    """
    tracker = Tracker()
    tracker.own([*step.model.parameters(), *step.model.buffers()], "parameters")
    tracker.own(tensors(step.arguments), "activations")
    if step.training:
        _watch_gradients(step.model, tracker, keep_gradients)
    tracker.write("forward", "its first operation")
    step.run(tracker.note, *([also] if also else []))
    if not step.training:
        return tracker.moments
    if make is None:
        tracker.write("optimizer", "update")
        return tracker.moments
    return _updated(step, make, tracker)


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """Return the modules in the longest list of modules."""
    lists = [part for part in model.modules() if isinstance(part, (nn.Sequential, nn.ModuleList))]
    longest = max(lists, key=len, default=nn.ModuleList())
    return list(longest)


def _watch_gradients(model: nn.Module, tracker: Tracker, keep: bool) -> None:
    def ready(parameter: Tensor) -> None:
        tracker.own(tensors(parameter.grad), "gradients")

    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        if keep:
            parameter.grad = torch.zeros_like(parameter)
            tracker.own([parameter.grad], "gradients")
        parameter.register_post_accumulate_grad_hook(ready)


def _updated(step: FakeStep, make: Optimizer, tracker: Tracker) -> list[Moment]:
    """Return the moments of a step that has run, its update, and the optimizer's state in each."""
    trained = [parameter for parameter in step.model.parameters() if parameter.grad is not None]
    if not trained:  # a sparse table alone: its gradient is that of the rows that were looked up
        trained = list(step.model.parameters())
    try:
        optimizer = make(trained)
        if isinstance(optimizer, REFUSE_SPARSE) and _has_sparse_gradients(step.model):
            raise CannotCount(
                f"{type(optimizer).__name__} refuses the sparse gradients of an embedding with "
                f"sparse=True. Pass optimizer='sgd' here, or sparse=False to the embedding. "
                f"torch.optim.SparseAdam takes such layers, but no others, and is not counted."
            )
        fused = _as_on_a_gpu(optimizer)
        optimizer.step()  # its first step makes the state
        kept = [list(state.values()) for state in optimizer.state.values()]
        before = len(tracker.moments)
        tracker.own(tensors(kept), "optimizer")
        state_bytes = tracker.in_use["optimizer"]
        step.phase = "optimizer"
        if fused:
            tracker.write(step.phase, "fused update")
        else:
            with step:
                optimizer.step()
    except CannotCount:
        raise
    except Exception as error:
        raise ValueError(f"the optimizer cannot be followed without data: {error}") from error
    step_itself, update = tracker.moments[:before], tracker.moments[before:]
    return [moment._replace(optimizer=state_bytes) for moment in step_itself] + update


def _has_sparse_gradients(model: nn.Module) -> bool:
    tables = [part for part in model.modules() if isinstance(part, (nn.Embedding, nn.EmbeddingBag))]
    return any(table.sparse and table.weight.requires_grad for table in tables)


def _as_on_a_gpu(optimizer: torch.optim.Optimizer) -> bool:
    """Choose the kernels that PyTorch chooses on a GPU; return whether all are fused.

    There it takes foreach unless it is told otherwise: one kernel for all parameters, and for Adam
    one more copy of them while it runs. A fused kernel makes no copy, but refuses tensors without
    data, so its state is made by the other kernels.
    """
    fused = all(group.get("fused") for group in optimizer.param_groups)
    for group in optimizer.param_groups:
        if group.get("fused"):
            group["fused"] = False
        if group.get("foreach", False) is None:
            group["foreach"] = True
    return fused
