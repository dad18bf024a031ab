"""Count published steps anew, and say how far the sums are from those in published_steps.csv.

    PYTHONPATH=.venv/networks python benchmarks/count_steps.py [SOURCE]

The U-Nets need diffusers besides. Transformer-XL, TSN and SlowOnly are in no package of today and
were counted from networks written for it: their rows are not counted again. Neither are those of
GPT-2 in LLMs-from-scratch, which is the book's code, and of the U-Net of Stable Diffusion XL. Of
all these rows only GPT-2 has products that are not aligned, those with its 50,257 words: NVIDIA
rounds the words of BERT up.

Against the file, operations are the same, bytes within 3 % and kernels within 7 %. But BERT's
pre-training has 9 % more operations, because NVIDIA computes the words of masked tokens alone.
"""

import argparse
import statistics
from functools import cache
from itertools import pairwise

import torch
from evidence.steps import published_steps
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from course_tools.estimate.counting.count_work import count_work

MPT = {  # width, heads, layers
    "125m": (768, 12, 12),
    "350m": (1024, 16, 24),
    "760m": (1536, 12, 24),
    "1b": (2048, 16, 24),
    "3b": (2560, 20, 32),
    "7b": (4096, 32, 32),
    "13b": (5120, 40, 40),
    "30b": (7168, 56, 48),
}
MPT_WORDS = 50_368


class Block(nn.Module):
    """A block of a language model whose attention is one fused operation, without biases."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width, bias=False) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        """Return what the next block gets."""
        parts = self.qkv(self.norms[0](x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class MosaicModel(nn.Module):
    """MPT, as llm-foundry trains it."""

    def __init__(self, width, heads, layers, tokens, saves_memory):
        super().__init__()
        self.words = nn.Embedding(MPT_WORDS, width)
        self.places = nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)
        self.saves_memory = saves_memory

    def forward(self, ids):
        """Return the loss."""
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.saves_memory else block(x)
        logits = F.linear(self.norm(x), self.words.weight)
        return F.cross_entropy(logits.flatten(0, 1), ids.flatten())


class Detector(nn.Module):
    """NVIDIA's SSD300: a ResNet-50 that keeps its third size, six maps, two heads on each."""

    def __init__(self):
        super().__init__()
        from torchvision.models import resnet50

        self.backbone = nn.Sequential(*list(resnet50().children())[:7])
        first = self.backbone[-1][0]
        for layer in (first.conv1, first.conv2, first.downsample[0]):
            layer.stride = (1, 1)
        sizes = (1024, 512, 512, 256, 256, 256)
        self.more = nn.ModuleList()
        for at, (before, after) in enumerate(pairwise(sizes)):
            middle, far = (256 if at < 2 else 128), {"padding": 1, "stride": 2} if at < 3 else {}
            down = nn.Conv2d(middle, after, 3, bias=False, **far)
            narrow = nn.Conv2d(before, middle, 1, bias=False), nn.BatchNorm2d(middle), nn.ReLU(True)
            self.more.append(nn.Sequential(*narrow, down, nn.BatchNorm2d(after), nn.ReLU(True)))
        boxes = (4, 6, 6, 6, 4, 4)
        pairs = list(zip(sizes, boxes, strict=True))
        self.places = nn.ModuleList(nn.Conv2d(size, 4 * n, 3, padding=1) for size, n in pairs)
        self.classes = nn.ModuleList(nn.Conv2d(size, 81 * n, 3, padding=1) for size, n in pairs)

    def forward(self, x):
        """Return the places and the classes of all boxes."""
        maps = [self.backbone(x)]
        for layer in self.more:
            maps.append(layer(maps[-1]))
        both = []
        for heads, numbers in ((self.places, 4), (self.classes, 81)):
            pairs = zip(heads, maps, strict=True)
            found = [head(x).reshape(x.shape[0], numbers, -1) for head, x in pairs]
            both.append(torch.cat(found, 2))
        return tuple(both)


def network(step):
    """Return the network of a published step and an example of its input, or None."""
    name = step.model
    if name.startswith("MPT"):
        size, tokens, *rest = name.removeprefix("MPT-").split()
        return mosaic(size, int(tokens), bool(rest)), torch.zeros(1, int(tokens), dtype=torch.int64)
    if name.startswith("BERT"):
        tokens = int(name.split()[-1])
        return bert("large" in name, "SQuAD" in name), torch.zeros(1, tokens, dtype=torch.int64)
    if name.startswith("SSD"):
        return detector(), torch.zeros(1, 3, 300, 300)
    if name.startswith("swin"):
        side = int(name.rpartition("_")[2])
        return image_network(name), torch.zeros(1, 3, side, side)
    if name == "VGG-16":
        return vgg(), torch.zeros(1, 3, 224, 224)
    if name == "Stable Diffusion 1.5's U-Net":
        return unet(), (
            torch.zeros(1, 4, 64, 64).half(),
            torch.zeros(1),
            torch.zeros(1, 77, 768).half(),
        )
    return None


@cache
def mosaic(size, tokens, saves_memory):
    """Return an MPT without data."""
    with torch.device("meta"):
        return MosaicModel(*MPT[size], tokens, saves_memory)


@cache
def bert(large, answers):
    """Return a BERT with attention in steps, for questions or for pre-training."""
    from transformers import BertConfig, BertForPreTraining, BertForQuestionAnswering

    shape = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
    shape = shape | {"intermediate_size": 4096} if large else {}
    config = BertConfig(attn_implementation="eager", **shape)
    with torch.device("meta"):
        return (BertForQuestionAnswering if answers else BertForPreTraining)(config)


@cache
def detector():
    """Return the detector without data."""
    with torch.device("meta"):
        return Detector()


@cache
def image_network(name):
    """Return one of timm's, with attention in steps."""
    import timm

    timm.layers.set_fused_attn(False)
    with torch.device("meta"):
        return timm.create_model(name)


@cache
def vgg():
    """Return VGG-16 with batch norms, for ten classes."""
    from torchvision.models import vgg16_bn

    with torch.device("meta"):
        return vgg16_bn(num_classes=10)


@cache
def unet():
    """Return the U-Net of Stable Diffusion 1.5, whose text has 77 tokens of 768 numbers."""
    from diffusers import UNet2DConditionModel

    with torch.device("meta"):
        return UNet2DConditionModel(sample_size=64, cross_attention_dim=768).half()


def main():
    """Count and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", nargs="?", default="", help="of these rows alone")
    asked = parser.parse_args()
    far, counted = [], {}
    for step in published_steps():
        made = network(step) if step.source.startswith(asked.source) else None
        if made is None:
            continue
        known = step.work
        key = (step.model, known.batch, known.precision, known.training)
        if key not in counted:
            more = {"precision": known.precision, "training": known.training}
            counted[key] = count_work(*made, batch=known.batch, **more)
            now = counted[key]
            ratios = [
                now.flops / known.flops,
                now.bytes_moved / known.bytes_moved,
                now.kernels / known.kernels,
            ]
            far.append(max(max(ratio, 1 / ratio) for ratio in ratios))
            print(*key, *(f"{ratio:.3f}" for ratio in ratios), sep="\t", flush=True)
    print(f"median {statistics.median(far):.3f}, largest {max(far):.3f}")


if __name__ == "__main__":
    main()
