"""Language models: counted as tokenizers feed them, and estimated as well as they were measured."""

import math
import statistics

import pytest
import torch
from torch.nn import functional as F

from benchmarks.evidence.steps import language_steps
from course_tools.estimate.chips import find_chip
from course_tools.estimate.counting.count_work import count_work
from course_tools.estimate.language.language_model import find_language_model
from course_tools.estimate.memory.estimate_memory import estimate_memory
from course_tools.estimate.time.step_time import fitted, step_time

WIDE = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
WIDE |= {"intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 130}
SHARED = WIDE | {"num_key_value_heads": 2, "head_dim": 16}
OTHER = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100, "n_positions": 128}
PAIR = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "vocab_size": 100}
PAIR |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128}
PAIR |= {"decoder_ffn_dim": 128, "decoder_start_token_id": 0, "pad_token_id": 0}
SMALL_T5 = {"d_model": 64, "num_layers": 2, "num_heads": 4, "d_kv": 16, "d_ff": 128}
SMALL_T5 |= {"vocab_size": 100, "decoder_start_token_id": 0, "pad_token_id": 0}
MARKS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
FAMILIES = {
    "Llama": ("LlamaForCausalLM", "LlamaConfig", SHARED),
    "Qwen3": ("Qwen3ForCausalLM", "Qwen3Config", SHARED),
    "Gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", SHARED),
    "Mistral": ("MistralForCausalLM", "MistralConfig", SHARED),
    "GPT-2": ("GPT2LMHeadModel", "GPT2Config", OTHER),
    "OPT": ("OPTForCausalLM", "OPTConfig", WIDE | {"ffn_dim": 128, "word_embed_proj_dim": 64}),
    "BERT": ("BertForMaskedLM", "BertConfig", WIDE),
    "DistilBERT": ("DistilBertForMaskedLM", "DistilBertConfig", {"dim": 64, "n_heads": 4}),
    "RoBERTa": ("RobertaForMaskedLM", "RobertaConfig", WIDE),
    "ModernBERT": ("ModernBertForMaskedLM", "ModernBertConfig", WIDE | MARKS),
    "DeBERTa": ("DebertaV2ForMaskedLM", "DebertaV2Config", WIDE | {"relative_attention": True}),
    "BART": ("BartForConditionalGeneration", "BartConfig", PAIR),
    "T5": ("T5ForConditionalGeneration", "T5Config", SMALL_T5),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_takes_what_its_tokenizer_returns_and_its_loss_is_counted(name, transformers):
    model_class, config_class, sizes = FAMILIES[name]
    config = getattr(transformers, config_class)(**sizes)
    with torch.device("meta"):
        model = getattr(transformers, model_class)(config)
    ids = torch.ones(1, 32, dtype=torch.int64)
    asked = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids}
    inputs = transformers.BatchEncoding(asked)
    forward = count_work(model, inputs, batch=8, training=False)
    step = count_work(model, inputs, batch=8)
    assert step.loss_counted and 2.5 < step.flops / forward.flops < 3.6
    assert estimate_memory(model, inputs, batch=8).loss_counted
    # every weight of a matrix is used at least once for each of 8 x 32 tokens
    used = sum(p.numel() for n, p in model.named_parameters() if p.dim() == 2 and "embed" not in n)
    assert forward.flops > 0.7 * 2 * 8 * 32 * used


@pytest.mark.parametrize(
    ("name", "experts"),
    [
        ("Mixtral", {"num_local_experts": 8}),
        ("Qwen3Moe", {"num_experts": 8, "moe_intermediate_size": 128}),
    ],
)
def test_of_experts_those_are_counted_that_a_token_uses(name, experts, transformers):
    sizes = SHARED | experts | {"num_experts_per_tok": 2}
    config = getattr(transformers, f"{name}Config")(**sizes)
    with torch.device("meta"):
        model = getattr(transformers, f"{name}ForCausalLM")(config)
    ids = torch.ones(1, 32, dtype=torch.int64)
    for model_in in (model, model.to(torch.bfloat16)):
        work = count_work(model_in, {"input_ids": ids, "labels": ids}, batch=8, training=False)
        shape = find_language_model(config.to_dict())
        used = 2 * 8 * 32 * (shape.linear_used + shape.head)
        assert work.matrix.flops == pytest.approx(used, rel=0.03)
        assert "even share" in " ".join(work.assumed)
        assert count_work(model_in, {"input_ids": ids, "labels": ids}).loss_counted


def test_images_and_sounds_too(transformers):
    image = transformers.ViTConfig(**WIDE, image_size=32, patch_size=8)
    sound = transformers.WhisperConfig(**PAIR, num_mel_bins=16, max_source_positions=100)
    with torch.device("meta"):
        vit = transformers.ViTForImageClassification(image)
        whisper = transformers.WhisperForConditionalGeneration(sound)
    pixels = {"pixel_values": torch.empty(1, 3, 32, 32), "labels": torch.ones(1).long()}
    spoken = {"input_features": torch.empty(1, 16, 200), "labels": torch.ones(1, 32).long()}
    for model, inputs in ((vit, pixels), (whisper, spoken)):
        assert count_work(model, inputs, batch=4).loss_counted
        assert count_work(model, inputs, batch=4, training=False).flops > 0


def test_the_operations_of_gpt2_are_six_for_each_parameter_and_token(transformers):
    with torch.device("meta"):
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    ids = torch.ones(1, 1024, dtype=torch.int64)
    work = count_work(model, {"input_ids": ids, "labels": ids}, batch=4)
    # 6 N D (J. Kaplan et al., Scaling Laws for Neural Language Models, 2020), and 12 L T d for the
    # scores of attention (PaLM, appendix B); the backward pass of fused attention makes the scores
    # once more, and causal attention leaves out half of them; the head, which shares its weights
    # with the embedding, is in N.
    tokens, scores = 4 * 1024, 12 * 12 * 1024 * 768
    expected = tokens * (6 * work.parameters + scores * 7 / 6 / 2)
    assert work.flops == pytest.approx(expected, rel=0.03)


class Scores(torch.nn.Module):
    """A small model whose head makes scores, which it returns in some form."""

    def __init__(self, wrap):
        super().__init__()
        self.wrap = wrap
        self.table, self.head = torch.nn.Embedding(5000, 64), torch.nn.Linear(64, 5000)

    def forward(self, ids):
        return self.wrap(self.head(self.table(ids)))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda scores: scores,
        lambda scores: (scores, None),
        lambda scores: {"logits": scores, "kept": scores.sum(-1)},
        lambda scores: scores.transpose(1, 2),  # as F.cross_entropy wants them
        lambda scores: scores.flatten(0, 1).float(),
    ],
)
def test_scores_of_many_classes_without_a_loss_get_the_loss_that_users_write(wrap):
    def loss(out):
        known = out.values() if isinstance(out, dict) else out if isinstance(out, tuple) else [out]
        scores = next(iter(known))
        scores = scores.transpose(1, 2) if scores.shape[-1] == 100 else scores
        scores = scores.reshape(-1, 5000)
        return F.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.int64))

    ids = torch.zeros(1, 100, dtype=torch.int64)
    alone, asked = (
        estimate_memory(Scores(wrap), ids, batch=16, loss=given) for given in (None, loss)
    )
    assert alone.needed_bytes == pytest.approx(asked.needed_bytes, rel=0.01)
    assert alone.loss_counted and "5,000 classes" in repr(alone) and "classes" not in repr(asked)
    assert alone.largest_batch("T4") == pytest.approx(asked.largest_batch("T4"), rel=0.01)


@pytest.mark.parametrize(
    ("model", "x", "counted"),
    [
        (torch.nn.Linear(8, 1000), torch.empty(4, 8), False),  # few classes
        (torch.nn.Linear(8, 1001), torch.empty(4, 8), True),
        (torch.nn.Sequential(torch.nn.Linear(8, 2048), torch.nn.ReLU()), torch.empty(4, 8), False),
        (torch.nn.Conv1d(1, 1, 3), torch.empty(4, 1, 16_000), False),  # a sound, no classes
        (torch.nn.Conv2d(3, 2000, 1), torch.empty(4, 3, 8, 8), True),  # scores of each pixel
    ],
)
def test_what_is_wide_without_being_scores_gets_no_loss(model, x, counted):
    found = estimate_memory(model, x)
    assert found.loss_counted is counted and ("cross-entropy" in repr(found)) is counted


def test_losses_that_a_model_returns_beside_others_are_its_loss():
    class Detector(torch.nn.Linear):
        def forward(self, x):
            out = super().forward(x)
            return {"boxes": out.mean(), "classes": out.square().mean()}

    assert estimate_memory(Detector(8, 8), torch.empty(4, 8)).loss_counted


def nvidia():
    return [row for row in language_steps() if find_chip(row.device).vendor == "NVIDIA"]


def ratios_of(rows, method="ours"):
    return [row.predicted_s[method] / row.measured_s for row in rows]


def within(ratios, share):
    logs = sorted(abs(math.log(ratio)) for ratio in ratios)
    return math.exp(logs[math.ceil(share * len(logs)) - 1])


def mean_error(ratios):
    return statistics.fmean(abs(ratio - 1) for ratio in ratios)


def test_with_each_card_left_out_the_estimate_is_as_good_as_the_networks_of_neusight():
    ours, theirs = ratios_of(nvidia()), ratios_of(nvidia(), "NeuSight")
    assert len(ours) == 67 and mean_error(theirs) == pytest.approx(0.082, abs=0.001)
    assert mean_error(ours) < 0.1 and within(ours, 0.9) < 1.25
    assert mean_error(ours) <= mean_error(theirs)


@pytest.mark.parametrize("low_power", [True, False])
def test_neither_class_of_cards_is_taken_for_too_fast_or_too_slow(low_power):
    rows = [row for row in nvidia() if (row.device in ("T4", "L4")) == low_power]
    assert len(rows) > 10 and abs(statistics.fmean(ratios_of(rows)) - 1) < 0.08


def test_the_interval_covers_nine_in_ten_of_each_class_of_cards():
    factor = fitted()["factors"]["checked"]["factor"]
    for cards in (("T4", "L4"), ("P100", "V100"), ("A100",), ("H100",)):
        ratios = ratios_of(row for row in nvidia() if row.device.startswith(cards))
        assert sum(1 / factor <= ratio <= factor for ratio in ratios) >= 0.85 * len(ratios), cards


def test_the_cards_of_another_vendor_are_met_within_their_factor():
    rows = [row for row in language_steps() if find_chip(row.device).vendor == "AMD"]
    ratios = [step_time(row.work, find_chip(row.device)).total_s / row.measured_s for row in rows]
    assert len(ratios) > 40 and within(ratios, 0.9) < fitted()["factors"]["AMD"]["factor"]
