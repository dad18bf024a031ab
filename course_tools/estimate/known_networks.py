"""Networks of pytorch-image-models that were counted beforehand: their step by name, without them.

    estimate("resnet50", torch.empty(1, 3, 224, 224), batch=64, devices=["T4"])

They were counted in 16 bits, in training with Adam.
"""

import csv
import gzip
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from course_tools.estimate.checks import nearest, plain_name
from course_tools.estimate.counting.work import OP_KINDS, UPDATE_BYTES, Sums, Work
from course_tools.estimate.job import Job
from course_tools.estimate.memory.memory_model import MemoryLine, framework_bytes

COUNTED = Path(__file__).parent / "counted_networks.csv.gz"
MEMORY = Path(__file__).parent / "counted_memory.csv.gz"
ADAM = ("adam", "adamw")  # which take the same time and memory
# after the name of a network whose parallel branches were merged into one convolution each
MERGED = ", merged"


@dataclass(frozen=True)
class Network:
    """A counted network.

    Attributes:
        work: of a step at `work.batch` samples, without the optimizer.
        trained: numbers that the optimizer updates.
    """

    work: Work
    trained: float

    def at(self, batch: int, precision: str, pixels: float = 1.0) -> Work:
        """Return the work at another batch: what is per sample grows, the rest stays.

        Args:
            batch, precision: of the step.
            pixels: how many times as many an image has as when the network was counted.
        """
        factor = batch / self.work.batch * pixels
        kinds: dict[str, Any] = {}
        for kind, sums in self.work.kinds.items():
            kinds[kind] = sums.times(factor)
        if self.work.training:
            other = kinds["other"]
            update = UPDATE_BYTES["adam"] * self.trained
            moved = other.bytes_moved + update
            kinds["other"] = Sums(other.flops, moved, other.kernels + 1)
        kinds["unaligned"] = factor * self.work.unaligned
        return replace(self.work, batch=batch, precision=precision, **kinds)


@cache
def networks() -> Mapping[tuple[str, int, bool, bool], Network]:
    """Return the counted networks by name, side of the image, training and 16 bits."""
    known = {}
    for row in csv.DictReader(_lines(COUNTED)[1:]):
        training, half = row["training"] == "1", row["half"] == "1"
        known[row["model"], int(row["image"]), training, half] = _network(row, training, half)
    return known


def _network(row: Mapping[str, str], training: bool, half: bool) -> Network:
    work = Work(
        batch=int(row["batch"]),
        parameters=int(row["parameters"]),
        training=training,
        precision="fp16" if half else "fp32",
        unaligned=float(row.get("unaligned") or 0),
        **sums_of(row),
    )
    return Network(work, float(row["trained"] or 0))


def sums_of(row: Mapping[str, str]) -> dict[str, Any]:
    """Return the sums of each kind; what a table has no column for is 0."""
    kinds = {}
    for kind in OP_KINDS:
        names = (f"{kind}_{amount}" for amount in ("flops", "bytes", "kernels"))
        kinds[kind] = Sums(*(float(row.get(name) or 0) for name in names))
    return kinds


@dataclass(frozen=True)
class CountedMemory:
    """The bytes that a step of a counted network takes, without what they hold.

    Attributes:
        batch: samples in a step on this device.
        lines: bytes over the batch, of which the highest counts; empty where they were not counted.
        trained: numbers that the optimizer updates.
        optimizer: its name.
    """

    batch: int
    lines: tuple[MemoryLine, ...]
    trained: float
    optimizer: str = "adam"

    @property
    def needed_bytes(self) -> float | None:
        """Bytes that a GPU must have; None where they were not counted."""
        if not self.lines:
            return None
        tensors = max(line.at(self.batch) for line in self.lines)
        return tensors + framework_bytes(tensors)

    def at(self, batch: int) -> "CountedMemory":
        """Return the same for another batch."""
        return replace(self, batch=batch)

    def under_ddp(self) -> "CountedMemory":
        """Return the memory under DistributedDataParallel, which keeps gradients a second time."""
        copied = 4 * self.trained
        return replace(
            self, lines=tuple(MemoryLine(held + copied, more) for held, more in self.lines)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as `Memory.to_dict` does."""
        return {"batch": self.batch, "lines": [line._asdict() for line in self.lines]}


def counted_step(name: str, images: Sequence[int], job: Job) -> tuple[Work, CountedMemory]:
    """Return the work and the memory of a step of a counted network.

    They were counted with square images of a few sizes. A network of convolutions does the same for
    each pixel, so its step is scaled to images of any size; those of transformers are not.

    Args:
        name: as pytorch-image-models writes it, such as "resnet50".
        images: shape of a batch, (samples, channels, height, width).
        job: what else was asked.

    Raises:
        ValueError: no network of that name, image and kind of step was counted, or the job asks for
            another precision or optimizer.
    """
    typed, name, known = name, counted_name(name) or name, sorted(counted_names())
    if name not in known:
        raise ValueError(
            f"no network {typed!r} was counted{nearest(typed, {each: each for each in known})}. "
            f"Pass a module, or the name of a network of pytorch-image-models, such as resnet50."
        )
    if len(images) != 4 or images[1] != 3:
        raise ValueError(
            f"{name} was counted with images of 3 channels, (samples, 3, height, width), but got a "
            f"shape of {tuple(images)}."
        )
    samples, _, height, width = images
    batch = job.batch or samples
    sides = _sides(name, job.training)
    asked_otherwise = [
        how
        for how, otherwise in (
            ("for training" if job.training else "for inference", not sides),
            (f"in {job.precision}, but in 16 bits", job.precision not in ("amp", "bf16", "fp16")),
            ("on devices that share it (shards=)", job.shards > 1),
            ("with a loss=", job.loss is not None),
            ("with channels_last=", bool(job.channels_last)),
            ("with a batch_dim=", bool(job.batch_dim)),
            (f"with {job.optimizer}, but with adam", job.training and job.optimizer not in ADAM),
        )
        if otherwise
    ]
    if asked_otherwise:
        raise ValueError(f"{name} was not counted {asked_otherwise[0]}. Pass the model.")
    pixels = height * width
    side = min(sides, key=lambda one: abs(math.log(one * one / pixels)))
    network = networks()[name, side, job.training, True]
    scale = pixels / side**2
    work = network.at(batch, "fp16", scale)
    if (height, width) != (side, side):
        if not _is_convolutional(work):
            squares = ", ".join(f"{one} x {one}" for one in sides)
            raise ValueError(
                f"{name} was counted with images of {squares}, and what it does does not grow with "
                f"the pixels alone, so {height} x {width} is not known. Pass the model."
            )
        sentence = f"counted with images of {side} x {side}, and scaled to {height} x {width}"
        work = replace(work, assumed=(*work.assumed, f"{name} was {sentence} by the pixels"))
    lines = tuple(
        MemoryLine(held, scale * more)
        for held, more in counted_memory().get((name, side, job.training), ())
    )
    return work, CountedMemory(batch, lines, network.trained)


def _is_convolutional(work: Work) -> bool:
    """Return whether a network does nearly all of its work for each pixel alike."""
    for_pixels = work.convolution.flops + work.depthwise.flops
    return for_pixels > 0.95 * work.flops and work.attention.flops == 0


def _sides(name: str, training: bool) -> list[int]:
    """Return the sizes of images with which a network was counted in 16 bits."""
    found = []
    for known, side, trained, half in networks():
        if (known, trained, half) == (name, training, True):
            found.append(side)
    return sorted(found)


@cache
def counted_names() -> set[str]:
    """Return the names of all networks that were counted."""
    return {name for name, *_ in networks() if not name.endswith(MERGED)}


# names of torchvision, and what people type, whose networks have other names here
ALIKE = {"mobilenetv2": "mobilenetv2_100", "mobilenetv3": "mobilenetv3_large_100"}
ALIKE |= {"vitb16": "vit_base_patch16_224", "vitl16": "vit_large_patch16_224"}
ALIKE |= {"swint": "swin_tiny_patch4_window7_224", "swinb": "swin_base_patch4_window7_224"}
ALIKE |= {"efficientnetv2s": "tf_efficientnetv2_s", "mobilenetv3small": "mobilenetv3_small_100"}
ALIKE |= {"mobilenetv3large": "mobilenetv3_large_100", "convnexttiny224": "convnext_tiny"}


def counted_name(name: str) -> str | None:
    """Return the name of a counted network as people type it, or None.

    Capitals, marks, the owner and the tag of the weights do not matter: "timm/resnet50.a1_in1k" and
    "microsoft/resnet-50" are "resnet50".
    """
    if name in counted_names():
        return name
    plain = {plain_name(known): known for known in counted_names()}
    for typed in (name, name.rpartition("/")[2].partition(".")[0]):
        found = ALIKE.get(plain_name(typed), plain.get(plain_name(typed)))
        if found in counted_names():
            return found
    return None


@cache
def counted_memory() -> Mapping[tuple[str, int, bool], list[MemoryLine]]:
    """Return the memory of networks in 16 bits: by name, side of the image, and training.

    Each has a few lines, of which the highest at a batch is what the tensors take. Training is with
    Adam.
    """
    known = {}
    for row in csv.DictReader(_lines(MEMORY)):
        lines = []
        for pair in row["lines"].split():
            held, per_sample = pair.split(":")
            lines.append(MemoryLine(float(held), float(per_sample)))
        known[row["model"], int(row["image"]), row["training"] == "1"] = lines
    return known


def _lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()
