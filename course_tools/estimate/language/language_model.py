"""Language models by their shapes: those known by name, and your own from a config.json; no torch.

>>> find_language_model("Llama 3.1 8B").parameters
8030261248
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from course_tools.estimate.checks import nearest

MODELS_FILE = Path(__file__).parent / "language_models.json"
# What model_type calls networks whose feed-forward part has no gate: two matrices, not three.
UNGATED = {"gpt2", "gptj", "gpt_neo", "gpt_neox", "gpt_bigcode", "opt", "bloom", "falcon", "phi"}
UNGATED |= {"bert", "roberta", "starcoder2", "mpt", "codegen", "distilbert", "xlm-roberta"}
UNGATED |= {"deberta-v2", "electra", "camembert", "mpnet"}
# what reads a text as a whole and writes none
ENCODERS = {"bert", "roberta", "distilbert", "xlm-roberta", "deberta-v2", "modernbert", "electra"}
ENCODERS |= {"camembert", "mpnet"}
# The names of a figure in config.json: today's, then GPT-2's, ChatGLM's and others'.
NAMES = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "dim"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "vocabulary": ("vocab_size", "padded_vocab_size"),
}
INNER: tuple[str, ...] = (
    "moe_intermediate_size",
    "intermediate_size",
    "ffn_hidden_size",
    "n_inner",
    "ffn_dim",
)
INNER += ("hidden_dim",)
KV_HEADS = ("num_key_value_heads", "multi_query_group_num", "num_kv_heads")
CONTEXT = (
    "max_position_embeddings",
    "n_positions",
    "seq_length",
    "max_seq_len",
    "model_max_length",
)
LARGEST = 10**7  # no figure of a shape is larger
# what stands after a model's name without changing its shape
ENDINGS = "instruct|chat|hf|it|base|uncased|cased|pt|gguf|gptq|awq|bnb|4bit|8bit|v[01]|preview"
ENDINGS += "|beta|thinking|4k|8k|128k|fp16|bf16|fp8|int[48]|quantized(\\.w[48]a\\d+)?"
FEED_FORWARD = ("gate", "up", "down")


@dataclass(frozen=True)
class LanguageModel:
    """The shape of a transformer of the Llama family, as its config.json gives it.

    Attributes:
        layers: num_hidden_layers.
        hidden: hidden_size.
        intermediate: intermediate_size.
        heads: num_attention_heads.
        kv_heads: num_key_value_heads.
        vocabulary: vocab_size.
        tied: whether the head uses the embedding's weights (tie_word_embeddings).
        gated: whether the feed-forward network has a gate, as Llama's has and GPT-2's has not.
        head_dim: width of a head, or None for hidden_size / num_attention_heads.
        experts: feed-forward networks of a layer, of which each token uses some; 1 where it has but
            one.
        experts_used: how many a token uses. An even share of the tokens for each is assumed.
        context: the most tokens that it was made for, or None where that is not known.
        encoder: whether it reads texts and writes none, as BERT does.
        published_bits: of a weight in the files that are published under its name.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    vocabulary: int
    tied: bool = False
    gated: bool = True
    head_dim: int | None = None
    experts: int = 1
    experts_used: int = 1
    context: int | None = None
    encoder: bool = False
    published_bits: int = 16

    @property
    def query(self) -> int:
        """Width of the queries of all heads."""
        return self.heads * self.head_dim if self.head_dim else self.hidden

    @property
    def kv(self) -> int:
        """Width of keys and values."""
        return self.query * self.kv_heads // self.heads

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of the linear layers of one block."""
        hidden, between = self.hidden, self.intermediate
        shapes = {
            "q": (hidden, self.query),
            "k": (hidden, self.kv),
            "v": (hidden, self.kv),
            "o": (self.query, hidden),
            "up": (hidden, between),
            "down": (between, hidden),
        }
        return shapes | {"gate": (hidden, between)} if self.gated else shapes

    @property
    def linear(self) -> int:
        """Weights of the linear layers of all blocks."""
        return self.layers * self._in_a_layer(self.experts)

    @property
    def linear_used(self) -> int:
        """Weights of the linear layers that one token meets: those of its experts alone."""
        return self.layers * self._in_a_layer(self.experts_used)

    @property
    def head(self) -> int:
        """Weights of the head, which makes a score for each word."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """All weights."""
        return self.linear + self.rest

    def linear_met(self, tokens: int) -> float:
        """Weights of the linear layers that are read for some tokens at once.

        With experts, each of which gets an even share of the tokens, some are met by none.
        """
        missed = (1 - self.experts_used / self.experts) ** tokens
        return self.layers * self._in_a_layer(self.experts * (1 - missed))

    def _in_a_layer(self, experts: float) -> Any:
        attention = expert = 0
        for name, (inputs, outputs) in self.shapes.items():
            if name in FEED_FORWARD:
                expert += inputs * outputs
            else:
                attention += inputs * outputs
        return attention + experts * expert

    @property
    def rest(self) -> int:
        """Weights of the embedding, the head, the norms and the choice of experts."""
        tables = 1 if self.tied else 2
        norms = (2 * self.layers + 1) * self.hidden
        router = self.layers * self.hidden * self.experts if self.experts > 1 else 0
        return tables * self.head + norms + router

    @property
    def largest_matrix(self) -> int:
        """Weights of the largest single matrix."""
        return max(self.head, *(inputs * outputs for inputs, outputs in self.shapes.values()))

    def adapters(self, rank: int, targets: Iterable[str]) -> int:
        """Weights that LoRA adds: two narrow matrices beside each of the target layers."""
        wide = 0
        for name in targets:
            inputs, outputs = self.shapes[name]
            wide += (inputs + outputs) * (self.experts if name in FEED_FORWARD else 1)
        return self.layers * rank * wide

    def block_bytes(self, tokens: int) -> int:
        """Bytes that one block keeps for its backward pass, in 16 bits with norms in 32."""
        results = 4 if self.gated else 2
        attention = 4 * self.query + 4 * self.kv
        between = self.intermediate * self.experts_used
        return tokens * (12 * self.hidden + attention + 2 * results * between)


@cache
def language_models() -> Mapping[str, LanguageModel]:
    """Return the shapes of some language models by name, from their config.json."""
    rows = json.loads(MODELS_FILE.read_text(encoding="utf-8"))
    return {name: LanguageModel(**row) for name, row in rows.items()}


def known_name(name: str) -> str | None:
    """Return the name in the table of a language model as people type it, or None.

    Capitals, marks and the owner do not matter, nor do endings that change no weight:
    "meta-llama/Llama-3.1-8B-Instruct" is "Llama 3.1 8B".
    """
    typed = _plain(name)
    found = {_plain(known): known for known in language_models()}
    return found.get(ALIKE.get(typed, typed))


def _plain(name: str) -> str:
    words = re.sub(r"[-_\s]+", " ", name.rpartition("/")[2].casefold()).strip()
    words = re.sub(r"^meta | (coder|math)\b", "", words)
    words = re.sub(rf"( ({ENDINGS})(?=[ .]|$)[\d.]*)+( v?\d+(\.\d+)?)?$", "", words)
    return re.sub(r"[\W_]", "", words)


# models whose shapes are the same, but for a few words; Llama's first generation is as its second
ALIKE = {"llama38b": "llama318b", "llama3170b": "llama3370b", "llama370b": "llama3370b"}
ALIKE |= {"llama7b": "llama27b", "llama13b": "llama213b", "gpt2small": "gpt2"}
ALIKE |= {"deepseekr1distillllama8b": "llama318b", "deepseekr1distillllama70b": "llama3370b"}
ALIKE |= {"deepseekr170b": "llama3370b"}
DISTILLED, TUNED = ("deepseekr1distillqwen", "deepseekr1"), ("codellama", "vicuna")
for size in ("7b", "14b", "32b"):
    ALIKE |= {f"{distilled}{size}": f"qwen25{size}" for distilled in DISTILLED}
ALIKE |= {f"qwen2{size}": f"qwen25{size}" for size in ("05b", "15b", "7b", "72b")}
ALIKE |= {f"{tuned}{size}": f"llama2{size}" for tuned in TUNED for size in ("7b", "13b")}
ALIKE |= {"phi35mini": "phi3mini", "qwen330b": "qwen330ba3b", "mistralnemo": "mistralnemo12b"}
ALIKE |= {"zephyr7b": "mistral7b", "mistralsmall": "mistralsmall24b", "gptoss": "gptoss20b"}


def find_language_model(model: str | Path | Mapping[str, Any] | LanguageModel) -> LanguageModel:
    """Return the shape of a language model.

        find_language_model("Qwen2.5 7B")
        find_language_model("meta-llama/Llama-3.1-8B-Instruct")
        find_language_model("folder/config.json")
        find_language_model({"hidden_size": 4096, ...})

    Args:
        model: a name in `language_models()`, the path of a config.json or of its folder, what such
            a file holds, or a shape, which is returned as it is.

    Raises:
        ValueError: no model has that name, or the configuration lacks a figure or is of a kind
            whose size is not known.
    """
    if isinstance(model, LanguageModel):
        return model
    if isinstance(model, Mapping):
        return _from_config(model)
    path = Path(model)
    if (path / "config.json").is_file():
        path = path / "config.json"
    if path.suffix == ".json":
        return _from_file(path)
    name = known_name(str(model))
    if name is None:
        near = nearest(str(model), {each: each for each in language_models()})
        raise ValueError(
            f"unknown model {str(model)!r}{near}. `python -m course_tools.estimate finetune "
            f"--help` lists all. Or pass the config.json of a model that writes or reads text."
        )
    shape = language_models()[name]
    return replace(shape, published_bits=_bits_in(str(model), shape.published_bits))


#: bits of a weight, by what names of files say of them; the first that is found counts
NAMED_BITS = {8: r"8-?bit|int8|fp8|w8a", 4: r"4-?bit|int4|fp4|w4a|awq|gptq|bnb"}


def _bits_in(name: str, usual: int = 16) -> int:
    """Return the bits that a name says, such as "unsloth/Meta-Llama-3.1-8B-bnb-4bit".

    The methods are called as in `quant_method` of Transformers; AWQ and GPTQ have 4 bits mostly.
    """
    said = [bits for bits, words in NAMED_BITS.items() if re.search(words, name.casefold())]
    return said[0] if said else usual


def _stored_bits(how: Mapping[str, Any]) -> int:
    """Return the bits of a weight that `quantization_config` of a config.json says."""
    groups = how.get("config_groups") or {}  # of compressed-tensors, each with its own layers
    weights = [group.get("weights") or {} for group in groups.values()]
    said = [how.get("bits"), *(each.get("num_bits") for each in weights)]
    for bits in NAMED_BITS:
        if bits in said or how.get(f"load_in_{bits}bit"):
            return bits
    return _bits_in(f"{how.get('quant_method')} {how.get('quant_algo')}")


def _from_file(path: Path) -> LanguageModel:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as a config.json: {error}.") from None
    if not isinstance(config, dict):
        raise ValueError(f"{path} holds no configuration, but a {type(config).__name__}.")
    return _from_config(config)


def _from_config(config: Mapping[str, Any]) -> LanguageModel:
    """Return the shape that a config.json of Transformers describes."""
    inner = config.get("text_config")  # the part that reads, where there are others
    stored = config.get("quantization_config") or {}
    config = inner if isinstance(inner, Mapping) else config
    kind = str(config.get("model_type", ""))
    types = config.get("layer_types") or ()
    unlike = set(map(str, types)) - {"full_attention", "sliding_attention"}
    if unlike or "kv_lora_rank" in config or "mamba" in kind:
        raise ValueError(
            f"a model of type {kind!r} has layers that compress keys and values, or keep none, "
            f"which are not known here. Pass a LanguageModel of a similar shape."
        )
    found = {name: _figure(config, names) for name, names in NAMES.items()}
    experts = _figure(config, ("num_local_experts", "num_experts"), 1)
    if config.get("is_encoder_decoder"):
        raise ValueError(
            f"a model of type {kind!r} has an encoder beside its decoder, which is not known here. "
            f"Pass the module itself to `estimate`."
        )
    shared = config.get("multi_query_attention", True) or config.get("num_key_value_heads")
    # Falcon's first models have one head for all, whatever else their configuration says
    one_head = config.get("multi_query") and not config.get("new_decoder_architecture")
    kv_heads = _figure(config, KV_HEADS, found["heads"]) if shared else found["heads"]
    return LanguageModel(
        **found,
        intermediate=_figure(config, INNER, 4 * found["hidden"]),
        kv_heads=1 if one_head else kv_heads,
        # ChatGLM has a head of its own and does not say so
        tied=bool(config.get("tie_word_embeddings", "padded_vocab_size" not in config)),
        gated=kind not in UNGATED,
        head_dim=_figure(config, ("head_dim", "kv_channels"), None),
        experts=experts,
        experts_used=min(experts, _figure(config, ("num_experts_per_tok",), 1)),
        context=_figure(config, CONTEXT, None),
        encoder=kind in ENCODERS,
        published_bits=_stored_bits(stored if isinstance(stored, Mapping) else {}),
    )


def _figure(config: Mapping[str, Any], names: Iterable[str], default: Any = ...) -> Any:
    """Return the first figure of a configuration that has one of some names.

    Raises:
        ValueError: it has none and there is no default, or what it has is no positive integer.
    """
    for name in names:
        value = config.get(name)
        if value is None:
            continue
        whole = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not whole or not 1 <= value <= LARGEST or value != int(value):
            raise ValueError(f"the configuration's {name} is {value!r}, which is no size.")
        return int(value)
    if default is not ...:
        return default
    raise ValueError(
        f"the configuration has no {' or '.join(names)}. Pass the config.json of a language model."
    )
