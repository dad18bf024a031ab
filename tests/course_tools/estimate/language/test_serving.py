"""Answering with language models: against published sizes, and a closed form."""

import pytest

from course_tools.estimate.chips import Chip
from course_tools.estimate.language.language_model import LanguageModel
from course_tools.estimate.language.serving import estimate_serving, times
from course_tools.estimate.words import span

GIB = 2**30

# 2 layers of 144 weights, a head of 44, keys and values of 2 * 2 * 2 numbers per token
TINY = LanguageModel(2, 4, 8, heads=2, kv_heads=1, vocabulary=11)
PROGRAM = {"bandwidth_share": 0.5, "arithmetic_share": 0.25, "layer_s": 10, "kv_times": 3}
PROGRAM |= {"bytes": {"8": (2, 4)}, "host_s": {"8": 0}, "kv_spread": 0, "byte_flops": 0}


def serve(model="Llama 3.1 8B", card="A100 80GB", **asked):
    """Return the answers for one card, and the one answer."""
    found = estimate_serving(model, devices=[card], **asked)
    return found, found.rows[0]


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
    memory = serve(name, bits=bits, prompt=prompt, generated=2048)[0].demand.memory
    assert memory.weights + memory.cache == pytest.approx(gib * GIB, rel=0.06)


def test_keys_and_values_of_shared_heads_take_their_share():
    # 2 * 32 layers * 8 heads * 128 * 2 bytes: Llama 3 8B; Llama 2 7B has four times as many heads
    llama3, llama2 = (
        serve(name, prompt=4000, generated=96, batch=2)[0].demand.memory.cache
        for name in ("Llama 3.1 8B", "Llama 2 7B")
    )
    assert llama3 == 2 * 4096 * 131_072 and llama2 == 4 * llama3


@pytest.mark.parametrize(
    # of geerlingguy/ai-benchmarks, acaracappa/cloud-gpu-shopper and gparemsky/48gb4090
    ("card", "model", "tokens_per_s"),
    [
        ("RTX 5060 Ti 16GB", "Llama 3.1 8B", 83.3),
        ("RTX 4070 Ti", "Qwen2.5 14B", 49.74),
        ("RTX 5080", "Mistral 7B", 168.4),
        ("RTX 3060", "Qwen2.5 14B", 29.77),
        ("RTX A4000", "Llama 3.1 8B", 74.3),
        ("RTX A5000", "Qwen2.5 14B", 62.9),
        ("A100 80GB", "Qwen2.5 32B", 42.1),
        ("RTX A6000", "Llama 3.3 70B", 12.5),
        ("Apple M4 Max", "Qwen2.5 7B", 72.5),
    ],
)
def test_a_card_whose_generation_was_compared_is_checked(card, model, tokens_per_s):
    row = serve(model, card, bits=4, runtime="llama.cpp")[1]
    low, high = row.tokens_per_s
    assert low < tokens_per_s < high < 1.8 * low and row.checked


@pytest.mark.parametrize(
    # with experts: Pavlo Khmel's table of June 2026
    ("card", "tokens_per_s"),
    [("RTX 4080", 210), ("A100 80GB", 189), ("H200", 292), ("V100 PCIe", 138)],
)
def test_experts_take_longer_a_layer_as_published(card, tokens_per_s):
    asked = {"bits": 4, "runtime": "llama.cpp", "prompt": 64}
    found, row = serve("gpt-oss 20B", card, **asked)
    rate = found.demand.rates(row.machine.chip).decode_tokens_per_s
    assert rate == pytest.approx(tokens_per_s, rel=0.25) and not row.checked


def test_an_8b_model_fits_a_card_of_8_gb_in_4_bits_alone_and_the_answer_says_so():
    said = {bits: serve(card="RTX 3070", bits=bits, runtime="llama.cpp") for bits in (16, 8, 4)}
    assert {bits: row.fits for bits, (_, row) in said.items()} == {16: False, 8: False, 4: True}
    assert "With the model in 4 bits it needs" in said[16][0].answer
    assert "fits RTX 3070" in said[16][0].answer


def test_what_fits_by_half_a_per_cent_does_not_fit():
    needed = serve()[0].demand.memory.needed_bytes
    for spare, fits in ((1.005, False), (1.11, True)):
        assert serve(card=Chip("mine", 100, 1000, spare * needed / GIB))[1].fits is fits


@pytest.mark.parametrize(
    ("runtime", "card", "model", "checked", "factors"),  # as serving.json has them
    [
        ("vLLM", "A100 80GB", "Llama 3.1 8B", True, (1.3, 1.3)),
        ("vLLM", "A100 80GB", "Qwen2.5 0.5B", True, (1.3, 1.8)),
        ("vLLM", "T4", "Qwen2.5 0.5B", False, (1.8, 1.8)),
        ("llama.cpp", "RTX 3090", "Qwen2.5 1.5B", False, (3.0, 2.4)),
        ("llama.cpp", "RTX 4080", "Llama 3.2 3B", False, (3.0, 2.4)),
        ("llama.cpp", "RTX 4090", "Qwen3 30B-A3B", False, (3.0, 2.4)),
        ("Transformers", "A100 80GB", "Llama 2 7B", True, (2.0, 1.3)),
    ],
)
def test_the_doubt_is_that_of_such_a_model_on_such_a_card(runtime, card, model, checked, factors):
    found, row = serve(model, card, runtime=runtime)
    rates = found.demand.rates(row.machine.chip)
    assert (rates.prefill_factor, rates.decode_factor) == factors and row.checked == checked
    assert min(factors) - 1e-9 < row.factor < max(factors) + 1e-9


@pytest.mark.parametrize(
    ("peaks", "changed", "expected"),
    [
        # 2 and 4 bytes of a weight at 500 bytes/s; 2 requests of 3 tokens, 2 more in the middle
        ({"fp16": 1e-9}, {}, (20 + 752 / 500 + 3744 / 125, 20 + (752 + 480) / 500 + 1328 / 125)),
        ({"fp32": 1e-9}, {}, (20 + 752 / 500 + 3744 / 50, 20 + (752 + 480) / 500 + 1328 / 50)),
        ({"fp16": 1e-9}, {"host_s": {"8": 1e6}}, (2e6, 2e6)),
        # 100 operations of the 1000 a second for each byte, while the tensor cores calculate
        ({"fp16": 1e-9}, {"byte_flops": 100}, (20 + 752 / 500 + 75.2, 20 + 1232 * 0.102)),
        ({"fp16": 1e-9}, {"kv_spread": 1}, (20 + 752 / 500 + 3744 / 125, 20 + 1552 / 500 + 10.624)),
    ],
)
def test_the_times_of_a_tiny_shape_are_what_one_adds_up_by_hand(peaks, changed, expected):
    shares = {"16 bits": 0.5, "fp32": 0.2}
    chip = Chip("slow", peaks, 1e-6, 1, old_host=True, achieved_share=shares)
    found = times(TINY, chip, PROGRAM | changed, bits=8, batch=2, prompt=3, generated=4)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("bits", [16, 8, 4])
def test_what_is_offered_as_smaller_needs_less_memory(bits):
    demand = serve(bits=bits, batch=2)[0].demand
    smaller = dict(demand.smaller())
    assert len(smaller) == {16: 3, 8: 2, 4: 1}[bits]
    assert all(one.memory.needed_bytes < demand.memory.needed_bytes for one in smaller.values())


def test_the_first_sentence_names_the_cheapest_card_that_fits_and_the_speed_of_its_answers():
    found = estimate_serving(
        "Llama 3.1 8B", devices=["T4", "L4", "H100"], prices={"L4": 0.5, "H100": 4}, requests=500
    )
    assert not found["T4"].fits
    assert found.answer.startswith("Rent the H100 SXM: ")  # the L4 costs as much, unchecked
    assert "tokens/s, $" in found.answer
    assert "Llama 3.1 8B, bits=16" in repr(found) and "requests=500" in repr(found)
    rate = found["L4"].tokens_per_s
    assert rate[0] < found.demand.rates(found["L4"].machine.chip).decode_tokens_per_s < rate[1]


@pytest.mark.parametrize(
    ("asked", "batch"),
    [
        ({}, 32),
        ({"batch": 16}, 32),
        ({"batch": 32}, None),
        ({"requests": 9}, 8),
        ({"card": "RTX 4090", "prompt": 4000}, 8),  # a GB of keys and values for 8,000 tokens
        ({"runtime": "llama.cpp"}, None),
        ({"card": "T4"}, None),
    ],
)
def test_a_pile_of_requests_is_also_priced_as_vllm_would_answer_it(asked, batch):
    said = serve(**asked)[0].answer
    assert ("Answered" in said) == (batch is not None)
    if batch:
        row = serve(**asked | {"batch": batch})[1]
        takes = f"Answered {batch} at a time, it takes {span(row.hours_interval)} on the "
        assert f"{takes}{row.name} and costs {row.cost_text(bare=True)}." in said


def test_a_model_that_fits_nowhere_is_offered_with_the_computers_own_memory():
    # quoted for a 70B in 4 bits with 24 GB: 2 to 12 tokens/s
    text = estimate_serving("Llama 3.3 70B", devices=["RTX 4090"], bits=4).answer
    assert "fits none" in text and "in the computer's memory" in text
    assert "2.7 tokens/s" in text
    fits = estimate_serving("Llama 3.1 8B", devices=["T4"], bits=16).answer
    assert "fits none" in fits and "llama.cpp" not in fits  # in 4 bits it has room on the card


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": "bert-base-uncased"}, "BERT base is an encoder.*writes no answers"),
        ({"bits": 3}, "bits must be one of 16, 8, 4, but got 3"),
        ({"bits": -8.5}, "bits must be one of 16, 8, 4, but got -8.5"),
        ({"runtime": "SGLang"}, "unknown runtime 'SGLang'. Pass one of vLLM, llama.cpp"),
        ({"batch": 0}, "batch must be a positive integer"),
        ({"card": "2 x T4"}, "on one card, but 2 x T4"),
    ],
)
def test_bad_input_is_answered_with_what_to_pass(changed, message):
    with pytest.raises(ValueError, match=message):
        serve(**changed)
