"""The memory estimate against PyTorch's own record of what it allocates, closed forms, and
published trainings.
"""

import json
from functools import partial

import pytest
import torch
from course_lessons.evidence.memory import memory_evidence
from course_lessons.memory.record import record_memory
from torch import nn
from torch.utils.checkpoint import checkpoint

from course_tools.estimate import count_work, estimate_memory, find_chip
from course_tools.estimate.memory.memory_model import (
    MemoryLine,
    capacity_bytes,
    fits,
    highest_lines,
    largest_batch,
    memory_numbers,
)
from course_utils.hardware.machine import TPU_CHIPS

WIDTH = 64
EXAMPLE = torch.empty(1, WIDTH, device="meta")
in_32_bits = partial(estimate_memory, precision="fp32")


def mlp() -> nn.Sequential:
    return nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(6)))


def images() -> nn.Sequential:
    convolutions = [
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(inplace=True),
    ]
    return nn.Sequential(*convolutions, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 14 * 14, 10))


def measured(build, shape, batch, make=torch.optim.Adam) -> int:
    """Return what two training steps on this CPU allocate at most, by PyTorch's profiler."""

    def work():
        model = build()
        optimizer = make(model.parameters())
        for _ in range(2):
            model(torch.rand(batch, *shape)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    return record_memory(work).peak_bytes


@pytest.mark.parametrize(("build", "shape"), [(mlp, (WIDTH,)), (images, (3, 32, 32))])
def test_the_peak_is_what_pytorch_allocates(build, shape):
    estimated = in_32_bits(build(), torch.empty(1, *shape, device="meta"), batch=128)
    # kernels take a little for themselves
    assert estimated.tensors_bytes == pytest.approx(measured(build, shape, 128), rel=0.05)


def wide(layers=8) -> nn.Sequential:
    """Return a model whose peak comes in the optimizer's step: its batch is small beside it."""
    return nn.Sequential(*(nn.Linear(512, 512) for _ in range(layers)))


@pytest.mark.parametrize(
    ("optimizer", "bytes_a_parameter"),
    [
        ("sgd", 8),
        ("momentum", 12),
        ("adam", 20),
        ("adamw", 20),
        (torch.optim.Adam, 20),
        (partial(torch.optim.Adam, fused=True), 16),
        # two more copies of the largest of eight layers
        (partial(torch.optim.Adam, foreach=False), 16 + 2 * 4 / 8),
        ("adam8bit", 4 + 4 + 2 + 2 * 4 / 256),
    ],
)
def test_the_peak_of_a_step_has_so_many_bytes_a_parameter(optimizer, bytes_a_parameter):
    found = in_32_bits(wide(), torch.empty(1, 512), optimizer=optimizer)
    numbers = sum(p.numel() for p in wide().parameters())
    assert found.tensors_bytes / numbers == pytest.approx(bytes_a_parameter, rel=0.01)


@pytest.mark.parametrize(
    ("numbers", "state_bytes"),
    [
        # bitsandbytes/optim/optimizer.py: 32 bits below min_8bit_size=4096, else a byte for each
        # moment of a number, and a 32-bit scale for each moment of 256 numbers
        (4095, 4095 * 8),
        (4096, 4096 * 2 + 16 * 2 * 4),
        (4097, 4097 * 2 + 17 * 2 * 4),
    ],
)
def test_8_bit_adam_keeps_small_tensors_in_32_bits(numbers, state_bytes):
    found = in_32_bits(
        nn.Linear(numbers, 1, bias=False), torch.ones(1, numbers), optimizer="adam8bit"
    )
    assert found.peak.optimizer == state_bytes


class HalfUsed(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.spare = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x):
        return self.used(x)


def test_an_optimizer_keeps_nothing_for_weights_that_get_no_gradient():
    model = HalfUsed()
    model(torch.rand(8, WIDTH)).sum().backward()
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.step()
    kept = sum(x.nbytes for state in optimizer.state.values() for x in state.values())
    state = estimate_memory(model, EXAMPLE, batch=8).moments[0].optimizer
    assert state == pytest.approx(kept, abs=8)
    assert count_work(model, EXAMPLE).ops[-1].elements == WIDTH * WIDTH + WIDTH  # its update


def test_an_optimizer_of_your_own_is_asked_for_its_state():
    own = estimate_memory(mlp(), EXAMPLE, batch=8, optimizer=torch.optim.Adagrad)
    assert own.moments[0].optimizer == pytest.approx(own.peak.parameters, abs=100)
    assert own.optimizer == "Adagrad"


def test_the_estimate_for_another_batch_is_that_of_another_trace():
    for batch in (3, 100):
        another = estimate_memory(mlp(), EXAMPLE, batch=batch)
        assert estimate_memory(mlp(), EXAMPLE, batch=16).at(batch).moments == another.moments


@pytest.mark.parametrize("chip", ["T4", "RTX 3090", "TPU v5e"])
def test_the_largest_batch_fits_and_the_next_does_not(chip):
    found = estimate_memory(mlp(), EXAMPLE, batch=16)
    largest = found.largest_batch(chip)
    assert found.at(largest).fits_on(chip) and not found.at(largest + 1).fits_on(chip)


def test_a_few_lines_say_the_peak_at_every_batch():
    found = estimate_memory(wide(), torch.empty(1, 512), batch=16)
    lines = found.lines()
    assert 2 <= len(lines) < 8
    for batch in (1, 64, 2_000, 10**6):
        highest = max(line.at(batch) for line in lines)
        assert highest == pytest.approx(found.at(batch).tensors_bytes, abs=1)
    given = found.to_dict()
    assert json.loads(json.dumps(given))["lines"] == [line._asdict() for line in lines]


def test_lines_that_are_never_the_highest_are_left_out():
    def line(held, per_sample):
        return MemoryLine(held, per_sample)

    flat, low, middle, steep = line(100, 0), line(90, 0), line(50, 20), line(0, 50)
    assert highest_lines([steep, middle, low, flat]) == [flat, steep]
    assert highest_lines([steep, line(70, 20), flat]) == [flat, line(70, 20), steep]
    room = 1.02 * (1.2e9 + 1.055 * 1_000.1)  # margin, one context, and gaps as in memory.json
    assert largest_batch([flat, steep], room) == 20
    assert largest_batch([flat], room) == 10**9  # nothing grows
    assert largest_batch([line(1_001, 0)], room) == largest_batch([line(1_101, 10)], room) == 0
    assert highest_lines([line(10, 1), line(9, 2)]) == [line(9, 2)]  # equal at one sample


def test_a_model_that_is_too_large_fits_with_no_batch():
    # 6.4 billion parameters
    large = nn.Sequential(*(nn.Linear(40_000, 40_000, device="meta") for _ in range(4)))
    found = estimate_memory(large, torch.empty(1, 40_000, device="meta"))
    assert found.largest_batch("T4") == 0 and not found.fits_on("H100")
    assert found.peak.optimizer > 51e9


def test_16_bits_everywhere_take_half_and_mixed_precision_less_than_that():
    full, mixed, half = (
        estimate_memory(mlp(), EXAMPLE, batch=512, precision=name).tensors_bytes
        for name in ("fp32", "amp", "bf16-true")
    )
    assert half == pytest.approx(full / 2, rel=0.06)  # the loss is in 32 bits
    assert full / 2 < mixed < full


class Checkpointed(nn.Sequential):
    """Blocks of which only the inputs are kept, as Transformers' models do it when asked."""

    def forward(self, x):
        for block in self:
            x = checkpoint(block, x, use_reentrant=False)
        return x


@pytest.mark.long
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_model_that_checkpoints_its_blocks_keeps_less(precision):
    layers = [nn.TransformerEncoderLayer(64, 4, 128, batch_first=True) for _ in range(6)]
    tokens = torch.empty(1, 128, 64)
    plain, kept = (
        estimate_memory(model, tokens, batch=16, precision=precision).peak.activations
        for model in (nn.Sequential(*layers), Checkpointed(*layers))
    )
    assert plain / 6 < kept < plain / 2  # the results of one layer, and the six inputs


def test_shards_divide_everything_but_what_forward_and_backward_keep():
    one, four = (estimate_memory(mlp(), EXAMPLE, batch=8, shards=shards) for shards in (1, 4))
    assert four.moments[0].optimizer == one.moments[0].optimizer // 4
    assert four.moments[0].parameters == one.moments[0].parameters // 4
    for mine, whole in zip(four.moments, one.moments, strict=True):
        assert mine.activations == whole.activations
    assert four.parts()["gathered"] == four.peak.gathered
    assert "activations" in repr(four) and "shared by 4 devices" in repr(four)
    assert "<table" in four._repr_html_()
    half = estimate_memory(mlp(), EXAMPLE, batch=8, shards=4, precision="bf16-true")
    assert four.moments[0].gathered == 2 * half.moments[0].gathered > 0
    assert sum(four.parts().values()) == pytest.approx(four.needed_bytes)


def test_of_shared_blocks_two_are_whole_at_a_time_and_the_gradients_of_one():
    block, head = 4 * WIDTH * (WIDTH + 1), 4 * 10 * (WIDTH + 1)
    for count, whole in ((6, 2), (1, 1)):  # never more than there are
        layers = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(count)))
        model = nn.Sequential(layers, nn.Linear(WIDTH, 10))
        moments = estimate_memory(model, EXAMPLE, shards=2).moments
        gathered = {moment.phase: moment.gathered for moment in moments}
        blocks = [block, head] if count == 1 else [block]  # the longer list has the blocks
        held = head + whole * block
        assert gathered == {"forward": held, "backward": held + max(blocks), "optimizer": 0}


def test_ddp_keeps_the_gradients_a_second_time():
    one = estimate_memory(mlp(), EXAMPLE, batch=8)
    parameters = sum(p.numel() for p in mlp().parameters())
    assert one.under_ddp().tensors_bytes == one.tensors_bytes + 4 * parameters
    for ours, alone in zip(one.under_ddp().moments, one.moments, strict=True):
        assert ours.total == alone.total + 4 * parameters  # its buckets are there all the time


def test_gradients_that_stay_are_there_in_the_forward_pass():
    found = estimate_memory(mlp(), EXAMPLE, batch=8, keep_gradients=True)
    assert found.moments[0].gradients == found.moments[0].parameters


def test_inference_keeps_no_activations_of_earlier_layers():
    found = in_32_bits(mlp(), EXAMPLE, batch=512, training=False)
    # the batch, and what its block got, a layer got, and it makes
    assert found.peak.activations == 4 * 512 * WIDTH * 4
    assert found.peak.optimizer == found.peak.gradients == 0


class Words(nn.Module):
    """A model that returns its loss beside its scores when it gets labels, as Transformers' do."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(WIDTH, 1000)

    def forward(self, x, labels=None):
        scores = self.head(x)
        if labels is None:
            return {"logits": scores}
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


def entropy(out):
    return nn.functional.cross_entropy(out["logits"], out["logits"].argmax(1))


def test_a_loss_counts_whether_it_is_given_or_the_models_own():
    def work():
        model = Words()
        labels = torch.zeros(512, dtype=torch.long)
        for _ in range(2):
            model(torch.rand(512, WIDTH), labels)["loss"].backward()

    labels = {"x": EXAMPLE, "labels": torch.zeros(1, dtype=torch.long)}
    without = in_32_bits(Words(), EXAMPLE, batch=512, optimizer="sgd")
    given = in_32_bits(Words(), EXAMPLE, batch=512, optimizer="sgd", loss=entropy)
    own = in_32_bits(Words(), labels, batch=512, optimizer="sgd")
    scores = 4 * 512 * 1000
    assert own.peak.activations >= without.peak.activations + 0.9 * scores
    assert given.peak.activations == pytest.approx(own.peak.activations, rel=0.02)
    assert own.tensors_bytes == pytest.approx(record_memory(work).peak_bytes, rel=0.05)
    assert given.loss_counted and own.loss_counted and not without.loss_counted
    assert "The loss is not counted" in repr(without) and "loss" not in repr(own)
    assert "shared" not in repr(own)


class Dropped(nn.Module):
    """Stochastic depth, as networks have it: whole samples are dropped at random."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + self.layer(x) * x.new_empty(len(x), 1).bernoulli_(0.5)


class Picky(Dropped):
    def forward(self, x):
        return self.layer(x) if x.sum() > 0 else x


def test_stochastic_depth_is_followed_and_a_choice_by_value_is_named():
    assert estimate_memory(Dropped(), EXAMPLE, batch=8).tensors_bytes > 0
    with pytest.raises(RuntimeError, match="Picky cannot be counted: at operation"):
        estimate_memory(Picky(), EXAMPLE, batch=8)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"batch": 0}, "batch must be a positive integer, but got 0"),
        ({"shards": 0}, "shards must be a positive integer"),
        ({"optimizer": torch.optim.LBFGS}, "optimizer cannot be followed without data.*closure"),
        (
            {"optimizer": "sdg"},
            "unknown optimizer 'sdg'. Pass sgd, momentum, adam, adamw, adam8bit",
        ),
        ({"precision": "fp8"}, "unknown precision 'fp8'. Pass one of fp32"),
    ],
)
def test_a_request_that_makes_no_sense_gets_a_sentence(asked, message):
    with pytest.raises(ValueError, match=message):
        estimate_memory(mlp(), EXAMPLE, **asked)


class Sparse(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.table, self.head = kind(100, 8, sparse=True), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.table(x))


def test_a_sparse_embedding_with_an_optimizer_that_refuses_it_is_refused():
    words = torch.zeros(1, 4, dtype=torch.int64)
    embedding = Sparse(nn.Embedding)
    for refused in ("adam", "adamw", "adam8bit", torch.optim.AdamW):
        with pytest.raises(ValueError, match=r"sparse gradients.*optimizer='sgd'.*SparseAdam"):
            estimate_memory(embedding, words, optimizer=refused)
    assert estimate_memory(embedding, words, optimizer="sgd").tensors_bytes > 0
    assert estimate_memory(embedding, words, training=False).tensors_bytes > 0
    dense, frozen = Sparse(nn.Embedding), Sparse(nn.Embedding)
    dense.table.sparse = False
    frozen.table.requires_grad_(False)
    for taken in (dense, frozen):
        assert estimate_memory(taken, words, optimizer="adam").tensors_bytes > 0
    alone = nn.Embedding(100, 8, sparse=True)
    assert estimate_memory(alone, words, optimizer="sgd").tensors_bytes >= 4 * 100 * 8
    with pytest.raises(RuntimeError, match=r"EmbeddingBag cannot be counted. Pass sparse=False"):
        estimate_memory(Sparse(nn.EmbeddingBag), words, optimizer="sgd")


def test_inputs_without_a_tensor_are_refused():
    shared = estimate_memory(nn.Linear(WIDTH, 1), EXAMPLE, shards=2)
    assert shared.moments[0].gathered == 4 * (WIDTH + 1)
    with pytest.raises(ValueError, match="inputs need a tensor"):
        estimate_memory(mlp(), "no tensor")


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_it_says_where_the_peak_is_and_draws_it_in_gigabytes(drawn, optimizer):
    found = estimate_memory(mlp(), EXAMPLE, batch=8, optimizer=optimizer)
    when = {"optimizer": "optimizer's step"}.get(found.peak.phase, f"{found.peak.phase} pass")
    assert f"The peak comes in the {when}, after {found.peak.operation!r}." in repr(found)
    assert (found.peak.phase == "optimizer") == (optimizer == "adam")
    assert found.plot().png
    (marker,) = [line for line in drawn[0].get_lines() if line.get_marker() == "v"]
    peak_gb = found.tensors_bytes / 1e9
    assert marker.get_xydata().tolist() == [[found.moments.index(found.peak), peak_gb]]
    assert peak_gb < drawn[0].get_ylim()[1] < 1.5 * peak_gb
    names = {text.get_text().removesuffix(" →"): text.xy[0] for text in drawn[0].texts}
    assert names["forward"] == 0 < names["backward"] < names["optimizer"]


def test_memory_that_error_correction_takes_is_not_counted():
    # MiB that nvidia-smi shows: of an A40 in the issues of chatdoc-com/OCRFlux, number 64
    for card, shown_mib in {"T4": 15360, "A40": 46068, "RTX 3090": 24576}.items():
        assert capacity_bytes(find_chip(card)) == pytest.approx(shown_mib * 2**20, rel=0.03)
    whole = 24 * 2**30  # which neither card with error correction has for programs
    assert capacity_bytes(find_chip("A10")) == capacity_bytes(find_chip("A10G")) < 0.96 * whole


def test_a_tpus_memory_is_what_the_device_card_says():
    for name, devices, memory_gib in filter(all, TPU_CHIPS.values()):
        assert capacity_bytes(find_chip(name)) == devices * memory_gib * 2**30, name


def verdicts(rows, numbers, room):
    asked = [(row["tensors"], True) for row in rows]
    asked += [(row["tensors_next"], False) for row in rows if row["next"]]
    return [
        fits(size * (1 + numbers["gaps"]) + numbers["context_bytes"], room) == fitted
        for size, fitted in asked
    ]


def test_the_verdict_is_right_for_most_published_trainings_that_were_not_fitted_on():
    known = memory_evidence()
    used = memory_numbers()
    said = verdicts(known["tested"], used["numbers"], capacity_bytes(find_chip(used["card"])))
    assert len(known["tested"]) >= 60 and len(said) == used["questions"] >= 120
    assert sum(said) == used["right"]["tested"] >= 0.85 * len(said)
    assert not {row["model"] for row in known["tested"]} & set(known["fitted_on"])


@pytest.fixture
def timm_without_fused_attention(timm):
    timm.layers.set_fused_attn(False)
    yield timm
    timm.layers.set_fused_attn(True)


@pytest.mark.long
def test_what_is_stored_of_the_published_trainings_is_what_is_estimated_today(
    timm_without_fused_attention,
):
    timm = timm_without_fused_attention
    row = min(memory_evidence()["tested"], key=lambda row: len(row["model"]))
    image = torch.empty(1, 3, row["image"], row["image"], device="meta")
    like_theirs = {"optimizer": "momentum", "precision": "fp16", "keep_gradients": True}
    found = estimate_memory(
        timm.create_model(row["model"]), image, batch=row["batch"], **like_theirs
    )
    assert found.tensors_bytes == pytest.approx(row["tensors"], rel=1e-3), json.dumps(row)


@pytest.mark.parametrize("measured", ["recorded", "in_ram_returned"])
def test_on_a_cpu_the_median_error_of_ten_networks_is_below_a_tenth(measured):
    """By PyTorch's own record, and by the process's RAM where the C library returns what was
    freed.
    """
    rows = memory_evidence()["on_cpu"]
    errors = sorted(abs(row["estimated"] / row[measured] - 1) for row in rows)
    assert len(rows) == 10 and (errors[4] + errors[5]) / 2 < 0.1
    assert all(row["in_ram"] > row["in_ram_returned"] for row in rows)  # what it keeps otherwise


def test_a_model_that_takes_no_other_batch_is_estimated_for_its_own():
    class Dense(nn.Linear):
        # a graph of 50 nodes, whose matrix does not grow with the first dimension
        def forward(self, nodes, edges):
            return edges @ super().forward(nodes)

    found = estimate_memory(Dense(8, 8), (torch.empty(50, 8), torch.empty(50, 50)), training=False)
    assert found.fits_on("T4") and found.peak.activations > 2 * 50 * 50
    known = r"known for a batch of 50 only.*Estimate each batch by itself"
    for ask, one in ((found.at, 100), (found.largest_batch, "T4")):
        with pytest.raises(ValueError, match=known):
            ask(one)
