"""Chips and the links between them: figures of data sheets, kept in chips.json."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from course_tools.estimate.checks import is_amount, nearest

CHIPS_FILE = Path(__file__).parent / "chips.json"


# where no chip is named
DEVICES = ("T4", "L4", "A100 80GB", "H100 SXM", "RTX 4090", "RTX 5090")
PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
NO_CHIPS = ("cpu", "cuda", "gpu", "mps", "tpu", "xla", "xpu", "rocm")  # what PyTorch calls a device
PROCESSORS = r"(intel |amd )?((core )?i[3579]-?\d|core ultra|ryzen|xeon|epyc|threadripper)"
# and the machines of AWS and Azure that hold them
KEPLER = r"(nvidia_)?(tesla_)?k(80|40|20|520)m?(_\d+gb)?|p2\.\d*xlarge|nc(6|12|24)r?"
# what a rented machine is called at AWS, Google and Azure
RENTED = r"[a-z]+\d\w*\.(\d*x?large|metal)|[a-z]\d\w?-[a-z]+-\d+g?|n[cdv]\d+\w*_v\d"
FORM = r"( (?:PCIe|SXM\d?|NVL|\d+ ?GB))"  # in which one chip is sold, behind its name
# what stands around the name of a chip
AROUND = "nvidia|geforce|tesla|amd|instinct|generation|macbook (air|pro)|macbook|mac (mini|studio)"


@dataclass(frozen=True)
class Chip:
    """One chip, by its data sheet: published figures. Four of them are enough for one of your own.

    Attributes:
        name: as this course writes it, such as "RTX 4090".
        peak_tflop_per_s: dense arithmetic in 10^12 operations a second, a multiply-add being two:
            one number for each precision ("fp32", "tf32", "fp16", "bf16"), or one for all of them.
        bandwidth_gb_per_s: of its memory, in 10^9 bytes a second.
        memory_gb: size of its memory as the vendor writes it, in GiB.
        also: other names by which it is found.
        vendor: who makes it.
        watts: the power that the board is built for, or None where the vendor does not say.
        link: the name of what connects it to its neighbours, or "".
        family: the cards with which it shares architecture and kind of memory, or "".
        old_host: whether it usually stands beside a host of its own time, 2021 or before.
        corrected: whether error correction takes a sixteenth of its memory.
        source: address of the data sheet.
        achieved_share: the share of the peak that matrix products reach, by "fp32", "tf32" and
            "16 bits", where it was measured or fitted.
    """

    name: str
    peak_tflop_per_s: float | Mapping[str, float]
    bandwidth_gb_per_s: float
    memory_gb: float
    also: tuple[str, ...] = ()
    vendor: str = "NVIDIA"
    watts: float | None = None
    link: str = ""
    family: str = ""
    old_host: bool = False
    corrected: bool = False
    source: str = "your own figures"
    achieved_share: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        amounts = [self.bandwidth_gb_per_s, self.memory_gb, *self.peaks.values()]
        named = self.peaks and set(self.peaks) <= set(PRECISIONS)
        if not named or not all(map(is_amount, amounts)):
            raise ValueError(
                f"peak_tflop_per_s (one number, or one for each of {', '.join(PRECISIONS)}), "
                f"bandwidth_gb_per_s and memory_gb of the {self.name} must be positive numbers, "
                f"but got {self.peak_tflop_per_s!r}, {self.bandwidth_gb_per_s!r} and "
                f"{self.memory_gb!r}."
            )

    def __hash__(self) -> int:
        return hash((self.name, self.bandwidth_gb_per_s, self.memory_gb))

    @property
    def peaks(self) -> Mapping[str, float]:
        """The peaks by precision, in 10^12 operations a second."""
        if isinstance(self.peak_tflop_per_s, Mapping):
            return self.peak_tflop_per_s
        return dict.fromkeys(PRECISIONS, self.peak_tflop_per_s)

    def at(self, precision: str) -> str:
        """Return what the chip computes in for `precision`.

        "amp" is its own 16 bits, or the first precision of its data sheet if it has none. "default"
        is PyTorch's own: tf32 in convolutions and fp32 in products.

        Raises:
            ValueError: the chip has no such precision.
        """
        known = self.peaks
        if precision == "default" and "fp32" in known:
            return precision
        if precision == "amp":
            return next((half for half in ("bf16", "fp16") if half in known), next(iter(known)))
        if precision not in known:
            raise ValueError(
                f"precision {precision!r} was asked of the {self.name}, whose data sheet has "
                f'{", ".join(known)}. Pass one of these, or "amp" for '
                f"its own 16 bits."
            )
        return precision

    def peak(self, precision: str) -> float:
        """Return the dense peak of the data sheet in operations a second."""
        return self.peaks[self.at(precision)] * 1e12

    def achieved(self, precision: str) -> float:
        """Return the share of the peak that matrix products reach; where unknown, the usual one."""
        name = self.at(precision)
        known = self.achieved_share
        if name == "tf32" and "tf32" not in known:  # where it was not measured, that of 16 bits
            name = "16 bits"
        return known.get(name if name in ("fp32", "tf32") else "16 bits", usual_share())


@dataclass(frozen=True)
class Link:
    """A link between chips: `gb_per_s` in one direction from each chip, by the standard or the data
    sheet. It is `uncertain` where no second source agrees.
    """

    name: str
    gb_per_s: float
    reckoned_from: str
    source: str
    uncertain: bool

    def __repr__(self) -> str:
        doubt = ", no second source agrees" if self.uncertain else ""
        return (
            f"{self.name}, {self.gb_per_s:g} GB/s each way ({self.reckoned_from}{doubt}: "
            f"{self.source})"
        )


Named = TypeVar("Named", bound=Chip | Link)


def find_chip(name: str | Chip) -> Chip:
    """Return the chip with this name, whatever its capitals and spaces. A chip of your own is
    returned as it is.

    Raises:
        ValueError: no chip has that name; names that are near it are listed.
    """
    if isinstance(name, Chip):
        return name
    own = (
        " For a card of your own pass four things of its data sheet, as Chip(name, TFLOP/s in 16 "
        "bits, GB/s of its memory, GB of memory), in a terminal behind --chip."
    )
    return _find(name, all_chips, "chip", own)


def other_forms(name: str) -> tuple[str, ...]:
    """Return what a name may mean beside the chip that it finds: the A100s of another memory or
    plug, if it is "A100".
    """
    if re.search(FORM, name, re.IGNORECASE):
        return ()
    found = find_chip(name).name
    alike = re.compile(re.escape(re.sub(f"{FORM}+$", "", found)) + f"{FORM}*")
    names = [chip.name for chip in all_chips() if chip.name != found]
    return tuple(name for name in names if alike.fullmatch(name))


def find_link(name: str | Link) -> Link:
    """Return the link with this name, or the link that it is given, as `find_chip` does."""
    if isinstance(name, Link):
        return name
    return _find(name, all_links, "link")


@cache
def all_chips() -> tuple[Chip, ...]:
    """Return every chip of chips.json, in its order."""
    return tuple(_chip(row) for row in json.loads(CHIPS_FILE.read_text(encoding="utf-8"))["chips"])


def _chip(row: dict[str, Any]) -> Chip:
    achieved = {precision: entry["share"] for precision, entry in row.pop("achieved").items()}
    known = {name: value for name, value in row.items() if name not in ("uncertain", "checked")}
    return Chip(**known | {"also": tuple(row.get("also", ()))}, achieved_share=achieved)


@cache
def usual_share() -> float:
    """Return the share of the peak that stands for chips whose own is not known."""
    known = json.loads(
        (Path(__file__).parent / "time" / "step_time.json").read_text(encoding="utf-8")
    )
    return float(known["numbers"]["achieved"]["value"])


@cache
def all_links() -> tuple[Link, ...]:
    """Return every link of chips.json."""
    return tuple(Link(**row) for row in json.loads(CHIPS_FILE.read_text(encoding="utf-8"))["links"])


@cache
def _by_plain_name(among: Callable[[], Sequence[Named]]) -> dict[str, Named]:
    return {
        _plain(label): item for item in among() for label in (item.name, *getattr(item, "also", ()))
    }


def _find(name: str, among: Callable[[], Sequence[Named]], what: str, own: str = "") -> Named:
    if not isinstance(name, str):
        raise TypeError(f"a {what} is asked for by its name, but got {name!r}.")
    known, plain = _by_plain_name(among), _plain(name)
    if plain in known:
        return known[plain]
    with_memory = re.fullmatch(r"(.*)\W(\d+) ?gb", name.casefold())
    bare = known.get(_plain(with_memory[1])) if with_memory else None
    if bare and with_memory and getattr(bare, "memory_gb", None) == int(with_memory[2]):
        return bare
    if plain in NO_CHIPS or re.match(PROCESSORS, name.casefold()):
        raise ValueError(
            f"{name!r} is a kind of device, or a CPU. Name a {what}, such as 'T4', 'Apple M2' or "
            f"'TPU v5e'; a CPU is not estimated, but a step that you measured on it is a row "
            f"(this_machine=)."
        )
    machine = re.sub(r"^(ml\.|standard_)", "", re.sub(r"\s", "_", name.casefold().strip()))
    if re.fullmatch(KEPLER, machine):
        raise ValueError(
            f"{name!r} is too old: CUDA 12, as PyTorch needs it, has no kernels for it."
        )
    for pattern, cards in json.loads(CHIPS_FILE.read_text(encoding="utf-8"))["instances"]:
        if match := re.fullmatch(pattern, machine):
            raise ValueError(f"{name!r} is a rented machine: ask for its '{match.expand(cards)}'.")
    if re.fullmatch(RENTED, machine):
        raise ValueError(
            f"{name!r} is a rented machine: ask for the card that it holds, such as 'T4'."
        )
    near = nearest(_plain(name), {label: item.name for label, item in known.items()})
    where = "`python -m course_tools.estimate --help` lists all."
    raise ValueError(f"unknown {what} {name!r}{near}. {where}{own}")


def _plain(name: str) -> str:
    # Drivers write the vendor and the series before the name: "NVIDIA GeForce RTX 4090".
    name = re.sub(r"laptop gpu|mobile", "laptop", name.casefold())
    return re.sub(f"{AROUND}|[^a-z0-9]", "", name)
