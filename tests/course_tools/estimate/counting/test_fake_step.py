"""A step that is followed without data: its counts against what others published, FlopCounterMode,
and sums done by hand; and what cannot be followed.
"""

import copy
import dataclasses
import sys
from collections import UserDict

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from course_tools.estimate.counting.count_work import count_work
from course_tools.estimate.counting.fake_step import FakeStep
from course_tools.estimate.counting.gpu_kernels import _experts
from course_tools.estimate.time.error_factor import kind_of

# Whose multiply-adds torchvision publishes with its weights.
KNOWN = ["resnet18", "resnet50", "resnet101", "vgg16", "densenet121", "mobilenet_v2", "vit_b_16"]
KNOWN += ["efficientnet_b0", "convnext_tiny", "regnet_x_800mf"]
# Millions of activations from table 4 and the appendix of I. Radosavovic et al., Designing Network
# Design Spaces (2020), and of pytorch-image-models (resnet18, resnet152).
ACTIVATIONS = {"resnet18": 2.48, "resnet50": 11.1, "resnet101": 16.2, "resnet152": 22.6}
ACTIVATIONS |= {"regnet_x_400mf": 3.1, "regnet_x_800mf": 5.1, "regnet_x_1_6gf": 7.9}
ACTIVATIONS |= {"regnet_y_400mf": 3.9, "regnet_y_1_6gf": 8.0, "efficientnet_b0": 6.7}


def picture(side=224):
    return torch.empty(1, 3, side, side, device="meta")


@pytest.fixture
def network(torchvision):
    """Make a network of torchvision by its name."""

    def make(name):
        # regnet reads its own numbers when built
        with torch.device("cpu" if name.startswith("regnet") else "meta"):
            return getattr(torchvision.models, name)()

    return make


@pytest.mark.parametrize("name", KNOWN)
def test_operations_agree_with_those_that_torchvision_publishes(name, network, torchvision):
    published = torchvision.models.get_model_weights(name).DEFAULT.meta["_ops"]
    counted = count_work(network(name), picture(), precision="fp32", training=False).flops / 2e9
    assert counted == pytest.approx(published, rel=0.03)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_agree_with_the_published_ones(name, network):
    ops = count_work(network(name), picture(), precision="fp32", training=False).ops
    # what papers call activations
    counted = sum(op.elements for op in ops if op.kind != "other") / 1e6
    assert counted == pytest.approx(ACTIVATIONS[name], rel=0.03)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", ["resnet18", "vit_b_16"])
def test_operations_agree_with_flop_counter_mode(name, training, network):
    model = network(name).train(training)
    if name == "vit_b_16" and training:
        pytest.skip("FlopCounterMode sees attention taken apart here, with fewer products backward")
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(training):
        out = model(torch.empty(2, 3, 224, 224, device="meta"))
        if training:
            out.sum().backward()
    counted = count_work(model, picture(), batch=2, precision="fp32", training=training)
    assert counted.flops == pytest.approx(counter.get_total_flops(), rel=1e-6)


def test_the_backward_pass_of_a_grouped_convolution_has_twice_its_operations():
    layers = nn.Sequential(
        nn.Conv2d(8, 8, 3, groups=8, padding=1), nn.Conv2d(8, 8, 3, groups=8, padding=1)
    )
    forward = count_work(layers, torch.empty(4, 8, 10, 10), precision="fp32", training=False).flops
    assert forward == 2 * (2 * 4 * 8 * 100 * 9)
    training = count_work(layers, torch.empty(4, 8, 10, 10), precision="fp32").flops
    assert training == forward * 2.5  # the first layer needs no gradient of its input


def test_bytes_of_a_linear_layer_are_input_weight_bias_and_output():
    work = count_work(
        nn.Linear(100, 10), torch.empty(1, 100), batch=8, precision="fp32", training=False
    )
    assert work.bytes_moved == 4 * (8 * 100 + 100 * 10 + 10 + 8 * 10)
    assert work.kernels == 1 and work.flops == 2 * 8 * 100 * 10


def test_mixed_precision_halves_the_activations_and_casts_the_weights():
    work = count_work(
        nn.Linear(100, 10), torch.empty(1, 100), batch=8, precision="bf16", training=False
    )
    casts = [op for op in work.ops if op.name == "_to_copy"]
    assert sorted(op.elements for op in casts) == [10, 800, 1000]  # bias, input, weight
    assert sum(op.bytes_moved for op in casts) == 1810 * 6
    assert work.bytes_moved - 1810 * 6 == 2 * (8 * 100 + 100 * 10 + 10 + 8 * 10)


@pytest.mark.parametrize("masks", [{}, {"mask": 0}, {"padding": 1}, {"mask": 0, "padding": 1}])
@pytest.mark.parametrize("training", [False, True])
def test_fused_attention_writes_no_scores(masks, training):
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    x = torch.empty(2, 512, 64)
    inputs = {"src": x}
    inputs |= {"src_mask": torch.zeros(512, 512)} if "mask" in masks else {}
    inputs |= {"src_key_padding_mask": torch.zeros(2, 512)} if "padding" in masks else {}
    work = count_work(layer, inputs, precision="bf16", training=training)
    assert [op.kind for op in work.ops].count("attention") == (2 if training else 1)
    products = [op for op in work.ops if op.kind != "other"]
    assert max(op.elements for op in products) < 2 * 4 * 512 * 512
    # Four products of 64 x 64, two of 64 x 128 and the scores twice; backward does each product
    # twice.
    forward = 2 * (2 * 512) * (4 * 64 * 64 + 2 * 64 * 128) + 2 * 2 * 2 * 512 * 512 * 64
    assert work.flops == pytest.approx(forward * (3 if training else 1), rel=0.1)


@pytest.mark.parametrize("front", [(2 * 16 * 4,), (2, 16, 4)])
def test_attention_without_four_dimensions_writes_its_scores_in_32_bits(front):
    # Twins, Hiera and Nest have windows in front of the heads; a GPU has no kernel for that.
    class Attention(nn.Module):
        def forward(self, x):
            return F.scaled_dot_product_attention(x, x, x)

    work = count_work(Attention(), torch.empty(*front, 49, 32), precision="bf16", training=False)
    product = 2 * (2 * 16 * 4) * 49 * 49 * 32
    assert work.attention.flops == 0 and work.matrix.flops == 2 * product
    scores = 2 * 16 * 4 * 49 * 49 * 4
    assert work.bytes_moved > 4 * scores  # written, read and written by softmax, read


def test_attention_whose_weights_are_asked_for_is_counted_as_it_runs():
    layer, x = nn.MultiheadAttention(64, 4, batch_first=True), torch.empty(2, 512, 64)
    plain = count_work(layer, {"query": x, "key": x, "value": x}, training=False)
    fused = count_work(
        layer, {"query": x, "key": x, "value": x, "need_weights": False}, training=False
    )
    other = count_work(
        layer, {"query": x, "key": x + 0, "value": x, "need_weights": False}, training=False
    )
    assert plain.bytes_moved > 3 * fused.bytes_moved and plain.flops == fused.flops == other.flops
    assert other.kernels > fused.kernels


def test_the_model_is_not_touched():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout()).eval()
    before = copy.deepcopy(model.state_dict())
    count_work(model, torch.randn(2, 4), batch=64)
    assert not model.training and all(p.grad is None for p in model.parameters())
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


def test_nested_inputs_are_resized_where_their_first_dimension_is_the_batch():
    class Model(nn.Module):
        def forward(self, x, rest):
            assert rest["mask"].shape == (7, 5) and rest["table"].shape == (9, 2)
            return x * rest["mask"].sum()

    inputs = (torch.empty(3, 4), {"mask": torch.empty(3, 5), "table": torch.empty(9, 2)})
    assert count_work(Model(), inputs, batch=7, training=False).batch == 7


@dataclasses.dataclass
class Result:
    logits: torch.Tensor
    loss: torch.Tensor | None = None


def test_a_list_that_is_one_argument_has_its_batch_in_its_tensors():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, parts):
            return self.layer(parts[0]).sum() + self.layer(parts[1]).sum()

    # an image without objects has no boxes, also in a larger batch
    step = FakeStep(Both(), ([torch.empty(3, 9, 8)], [torch.empty(0, 4)]), 2, "fp32", True)
    assert [x.shape for x in step.arguments[1]] == [(0, 4), (0, 4)]
    assert count_work(Both(), ([torch.empty(32, 5, 8), torch.empty(32, 9, 8)],)).batch == 32


def test_training_needs_something_to_train():
    with pytest.raises(ValueError, match="training=False"):
        count_work(nn.ReLU(), torch.empty(1, 2))

    class Detached(nn.Linear):
        def forward(self, x):
            return super().forward(x).detach()

    with pytest.raises(
        ValueError, match="no result of the model depends on a parameter that is trained"
    ):
        count_work(Detached(2, 2), torch.empty(1, 2))


@pytest.mark.parametrize("recurrent", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_recurrent_layer_may_follow_one_whose_results_have_16_bits(recurrent):
    model = nn.Sequential(nn.Linear(8, 16), recurrent(16, 16, batch_first=True))
    assert (
        count_work(model, torch.empty(4, 10, 8), precision="fp16", training=False).flops
        > 2 * 40 * 16 * 8
    )
    assert not torch.is_autocast_enabled("cuda")


def test_a_readers_inference_mode_hides_nothing():
    model, x = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), torch.empty(4, 8)
    outside = count_work(model, x, training=False)
    with torch.inference_mode():
        assert count_work(model, x, training=False) == outside and outside.flops == 2 * 4 * 8 * 16
        assert count_work(model, x).flops > outside.flops


def forward_of(function, **parts):
    """Make a network of parts whose forward pass is `function`, with the network first."""
    model = type("Model", (nn.Module,), {"forward": function})()
    for name, part in parts.items():
        setattr(model, name, part)
    return model


def test_padding_may_be_masked_without_training():
    # asks for nested ones
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)
    inputs = {
        "src": torch.empty(4, 6, 16),
        "src_key_padding_mask": torch.zeros(4, 6, dtype=torch.bool),
    }
    plain = count_work(encoder, inputs["src"], training=False)
    assert count_work(encoder, inputs, training=False).flops == plain.flops > 0


def test_the_padding_of_what_is_looked_up_is_as_long_as_that_and_not_as_the_question():
    layer, asked, known = nn.MultiheadAttention(16, 2, batch_first=True), 5, 7
    inputs = {"query": torch.empty(2, asked, 16), "need_weights": False}
    inputs |= dict.fromkeys(("key", "value"), torch.empty(2, known, 16))
    plain = count_work(layer, inputs, training=False)
    inputs["key_padding_mask"] = torch.zeros(2, known, dtype=torch.bool)
    assert count_work(layer, inputs, training=False).flops == plain.flops > 0


@pytest.mark.parametrize("training", [False, True])
def test_a_transformer_may_find_out_by_itself_whether_its_mask_is_causal(training):
    model, x = nn.Transformer(16, 2, 1, 1, 32, batch_first=True), torch.empty(4, 6, 16)
    masked = {"src": x, "tgt": x + 0, "tgt_mask": model.generate_square_subsequent_mask(6)}
    told = count_work(model, {**masked, "tgt_is_causal": True}, training=training)
    assert count_work(model, masked, training=training).flops == told.flops


@pytest.mark.parametrize("wrap", [nn.utils.weight_norm, nn.utils.parametrizations.weight_norm])
@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_weight_norm_is_counted_as_the_layer_and_a_little(wrap, precision):
    plain, normed = (
        count_work(net(nn.Conv1d(8, 8, 3)), torch.empty(4, 8, 64), precision=precision)
        for net in (nn.Sequential, wrap)
    )
    assert normed.flops == plain.flops and normed.kernels > plain.kernels


@pytest.mark.parametrize("wrap", [nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm])
def test_products_of_two_types_take_the_wider_one(wrap):
    layer = wrap(nn.Linear(16, 16))
    assert count_work(layer, torch.empty(4, 16), precision="fp16").flops > 0
    halves = torch.empty(10, 8, dtype=torch.float16)
    summed = forward_of(
        lambda self, x, to: x.scatter_add(0, to.expand(-1, 8), x), layer=nn.Linear(2, 2)
    )
    wide = count_work(
        summed, (halves, torch.zeros(10, 1, dtype=torch.int64)), precision="fp16", training=False
    )
    assert not [op for op in wide.ops if op.name == "_to_copy"]  # what is in 16 bits stays there


def test_what_is_made_on_the_cpu_meets_the_input():
    def run(self, x):
        return self.layer(x) * self.table + torch.ones(16)

    model = forward_of(run, layer=nn.Linear(16, 16), table=torch.rand(16))
    model(torch.rand(4, 16))
    work = count_work(model, torch.empty(4, 16), precision="fp32", training=False)
    assert work.flops == 2 * 4 * 16 * 16 and [op.name for op in work.ops][:2] == ["addmm", "mul"]


def test_a_model_may_open_autocast_for_the_device_of_its_input_and_make_tensors_there(monkeypatch):
    # Without torch_xla, torch warns that there is no CUDA. The estimate is for another machine.
    monkeypatch.setattr(torch.cuda.amp.common, "find_spec", lambda name: None)

    def run(self, x):
        # as the rotary embeddings of Hugging Face do
        with torch.autocast(device_type=x.device.type, enabled=False):
            places = torch.arange(x.shape[1], device=x.device).float()
        with torch.autocast(device_type=x.device.type):
            places = places + 1
        return torch.utils.checkpoint.checkpoint(self.layer, x * places, use_reentrant=False)

    layers = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16))
    # Two products forward, one of them again, and three backward, as the input needs no gradient.
    assert (
        count_work(forward_of(run, layer=layers), torch.empty(4, 16)).flops >= 6 * 2 * 4 * 16 * 16
    )


def test_time_first_is_refused_until_the_dimension_of_the_batch_is_named():
    layer, x = nn.LSTM(8, 16), torch.empty(100, 4, 8)
    with pytest.raises(ValueError, match="Pass batch_dim=1"):
        count_work(layer, x, batch=64)
    first = nn.LSTM(8, 16, batch_first=True)
    named = count_work(layer, x, batch=64, batch_dim=1)
    assert named.batch == 64
    assert named.flops == count_work(first, torch.empty(4, 100, 8), batch=64).flops


@pytest.mark.parametrize("kind", [nn.TransformerEncoderLayer, nn.MultiheadAttention])
def test_attention_over_the_first_dimension_is_refused_until_the_batch_is_named(kind):
    def flops(x, **asked):
        model = kind(64, 4, batch_first=asked.pop("batch_first", False))
        inputs = (x, x, x) if kind is nn.MultiheadAttention else x
        return count_work(model, inputs, batch=32, **asked).flops

    time_first, batch_first = torch.empty(100, 1, 64), torch.empty(1, 100, 64)
    with pytest.raises(ValueError, match=r"an attention layer reads.*Pass batch_dim=1"):
        flops(time_first)
    named = flops(time_first, batch_dim=1)
    assert named == flops(batch_first, batch_first=True)
    assert flops(time_first, batch_dim=0) < named / 50


@pytest.mark.parametrize("dim", [-1, "1", True, 0.0])
def test_a_dimension_that_is_none_is_refused(dim):
    with pytest.raises(ValueError, match=f"batch_dim must be 0, 1.*{dim!r}"):
        count_work(nn.Linear(4, 4), torch.empty(8, 4), batch_dim=dim)


@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss(), F.mse_loss, "mse"])
def test_a_loss_that_wants_targets_is_refused_with_an_example_of_one_that_does_not(loss):
    with pytest.raises(TypeError, match=r"function of what the model returns.*such as `lambda out"):
        count_work(nn.Linear(4, 4), torch.empty(8, 4), loss=loss)


@pytest.mark.parametrize("loss", [torch.sum, nn.Flatten(0), lambda out, weight=2: weight * out])
def test_a_loss_may_be_whatever_takes_one_argument(loss):
    assert count_work(nn.Linear(4, 4), torch.empty(8, 4), loss=loss).loss_counted


def test_a_sparse_embedding_has_a_gradient_of_the_rows_that_were_looked_up():
    def bytes_of(rows, sparse):
        model = nn.Sequential(nn.Embedding(rows, 64, sparse=sparse), nn.Linear(64, 4))
        return count_work(model, torch.zeros(4, 50, dtype=torch.int64)).bytes_moved

    assert bytes_of(10**6, sparse=True) == bytes_of(10**4, sparse=True)
    assert bytes_of(10**6, sparse=False) > 50 * bytes_of(10**4, sparse=True)


def test_lengths_of_sequences_may_be_an_input():
    def run(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        return nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]

    model = forward_of(run, rnn=nn.modules.rnn.GRU(8, 16, batch_first=True))
    given = torch.rand(4, 10, 8), torch.tensor([10, 7, 5, 2])
    assert model(*given).shape == (4, 10, 16)
    for training in (False, True):
        packed, padded = (
            count_work(*asked, training=training).recurrent
            for asked in ((model, given), (model.rnn, given[0]))
        )
        assert (packed.flops, packed.kernels) == (padded.flops, padded.kernels)


def test_inputs_and_results_may_be_dataclasses_or_what_a_tokenizer_returns():
    layer, x = nn.Linear(4, 4), torch.rand(2, 4)
    plain = count_work(layer, x, batch=8)
    model = forward_of(lambda self, given: Result(self.layer(given.logits)), layer=layer)
    assert count_work(model, Result(x), batch=8) == plain
    assert count_work(layer, UserDict(input=x), batch=8).flops == plain.flops


def test_a_failure_names_the_line_of_the_model_and_what_to_do(caplog):
    inference = {"training": False}

    def run(self, x):
        return self.layer(x[: int(x.sum())])

    line = run.__code__.co_firstlineno + 1
    with pytest.raises(RuntimeError, match=rf"in line {line} of test_fake_step.py.*item"):
        count_work(forward_of(run, layer=nn.Linear(2, 2)), torch.empty(2, 2))
    with pytest.raises(RuntimeError, match="Pass the network inside it"):
        count_work(nn.ModuleDict({"net": nn.Linear(2, 2)}), torch.empty(2, 2))
    with pytest.raises(RuntimeError, match="Leave out what depends on values"):
        count_work(forward_of(lambda self, x: x.sum().item() * x), torch.empty(2, 2), **inference)
    with pytest.raises(RuntimeError, match="Stay in PyTorch"):
        count_work(forward_of(lambda self, x: x.detach().numpy()), torch.empty(2, 2), **inference)
    with pytest.raises(RuntimeError, match="Model cannot be counted"):
        count_work(forward_of(lambda self, x: sys.exit(3)), torch.empty(2, 2), **inference)
    with pytest.raises(RuntimeError, match=r"Shapes: \(2, 3\)"):
        count_work(nn.Linear(2, 2), torch.empty(2, 3))
    assert not caplog.records  # PyTorch has a traceback of its own to log


def test_a_program_of_jit_is_refused():
    with pytest.raises(TypeError, match="Pass the model it was made from"):
        count_work(torch.jit.trace(nn.Linear(2, 2), torch.rand(1, 2)), torch.empty(1, 2))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")  # PyTorch's, when one is made
def test_a_sparse_input_is_refused_and_not_taken_for_a_dense_one():
    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x, edges):
            return torch.sparse.mm(edges, self.layer(x))

    edges = torch.eye(1000).to_sparse()
    for layout in (edges, edges.to_sparse_csr()):
        with pytest.raises(ValueError, match=r"sparse.*edge list"):
            count_work(Graph(), (torch.empty(1000, 4), layout))
    own = Graph()
    own.register_buffer("edges", edges)
    with pytest.raises(ValueError, match=r"tensor of the model is sparse.*edge list"):
        count_work(own, torch.empty(1000, 4))


def test_a_loss_may_be_a_distribution_that_checks_its_values():
    class Forecast(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            mean, scale = self.layer(x).unbind(-1)
            likely = torch.distributions.Normal(mean, scale.exp()).log_prob(x[:, 0])
            return {"loss": -likely.mean()}

    assert count_work(Forecast(), torch.empty(8, 4)).loss_counted
    with pytest.raises(ValueError, match="scale"):  # what others make is checked as before
        torch.distributions.Normal(torch.zeros(1), -torch.ones(1))


@pytest.mark.long
@pytest.mark.parametrize("name", ["ssd300_vgg16", "fasterrcnn_resnet50_fpn"])
def test_a_detector_has_the_operations_that_torchvision_says_and_names_what_was_assumed(
    name, torchvision
):
    known = torchvision.models.get_model_weights(name).COCO_V1.meta["_ops"]  # 10^9 multiply-adds
    model = torchvision.models.get_model(name, weights=None, weights_backbone=None)
    detect = Images(model)
    work = count_work(detect, torch.zeros(1, 3, 480, 480), precision="fp16", training=False)
    assert work.flops == pytest.approx(2e9 * known, rel=0.02)
    assert any("NMS" in sentence for sentence in work.assumed)
    boxes, labels = torch.zeros(1, 5, 4), torch.zeros(1, 5, dtype=torch.int64)
    step = count_work(detect, (torch.zeros(1, 3, 480, 480), boxes, labels), precision="fp16")
    assert 2.5 < step.flops / work.flops < 3.5


@pytest.mark.long
def test_masks_are_found_and_pasted(torchvision):
    known = torchvision.models.get_model_weights("maskrcnn_resnet50_fpn_v2").COCO_V1.meta["_ops"]
    model = torchvision.models.get_model(
        "maskrcnn_resnet50_fpn_v2", weights=None, weights_backbone=None
    )
    work = count_work(Images(model), torch.zeros(1, 3, 480, 480), training=False)
    assert work.flops == pytest.approx(2e9 * known, rel=0.02)
    pasted = [op.elements for op in work.ops if op.name == "upsample_bilinear2d"]
    assert pasted.count(1) == model.roi_heads.detections_per_img  # each as one pixel
    assert any("paste a mask" in sentence for sentence in work.assumed)


@pytest.mark.long
def test_a_list_of_images_is_a_batch_of_so_many(torchvision):
    model = torchvision.models.get_model(
        "retinanet_resnet50_fpn", weights=None, weights_backbone=None
    )
    asked = {"precision": "fp16", "training": False}
    image = torch.zeros(3, 320, 320)
    two = count_work(model, ([image, image],), **asked)
    assert two.batch == 2
    assert two.flops == count_work(Images(model), torch.zeros(2, 3, 320, 320), **asked).flops
    assert count_work(model, ([image],), batch=4, **asked).flops == pytest.approx(2 * two.flops)
    assert kind_of(two) == "detection"


class Images(nn.Module):
    """A detector, which takes lists, called with tensors."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, images, boxes=None, labels=None):
        if boxes is None:
            return self.model(list(images))
        targets = [{"boxes": b, "labels": c} for b, c in zip(boxes, labels, strict=True)]
        return sum(self.model(list(images), targets).values())


@pytest.mark.parametrize(
    ("words", "precision", "aligned"),
    [(257, "bf16", False), (258, "bf16", True), (257, "tf32", True)],
)
def test_products_with_rows_that_do_not_begin_at_multiples_of_4_bytes(words, precision, aligned):
    net = nn.Sequential(nn.Linear(16, 64), nn.Linear(64, words))
    asked = {"precision": precision, "loss": lambda out: out.square().mean()}
    work = count_work(net, torch.empty(32, 16), **asked)
    assert work.unaligned == (0 if aligned else 3 * 2 * 32 * 64 * words)


def test_counting_prints_nothing(capsys):
    count_work(nn.Sequential(*[nn.Linear(4, 4) for _ in range(400)]), torch.zeros(2, 4))
    assert capsys.readouterr() == ("", "")


def test_how_many_a_mask_lets_through_is_answered_with_all():
    class Cut(nn.Linear):
        def forward(self, x, mask):
            return super().forward(x[:, : mask.sum().item()])

    inputs = torch.empty(1, 16), torch.ones(1, 16, dtype=torch.bool)
    work = count_work(Cut(16, 4), inputs, training=False)
    assert work.flops == 2 * 16 * 4 and "mask" in work.assumed[0]


def test_two_kernels_read_the_gradient_of_a_convolution_that_is_not_the_first():
    layers = nn.Conv2d(4, 8, 1, bias=False), nn.Conv2d(8, 16, 1, bias=False)
    net = nn.Sequential(*layers, nn.ReLU())  # else one number would stand for all gradients
    ops = count_work(net, torch.empty(2, 4, 5, 5), precision="fp32").ops
    later, first = (op for op in ops if op.name == "convolution_backward")
    # gradient, image and weight are read; those of image and weight are written, in 4 bytes each
    assert later.bytes_moved == 4 * (2 * 800 + 400 + 128 + 400 + 128)
    assert first.bytes_moved == 4 * (400 + 200 + 32 + 32)
    assert (later.flops, first.flops) == (2 * 2 * 800 * 8, 2 * 400 * 4)


@pytest.mark.parametrize(("learns", "more"), [(True, 2 * 16 + 800 + 4 * 16), (False, 0)])
def test_a_batch_norm_that_learns_goes_over_its_input_twice(learns, more):
    x = torch.empty(2, 4, 5, 5)
    ops = count_work(nn.BatchNorm2d(4), x, precision="fp32", training=learns).ops
    forward = next(op for op in ops if "batch_norm" in op.name)
    # the input, four rows of four numbers, and the result; then the statistics of the batch
    assert forward.bytes_moved == 800 + 4 * 16 + 800 + more


@pytest.mark.parametrize(
    "keeps",
    [
        lambda number: number > 0.1,
        lambda number: number >= 0.1,
        lambda number: not number < 0.1,
        lambda number: not number <= 0.1,
    ],
)
def test_a_layer_that_is_left_out_at_random_is_kept(keeps):
    class Sometimes(nn.Linear):
        def forward(self, x):
            return super().forward(x) if keeps(torch.rand([])) else x

    dropped, whole = (
        count_work(layer, torch.empty(1, 16)) for layer in (Sometimes(16, 4), nn.Linear(16, 4))
    )
    assert dropped.matrix == whole.matrix and "LayerDrop" in dropped.assumed[0]


def test_experts_take_rows_that_cannot_be_shared_evenly():
    assert _experts(torch.empty(10, 4), torch.empty(4, 4, 5)).shape == (10, 5)


def test_results_without_a_loss_are_added_up():
    names = {op.name for op in count_work(nn.Linear(4, 4), torch.empty(1, 4)).ops}
    assert "sum" in names and not names & {"max", "mean"}


class Named(nn.Module):
    """A network whose forward pass names devices, as those of people with a GPU do."""

    def __init__(self, name):
        super().__init__()
        self.name, self.layer = name, nn.Linear(16, 4)

    def forward(self, x):
        noise = torch.randn(4, device=self.name)
        moved = {
            "cuda": x.cuda(),
            "cuda:0": x.to(device="cuda:0"),
            "cpu": x.cpu().to("cpu", torch.float32),
        }
        return self.layer(moved.get(self.name, x.to(self.name))) + (
            noise if self.name != "cpu" else 0
        )


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "mps", "cpu"])
def test_a_model_that_names_a_device_in_its_forward_pass_is_counted(name):
    x = torch.empty(1, 16)
    assert count_work(Named(name), x).flops == count_work(nn.Linear(16, 4), x).flops
