"""Inference of language models: against published rates and sizes, and a closed form."""

import math
from collections import defaultdict

import pytest

from course_tools.estimate.chips import Chip
from course_tools.estimate.inference import estimate_inference, inference_evidence, published_rates
from course_tools.estimate.language_model import find_language_model

GIB = 2**30


def test_nine_in_ten_published_rates_lie_within_what_is_said():
    by_runtime = defaultdict(list)
    for row in published_rates():
        assert row["source"] in inference_evidence()["sources"]
        off = abs(math.log(row["estimated"] / row["tokens_per_s"]))
        by_runtime[row["runtime"]].append(off <= math.log(row["factor"]))
    for runtime, inside in by_runtime.items():
        assert len(inside) >= 50, runtime
        assert sum(inside) >= 0.88 * len(inside), (runtime, sum(inside) / len(inside))


def test_another_runtime_and_many_requests_at_once_are_met_though_nothing_was_fitted_on_them():
    rows = [row for row in published_rates() if row["source"] == "TensorRT-LLM"]
    assert {row["batch"] for row in rows} >= {1, 52, 384}
    for row in rows:
        assert row["estimated"] == pytest.approx(row["tokens_per_s"], rel=0.25)


@pytest.mark.parametrize(
    ("name", "bits", "prompt", "gib"),  # Qwen2.5's speed benchmark: largest memory of tensors
    [
        ("Qwen2.5 7B", 16, 1, 14.38),
        ("Qwen2.5 7B", 8, 1, 8.42),
        ("Qwen2.5 7B", 4, 1, 5.52),
        ("Qwen2.5 14B", 4, 1, 9.94),
        ("Qwen2.5 32B", 16, 1, 61.58),
        ("Qwen2.5 0.5B", 16, 1, 0.97),
    ],
)
def test_weights_and_cache_are_what_was_published(name, bits, prompt, gib):
    answer = estimate_inference(name, "A100 80GB", bits=bits, prompt=prompt, generated=2048)
    held = answer.weights_bytes + answer.cache_bytes
    assert held == pytest.approx(gib * GIB, rel=0.06)


def test_keys_and_values_of_shared_heads_take_their_share():
    # 2 * 32 layers * 8 heads * 128 * 2 bytes: Llama 3 8B; Llama 2 7B has four times as many heads
    llama3, llama2 = (
        estimate_inference(name, "A100 80GB", prompt=4000, generated=96, batch=2).cache_bytes
        for name in ("Llama 3.1 8B", "Llama 2 7B")
    )
    assert llama3 == 2 * 4096 * 131_072 and llama2 == 4 * llama3


def test_an_8b_model_fits_a_card_of_8_gb_in_4_bits_alone():
    said = {
        bits: estimate_inference("Llama 3.1 8B", "RTX 3070", bits=bits, runtime="llama.cpp").fits
        for bits in (16, 8, 4)
    }
    assert said == {16: False, 8: False, 4: True}


def test_what_fits_by_half_a_per_cent_does_not_fit():
    needed = estimate_inference("Llama 3.1 8B", "A100 80GB").needed_bytes
    for spare, fits in ((1.005, False), (1.11, True)):
        card = Chip("mine", 100, 1000, spare * needed / GIB)
        assert estimate_inference("Llama 3.1 8B", card).fits is fits


def test_one_request_is_bound_by_bandwidth_and_a_long_prompt_by_arithmetic():
    def card(peak, bandwidth):
        return estimate_inference("Llama 3.1 8B", Chip("mine", peak, bandwidth, 80), prompt=4096)

    base, wide, quick = card(100, 1000), card(100, 2000), card(200, 1000)
    assert wide.decode_s < 0.65 * base.decode_s and quick.decode_s > 0.95 * base.decode_s
    assert quick.prefill_s < 0.6 * base.prefill_s and wide.prefill_s > 0.95 * base.prefill_s


def test_of_experts_all_are_kept_and_few_are_read():
    mixtral = find_language_model("Mixtral 8x7B")
    assert mixtral.parameters == pytest.approx(46.7e9, rel=0.01)  # as its authors say, and
    assert mixtral.linear_used + mixtral.rest == pytest.approx(12.9e9, rel=0.01)
    assert mixtral.linear_met(1) == mixtral.linear_used
    assert mixtral.linear_met(64) == pytest.approx(mixtral.linear, rel=1e-6)


def test_costs_follow_from_the_price_and_the_time():
    answer = estimate_inference("Llama 3.1 8B", "A100 80GB", batch=8, price_per_hour=3.6)
    middle = 1000 * answer.request_s / 8 * 0.001
    low, high = answer.cost_of_requests()
    assert low < middle < high and high / low == pytest.approx(answer.decode_factor**2, rel=0.01)
    assert answer.cost_of_tokens()[0] == pytest.approx(1000 * low / answer.generated)
    assert "1,000 requests" in repr(answer) and "A100" in answer.to_dict()["about"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": "Llama 9"}, "unknown model 'Llama 9'. Pass one of Llama 3.2 1B"),
        ({"model": {"hidden_size": 64}}, "no num_hidden_layers or n_layer"),
        ({"model": {"kv_lora_rank": 512, "model_type": "deepseek_v3"}}, "deepseek_v3"),
        ({"device": "RTX 9999"}, "unknown chip"),
        ({"bits": 3}, "unknown number of bits '3'. Pass one of 16, 8, 4"),
        ({"runtime": "Ollama"}, "unknown runtime 'Ollama'. Pass one of vLLM, llama.cpp"),
        ({"batch": 0}, "batch must be a positive integer"),
        ({"price_per_hour": -1}, "not negative"),
    ],
)
def test_bad_input_is_answered_with_what_to_pass(changed, message):
    asked = {"model": "Llama 3.1 8B", "device": "T4"} | changed
    with pytest.raises(ValueError, match=message):
        estimate_inference(asked.pop("model"), asked.pop("device"), **asked)


@pytest.mark.parametrize(
    ("config", "parameters"),  # of the models' cards
    [
        (
            {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257},
            124e6,
        ),
        (
            {
                "model_type": "mistral",
                "hidden_size": 4096,
                "intermediate_size": 14336,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "vocab_size": 32000,
                "tie_word_embeddings": False,
            },
            7.24e9,
        ),
    ],
)
def test_a_configuration_gives_the_shape(config, parameters):
    assert find_language_model(config).parameters == pytest.approx(parameters, rel=0.01)
