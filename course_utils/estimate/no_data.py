"""A step of a model without its data: shapes are all that counting needs, and they take no
memory.
"""

import copy
import reprlib
import traceback
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from course_utils.estimate.autocast import Autocast

# automatic mixed precision
HALF = {"fp16": torch.float16, "bf16": torch.bfloat16, "amp": torch.bfloat16}
WHOLE = {"fp16-true": torch.float16, "bf16-true": torch.bfloat16}  # the weights too
UNTRAINED = "no result of the model depends on a parameter that is trained. Pass training=False."
ADVICE = {  # by what an error says
    'forward" function': "Pass the network inside it, or give it a forward that returns the loss.",
    "fake impl": "PyTorch cannot do this without data. For the estimate, leave it out or put "
    "something in its place.",
    "meta": "Counting has no data. Leave out what depends on values, as .item() or x[mask], and "
    "use device=x.device.",
    "": "Check that the inputs fit: a tuple is several arguments, a dict names them, and a list "
    "is one. Shapes: {}.",
}


Loss = Callable[[Any], Tensor]


def positive(name: str, value: object) -> None:
    """Raise ValueError unless `value` is a positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a positive integer, but got {value!r}.")


def tensors(data: Any) -> list[Tensor]:
    """Return the tensors in nested data, those in the fields of dataclasses too."""
    leaves = [vars(leaf) if is_dataclass(leaf) else leaf for leaf in tree_leaves(data)]
    return [leaf for leaf in tree_leaves(leaves) if isinstance(leaf, Tensor)]


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the model itself, without what spreads it over devices; raise TypeError where it is no
    module.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, but got {model!r}.")
    if isinstance(model, torch.jit.ScriptModule) or type(model).__name__.startswith(
        ("FSDP", "FullySharded")
    ):
        raise TypeError(
            f"a {type(model).__name__} cannot be copied without data. "
            f"Pass the model from which it was made."
        )
    return (
        model.module
        if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel))
        else model
    )


class Step(TorchDispatchMode):
    """One step of a copy of a model, which has shapes and no data.

    Args:
        model, inputs, batch: as for `count_work`.
        precision: what to compute in; a key of `HALF` or `WHOLE`; any other name means 32 bits.
        training: forward and backward, or the forward pass alone.
        loss: a function of what the model returns, which gives the loss, or None for the model's
            own (what it returns as `loss`) or else the sum of all results.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Any,
        batch: int | None,
        precision: str,
        training: bool,
        loss: Loss | None = None,
    ):
        super().__init__()
        self.loss, self.loss_counted = loss, loss is not None
        # such as what a tokenizer returns
        inputs = dict(inputs) if isinstance(inputs, Mapping) else inputs
        found = [x for x in tensors(inputs) if x.dim()]
        if not found:
            raise ValueError(
                f"inputs need a tensor whose first dimension is the batch, "
                f"not {reprlib.repr(inputs)}."
            )
        size = found[0].shape[0]
        self.batch = size if batch is None else batch
        positive("batch", self.batch)
        self.training, self.half, whole = training, HALF.get(precision), WHOLE.get(precision)
        self.phase, self.last = "forward", "its first operation"

        def resized(x: Tensor) -> Tensor:
            shape = (self.batch, *x.shape[1:]) if x.dim() and x.shape[0] == size else x.shape
            dtype = whole if whole and x.is_floating_point() else x.dtype
            return torch.empty(shape, dtype=dtype, device="meta")

        # a tensor that is passed twice stays one tensor
        twins = {id(x): resized(x) for x in tensors(inputs)}
        # which takes a twin as the copy that it has made
        given = copy.deepcopy(inputs, dict(twins))
        self.shapes = ", ".join(str(tuple(x.shape)) for x in twins.values())
        self.arguments: Any = given if isinstance(given, (dict, tuple)) else (given,)
        self.model = _clone(unwrapped(model), precision).train(training)
        if whole:
            self.model.to(whole)
        if training and not any(p.requires_grad for p in self.model.parameters()):
            raise ValueError("the model has no parameter that is trained. Pass training=False.")

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.last, kwargs = func.overloadpacket.__name__, kwargs or {}
        try:
            out = func(*args, **kwargs)
        except (
            RuntimeError
        ):  # what the forward pass made on the CPU, where the model is, meets what has no data
            if self.last.endswith("_") and not tensors(args)[0].is_meta:
                raise
            args, kwargs = tree_map(
                lambda x: x.to("meta") if isinstance(x, Tensor) else x, (args, kwargs)
            )
            out = func(*args, **kwargs)
        self.note(self.phase, func, (args, kwargs), out)
        return out

    def run(self, note: Callable[[str, Any, Any, Any], None]) -> None:
        """Run the step once, without an optimizer.

        Args:
            note: called after each operation with its phase ("forward" or "backward"), the
                operator, its (args, kwargs) and its result.
        """
        self.note = note
        # so that the batch goes when nothing needs it any more
        given, self.arguments = self.arguments, ()
        # nn.LSTM asks whether any is on
        asked = torch.autocast("cpu", self.half, enabled=self.half is not None)
        try:
            with torch.set_grad_enabled(self.training), asked, Autocast(self.half), self:
                out = self.model(**given) if isinstance(given, dict) else self.model(*given)
                del given
                if self.training:
                    out = self._loss(out)
                    self.phase = "backward"
                    _backward(out)
                    del out
        except Exception as error:
            if UNTRAINED in error.args:
                raise
            said = (
                (str(error) or type(error).__name__)
                .splitlines()[0]
                .partition(". ")[0][:200]
                .rstrip(".!")
            )
            advice = next(
                text for sign, text in ADVICE.items() if sign in str(error).lower()
            ).format(self.shapes)
            others = str(Path(torch.__file__).parents[1]), str(Path(__file__).parent)
            own = [
                at
                for at in traceback.extract_tb(error.__traceback__)
                if not at.filename.startswith(others)
            ]
            where = f", in line {own[-1].lineno} of {Path(own[-1].filename).name}," if own else ""
            name = type(self.model).__name__
            failed = f"{name} cannot be counted: at operation {self.last!r}{where} it failed"
            raise RuntimeError(f"{failed}: {said}. {advice}") from error


    def _loss(self, out: Any) -> Any:
        """Return the loss of a result, or the result itself where it has none."""
        if self.loss is not None:
            return self.loss(out)
        own = out.get("loss") if isinstance(out, Mapping) else getattr(out, "loss", None)
        self.loss_counted = isinstance(own, Tensor)
        return own if self.loss_counted else out


def _backward(out: Any) -> None:
    results = [x.float().sum() for x in tensors(out) if x.requires_grad]
    if not results:
        raise ValueError(UNTRAINED)
    # Not Tensor.backward, which would hide what checkpointing computes again from `Autocast`.
    torch.autograd.backward(torch.stack(results).sum())


def _clone(model: nn.Module, precision: str) -> nn.Module:
    own = {p.dtype for p in model.parameters()} & {torch.float16, torch.bfloat16}
    if own and precision in ("fp32", "tf32"):
        raise ValueError(
            f"precision {precision!r} was asked of a model in {own.pop()}. "
            f"Pass 'bf16', or model.float()."
        )
    # What deepcopy finds in `memo` it takes as already copied: the structure is copied and the data
    # are not.
    made = [
        x
        for part in model.modules()
        for x in vars(part).values()
        if isinstance(x, Tensor) and not x.is_leaf
    ]
    # made of parameters
    memo: dict[int, Any] = {id(x): x.detach().to("meta") for x in (*made, *model.buffers())}
    memo |= {
        id(p): nn.Parameter(p.detach().to("meta"), p.requires_grad) for p in model.parameters()
    }
    return copy.deepcopy(model, memo)
