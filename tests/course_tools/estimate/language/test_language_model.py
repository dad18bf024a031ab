"""Shapes of language models: by name, and from the config.json of many kinds."""

import json
from dataclasses import replace

import pytest

from course_tools.estimate.language.language_model import (
    LanguageModel,
    find_language_model,
    known_name,
    language_models,
)


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
        ("Qwen3 14B", 14.77e9),
        ("Llama 2 13B", 13.02e9),
        ("TinyLlama 1.1B", 1.1e9),
        ("Phi-3 mini", 3.82e9),
        ("SmolLM2 1.7B", 1.71e9),
        ("Gemma 2 2B", 2.614e9),
        ("Gemma 2 27B", 27.23e9),
        ("Gemma 3 4B", 3.88e9),  # without the part that sees
        ("Gemma 3 27B", 27.0e9),
        ("Phi-4", 14.66e9),
        ("Phi-2", 2.78e9),
        ("GLM-4 9B", 9.4e9),
        ("Falcon 7B", 6.92e9),
        ("DistilGPT-2", 81.9e6),
        ("RoBERTa base", 124.6e6),
        ("DistilBERT base", 66e6),
        ("XLM-RoBERTa base", 278e6),
        ("RoBERTa large", 355e6),
        ("Gemma 2B", 2.51e9),
        ("Gemma 7B", 8.54e9),
        ("Mistral Nemo 12B", 12.25e9),
        ("Mistral Small 24B", 23.6e9),
        ("gpt-oss 20B", 20.9e9),
        ("Mixtral 8x7B", 46.7e9),
        ("SmolLM2 360M", 362e6),
    ],
)
def test_a_shape_has_as_many_weights_as_the_published_model(name, published):
    shape = language_models()[name]
    assert shape.linear + shape.rest == pytest.approx(published, rel=0.011)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama 3.1 8B"),
        ("meta-llama/Meta-Llama-3-8B", "Llama 3.1 8B"),
        ("meta-llama/Llama-2-7b-chat-hf", "Llama 2 7B"),
        ("mistralai/Mistral-7B-v0.1", "Mistral 7B"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "Mistral 7B"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "Mixtral 8x7B"),
        ("bert-base-uncased", "BERT base"),
        ("google-bert/bert-large-cased", "BERT large"),
        ("gpt2", "GPT-2"),
        ("openai-community/gpt2-xl", "GPT-2 XL"),
        ("google/gemma-2-9b-it", "Gemma 2 9B"),
        ("Qwen/Qwen2.5-0.5B-Instruct-GPTQ-Int4", "Qwen2.5 0.5B"),
        ("Qwen/Qwen3-30B-A3B", "Qwen3 30B-A3B"),
        ("unsloth/Meta-Llama-3.1-8B-bnb-4bit", "Llama 3.1 8B"),
        ("llama-3.1-8b", "Llama 3.1 8B"),
        ("llama3.1:8b", "Llama 3.1 8B"),
        ("Qwen/Qwen2.5-Coder-7B-Instruct", "Qwen2.5 7B"),
        ("microsoft/Phi-3-mini-4k-instruct", "Phi-3 mini"),
        ("FacebookAI/roberta-base", "RoBERTa base"),
        ("HuggingFaceH4/zephyr-7b-beta", "Mistral 7B"),
        ("lmsys/vicuna-7b-v1.5", "Llama 2 7B"),
        ("deepseek-r1:14b", "Qwen2.5 14B"),
        ("qwen2:7b", "Qwen2.5 7B"),
        ("qwen3-coder:30b", "Qwen3 30B-A3B"),
        ("mistral-nemo", "Mistral Nemo 12B"),
        ("xlm-roberta-base", "XLM-RoBERTa base"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "Llama 3.3 70B"),
        ("Llama 4", None),
        ("resnet50", None),
    ],
)
def test_a_model_is_found_by_its_name_on_the_hub(typed, name):
    assert known_name(typed) == name


GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}
MISTRAL = {"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336}
MISTRAL |= {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8}
MISTRAL |= {"vocab_size": 32000, "tie_word_embeddings": False}
GLM = {"model_type": "chatglm", "num_layers": 40, "hidden_size": 4096, "ffn_hidden_size": 13696}
GLM |= {"kv_channels": 128, "num_attention_heads": 32, "padded_vocab_size": 151552}
GLM |= {"multi_query_attention": True, "multi_query_group_num": 2, "seq_length": 131072}
FALCON = {"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "vocab_size": 65024}
FALCON |= {"num_attention_heads": 71, "multi_query": True}


@pytest.mark.parametrize(
    ("config", "parameters"),  # of the models' cards
    [
        (GPT2, 124e6),
        (MISTRAL, 7.24e9),
        ({"text_config": MISTRAL}, 7.24e9),
        (MISTRAL | {"text_config": None}, 7.24e9),
        (GLM, 9.4e9),  # glm-4-9b
        (FALCON, 6.92e9),
    ],
)
def test_a_configuration_gives_the_shape(config, parameters):
    assert find_language_model(config).parameters == pytest.approx(parameters, rel=0.01)


@pytest.mark.parametrize(
    ("typed", "bits"),  # of the files with these names on the Hub
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 16),
        ("openai/gpt-oss-20b", 4),
        ("unsloth/Meta-Llama-3.1-8B-bnb-4bit", 4),
        ("TheBloke/Llama-2-7B-Chat-AWQ", 4),
        ("TheBloke/Mistral-7B-v0.1-GPTQ", 4),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", 8),
        ("Qwen/Qwen3-8B-FP8", 8),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", 4),
    ],
)
def test_a_name_says_in_how_many_bits_its_files_are(typed, bits):
    assert find_language_model(typed).published_bits == bits


GROUPS = {"group_0": {"input_activations": {"num_bits": 8}, "weights": {"num_bits": 4}}}
GROUPS |= {"group_1": {"input_activations": {"num_bits": 8}, "weights": None}}


@pytest.mark.parametrize(
    ("stored", "bits"),  # as Transformers writes them for each method
    [
        (None, 16),
        ({"quant_method": "mxfp4"}, 4),
        ({"quant_method": "fp8", "fmt": "e4m3"}, 8),
        ({"quant_method": "gptq", "bits": 8}, 8),
        ({"quant_method": "awq", "bits": 4}, 4),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4),
        ({"quant_method": "compressed-tensors", "config_groups": GROUPS}, 4),
        ({"quant_method": "bitsandbytes", "load_in_8bit": False, "load_in_4bit": True}, 4),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False}, 8),
    ],
)
def test_a_configuration_says_in_how_many_bits_its_files_are(stored, bits):
    assert find_language_model(MISTRAL | {"quantization_config": stored}).published_bits == bits


@pytest.mark.parametrize(
    ("experts", "used"),
    [
        ({"num_local_experts": 8, "num_experts_per_tok": 2}, 12.9e9),  # Mixtral 8x7B
        ({"num_experts_per_tok": 2}, 7.24e9),  # of one
    ],
)
def test_a_token_uses_as_many_experts_as_the_configuration_says(experts, used):
    shape = find_language_model(MISTRAL | experts)
    assert shape.linear_used + shape.rest == pytest.approx(used, rel=0.01)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        "[" * 5000,
        json.dumps(MISTRAL | {"num_hidden_layers": -3}),
        json.dumps(MISTRAL | {"hidden_size": float("inf")}),
        json.dumps(MISTRAL | {"vocab_size": "many"}),
        json.dumps({"hidden_size": 64}),
        json.dumps({"kv_lora_rank": 512, "model_type": "deepseek_v3"}),
        json.dumps(MISTRAL | {"layer_types": ["mamba"]}),
        json.dumps(MISTRAL | {"is_encoder_decoder": True}),
    ],
    ids=range(10),
)
def test_a_hostile_configuration_ends_in_a_sentence(text, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"\.$"):
        find_language_model(path)


def test_a_folder_of_the_name_of_a_model_is_one_if_it_holds_a_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt2").mkdir()
    assert find_language_model("gpt2") == find_language_model("GPT-2")
    (tmp_path / "gpt2/config.json").write_text(json.dumps(MISTRAL))
    assert find_language_model("gpt2") == find_language_model(MISTRAL)


# 2 layers of q 16, k 8, v 8, o 16 weights, and 32 each of gate, up and down
TINY = LanguageModel(2, 4, 8, heads=2, kv_heads=1, vocabulary=11)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, {"linear": 288, "linear_used": 288, "rest": 2 * 44 + 20, "largest_matrix": 44}),
        ({"tied": True}, {"rest": 44 + 20, "parameters": 288 + 64}),
        ({"gated": False}, {"linear": 224, "rest": 108}),
        ({"head_dim": 4}, {"query": 8, "kv": 4, "linear": 2 * (32 + 16 + 16 + 32 + 96)}),
        ({"vocabulary": 1}, {"largest_matrix": 32, "head": 4}),
        (
            {"experts": 4, "experts_used": 2},
            {"linear": 864, "linear_used": 480, "rest": 108 + 2 * 4 * 4},
        ),
    ],
)
def test_the_weights_of_a_tiny_shape_are_those_that_one_counts_by_hand(changed, expected):
    shape = replace(TINY, **changed)
    assert {name: getattr(shape, name) for name in expected} == expected


@pytest.mark.parametrize(("tokens", "met"), [(1, 2), (2, 3), (3, 3.5)])
def test_each_expert_is_met_by_an_even_share_of_the_tokens(tokens, met):
    shape = replace(TINY, experts=4, experts_used=2)
    assert shape.linear_met(tokens) == 2 * (48 + met * 96)


@pytest.mark.parametrize(
    ("changed", "adapters", "block_bytes"),
    [
        # beside q (4 + 4) and gate (4 + 8); 12 * 4 + 4 * 4 + 4 * 2 + 2 * 4 * 8 bytes per token
        ({}, 2 * 3 * 20, 136),
        ({"experts": 4, "experts_used": 2}, 2 * 3 * (8 + 4 * 12), 136 + 64),
    ],
)
def test_adapters_and_what_a_block_keeps_are_counted_by_hand(changed, adapters, block_bytes):
    shape = replace(TINY, **changed)
    assert shape.adapters(3, ["q", "gate"]) == adapters and shape.block_bytes(7) == 7 * block_bytes
    assert replace(TINY, gated=False).block_bytes(1) == 136 - 2 * 2 * 8
