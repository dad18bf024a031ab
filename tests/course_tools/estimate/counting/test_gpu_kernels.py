"""Recurrent layers are one operation: of the shapes that PyTorch gives, with the products of the
textbook.
"""

import pytest
import torch
from torch import nn

from course_tools.estimate import count_work, estimate_memory
from course_tools.estimate.counting.fake_step import FakeStep, tensors

TIME, BATCH, WIDE, HIDDEN = 7, 3, 10, 16


LAYERS = [
    (kind, how)
    for kind in (nn.LSTM, nn.GRU, nn.RNN)
    for how in (
        {},
        {"num_layers": 3, "batch_first": True},
        {"bidirectional": True, "bias": False, "num_layers": 2},
    )
]
LAYERS.append((nn.LSTM, {"proj_size": 5, "bidirectional": True}))


# of PyTorch, about its own CPU kernel
@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
@pytest.mark.parametrize(("kind", "how"), LAYERS)
def test_results_have_the_shapes_that_pytorch_gives(kind, how):
    layer = kind(WIDE, HIDDEN, **how)
    x = torch.rand(BATCH, TIME, WIDE) if how.get("batch_first") else torch.rand(TIME, BATCH, WIDE)
    assert shapes_counted(layer, x) == [t.shape for t in tensors(layer(x))]


def shapes_counted(layer, x):
    """Return the shapes of what a layer returns when it is counted."""

    class Seen(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            results.extend(tensors(self.layer(x)))

    results = []
    FakeStep(Seen(), x, None, "fp32", training=False, batch_dim=0).run(lambda *call: None)
    return [result.shape for result in results]


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.MultiheadAttention(WIDE, 2, batch_first=True)

    def forward(self, x):
        return self.layer(x, x, x)


def test_attention_keeps_what_autograd_keeps_on_the_cpu():
    layer, x = Attends(), torch.rand(BATCH, TIME, WIDE)
    own = {id(p.untyped_storage()) for p in layer.parameters()}
    kept = {}

    def note(tensor):
        kept[id(tensor.untyped_storage())] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        results = layer(x)
    held = [storage.nbytes() for key, storage in kept.items() if key not in own]
    held += [tensor.untyped_storage().nbytes() for tensor in (x, *results)]
    found = estimate_memory(layer, x, precision="fp32", loss=lambda out: out[0].sum())
    (moment, *_) = (one for one in found.moments if one.operation == "mean")
    assert moment.activations == sum(held)


@pytest.mark.parametrize(("kind", "gates"), [(nn.LSTM, 4), (nn.GRU, 3), (nn.RNN, 1)])
def test_products_are_those_of_the_gates_and_kernels_grow_with_time(kind, gates):
    layer, x = kind(WIDE, HIDDEN, batch_first=True), torch.empty(1, TIME, WIDE)
    work = count_work(layer, x, batch=BATCH, precision="fp32", training=False)
    assert work.flops == 2 * TIME * BATCH * gates * HIDDEN * (WIDE + HIDDEN)
    trained = count_work(layer, x, batch=BATCH, precision="fp32")
    assert trained.flops == 3 * work.flops
    assert trained.recurrent.kernels == (2 + 3) * TIME  # Appleyard, Kocisky and Blunsom (2016)
    longer = count_work(
        layer, torch.empty(1, 10 * TIME, WIDE), batch=BATCH, precision="fp32", training=False
    )
    assert longer.flops == 10 * work.flops and longer.kernels - work.kernels == 2 * 9 * TIME
    deep = kind(WIDE, HIDDEN, num_layers=3, batch_first=True)
    deep = count_work(deep, x, batch=BATCH, precision="fp32", training=False)
    assert deep.kernels - work.kernels == 2 * 2 * TIME


def test_the_memory_of_a_long_sequence_grows_with_its_length():
    layer = nn.LSTM(WIDE, HIDDEN, batch_first=True)
    short, long = (
        estimate_memory(layer, torch.empty(1, n, WIDE), batch=8).peak.activations for n in (50, 500)
    )
    assert 8 < long / short < 12
