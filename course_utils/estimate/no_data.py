"""A model and its inputs without their data: shapes are all that counting needs, and they take no memory."""

import copy
from dataclasses import is_dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map


def positive(name: str, value: object) -> None:
    """Raise ValueError unless `value` is a positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a positive integer, but got {value!r}.")


def tensors(data: Any) -> list[Tensor]:
    """Return the tensors in nested data, those in the fields of dataclasses too."""
    leaves = [vars(leaf) if is_dataclass(leaf) else leaf for leaf in tree_leaves(data)]
    return [leaf for leaf in tree_leaves(leaves) if isinstance(leaf, Tensor)]


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the model itself, without what spreads it over devices.

    Raises:
        TypeError: it is no module.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, but got {model!r}.")
    return model.module if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)) else model


def clone(model: nn.Module, precision: str) -> nn.Module:
    """Return a copy of a model whose parameters and buffers are on the meta device, to be computed in `precision`.

    Raises:
        TypeError: it is no module.
        ValueError: the precision has 32 bits, and the model's parameters have 16.
    """
    model = unwrapped(model)
    own = {p.dtype for p in model.parameters()} & {torch.float16, torch.bfloat16}
    if own and precision in ("fp32", "tf32"):
        raise ValueError(f"precision {precision!r} was asked of a model in {own.pop()}. Pass 'bf16', or model.float().")
    # What deepcopy finds in `memo` it takes as already copied: the structure is copied and the weights are not.
    memo: dict[int, Any] = {id(p): nn.Parameter(p.detach().to("meta"), p.requires_grad) for p in model.parameters()}
    memo |= {id(b): b.detach().to("meta") for b in model.buffers()}
    return copy.deepcopy(model, memo)


def without_data(inputs: Any, batch: int | None) -> Any:
    """Return the inputs as a tuple or dict of arguments on the meta device, resized to a batch unless that is None.

    Raises:
        ValueError: the batch is not a positive integer, or there is no tensor among the inputs.
    """
    found = [x for x in tensors(inputs) if x.dim()]
    if not found:
        raise ValueError(f"inputs must hold a tensor whose first dimension is the batch, but got {inputs!r}.")
    size = found[0].shape[0]
    batch = size if batch is None else batch
    positive("batch", batch)

    def resized(x: Tensor) -> Tensor:
        shape = (batch, *x.shape[1:]) if x.dim() and x.shape[0] == size else x.shape
        return torch.empty(shape, dtype=x.dtype, device="meta")

    twins = {id(x): resized(x) for x in tensors(inputs)}  # a tensor that is passed twice stays one tensor
    resized_inputs = tree_map(lambda x: twins.get(id(x), x), inputs)
    return resized_inputs if isinstance(resized_inputs, (dict, tuple)) else (resized_inputs,)


def backward(out: Any) -> None:
    """Go backward from the sum of all results, which stands for the loss.

    Raises:
        ValueError: no result depends on a parameter that is trained.
    """
    results = [x.float().sum() for x in tensors(out) if x.requires_grad]
    if not results:
        raise ValueError("no result of the model depends on a parameter that is trained. Pass training=False.")
    # Not Tensor.backward, which would hide what checkpointing computes again from `Autocast`.
    torch.autograd.backward(torch.stack(results).sum())


def explained(error: Exception, operation: str, model: nn.Module) -> Exception:
    """Return what to raise for an error that came at an operation while the model was followed."""
    if isinstance(error, ValueError) and "depends on a parameter" in str(error):
        return error
    said = (str(error) or type(error).__name__).splitlines()[0][:200].rstrip(".!")
    return RuntimeError(
        f"{type(model).__name__} cannot be counted: at operation {operation!r} PyTorch said: {said}. Check that the "
        "inputs fit. Counting has shapes and no data, so a step that depends on values (.item(), a mask as an index) "
        "has to be left out."
    )
