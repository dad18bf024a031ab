"""Fine-tuning: against published figures, closed forms, and a step that is followed."""

import json
import re
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from course_tools.estimate import estimate_memory
from course_tools.estimate.counting.count_work import count_work
from course_tools.estimate.counting.work import Sums
from course_tools.estimate.language.finetuning import estimate_finetuning, finetuning_numbers
from course_tools.estimate.language.finetuning_step import finetuning_step
from course_tools.estimate.language.language_model import LanguageModel, language_models
from course_tools.estimate.time.step_time import step_time


def tune(model="Llama 3.1 8B", method="lora", card="T4", **asked):
    """Return the answers for one card, and the one answer."""
    found = estimate_finetuning(model, method, devices=[card], **asked)
    return found, found.rows[0]


def test_four_bits_lora_and_a_full_training_have_their_bytes_a_weight():
    shape = language_models()["Llama 3.1 8B"]
    count = shape.linear + shape.rest
    memory = tune(shape, "full", length=1)[0].demand.memory
    assert memory.tensors_bytes == pytest.approx(20 * count, rel=0.01)
    lora = tune(shape, "lora", rank=8, targets=["q", "v"])[0].demand
    assert lora.trained == 3_407_872  # PEFT prints it for this model, rank and pair of layers
    four = tune(shape, "4-bit")[0]
    # 4.127 bits of the linear layers' weights (QLoRA, section 3); PEFT keeps the others in 32
    frozen = four.demand.memory.weights - 4 * four.demand.trained  # the adapters have 32 bits
    assert frozen == pytest.approx(4.127 / 8 * shape.linear + 4 * shape.rest, rel=1e-3)
    assert "nvidia-smi may show more" in " ".join(repr(four).split())


def test_with_four_bits_what_goes_from_block_to_block_has_the_bits_that_peft_gives_it():
    # the longest contexts that fitted 40 and 80 GB with QLoRA of Hugging Face (unsloth.ai, 2024)
    for length, gb in ((12_264, 40), (28_454, 80)):
        memory = tune(method="4-bit", rank=32, length=length)[0].demand.memory
        assert memory.needed_bytes / 1e9 == pytest.approx(gb, rel=0.04)


def test_an_8b_model_is_trained_in_full_on_24_gb_as_torchtune_publishes_it():
    # README of torchtune, bd2a0fc: 18.9 GiB on one RTX 4090, of what tensors take
    lean = {"optimizer": "paged8bit", "trained_bytes": 2, "in_backward": True, "chunks": 8}
    found, row = tune(method="full", card="RTX 4090", batch=2, length=2048, **lean)
    assert row.fits and found.demand.memory.tensors_bytes / 2**30 == pytest.approx(18.9, rel=0.15)
    plain = tune(method="full", card="RTX 4090")[0]
    assert not plain.rows[0].fits and "paged 8-bit optimizer in the backward pass" in plain.answer


class Block(nn.Module):
    """A layer as Llama has it, in torch's own parts."""

    def __init__(self, hidden, between):
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(hidden) for _ in range(2))
        self.q, self.k, self.v, self.o = (nn.Linear(hidden, hidden, False) for _ in range(4))
        self.gate, self.up = (nn.Linear(hidden, between, False) for _ in range(2))
        self.down = nn.Linear(between, hidden, False)

    def forward(self, x):
        y = self.norms[0](x)
        heads = [
            part(y).unflatten(-1, (8, -1)).transpose(1, 2) for part in (self.q, self.k, self.v)
        ]
        attention = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.o(attention.transpose(1, 2).flatten(-2))
        y = self.norms[1](x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


class Checkpointed(nn.Sequential):
    def forward(self, x):
        for block in self:
            x = checkpoint(block, x, use_reentrant=False)
        return x


@pytest.mark.parametrize("blocks", [nn.Sequential, Checkpointed])
def test_a_followed_step_keeps_about_what_the_formula_says(blocks):
    shape = LanguageModel(
        layers=6, hidden=512, intermediate=1536, heads=8, kv_heads=8, vocabulary=0
    )
    model, tokens = blocks(*(Block(512, 1536) for _ in range(6))), torch.empty(1, 1024, 512)
    followed = estimate_memory(model, tokens, batch=4, precision="bf16-true")
    checkpointing = blocks is Checkpointed
    formula = estimate_finetuning(shape, "full", batch=4, length=1024, checkpointing=checkpointing)
    assert formula.demand.memory.activations == pytest.approx(followed.peak.activations, rel=0.35)
    counted = count_work(model, tokens, batch=4, precision="bf16")
    step = finetuning_step(
        shape,
        "full",
        finetuning_numbers()["step"],
        batch=4,
        length=1024,
        trained=shape.linear + shape.rest,
        checkpointing=checkpointing,
    )
    # the first block's input needs no gradient, and the last product is not computed again
    assert step.matrix.flops == pytest.approx(counted.matrix.flops, rel=0.08)
    assert step.attention.flops == pytest.approx(counted.attention.flops, rel=0.01)
    assert step.bytes_moved == pytest.approx(counted.bytes_moved, rel=0.25)
    assert step.kernels == pytest.approx(counted.kernels, rel=0.35)


@pytest.mark.parametrize(("method", "trained"), [("full", True), ("lora", False)])
@pytest.mark.parametrize("words", [1001, 1000])
def test_the_head_of_an_odd_vocabulary_is_the_product_that_is_counted(method, trained, words):
    head = nn.Linear(64, words, bias=False).requires_grad_(trained)
    network = nn.Sequential(nn.Linear(64, 64), head)
    counted = count_work(network, torch.empty(1, 64), batch=32, precision="fp16")
    shape = LanguageModel(1, 64, 64, heads=1, kv_heads=1, vocabulary=words)
    how = {"batch": 1, "length": 32, "trained": 1}
    step = finetuning_step(shape, method, finetuning_numbers()["step"], **how)
    assert step.unaligned == counted.unaligned and bool(counted.unaligned) == (words == 1001)


def test_hours_and_cost_follow_from_the_tokens_and_the_price():
    found, row = tune(method="4-bit", tokens=36_000_000, prices={"T4": 0.5})
    tokens_per_s = row.batch * 2048 / row.step_s
    assert row.hours == pytest.approx(10_000 / tokens_per_s)
    low, high = row.hours_interval
    assert low < row.hours < high and row.cost_interval == pytest.approx((low / 2, high / 2))
    fewest, most = row.tokens_per_s
    assert fewest < tokens_per_s < most
    assert most / fewest == pytest.approx(high / low)
    assert not row.checked and "no fine-tunings on this card" in found.details().lower()
    assert json.loads(found.to_json())["rows"][0]["hours_low"] == low


def test_samples_have_a_length_that_the_answer_says_and_that_the_model_allows():
    found, row = tune(samples=1000, epochs=3)
    assert row.samples * row.epochs == 3000 and "length=2048" in repr(found)
    assert "length=1024" in repr(tune("gpt2")[0])
    half = tune(samples=1000, epochs=3, length=1024)[1]
    assert half.hours == pytest.approx(row.hours / 2, rel=0.1)
    assert "made for at most 1,024 tokens" in repr(tune("gpt2", length=2048)[0])
    long = finetuning_numbers()["long"]  # about attention, which counts from 4,096 tokens on
    for length, said in ((4095, False), (4096, True)):
        assert (long in tune(length=length)[0].notes()) == said


@pytest.mark.parametrize(
    # of ljm565/universal-llm-trainer: seconds of a step of 2 x 8,192 tokens
    ("card", "method", "how", "seconds"),
    [
        ("H100 SXM", "lora", "padded", 6.4),
        ("RTX PRO 6000", "lora", "padded", 12.5),
        ("H100 SXM", "4-bit", "in_32_bits", 26.1),
        ("RTX PRO 6000", "4-bit", "in_32_bits", 30.7),
    ],
)
def test_a_padding_mask_and_32_bits_cost_time_as_published(card, method, how, seconds):
    asked = {"card": card, "method": method, "batch": 2, "length": 8192, "trained_bytes": 2}
    (found, row), (_, usual) = tune(**asked, **{how: True}), tune(**asked)
    low, high = row.step_interval_s
    assert 1.5 * usual.step_s < row.step_s and low < seconds < high and not row.checked
    assert f"{how}=True" in repr(found)
    compared = asked | {"card": "A100 80GB"}
    assert tune(**compared)[1].checked and not tune(**compared, **{how: True})[1].checked
    if how == "padded":  # twice the scores, at half the speed
        flash = replace(
            found.demand.work, precision="bf16", matrix=Sums(), other=Sums(), unaligned=0.0
        )
        extra = row.parts.arithmetic_s - usual.parts.arithmetic_s
        assert extra == pytest.approx(3 * step_time(flash, row.machine.chip).arithmetic_s)


def test_what_is_free_comes_first_where_it_carries_the_job_and_billing_where_it_is_rented():
    short = tune(method="4-bit", card="RTX 4090", tokens=10**6, length=1024)[0]
    assert re.match(r"Free: a T4 on Colab takes .*, in one session, unchecked\.", short.answer)
    assert not short.free[0].checked and "billed" in repr(short)
    long = tune(method="4-bit", card="RTX 4090", tokens=10**9)[0]
    assert long.answer.startswith("Rent the RTX 4090")
    several = estimate_finetuning("Llama 3.1 8B", "4-bit", devices=["L4", "A100"], tokens=10**9)
    assert several.answer.startswith("Rent the A100 80GB")


def test_what_fits_no_card_is_answered_with_what_would():
    text = tune("Llama 3.1 8B", "lora", batch=8)[0].answer
    assert "fits none" in text and "With 4-bit weights, a batch of 1 and samples of 1,024" in text
    text = tune("Llama 3.1 8B", "lora", batch=8, length=1024)[0].answer
    assert "fits none" in text and "With LoRA over 4-bit weights (QLoRA) it needs" in text
    row = tune("Llama 3.2 1B", "full", optimizer="adam8bit")[1]
    assert row.needed_bytes / row.capacity_bytes > 0.8 and not row.fits


@pytest.mark.parametrize(
    ("model", "method", "card", "length", "factors", "checked"),  # as finetuning.json has them
    [
        ("Llama 3.1 8B", "full", "RTX 4090", 2048, (1.4, 1.4), True),
        ("Llama 3.1 8B", "full", "RTX 4090", 2047, (3, 3), True),
        ("Llama 3.1 8B", "lora", "RTX 4090", 2048, (1.35, 1.35), True),
        ("Llama 3.1 8B", "lora", "RTX 4090", 512, (1.35, 2.2), False),
        ("GPT-2", "lora", "A100", 512, (1.35, 2.2), False),
        ("Llama 3.1 8B", "4-bit", "T4", 512, (1.8, 2.2), False),
        ("GPT-2", "4-bit", "T4", 512, (1.8, 3), False),
        ("Llama 3.1 8B", "lora", "H100", 8192, (1.8, 4.6), False),
    ],
)
def test_the_doubt_is_that_of_such_a_step_on_such_a_card(
    model, method, card, length, factors, checked
):
    row = tune(model, method, card, length=length)[1]
    assert (row.factor, row.evidence.upper) == factors and row.checked == checked


def test_each_way_out_is_a_question_of_its_own_that_needs_less():
    demand = tune(method="full", batch=4, length=4096)[0].demand
    smaller = [one for _, one in demand.smaller()]
    for one in smaller:
        names = ("batch", "length", "optimizer", "trained_bytes", "in_backward", "chunks")
        asked = {name: getattr(one, name) for name in names}
        assert tune(one.shape, one.method, **asked)[0].demand.memory == one.memory
        assert one.memory.needed_bytes < demand.memory.needed_bytes
    assert [one.method for one in smaller] == ["full"] * 2 + ["4-bit"] * 4
    assert [one.length for one in smaller[-4:]] == [4096, 2048, 1024, 512]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"method": "dora"}, "unknown method 'dora'. Pass one of full, lora, 4-bit"),
        ({"optimizer": "lion"}, "unknown optimizer 'lion'. Pass one of adam, adamw, fused"),
        ({"targets": ["c_attn"]}, "unknown target 'c_attn'. Pass one of q, k"),
        ({"targets": []}, "targets is empty"),
        ({"chunks": 0}, "chunks must be a positive integer"),
        ({"trained_bytes": 3}, "trained_bytes is 2 or 4"),
        ({"in_backward": True}, "for method='full'"),
        ({"card": "8 x A100"}, "on one card, but 8 x A100"),
        ({"tokens": 0}, "tokens must be a positive integer"),
    ],
)
def test_unknown_names_are_answered_with_the_known_ones(asked, message):
    with pytest.raises(ValueError, match=message):
        tune(**asked)


# 2 layers of 144 weights, a head of 44 and 108 weights elsewhere; LoRA of rank 1 beside q: 16
TINY = LanguageModel(2, 4, 8, heads=2, kv_heads=1, vocabulary=11)
NF4 = 4.126953125 / 8  # bytes of a weight in 4 bits


@pytest.mark.parametrize(
    ("asked", "expected"),  # weights, gradients, optimizer, activations
    [
        # q's 4 inputs are kept in 16 bits, the logits of 6 tokens and 11 words in 14 bytes
        (
            {"method": "lora", "checkpointing": False},
            (2 * 396 + 64, 64, 128, 2 * 6 * (136 + 2 * 4) + 924),
        ),
        ({"method": "lora"}, (856, 64, 128, 6 * 2 * 2 * 4 + 924)),  # while the logits are there
        ({"method": "lora", "chunks": 2}, (856, 64, 128, 96 + 6 * 144)),  # or a block is
        (
            {"method": "4-bit", "optimizer": "paged8bit"},
            (NF4 * 288 + 4 * 108 + 64, 64, 0, 2 * 96 + 924),
        ),
        (
            {"method": "lora", "trained_bytes": 2, "optimizer": "adam8bit"},
            (792 + 32, 32, 32.5, 96 + 924),
        ),
        ({"method": "lora", "optimizer": "sgd"}, (856, 64, 0, 1020)),
        # the update of all 396 weights makes one more copy, which is more than what was kept
        ({"method": "full"}, (4 * 396, 4 * 396, 12 * 396, 0)),
        ({"method": "full", "optimizer": "fused"}, (1584, 1584, 8 * 396, 96 + 924)),
        ({"method": "full", "in_backward": True}, (1584, 4 * 44, 8 * 396, 1020)),
    ],
)
def test_the_memory_of_a_tiny_shape_is_what_one_adds_up_by_hand(asked, expected):
    asked = {"batch": 2, "length": 3, "rank": 1, "targets": ["q"], "devices": ["T4"]} | asked
    memory = estimate_finetuning(TINY, **asked).demand.memory
    found = memory.weights, memory.gradients, memory.optimizer, memory.activations
    assert found == pytest.approx(expected)


OF_LAYER = {"hidden": 1, "query": 10, "kv": 100, "intermediate": 1000, "kernels": 7}
NUMBERS = {"full": OF_LAYER, "adapted": OF_LAYER | {"hidden": 2}, "kept": 0.5, "logits": 3}
NUMBERS |= {"without_gate": 0.25, "dequantized": 10}
FULL, LORA = 4 + 40 + 200 + 8000, 8 + 40 + 200 + 8000  # bytes that a layer moves per token
KEPT = {"checkpointing": False}
EXPERTS = {"experts": 4, "experts_used": 2}


@pytest.mark.parametrize(
    ("method", "changed", "asked", "products", "read", "moved", "update"),
    [
        # 32 bits: read, cast and read again; each trained number has a gradient and two moments
        ("full", {}, {}, 4 * 288 + 3 * 44, 3 * 8 * 288 + 2 * 8 * 44, FULL, 4 * 7),
        ("full", {}, KEPT, 3 * 288 + 3 * 44, 2 * 8 * 288 + 2 * 8 * 44, FULL / 2, 4 * 7),
        (
            *("full", {}, {"trained_bytes": 2, "state": 0}, 4 * 288 + 3 * 44),
            *(3 * 2 * 288 + 2 * 2 * 44, FULL, 2 * 3),
        ),
        ("lora", {}, {}, 3 * 288 + 2 * 44 + 400, 3 * 2 * 288 + 2 * 2 * 44, LORA, 28),
        ("4-bit", {}, KEPT, 2 * 288 + 2 * 44 + 300, 2 * 12 * 288 + 2 * 2 * 44, LORA / 2, 28),
        (
            *("lora", {"gated": False}, {}, 3 * 224 + 2 * 44 + 400),
            *(3 * 2 * 224 + 2 * 2 * 44, LORA - 6000, 28),
        ),
        (
            *("lora", EXPERTS, {}, 3 * 480 + 2 * 44 + 400),
            *(3 * 2 * 864 + 2 * 2 * 44, LORA + 8000, 28),
        ),
    ],
)
def test_the_step_of_a_tiny_shape_is_what_one_adds_up_by_hand(
    method, changed, asked, products, read, moved, update
):
    how = {"batch": 2, "length": 3, "trained": 100} | asked
    step = finetuning_step(replace(TINY, **changed), method, NUMBERS, **how)
    assert step.matrix.flops == 2 * 6 * products and step.matrix.bytes_moved == read
    assert step.other.bytes_moved == 6 * (2 * moved + 11 * 3) + 100 * update
    again, part = (0, 0.5) if asked is KEPT else (1, 1)
    assert step.attention.flops == 2 * 6 * 3 * 2 * 4 * (3.5 + again)
    assert step.other.kernels == 2 * 7 * part


@pytest.mark.parametrize("checkpointing", [True, False])
def test_an_answer_that_counts_checkpointing_says_so(checkpointing):
    asked = {"devices": ["RTX 4090"], "checkpointing": checkpointing}
    said = repr(estimate_finetuning("Llama 3.1 8B", "lora", **asked))
    assert ("gradient checkpointing" in said) == checkpointing
