"""A step of a model without its data: shapes are all that counting needs, and they take no memory."""

import copy
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from course_utils.estimate.autocast import Autocast

HALF = {"fp16": torch.float16, "bf16": torch.bfloat16, "amp": torch.bfloat16}  # automatic mixed precision
WHOLE = {"fp16-true": torch.float16, "bf16-true": torch.bfloat16}  # the weights too
UNTRAINED = "no result of the model depends on a parameter that is trained. Pass training=False."


def positive(name: str, value: object) -> None:
    """Raise ValueError unless `value` is a positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a positive integer, but got {value!r}.")


def tensors(data: Any) -> list[Tensor]:
    """Return the tensors in nested data, those in the fields of dataclasses too."""
    leaves = [vars(leaf) if is_dataclass(leaf) else leaf for leaf in tree_leaves(data)]
    return [leaf for leaf in tree_leaves(leaves) if isinstance(leaf, Tensor)]


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the model itself, without what spreads it over devices; raise TypeError where it is no module."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, but got {model!r}.")
    return model.module if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)) else model


class Step(TorchDispatchMode):
    """One step of a copy of a model, which has shapes and no data.

    Args:
        model, inputs, batch: as for `count_work`.
        precision: what to compute in; a key of `HALF` or `WHOLE`; any other name means 32 bits.
        training: forward and backward, or the forward pass alone.

    Raises:
        ValueError: the batch is not a positive integer, there is no tensor among the inputs, nothing is to be trained,
            or the precision has 32 bits and the model's parameters have 16.
    """

    def __init__(self, model: nn.Module, inputs: Any, batch: int | None, precision: str, training: bool):
        super().__init__()
        found = [x for x in tensors(inputs) if x.dim()]
        if not found:
            raise ValueError(f"inputs must hold a tensor whose first dimension is the batch, but got {inputs!r}.")
        size = found[0].shape[0]
        self.batch = size if batch is None else batch
        positive("batch", self.batch)
        self.training, self.half, whole = training, HALF.get(precision), WHOLE.get(precision)
        self.phase, self.last = "forward", "its first operation"

        def resized(x: Tensor) -> Tensor:
            shape = (self.batch, *x.shape[1:]) if x.dim() and x.shape[0] == size else x.shape
            dtype = whole if whole and x.is_floating_point() else x.dtype
            return torch.empty(shape, dtype=dtype, device="meta")

        twins = {id(x): resized(x) for x in tensors(inputs)}  # a tensor that is passed twice stays one tensor
        given = tree_map(lambda x: twins.get(id(x), x), inputs)
        self.arguments: Any = given if isinstance(given, (dict, tuple)) else (given,)
        self.model = _clone(unwrapped(model), precision).train(training)
        if whole:
            self.model.to(whole)
        if training and not any(p.requires_grad for p in self.model.parameters()):
            raise ValueError("the model has no parameter that is trained. Pass training=False.")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        self.last = func.overloadpacket.__name__
        out = func(*args, **(kwargs or {}))
        self.note(self.phase, func, (args, kwargs or {}), out)
        return out

    def run(self, note: Callable[[str, Any, Any, Any], None]) -> None:
        """Run the step once, without an optimizer.

        Args:
            note: called after each operation with its phase ("forward" or "backward"), the operator, its (args,
                kwargs) and its result.

        Raises:
            RuntimeError: an operation of the model needs data; the message names it.
        """
        self.note = note
        given, self.arguments = self.arguments, ()  # so that the batch goes when nothing needs it any more
        asked = torch.autocast("cpu", self.half, enabled=self.half is not None)  # nn.LSTM asks whether any is on
        try:
            with torch.set_grad_enabled(self.training), asked, Autocast(self.half), self:
                out = self.model(**given) if isinstance(given, dict) else self.model(*given)
                del given
                if self.training:
                    self.phase = "backward"
                    _backward(out)
                    del out
        except Exception as error:
            if UNTRAINED in error.args:
                raise
            said = (str(error) or type(error).__name__).splitlines()[0][:200].rstrip(".!")
            advice = "Check that the inputs fit: a tuple is several arguments, a dict names them, and a list is one."
            if "meta" in said.lower():
                steps = "leave out steps that depend on values, such as .item() or indexing with a mask"
                advice = f"Counting has shapes but no data, so {steps}."
            failed = f"{type(self.model).__name__} cannot be counted: at operation {self.last!r} it failed: {said}."
            raise RuntimeError(f"{failed} {advice}") from error


def _backward(out: Any) -> None:
    results = [x.float().sum() for x in tensors(out) if x.requires_grad]
    if not results:
        raise ValueError(UNTRAINED)
    # Not Tensor.backward, which would hide what checkpointing computes again from `Autocast`.
    torch.autograd.backward(torch.stack(results).sum())


def _clone(model: nn.Module, precision: str) -> nn.Module:
    own = {p.dtype for p in model.parameters()} & {torch.float16, torch.bfloat16}
    if own and precision in ("fp32", "tf32"):
        raise ValueError(f"precision {precision!r} was asked of a model in {own.pop()}. Pass 'bf16', or model.float().")
    # What deepcopy finds in `memo` it takes as already copied: the structure is copied and the weights are not.
    memo: dict[int, Any] = {id(p): nn.Parameter(p.detach().to("meta"), p.requires_grad) for p in model.parameters()}
    memo |= {id(b): b.detach().to("meta") for b in model.buffers()}
    return copy.deepcopy(model, memo)
