"""Fine-tuning: against published figures, closed forms, and a step that is followed."""

import inspect
import json
import re
import statistics

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from course_tools.estimate import chips, estimate_memory, finetuning, inference, language_model
from course_tools.estimate.counting.count_work import count_work
from course_tools.estimate.finetuning import (
    estimate_finetuning,
    finetuning_evidence,
    published_errors,
    published_speeds,
)
from course_tools.estimate.finetuning_step import finetuning_step
from course_tools.estimate.language_model import LanguageModel, language_models
from course_tools.estimate.memory import memory_model
from course_utils import text


def test_of_figures_not_fitted_on_half_are_met_within_a_tenth_and_nine_in_ten_within_21_per_cent():
    assert len(published_errors("test")) >= len(published_errors("fit")) >= 30
    assert statistics.median(published_errors("test")) < 0.10
    assert statistics.quantiles(published_errors("test"), n=10)[-1] < 0.21


def test_nine_in_ten_published_speeds_lie_within_what_is_said_on_cards_that_were_not_fitted_on():
    for used_for, least in (("fit", 40), ("test", 14)):
        speeds = published_speeds(used_for)
        inside = [1 / factor <= ratio <= factor for ratio, factor in speeds]
        assert len(speeds) >= least and sum(inside) >= 0.9 * len(inside), used_for
    assert statistics.mean(abs(ratio - 1) for ratio, _ in published_speeds("test")) < 0.22


@pytest.mark.parametrize(
    ("name", "published"),  # as the models' cards say
    [
        ("Llama 3.2 1B", 1.236e9),
        ("Llama 3.1 8B", 8.03e9),
        ("Llama 2 7B", 6.738e9),
        ("Llama 3.3 70B", 70.55e9),
        ("GPT-2", 124e6),
        ("GPT-2 XL", 1.558e9),
        ("BERT large", 0.336e9),
        ("Qwen2.5 0.5B", 0.494e9),
        ("Qwen2.5 7B", 7.62e9),
        ("Qwen2.5 32B", 32.5e9),
        ("Qwen3 8B", 8.19e9),
        ("Gemma 2 2B", 2.614e9),
        ("Gemma 2 27B", 27.23e9),
        ("Gemma 3 4B", 3.88e9),  # without the part that sees
    ],
)
def test_a_shape_has_as_many_weights_as_the_published_model(name, published):
    shape = language_models()[name]
    assert shape.linear + shape.rest == pytest.approx(published, rel=0.01)


def test_four_bits_lora_and_a_full_training_have_their_bytes_a_weight():
    shape = language_models()["Llama 3.1 8B"]
    count = shape.linear + shape.rest
    full = estimate_finetuning(shape, "full", length=1)
    assert full.tensors_bytes == pytest.approx(20 * count, rel=0.01)
    assert estimate_finetuning(shape, "full", length=1, optimizer="fused").tensors_bytes == (
        pytest.approx(16 * count, rel=0.01)
    )
    lora = estimate_finetuning(shape, "lora", rank=8, targets=["q", "v"])
    assert lora.trained == 3_407_872  # PEFT prints it for this model, rank and pair of layers
    four = estimate_finetuning(shape, "4-bit")
    # 4.127 bits of the linear layers' weights (QLoRA, section 3), 16 of the others
    frozen = four.weights - 4 * four.trained  # the adapters have 32 bits
    assert frozen == pytest.approx(4.127 / 8 * shape.linear + 2 * shape.rest, rel=1e-3)


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
    assert formula.activations == pytest.approx(followed.peak.activations, rel=0.35)
    counted = count_work(model, tokens, batch=4, precision="bf16")
    step = finetuning_step(
        shape,
        "full",
        finetuning_evidence()["step"],
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


def test_hours_and_cost_follow_from_the_tokens_and_the_price():
    run = estimate_finetuning(
        "Llama 3.1 8B", "4-bit", device="T4", tokens=36_000_000, price_per_hour=0.5
    ).run
    assert run.hours == pytest.approx(10_000 / run.tokens_per_s)
    low, high = run.hours_interval
    assert low < run.hours < high and run.cost_interval == (low / 2, high / 2)
    found = estimate_finetuning("Llama 3.1 8B", "4-bit", device="T4")
    assert not found.run.checked and "no fine-tunings on this card" in repr(found)
    assert json.loads(json.dumps(found.to_dict()))["run"]["hours_interval"][0] > 0


def test_what_is_free_is_named_where_it_carries_the_job_and_billing_where_it_is_rented():
    asked = {"device": "RTX 4090", "tokens": 10**6}
    short = estimate_finetuning("Llama 3.1 8B", "4-bit", **asked)
    assert "Free: a T4 on Colab takes" in repr(short) and "billed" in repr(short)
    assert dict(short.free)["Colab"].hours > short.run.hours
    long = estimate_finetuning("Llama 3.1 8B", "4-bit", **asked | {"tokens": 10**9})
    whole = estimate_finetuning("Llama 3.1 8B", "full", **asked)
    assert not long.free and not whole.free


def test_eight_bit_adam_that_needs_nearly_the_whole_of_a_t4_does_not_fit_it():
    full = estimate_finetuning("Llama 3.2 1B", "full", optimizer="adam8bit", device="T4")
    assert full.run.capacity_bytes * 0.9 < full.needed_bytes and not full.run.fits
    assert estimate_finetuning("Llama 3.2 1B", "4-bit", device="T4").run.fits


def test_unknown_names_are_answered_with_the_known_ones():
    for asked, message in (
        ({"model": "Llama 9"}, "unknown model 'Llama 9'. Pass one of Llama 3.2 1B"),
        ({"method": "qlora"}, "unknown method 'qlora'. Pass one of full, lora, 4-bit"),
        ({"optimizer": "lion"}, "unknown optimizer 'lion'. Pass one of adam, adamw, fused"),
        ({"targets": ["c_attn"]}, "unknown target 'c_attn'. Pass one of q, k"),
        ({"targets": "qv"}, "unknown target 'qv'. Pass one of q, k"),
        ({"chunks": 0}, "chunks must be a positive integer"),
        ({"device": "T5"}, "unknown chip 'T5'"),
        ({"tokens": 0}, "tokens must be a positive integer"),
    ):
        with pytest.raises(ValueError, match=message):
            estimate_finetuning(**({"model": "Llama 3.2 1B"} | asked))


@pytest.mark.parametrize(
    "module", [chips, finetuning, inference, language_model, memory_model, text]
)
def test_what_a_page_computes_as_well_needs_no_torch(module):
    imported = re.findall(r"^(?:from|import) (\w+)", inspect.getsource(module), re.MULTILINE)
    assert imported and "torch" not in imported


def test_it_shows_its_parts():
    found = estimate_finetuning("Llama 3.2 1B", "4-bit")
    assert sum(found.parts().values()) == pytest.approx(found.needed_bytes)
    assert "optimizer" in repr(found)
