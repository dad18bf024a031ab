"""Run a training step on PyTorch's fake tensors, which have shapes and no data."""

import copy
import inspect
import logging
import re
import reprlib
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributions import Distribution
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_tools.estimate.checks import check_positive
from course_tools.estimate.counting.gpu_kernels import GpuKernels
from course_tools.estimate.counting.values import Values

# automatic mixed precision
HALF = {"fp16": torch.float16, "bf16": torch.bfloat16, "amp": torch.bfloat16}
WHOLE = {"fp16-true": torch.float16, "bf16-true": torch.bfloat16}  # the weights too
# More classes than that, and the loss is a part of the step that matters.
MANY_CLASSES = 1000
# names of backward functions: of other shapes of the same values, and of what no score ends in
SAME_VALUES = "View|Transpose|Permute|Reshape|ToCopy|Slice|Clone|Squeeze|Select"
NO_SCORES = "Norm|Relu|Gelu|Silu|Tanh|Sigmoid|Softplus|Pool|Embedding|Recurrent|Dropout"
VALUES = "Counting has no data. Leave out what depends on values, such as .item()."
ADVICE = {  # by what an error says
    'forward" function': "Pass the network inside it, or give it a forward that returns the loss.",
    "data-dependent": VALUES,
    "datadependent": VALUES,
    "dynamic shape": VALUES,
    "dynamicoutputshape": VALUES,
    ".numpy()": "Counting has no data for NumPy. Stay in PyTorch in what is counted.",
    "sparsetensorimpl": "Sparse gradients of nn.EmbeddingBag cannot be counted. Pass sparse=False "
    "to it, or count nn.Embedding(sparse=True) in its place.",
    "": "Check that the inputs fit: a tuple is several arguments, a dict names them, and a list "
    "is one. Shapes: {}.",
}
UNASKED = (  # warnings of what counting does alone
    # autocast, opened for the GPU that the estimate is for, up to torch 2.9 and since
    "User provided device_type of 'cuda'",
    "CUDA is not available or torch_xla is imported",
    # Transformers, which asks where the tokens of experts lie in memory
    "Accessing the data pointer of FakeT",
)
LOGGER = logging.getLogger("torch._subclasses.fake_tensor")  # prints a traceback of its own


Loss = Callable[[Any], Tensor]
# called after each operation with the phase ("forward", "backward" or "optimizer"), the operator,
# its (args, kwargs) and its result
Observer = Callable[[str, Any, Any, Any], None]


class CannotCount(ValueError):
    """A step that cannot be counted as it was asked for; its message says what to ask instead."""


def tensors(data: Any) -> list[Tensor]:
    """Return the tensors in nested data, those in the fields of dataclasses too."""
    leaves = [vars(leaf) if is_dataclass(leaf) else leaf for leaf in tree_leaves(data)]
    return [leaf for leaf in tree_leaves(leaves) if isinstance(leaf, Tensor)]


def operands(data: Any) -> list[Tensor]:
    """Return the tensors among the arguments or in the result of an operator.

    The same as `tensors`, without a search in dataclasses: an operator takes and gives tensors, and
    lists, tuples and dicts of them, and nothing else that holds any.
    """
    if isinstance(data, Tensor):
        return [data]
    if isinstance(data, dict):
        data = data.values()
    elif not isinstance(data, (list, tuple)):
        return []
    return [tensor for part in data for tensor in operands(part)]


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the model itself, without what copies it to several devices.

    Raises:
        TypeError: it is not a module, or a program of TorchScript, which has no Python to follow.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, but got {model!r}.")
    if isinstance(model, torch.jit.ScriptModule):
        raise TypeError("a program of torch.jit has no Python. Pass the model it was made from.")
    copies = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    return model.module if isinstance(model, copies) else model


class FakeStep(TorchDispatchMode):
    """One step of a copy of a model, on fake tensors.

    Args:
        model, inputs, batch, batch_dim: as for `count_work`.
        precision: what to compute in; a key of `HALF` or `WHOLE`; any other name means 32 bits.
        training: forward and backward, or the forward pass alone.
        loss: a function of what the model returns, which gives the loss, or None for the model's
            own (what it returns as `loss`) or else the sum of all results.

    Attributes:
        batch: samples in the step.
        channels_last: whether images lie in memory with their channels last.
        loss_counted: whether a loss is part of the step; known after `run`.
        assumed: what was assumed because there is no data, one sentence each.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Any,
        batch: int | None,
        precision: str,
        training: bool,
        loss: Loss | None = None,
        batch_dim: int | None = None,
    ):
        super().__init__()
        if loss is not None:
            _check_loss(loss)
        if batch_dim is not None:
            _check_dim(batch_dim)
        self.loss, self.loss_counted = loss, loss is not None
        self.precision = precision
        self.observers: tuple[Observer, ...] = ()
        self.training, self.half, whole = training, HALF.get(precision), WHOLE.get(precision)
        self.phase, self.last = "forward", "its first operation"
        self.values = Values()
        self.assumed = self.values.assumed
        self._asked_dim, self._dim = batch_dim, batch_dim or 0
        # such as what a tokenizer returns
        inputs = dict(inputs) if isinstance(inputs, Mapping) else inputs
        listed = _is_list_of_images(inputs)
        size = len(inputs[0]) if listed else _batch_of(inputs, self._dim)
        graph = None if listed or batch_dim is not None else find_graph(inputs)
        if graph:
            size = 1
            self.assumed.append(
                f"a sample is a whole graph of {graph[0]:,} nodes and {graph[1]:,} edges"
            )
        self.batch = check_positive("batch", size if batch is None else batch)
        if listed:  # as torchvision's detectors take them, each with its own target
            inputs, size = _repeated(inputs, self.batch), -1
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        sizes = dict.fromkeys(graph, self.batch) if graph else {}
        given = self._without_data(inputs, size, whole, sizes)
        self.shapes = ", ".join(str(tuple(x.shape)) for x in dict.fromkeys(tensors(given)))
        self.arguments: Any = given if isinstance(given, (dict, tuple)) else (given,)
        self.channels_last = has_channels_last(model, inputs)
        self.model = _clone(unwrapped(model), precision, whole, self.fake).train(training)
        for part in self.model.modules():
            if isinstance(part, nn.MultiheadAttention) and not part.batch_first:
                part.register_forward_pre_hook(self._check_attention, with_kwargs=True)
        if training and not any(p.requires_grad for p in self.model.parameters()):
            raise ValueError("the model has no parameter that is trained. Pass training=False.")

    def _without_data(
        self, inputs: Any, size: int, whole: torch.dtype | None, of_graph: Mapping[int, int]
    ) -> Any:
        """Return the inputs as fake tensors, with the step's batch in place of a batch of `size`.

        A tensor that is passed twice stays one tensor. Dimensions as large as the nodes or the
        edges of a graph (`of_graph`) grow by their factor: a batch of graphs is one large graph.
        """

        def resized(x: Tensor) -> Tensor:
            _refuse_sparse(x, "an input")
            shape = list(x.shape)
            if of_graph:
                edges = is_edges(x)
                for dim in range(len(shape)):
                    if dim == int(edges):
                        shape[dim] *= of_graph.get(shape[dim], 1)
            elif len(shape) > self._dim and shape[self._dim] == size:
                shape[self._dim] = self.batch
            dtype = whole if whole and x.is_floating_point() else x.dtype
            return torch.empty(shape, dtype=dtype)

        with self.fake:
            twins: dict[int, Any] = {id(x): resized(x) for x in tensors(inputs)}
        return copy.deepcopy(inputs, twins)  # takes a twin as the copy that it has made already

    def __enter__(self) -> "FakeStep":
        self.fake.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.fake.__exit__(*error)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.prim.device.default:
            return args[0].fake_device  # asked for more often than all else together
        self.last = name = func.overloadpacket.__name__
        if name == "_local_scalar_dense" and self.phase == "optimizer":
            return 1.0  # the number of the step
        out = self.values.instead(name, func, args)
        if name == "_local_scalar_dense" and out is not None:
            return out
        if out is None:
            out = func(*args, **(kwargs or {}))
        self.values.note(name, args, out)
        self._tell(func, (args, kwargs or {}), out)
        return out

    def run(self, *observers: Observer) -> None:
        """Run the step once, without an optimizer, and call `observers` after each operation."""
        self.observers = observers
        # so that the batch goes when nothing needs it any more
        given, self.arguments = self.arguments, ()
        fast_path = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)  # it looks into masks
        kernels = GpuKernels(self.half, self._tell, self._check_time, self.values)
        casts = torch.is_autocast_enabled("cuda")
        torch.set_autocast_enabled("cuda", self.half is not None)  # nn.LSTM asks whether any is on
        silent = LOGGER.disabled
        LOGGER.disabled = True
        checks = Distribution._validate_args  # of values
        Distribution.set_default_validate_args(False)
        try:
            with (
                torch.set_grad_enabled(self.training),
                self,
                kernels,
                warnings.catch_warnings(),
            ):
                for message in UNASKED:
                    warnings.filterwarnings("ignore", message=message)
                out = self.model(**given) if isinstance(given, dict) else self.model(*given)
                del given
                if self.training:
                    out = self._loss(out)
                    self.phase = "backward"
                    _backward(out)
                    del out
        except CannotCount:
            raise
        except (Exception, SystemExit) as error:  # a model must not end the user's kernel
            raise self._explained(error) from error
        finally:
            torch.backends.mha.set_fastpath_enabled(fast_path)
            torch.set_autocast_enabled("cuda", casts)
            LOGGER.disabled = silent
            Distribution.set_default_validate_args(checks)

    def _tell(self, func: Any, given: Any, out: Any) -> None:
        for observe in self.observers:
            observe(self.phase, func, given, out)

    def _check_attention(self, layer: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        query = args[0] if args else kwargs["query"]
        if query.dim() == 3:
            self._check_time(query, "an attention layer")

    def _check_time(self, x: Tensor, what: str = "a recurrent layer") -> None:
        """Refuse a layer that takes for time what was taken for the batch."""
        if self._asked_dim is None and x.shape[0] == self.batch != x.shape[1]:
            raise CannotCount(
                f"{what} reads the first dimension of {tuple(x.shape)} as time "
                f"(batch_first=False), and so it is no batch. Pass batch_dim=1, or batch_dim=0 if "
                f"the first dimension is the batch all the same."
            )

    def _loss(self, out: Any) -> Any:
        """Return the loss of a result, or the result itself where it has none."""
        if self.loss is not None:
            return self.loss(out)
        own = out.get("loss") if isinstance(out, Mapping) else getattr(out, "loss", None)
        if own is None:  # such as (scores, loss), or the several losses of a detector
            own = [x for x in tensors(out) if x.dim() == 0 and x.requires_grad]
        self.loss_counted = bool(tensors(own))
        if self.loss_counted:
            return own
        scores, dim = self._scores(out)
        if scores is not None:
            self.loss_counted = True
            classes = scores.shape[dim]
            self.assumed.append(
                f"the model returns scores of {classes:,} classes and no loss, so cross-entropy "
                f"was added (loss= takes another)"
            )
            return _cross_entropy(scores.movedim(dim, -1))
        logits = getattr(out, "logits", None)
        return out if logits is None else logits

    def _scores(self, out: Any) -> tuple[Tensor | None, int]:
        """Return the scores of many classes in a result, and the dimension of the classes.

        They are a result that is as wide as the rows of one of the model's matrices.
        """
        rows = {len(p) for p in self.model.parameters() if p.dim() > 1}
        for x in filter(_is_linear, tensors(out)):
            for dim in (-1, 1):
                classes = x.shape[dim] if x.dim() > 1 else 0
                if classes > MANY_CLASSES and classes in rows and x.is_floating_point():
                    return x, dim
        return None, 0

    def _explained(self, error: BaseException) -> RuntimeError:
        """Return an error that says where the model failed and what to do."""
        lines = (str(error) or type(error).__name__).splitlines()
        said = lines[0].partition(". ")[0][:200].rstrip(".!")
        kind = f"{type(error).__name__} {error}".lower()
        advice = next(text for sign, text in ADVICE.items() if sign in kind).format(self.shapes)
        others = str(Path(torch.__file__).parents[1]), str(Path(__file__).parents[1])
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if not frame.filename.startswith(others)]
        where = f", in line {own[-1].lineno} of {Path(own[-1].filename).name}," if own else ""
        name = type(self.model).__name__
        failed = f"{name} cannot be counted: at operation {self.last!r}{where} it failed"
        return RuntimeError(f"{failed}: {said}. {advice}")


def _refuse_sparse(x: Tensor, what: str) -> None:
    """Refuse a sparse tensor, which would be counted as a dense one of its shape."""
    if x.layout != torch.strided:
        raise CannotCount(
            f"{what} is sparse ({x.layout}, {tuple(x.shape)}), and counting would take it for a "
            f"dense one of its shape. Count the step with an edge list: "
            f"`torch.zeros_like(x).index_add(0, to, x[from])` moves what such a product moves, but "
            f"holds more in memory."
        )


def _is_list_of_images(inputs: Any) -> bool:
    """Return whether the first argument is a list of images, each of three colours first."""
    images = inputs[0] if isinstance(inputs, tuple) and inputs else None
    return bool(
        isinstance(images, list)
        and images
        and all(isinstance(image, Tensor) and image.dim() == 3 for image in images)
        and all(len(image) == 3 for image in images)
    )


def _repeated(inputs: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """Return arguments with `count` parts in each list: the first ones, again and again."""
    return tuple(
        [part[place % len(part)] for place in range(count)]
        if isinstance(part, list) and part
        else part
        for part in inputs
    )


def has_channels_last(model: nn.Module, inputs: Any) -> bool:
    """Return whether an image or a weight lies in memory with its channels last."""
    weights = (p for p in unwrapped(model).parameters() if p.dim() == 4)
    return any(map(_channels_last, [*tensors(inputs), *weights]))


def _channels_last(x: Tensor) -> bool:
    """Say whether a tensor has its channels last, and could also have had them first."""
    if x.layout != torch.strided or x.dim() != 4 or min(x.shape[1], x.shape[2] * x.shape[3]) == 1:
        return False
    return x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()


def _check_loss(loss: Loss) -> None:
    """Raise TypeError unless a loss can be called with one argument."""
    called = loss.forward if isinstance(loss, nn.Module) else loss
    try:
        inspect.signature(called).bind("what the model returns")
    except ValueError:
        pass  # a built-in function does not say what it takes
    except TypeError as error:
        raise TypeError(
            f"loss must be a function of what the model returns alone, which makes its own "
            f"targets, such as `lambda out: torch.nn.functional.cross_entropy(out, out.argmax(1))`,"
            f" but got {loss!r}: {error}."
        ) from None


def _check_dim(dim: object) -> None:
    if not isinstance(dim, int) or isinstance(dim, bool) or dim < 0:
        raise ValueError(f"batch_dim must be 0, 1, 2 or so on, or None, but got {dim!r}.")


def _batch_of(inputs: Any, dim: int) -> int:
    """Return the size of a dimension of the first tensor that has it."""
    found = [x for x in tensors(inputs) if x.dim() > dim]
    if not found:
        raise ValueError(
            f"inputs need a tensor whose dimension {dim} is the batch, not {reprlib.repr(inputs)}."
        )
    return found[0].shape[dim]


def find_graph(inputs: Any) -> tuple[int, int] | None:
    """Return how many nodes and edges a graph has: features of nodes, and pairs of nodes.

    None where the inputs are no graph.
    """
    found = tensors(inputs)
    features = next((x for x in found if x.is_floating_point() and x.dim() == 2), None)
    pairs = next((x for x in found if is_edges(x)), None)
    if features is None or pairs is None or len(features) in (1, 2):
        return None
    return len(features), pairs.shape[1]


def is_edges(x: Tensor) -> bool:
    """Return whether a tensor is a list of edges: the two ends of each as whole numbers."""
    whole = x.dtype in (torch.int64, torch.int32)
    return whole and x.dim() == 2 and len(x) == 2 and x.shape[1] > 2


def _is_linear(x: Tensor) -> bool:
    """Return whether a result may be scores: a norm or an activation does not come after them."""
    made_by = x.grad_fn
    while made_by is not None and re.search(SAME_VALUES, made_by.name()):
        made_by = made_by.next_functions[0][0]
    return made_by is not None and not re.search(NO_SCORES, made_by.name())


def _cross_entropy(scores: Tensor) -> Tensor:
    """Return the loss of scores, with the classes last, by targets that are made for it."""
    rows = scores.reshape(-1, scores.shape[-1])
    targets = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
    return nn.functional.cross_entropy(rows, targets)


def _backward(out: Any) -> None:
    results = [x.float().sum() for x in tensors(out) if x.requires_grad]
    if not results:
        raise CannotCount(
            "no result of the model depends on a parameter that is trained. Pass training=False."
        )
    root = torch.stack(results).sum()
    # The engine itself: Tensor.backward, and since torch 2.11 torch.autograd.backward, turn
    # function modes off, which would hide what checkpointing computes again from `GpuKernels`.
    engine = torch.autograd.Variable._execution_engine
    grads = (torch.ones_like(root),)
    engine.run_backward(
        (root,), grads, False, False, (), allow_unreachable=True, accumulate_grad=True
    )


def _clone(
    model: nn.Module, precision: str, whole: torch.dtype | None, fake: FakeTensorMode
) -> nn.Module:
    """Return a copy of a model with fake tensors in the place of its own."""
    own = {p.dtype for p in model.parameters()} & {torch.float16, torch.bfloat16}
    if own and precision in ("fp32", "tf32"):
        raise ValueError(
            f"precision {precision!r} was asked of a model in {own.pop()}. "
            f"Pass 'bf16', or model.float()."
        )

    def empty(x: Tensor) -> Tensor:
        _refuse_sparse(x, "a tensor of the model")
        return torch.empty(x.shape, dtype=whole if whole and x.is_floating_point() else x.dtype)

    # What deepcopy finds in `memo` it takes as already copied: the structure is copied and the data
    # are not.
    memo: dict[int, Any] = {}
    with fake:
        for part in model.modules():
            made = [x for x in vars(part).values() if isinstance(x, Tensor)]  # of parameters
            memo |= {id(x): empty(x) for x in made}
        memo |= {id(x): empty(x) for x in model.buffers()}
        memo |= {id(p): nn.Parameter(empty(p), p.requires_grad) for p in model.parameters()}
    return copy.deepcopy(model, memo)
