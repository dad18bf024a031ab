"""Follow the memory of one training step, allocation by allocation, on tensors that have a shape and no data."""

import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from course_utils.estimate.autocast import Autocast
from course_utils.estimate.no_data import backward, clone, explained, tensors, without_data

HALF = {"fp16": torch.float16, "bf16": torch.bfloat16, "amp": torch.bfloat16}  # automatic mixed precision
WHOLE = {"fp16-true": torch.float16, "bf16-true": torch.bfloat16}  # the weights too
PRECISIONS = ("fp32", "tf32", *HALF, *WHOLE)
KINDS = ("parameters", "gradients", "optimizer", "activations")
Optimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
# With foreach, as PyTorch chooses on a GPU: one kernel for all parameters, and one more copy of them while it runs.
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
    activations: int  # results that the backward pass will need, the batch itself, and what an operation just made

    @property
    def total(self) -> int:
        """All of them together."""
        return self.parameters + self.gradients + self.optimizer + self.activations


class Tracker(TorchDispatchMode):
    """Notes after each operation how many bytes are in use, and for what: a storage counts until nothing holds it."""

    def __init__(self) -> None:
        super().__init__()
        self.phase, self.last = "forward", "its first operation"
        self.moments: list[Moment] = []
        self._known: dict[int, tuple[str, int]] = {}
        self._bytes = dict.fromkeys((*KINDS, ""), 0)  # "" is not shown

    def own(self, found: Iterable[Tensor], kind: str) -> None:
        """Count tensors that are there before the step."""
        for tensor in found:
            storage = tensor.untyped_storage()
            if id(storage) not in self._known:
                self._known[id(storage)] = kind, storage.nbytes()
                self._bytes[kind] += storage.nbytes()
                weakref.finalize(storage, self._free, id(storage))

    def gradient(self, parameter: Tensor) -> None:
        """Note that what the backward pass has made is now the gradient of a parameter."""
        if parameter.grad is not None:
            key = id(parameter.grad.untyped_storage())
            kind, size = self._known[key]
            self._known[key] = "gradients", size
            self._bytes[kind] -= size
            self._bytes["gradients"] += size

    def _free(self, key: int) -> None:
        kind, size = self._known.pop(key)
        self._bytes[kind] -= size

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        self.last = func.overloadpacket.__name__
        out = func(*args, **(kwargs or {}))
        self.own(tensors(out), "activations")
        self.note()
        return out

    def note(self) -> None:
        """Write down what is in use now."""
        self.moments.append(Moment(self.phase, self.last, *(self._bytes[kind] for kind in KINDS)))


@torch.inference_mode(False)
def follow(
    model: nn.Module,
    inputs: Any,
    batch: int | None,
    precision: str,
    *,
    optimizer: Optimizer,
    blocks: Callable[[nn.Module], list[nn.Module]] | None = None,
    loss: Callable[[Any], Tensor] | None = None,
    training: bool = True,
    keep_gradients: bool = False,
) -> list[Moment]:
    """Return every moment of one step in which the optimizer already has its state; see `estimate_memory`.

    Raises:
        ValueError: the batch is not a positive integer, there is no tensor among the inputs, or nothing to train.
        RuntimeError: an operation of the model needs data; the message names it.
    """
    arguments = without_data(inputs, batch)
    copied = clone(model, precision).train(training)
    if precision in WHOLE:
        copied, arguments = copied.to(WHOLE[precision]), _cast(arguments, WHOLE[precision])
    for block in blocks(copied) if blocks else ():
        # On a copy that nobody else sees, so the method itself can be exchanged.
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    tracker = Tracker()
    tracker.own([*copied.parameters(), *copied.buffers()], "parameters")
    tracker.own(tensors(arguments), "activations")
    steps = _optimizer(copied, optimizer, tracker, keep_gradients) if training else None
    tracker.note()
    half = HALF.get(precision)
    asked = torch.autocast("cpu", half, enabled=half is not None)  # nn.LSTM asks whether any autocast is on
    with torch.set_grad_enabled(training), asked, Autocast(half), tracker:
        try:
            out = copied(**arguments) if isinstance(arguments, dict) else copied(*arguments)
            del arguments
            if steps:
                tracker.phase = "backward"
                torch.autograd.backward(loss(out)) if loss else backward(out)
                del out
                tracker.phase = "optimizer"
                steps.step()
        except Exception as error:
            raise explained(error, tracker.last, model) from error
    return tracker.moments


def _optimizer(copied: nn.Module, make: Optimizer, tracker: Tracker, keep: bool) -> torch.optim.Optimizer:
    trained = [parameter for parameter in copied.parameters() if parameter.requires_grad]
    if not trained:
        raise ValueError("the model has no parameter that is trained. Pass training=False.")
    # All parameters as one: the amounts are the same, and there are hundreds of operations less to follow.
    whole = nn.Parameter(torch.empty(sum(p.numel() for p in trained), dtype=trained[0].dtype, device="meta"))
    whole.grad = torch.empty_like(whole)
    tracker.own([whole, whole.grad], "")
    try:
        steps = make([whole])
        steps.step()  # its first step makes the state
    except Exception as error:
        raise ValueError(f"the optimizer cannot be followed without data: {error}") from error
    tracker.own(tensors([list(state.values()) for state in steps.state.values()]), "optimizer")
    for parameter in trained:
        parameter.register_post_accumulate_grad_hook(tracker.gradient)
        if keep:
            parameter.grad = torch.zeros_like(parameter)
            tracker.own([parameter.grad], "gradients")
    return steps


def _cast(inputs: Any, dtype: torch.dtype) -> Any:
    return torch.utils._pytree.tree_map(
        lambda x: x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x, inputs
    )
