"""The kernels of a GPU, in place of the operations that PyTorch chooses for tensors without data.

Automatic mixed precision casts, attention is one kernel, and so is a recurrent layer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from course_tools.estimate.counting.values import EXPERTS, Values

# The operations that autocast runs in 16 bits on a GPU, in 32 bits, and in the widest type that
# they get: the lists of PyTorch's documentation (https://docs.pytorch.org/docs/stable/amp.html,
# "CUDA Op-Specific Behavior"). Those of the CPU are other lists.
_16_BITS = """
    linear bilinear matmul mm bmm mv addmm addmv addbmm baddbmm einsum chain_matmul
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d prelu
    __matmul__ __rmatmul__ scaled_dot_product_attention
    lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
    grouped_mm _grouped_mm
"""
_32_BITS = """
    layer_norm group_norm rms_norm local_response_norm softmax log_softmax softmin norm exp expm1
    log log10 log1p log2 pow __pow__ reciprocal rsqrt acos asin cosh sinh tan sum prod cumsum
    cumprod dist cdist renorm erfinv softplus logsumexp cosine_similarity cosine_embedding_loss
    cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss binary_cross_entropy_with_logits kl_div
    huber_loss triplet_margin_loss ctc_loss normalize roi_align
"""
_WIDEST = "addcdiv addcmul atan2 cross dot vdot grid_sample index_put scatter_add tensordot"
IN_16_BITS, IN_32_BITS, IN_WIDEST = (
    frozenset(names.split()) for names in (_16_BITS, _32_BITS, _WIDEST)
)
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
# Kernels of a recurrent layer for each time step, forward and backward, fewer where a layer is
# small enough for a persistent kernel: J. Appleyard, T. Kocisky and P. Blunsom, Optimizing
# Performance of Recurrent Neural Networks on GPUs (2016).
RECURRENT_KERNELS = {"recurrent": 2, "recurrent_backward": 3}


@dataclass(frozen=True)
class OneCall:
    """One call of a library that is counted by a formula: it stands in place of an operator."""

    name: str
    flops: float
    kernels: int

    @property
    def overloadpacket(self) -> SimpleNamespace:
        """An object with the name, as an operator of PyTorch has one."""
        return SimpleNamespace(__name__=self.name)


Record = Callable[[OneCall, Any, Any], None]  # notes a call, its (args, kwargs) and its result


class GpuKernels(TorchFunctionMode):
    """Casts as torch.autocast does on a GPU, and calls what a GPU would run.

    Args:
        dtype: 16 bits to cast to, or None.
        record: notes what is counted by a formula.
        check_time: called with the input of a recurrent layer whose first dimension is time.
        values: of the step, which keeps what is assumed.
    """

    def __init__(
        self,
        dtype: torch.dtype | None,
        record: Record,
        check_time: Callable[[Tensor], None],
        values: Values,
    ):
        super().__init__()
        self.dtype, self.record, self.check_time, self.values = dtype, record, check_time, values
        self.sizes: list[tuple[Tensor, int]] = []  # of packed sequences, and the batch of each

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = getattr(func, "__name__", "")
        args, kwargs = _on_this_device(name, args, kwargs or {})
        to = self._type_for(name, args, kwargs)
        if to is not None:
            args, kwargs = tree_map(partial(_cast, dtype=to), (args, kwargs))
        if name == "scaled_dot_product_attention":
            return attention(*args, **kwargs)
        if func is F.multi_head_attention_forward:
            with self:  # so that its steps are seen
                return _open(func)(*args, **kwargs)
        if name in GATES:
            return self._recurrent(name, *args)
        if name in ("grouped_mm", "_grouped_mm") and args[1].dim() == 3:
            self.values.assume(EXPERTS)
            return _experts(args[0], args[1])
        if name == "dropout":
            return _dropout(*args, **kwargs)
        if name == "embedding" and func is F.embedding:
            return _embedding(*args, **kwargs)
        if name == "_weight_norm":  # its backward pass is not known without data
            return args[0] * (args[1] / torch.norm_except_dim(args[0], 2, *args[2:]))
        if name == "_pack_padded_sequence":  # all as long as the longest
            rows, sizes, batch = _packed(args[0], batch_first=args[2])
            self.sizes.append((sizes, batch))
            return rows, sizes
        if name == "__getitem__":
            for sizes, batch in self.sizes:
                if args[0] is sizes:
                    return torch.tensor(batch)  # all of them are the same
        if name == "_pad_packed_sequence":
            return _padded(args[0], steps=len(args[1]), batch_first=args[2])
        if name in ("cuda", "cpu", "xpu"):
            return args[0]
        return func(*args, **kwargs)

    def _type_for(self, name: str, args: Any, kwargs: Any) -> torch.dtype | None:
        """Return what autocast casts the arguments of an operation to, or None."""
        if self.dtype is None:
            return None
        if name in IN_16_BITS:
            return self.dtype
        if name in IN_32_BITS:
            return torch.float32
        if name not in IN_WIDEST:
            return None
        given = [getattr(x, "dtype", None) for x in tree_leaves((args, kwargs))]
        return torch.float32 if torch.float32 in given else None

    def _recurrent(self, name: str, x: Tensor, *given: Any) -> tuple[Tensor, ...]:
        """Return what torch.lstm, gru, rnn_tanh or rnn_relu would, counted as one call.

        Args:
            x: (time, batch, features), or (batch, time, features) where the last of `given` says
                so; (rows, features) if it is packed.
            given: the first hidden state (for an LSTM with its cell), the weights of all layers,
                has_biases, num_layers, dropout, train, bidirectional, batch_first. A packed
                sequence has the sizes of its batches, one for each time step, before the state,
                and no batch_first.
        """
        if isinstance(given[1], list):
            state, weights, *_, both_ways, batch_first = given
            steps = x.shape[int(batch_first)]
            if not batch_first:
                self.check_time(x)
        else:
            sizes, state, weights, *_, both_ways = given
            steps = len(sizes)
        h = state[0] if name == "lstm" else state
        layer = _Layer(GATES[name], 1 + bool(both_ways), steps, self.record)
        out, last, cell, _ = Recurrent.apply(layer, x, h, *weights)
        return (out, last, cell) if name == "lstm" else (out, last)


@dataclass(frozen=True)
class _Layer:
    gates: int
    ways: int
    steps: int
    record: Record

    def note(
        self, name: str, given: Sequence[Tensor], made: Sequence[Tensor], others: Sequence[Tensor]
    ) -> None:
        """Count a pass over all layers: two operations for each weight and row.

        Args:
            name: "recurrent" or "recurrent_backward".
            given: the input, the first state, and the weights.
            made: the results.
            others: what else is read.
        """
        x, h, *weights = given
        rows = x.numel() // x.shape[-1]
        sizes = [weight.numel() for weight in weights if weight.dim() == 2]
        passes = 2 if name.endswith("backward") else 1
        kernels = RECURRENT_KERNELS[name] * self.steps * h.shape[0]
        call = OneCall(name, passes * 2.0 * rows * sum(sizes), kernels)
        self.record(call, ((*given, *others), {}), list(made))


class Recurrent(torch.autograd.Function):
    """All layers of an LSTM, a GRU or an RNN: shapes, and what the backward pass needs."""

    @staticmethod
    def forward(ctx: Any, layer: _Layer, x: Tensor, h: Tensor, *weights: Tensor) -> Any:
        """Return the result, the last state and cell, and what is kept."""
        hidden = weights[0].shape[0] // layer.gates
        out = x.new_empty(*x.shape[:-1], layer.ways * h.shape[-1])
        last = torch.empty_like(h)
        cell = h.new_empty(*h.shape[:-1], hidden)
        # the gates and a state of each time step
        kept = x.new_empty(h.shape[0], h.shape[1], layer.steps, hidden * (layer.gates + 1))
        ctx.layer = layer
        ctx.save_for_backward(x, h, kept, *weights)
        layer.note("recurrent", (x, h, *weights), (out, last, cell, kept), others=())
        return out, last, cell, kept

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Return the gradients of x, h and the weights."""
        x, h, kept, *weights = ctx.saved_tensors
        made = [torch.empty_like(tensor) for tensor in (x, h, *weights)]
        read = (grads[0], kept)
        ctx.layer.note("recurrent_backward", (x, h, *weights), made, others=read)
        return None, *made


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return attention as a GPU's one kernel computes it, which never writes the scores.

    That kernel takes (batch, heads, time, features) alone (PyTorch's sdp_utils_cpp.h,
    `check_tensor_shapes`); with other dimensions a GPU writes the scores, in 32 bits.
    """
    if query.dim() != 4:
        in_steps = torch.ops.aten._scaled_dot_product_attention_math
        return in_steps(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)[0]
    heads = query.shape[1]
    if key.shape[1] != heads:
        key, value = (x.repeat_interleave(heads // x.shape[1], 1) for x in (key, value))
    if attn_mask is not None:
        scores = len(query), heads, query.shape[-2], key.shape[-2]
        attn_mask = attn_mask.to(query.dtype).expand(scores)
    kernel = torch.ops.aten._scaled_dot_product_efficient_attention
    learns = torch.is_grad_enabled()
    return kernel(query, key, value, attn_mask, learns, dropout_p, is_causal, scale=scale)[0]


def _open(function: Any) -> FunctionType:
    """Return a copy of a function of PyTorch that runs its steps, and is handed to no mode."""
    names = {**function.__globals__, "has_torch_function": lambda given: False}
    return FunctionType(function.__code__, names, argdefs=function.__defaults__)


def _on_this_device(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the arguments of a call without the device that a model names in its forward pass."""
    if kwargs.get("device") is not None:
        kwargs = {**kwargs, "device": "cpu"}
    if name == "to" and len(args) > 1 and isinstance(args[1], (str, int, torch.device)):
        args = (args[0], "cpu", *args[2:])
    return args, kwargs


def _cast(x: Any, dtype: torch.dtype) -> Any:
    castable = isinstance(x, Tensor) and x.is_floating_point() and x.dtype != torch.float64
    return x.to(dtype) if castable else x


def _experts(rows: Tensor, weights: Tensor) -> Tensor:
    """Return the products of rows, (tokens, inputs), with the weights of experts, (experts, inputs,
    outputs), where each expert has an even share of the rows.
    """
    tokens, count = len(rows), len(weights)
    share = -(-tokens // count)
    if share * count > tokens:
        rows = F.pad(rows, (0, 0, 0, share * count - tokens))
    return torch.bmm(rows.unflatten(0, (count, share)), weights).flatten(0, 1)[:tokens]


def _dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.native_dropout(x, p, True)[0] if training and p else x  # one kernel on a GPU


def _embedding(
    ids: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    if not (sparse and weight.requires_grad and torch.is_grad_enabled()):
        return F.embedding(ids, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq)
    # A sparse gradient has the rows that were looked up: as many numbers as the result.
    return F.embedding(ids, weight.detach(), padding_idx).requires_grad_()


def _packed(x: Tensor, batch_first: bool) -> tuple[Tensor, Tensor, int]:
    """Return rows, batch of each time step and batch, where all are as long as the longest."""
    rows = x.transpose(0, 1) if batch_first else x
    steps, batch = rows.shape[:2]
    return rows.flatten(0, 1), torch.full((steps,), batch, dtype=torch.int64), batch


def _padded(rows: Tensor, steps: int, batch_first: bool) -> tuple[Tensor, Tensor]:
    x = rows.unflatten(0, (steps, -1))
    lengths = torch.full((x.shape[1],), steps, dtype=torch.int64)
    return (x.transpose(0, 1) if batch_first else x), lengths
