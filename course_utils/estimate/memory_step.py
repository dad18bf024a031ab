"""Follow the memory of one training step, allocation by allocation, on tensors that have a shape
and no data.
"""

import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from course_utils.estimate.no_data import Step, tensors

KINDS = ("parameters", "gradients", "optimizer", "activations")
Optimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
# With foreach, as PyTorch chooses on a GPU: one kernel for all parameters, and one more copy of
# them while it runs.
OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": partial(torch.optim.SGD, lr=0.1, foreach=True),
    "momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9, foreach=True),
    "adam": partial(torch.optim.Adam, foreach=True),
    "adamw": partial(torch.optim.AdamW, foreach=True),
}


class Moment(NamedTuple):
    """The bytes that are in use after one operation of a step."""

    phase: str  # "forward", "backward" or "optimizer"
    operation: str  # PyTorch's name of it
    parameters: int
    gradients: int
    optimizer: int
    # results that the backward pass will need, the batch itself, and what an operation just made
    activations: int

    @property
    def total(self) -> int:
        """All of them together."""
        return self.parameters + self.gradients + self.optimizer + self.activations


class Tracker:
    """Notes after each operation how many bytes are in use, and for what: a storage counts until
    nothing holds it.
    """

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self._known: dict[int, tuple[str, int]] = {}
        self._bytes = dict.fromkeys((*KINDS, ""), 0)  # "" is not shown

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
            self._bytes[kind] += size

    def _free(self, key: int) -> None:
        kind, size = self._known.pop(key)
        self._bytes[kind] -= size

    def note(self, phase: str, func: Any, given: Any, out: Any) -> None:
        """Write down what is in use after an operation, or before the first one."""
        self.own(
            [x for x in tensors(out) if id(x.untyped_storage()) not in self._known], "activations"
        )
        name = func.overloadpacket.__name__ if func else "its first operation"
        self.moments.append(Moment(phase, name, *(self._bytes[kind] for kind in KINDS)))


def follow(
    step: Step, make: Optimizer, checkpointing: Any = False, keep_gradients: bool = False
) -> list[Moment]:
    """Return every moment of a step in which the optimizer already has its state; see
    `estimate_memory`.
    """
    tracker = Tracker()
    tracker.own([*step.model.parameters(), *step.model.buffers()], "parameters")
    tracker.own(tensors(step.arguments), "activations")
    blocks = find_blocks(step.model, checkpointing) if checkpointing else []
    if checkpointing and not blocks:
        asked = f"{type(step.model).__name__} has no blocks for checkpointing={checkpointing}"
        raise ValueError(
            f"{asked}; True takes the longest nn.Sequential or nn.ModuleList. Pass the class of a block."
        )
    for block in blocks:
        # On a copy that nobody else sees, so the method itself can be exchanged.
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    if step.training:
        _watch_gradients(step.model, tracker, keep_gradients)
    tracker.note("forward", None, (), ())
    step.run(tracker.note)
    return _updated(step, make, tracker) if step.training else tracker.moments


def find_blocks(model: nn.Module, kinds: Any = True) -> list[nn.Module]:
    """Return the modules of some class, or for True those in the longest list of modules."""
    if kinds is not True:
        return [module for module in model.modules() if isinstance(module, kinds)]
    lists = [
        list(m.children()) for m in model.modules() if isinstance(m, (nn.Sequential, nn.ModuleList))
    ]
    return max(lists, key=len, default=[])


def _watch_gradients(model: nn.Module, tracker: Tracker, keep: bool) -> None:
    for parameter in (each for each in model.parameters() if each.requires_grad):
        if keep:
            parameter.grad = torch.zeros_like(parameter)
            tracker.own([parameter.grad], "gradients")
        parameter.register_post_accumulate_grad_hook(
            lambda one: tracker.own(tensors(one.grad), "gradients")
        )


def _updated(step: Step, make: Optimizer, tracker: Tracker) -> list[Moment]:
    """Return the moments of a step that has run, with the optimizer's update, and its state in each
    of them.
    """
    trained = [parameter for parameter in step.model.parameters() if parameter.grad is not None]
    # All parameters as one: the amounts are the same, and there are hundreds of operations less to
    # follow.
    whole = nn.Parameter(
        torch.empty(sum(p.numel() for p in trained), dtype=trained[0].dtype, device="meta")
    )
    whole.grad = torch.empty_like(whole)
    tracker.own([whole, whole.grad], "")
    try:
        optimizer = make([whole])
        optimizer.step()  # its first step makes the state
        tracker.own(
            tensors([list(state.values()) for state in optimizer.state.values()]), "optimizer"
        )
        step.phase = "optimizer"
        with step:
            optimizer.step()
    except Exception as error:
        raise ValueError(f"the optimizer cannot be followed without data: {error}") from error
    state_bytes = tracker.moments[-1].optimizer
    return [moment._replace(optimizer=state_bytes) for moment in tracker.moments]
