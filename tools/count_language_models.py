"""Count the steps of the language models that the page "Is it worth it?" offers, by their shapes.

    python tools/count_language_models.py

It writes tools/page/counted_language.json: for each shape of language_models.json the sums of
a step with one sample and what one sample more adds, for training all weights, LoRA, LoRA on 4-bit
weights, and inference, in 16 bits. What is counted is a plain transformer of that shape, with
causal attention, checkpointing of each block and the loss; no weights are made.
"""

import json
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from course_tools.estimate.counting.count_work import count_work
from course_tools.estimate.finetuning import finetuning_evidence
from course_tools.estimate.language_model import LanguageModel, language_models

TARGET = Path(__file__).parent / "page/counted_language.json"
LENGTHS = (512, 2048)  # tokens of a sample
LONGEST = {"BERT": 512, "GPT-2": 1024}  # that a family was made for
RANK = 16
METHODS = ("full", "lora", "4-bit")


class Adapted(nn.Module):
    """A frozen linear layer, with two narrow trained ones beside it (LoRA)."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.frozen = nn.Linear(inputs, outputs, bias=False)
        self.down = nn.Linear(inputs, RANK, bias=False)
        self.up = nn.Linear(RANK, outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, tokens, inputs) to (batch, tokens, outputs)."""
        return self.frozen(x) + self.up(self.down(x))


class Block(nn.Module):
    """One layer of a transformer: attention, then a feed-forward network."""

    def __init__(self, shape: LanguageModel, adapted: bool):
        super().__init__()
        self.heads, self.kv_heads = shape.heads, shape.kv_heads
        make = Adapted if adapted else lambda a, b: nn.Linear(a, b, bias=False)
        self.linear = nn.ModuleDict(
            {name: make(inputs, outputs) for name, (inputs, outputs) in shape.shapes.items()}
        )
        self.norms = nn.ModuleList([nn.RMSNorm(shape.hidden), nn.RMSNorm(shape.hidden)])

    def forward(self, x: Tensor) -> Tensor:
        """Map hidden states, (batch, tokens, hidden), to those of the next layer."""
        normed = self.norms[0](x)
        q, k, v = (self.split(self.linear[name](normed)) for name in "qkv")
        repeats = self.heads // self.kv_heads
        k, v = (each.repeat_interleave(repeats, dim=1) for each in (k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.linear["o"](mixed.transpose(1, 2).flatten(2))
        normed = self.norms[1](x)
        between = self.linear["up"](normed)
        if "gate" in self.linear:
            between = F.silu(self.linear["gate"](normed)) * between
        else:
            between = F.gelu(between)
        return x + self.linear["down"](between)

    def split(self, x: Tensor) -> Tensor:
        """Map (batch, tokens, width) to (batch, heads, tokens, width of a head)."""
        head = self.linear["q"].frozen if isinstance(self.linear["q"], Adapted) else None
        width = (head or self.linear["q"]).out_features // self.heads
        return x.unflatten(2, (-1, width)).transpose(1, 2)


class Transformer(nn.Module):
    """A language model of a shape, which returns its own loss in training."""

    def __init__(self, shape: LanguageModel, method: str):
        super().__init__()
        adapted = method != "full"
        self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
        self.blocks = nn.ModuleList([Block(shape, adapted) for _ in range(shape.layers)])
        self.norm = nn.RMSNorm(shape.hidden)
        self.head = nn.Linear(shape.hidden, shape.vocabulary, bias=False)
        if adapted:
            for name, parameter in self.named_parameters():
                parameter.requires_grad = ".linear." in name and "frozen" not in name

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens, (batch, tokens), to the loss, or to scores where nothing is trained."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.training else block(x)
        scores = self.head(self.norm(x))
        if not self.training:
            return scores
        return F.cross_entropy(scores.flatten(0, 1).float(), tokens.flatten())


def sums(shape: LanguageModel, method: str, training: bool, length: int) -> dict[str, list[float]]:
    """Return FLOPs, bytes and kernels of a step with one sample, and what one more adds.

    Layers are alike from the second on, so two and three of them tell what each further one adds.
    """
    counts = {}
    for layers in (2, 3):
        with torch.device("meta"):
            model = Transformer(replace(shape, layers=layers), method).train(training)
        tokens = torch.zeros(1, length, dtype=torch.int64)
        for batch in (1, 2):
            work = count_work(model, tokens, batch=batch, precision="fp16", training=training)
            counts[layers, batch] = [work.flops, work.bytes_moved, float(work.kernels)]
    one, two = (
        [a + (shape.layers - 2) * (b - a) for a, b in zip(counts[2, n], counts[3, n], strict=True)]
        for n in (1, 2)
    )
    more = [two[0] - one[0], two[1] - one[1]]
    if method == "4-bit":
        # Each use of a weight turns it from NF4 into 16 bits first, which is read from memory
        # again: in the forward pass, when a block is computed again, and in the backward pass.
        one[1] += 3 * shape.linear * (finetuning_evidence()["nf4_bytes"] + 2)
        one[2] += 3 * shape.layers * len(shape.shapes)
    return {"one": one, "more": more}


def main() -> None:
    """Count every shape and write the file."""
    known = {}
    for name, shape in language_models().items():
        for length in LENGTHS:
            if length > LONGEST.get(name.split()[0], length):
                continue
            steps = {method: sums(shape, method, True, length) for method in METHODS}
            steps["inference"] = sums(shape, "full", False, length)
            known[f"{name}, {length:,} tokens"] = {
                "model": name,
                "length": length,
                "rank": RANK,
                "steps": steps,
            }
            print(name, length, f"{steps['full']['one'][0]:.3g} FLOP", flush=True)
    TARGET.write_text(json.dumps(known, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
