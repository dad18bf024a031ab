"""Automatic mixed precision for tensors that have a shape and no data, so that its casts are
counted like the rest.
"""

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from course_utils.estimate.recurrent import GATES, layers

# The operations that autocast runs in 16 bits on a GPU, in 32 bits, and in the widest type that
# they get: the lists of PyTorch's documentation (https://docs.pytorch.org/docs/stable/amp.html,
# "CUDA Op-Specific Behavior"). PyTorch's own autocast leaves tensors on the meta device alone.
_16_BITS = """
    linear bilinear matmul mm bmm mv addmm addmv addbmm baddbmm einsum chain_matmul conv1d conv2d conv3d
    conv_transpose1d conv_transpose2d conv_transpose3d prelu __matmul__ __rmatmul__ scaled_dot_product_attention
    lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
"""
_32_BITS = """
    layer_norm group_norm rms_norm local_response_norm softmax log_softmax softmin norm exp expm1 log log10
    log1p log2 pow __pow__ reciprocal rsqrt acos asin cosh sinh tan sum prod cumsum cumprod dist cdist renorm
    erfinv softplus logsumexp cosine_similarity cosine_embedding_loss cross_entropy nll_loss mse_loss l1_loss
    smooth_l1_loss binary_cross_entropy_with_logits kl_div huber_loss triplet_margin_loss ctc_loss normalize
"""
_WIDEST = "addcdiv addcmul atan2 cross dot vdot grid_sample index_put scatter_add tensordot"
# A model that asks where a tensor is gets HERE: torch.autocast knows no "meta". One that names the
# CPU says no number.
DEVICE, HERE = torch.Tensor.device.__get__, torch.device("cpu", 0)
IN_16_BITS, IN_32_BITS, IN_WIDEST = (
    frozenset(names.split()) for names in (_16_BITS, _32_BITS, _WIDEST)
)


class Autocast(TorchFunctionMode):
    """Casts as torch.autocast does, and has attention and recurrent layers counted as the kernels
    that a GPU runs.
    """

    def __init__(self, dtype: torch.dtype | None):
        super().__init__()
        self.dtype = dtype

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = getattr(func, "__name__", "")
        args, kwargs = _without_device(name, args, kwargs or {})
        to = self.dtype if name in IN_16_BITS else torch.float32 if name in IN_32_BITS else None
        if name in IN_WIDEST and torch.float32 in [
            getattr(x, "dtype", None) for x in tree_leaves((args, kwargs))
        ]:
            to = torch.float32
        if self.dtype is not None and to is not None:
            args, kwargs = tree_map(lambda x: _cast(x, to), (args, kwargs))
        asks = sys._getframe(1).f_globals.get("__name__", "")  # the module that calls
        if func == DEVICE and args[0].is_meta and not asks.startswith("torch."):
            return HERE
        if (
            name in ("__bool__", "_nested_tensor_from_mask_left_aligned")
            and asks == "torch.nn.modules.transformer"
        ):
            return False  # it looks into a mask for a faster way
        if name == "_weight_norm":  # its backward pass is not known without data
            return args[0] * (args[1] / torch.norm_except_dim(args[0], 2, *args[2:]))
        if name == "_pack_padded_sequence" and args[1].is_meta:  # all as long as the longest
            args = (args[0], torch.full(args[1].shape, args[0].shape[int(args[2])]), args[2])
        if name == "scaled_dot_product_attention":
            return _attention(*args, **kwargs)
        if name in ("cuda", "cpu", "xpu"):
            return args[0]
        if name in GATES:
            return layers(name, *args)
        # PyTorch hides what it calls from the mode that got it, so a copy
        if name == "multi_head_attention_forward":
            # of it runs, which never asks
            unasked = {**func.__globals__, "has_torch_function": lambda tensors: False}
            with self:
                return FunctionType(func.__code__, unasked, name, func.__defaults__)(
                    *args, **kwargs
                )
        return func(*args, **kwargs)


def _without_device(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the arguments of a call without the device that a model names in its forward pass."""
    # What is made on the CPU, such as the lengths of a packed sequence, has data that PyTorch
    # itself needs.
    if kwargs.get("device") is not None and (
        name == "to" or torch.device(kwargs["device"]) != torch.device("cpu")
    ):
        kwargs = {**kwargs, "device": "meta"}
    if name == "to" and len(args) > 1 and isinstance(args[1], (str, int, torch.device)):
        args = (args[0], "meta", *args[2:])
    return args, kwargs


def _cast(x: Any, dtype: torch.dtype) -> Any:
    return (
        x.to(dtype)
        if isinstance(x, Tensor) and x.is_floating_point() and x.dtype != torch.float64
        else x
    )


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    # Without data PyTorch takes attention apart into products, which write scores that a GPU's one
    # kernel never writes.
    if query.dim() != 4:
        attention = torch.nn.functional.scaled_dot_product_attention
        return attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    heads = query.shape[1]
    key, value = (
        x.repeat_interleave(heads // x.shape[1], 1) if x.shape[1] != heads else x
        for x in (key, value)
    )
    if attn_mask is not None:
        attn_mask = attn_mask.to(query.dtype).expand(
            len(query), heads, query.shape[-2], key.shape[-2]
        )
    kernel = torch.ops.aten._scaled_dot_product_efficient_attention
    learns = torch.is_grad_enabled()
    return kernel(query, key, value, attn_mask, learns, dropout_p, is_causal, scale=scale)[0]
