"""What a memory estimate found: the parts at the peak, the largest batch for a chip, a table and a
picture.
"""

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_utils.estimate.chips import Chip, find_chip
from course_utils.estimate.memory_step import KINDS, Moment
from course_utils.estimate.no_data import positive
from course_utils.text import format_bytes, html_card, text_table

if TYPE_CHECKING:
    import pandas as pd

    # figures need matplotlib, which is imported to draw one
    from course_utils.figures import Picture

FITTED = Path(__file__).parent / "memory.json"
GIB = 2**30
HEADER = ("part", "at the peak")
BANDS = ("#0072B2", "#D55E00", "#CC79A7", "#F0E442")  # Okabe and Ito
HATCHED = ("", "/", ".", "")  # neighbours differ in grey, too
# On these cards error correction takes a sixteenth: nvidia-smi shows 15,360 MiB of a T4's 16 GiB.
CORRECTED = ("T4", "A10", "L4", "L40S")


@dataclass(frozen=True)
class Memory:
    """The memory of one step on one device, estimated; every figure in bytes.

    Attributes:
        batch: samples in a step on this device.
        precision: as asked.
        optimizer: its name.
        shards: devices that share parameters, gradients and optimizer state.
        training: a training step, or a forward pass alone.
        moments: what is in use after each operation, in the order of the step.
        growth: for each moment, the bytes that one more sample adds; empty where only this batch
            could be followed.
        gathered: bytes of parameters that are in use whole at a time where they are shared, else 0.
    """

    batch: int
    precision: str
    optimizer: str
    shards: int
    training: bool
    moments: tuple[Moment, ...]
    growth: tuple[float, ...]
    gathered: int = 0

    @property
    def peak(self) -> Moment:
        """The moment at which most is in use: its amounts, and when it comes."""
        return max(self.moments, key=lambda moment: moment.total)

    @property
    def tensors_bytes(self) -> int:
        """Bytes of all tensors at the peak: what `torch.cuda.max_memory_allocated` shows."""
        return self.peak.total + self.gathered

    @property
    def framework_bytes(self) -> float:
        """What a GPU needs beside the tensors: CUDA, the libraries' work space, and gaps between
        tensors.
        """
        numbers = memory_evidence()["numbers"]
        return numbers["context_bytes"] + numbers["gaps"] * self.tensors_bytes

    @property
    def needed_bytes(self) -> float:
        """What a GPU must have: the tensors at the peak, and the framework."""
        return self.tensors_bytes + self.framework_bytes

    def parts(self) -> dict[str, float]:
        """Return the bytes of each part at the peak."""
        held = {kind: float(getattr(self.peak, kind)) for kind in KINDS}
        return held | {"framework": self.framework_bytes + self.gathered}

    def at(self, batch: int) -> "Memory":
        """Return the same for another batch, without following the step again.

        Raises:
            ValueError: the batch is not a positive integer, or only this batch could be followed.
        """
        positive("batch", batch)
        more = batch - self.batch
        moments = tuple(
            moment._replace(activations=round(moment.activations + slope * more))
            for moment, slope in self._lines()
        )
        return replace(self, batch=batch, moments=moments)

    def fits(self, chip: str) -> bool:
        """Say whether it fits a chip, such as "T4".

        Raises:
            ValueError: no chip has that name.
        """
        return self.needed_bytes <= capacity_bytes(find_chip(chip))

    def largest_batch(self, chip: str) -> int:
        """Return the largest batch that fits a chip, or 0 where not even one sample does.

        Raises:
            ValueError: no chip has that name, or only this batch could be followed.
        """
        room = capacity_bytes(find_chip(chip))
        numbers = memory_evidence()["numbers"]
        room = (room - numbers["context_bytes"]) / (1 + numbers["gaps"]) - self.gathered
        # At each moment the bytes are a straight line over the batch, so each moment has a largest
        # batch of its own.
        lines = [(moment.total - slope * self.batch, slope) for moment, slope in self._lines()]
        return max(
            0,
            int(
                min(
                    (room - base) / slope if slope > 0 else (room >= base) * 1e9
                    for base, slope in lines
                )
            ),
        )

    def _lines(self) -> list[tuple[Moment, float]]:
        if not self.growth:
            why = "with twice as many samples the model ends in an error, or does other operations"
            raise ValueError(
                f"the memory is known for a batch of {self.batch} only: {why}. Estimate each batch by itself."
            )
        return list(zip(self.moments, self.growth, strict=True))

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (name, format_bytes(size))
            for name, size in (*self.parts().items(), ("needed", self.needed_bytes))
        ]

    def __repr__(self) -> str:
        return f"{text_table(HEADER, self._rows())}\n{self._note()}"

    def _repr_html_(self) -> str:
        return html_card("Does it fit?", HEADER, self._rows(), self._note())

    def _note(self) -> str:
        what = f"{self.batch} sample{'s' * (self.batch != 1)}, {self.precision}" + (
            f", {self.optimizer}" if self.training else ", inference"
        )
        what += f", shared by {self.shards} devices" * (self.shards > 1)
        when = "optimizer's step" if self.peak.phase == "optimizer" else f"{self.peak.phase} pass"
        return f"Estimated for {what}. The peak comes in the {when}, after {self.peak.operation!r}."

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for each moment as a pandas table, in the order of the step."""
        import pandas as pd

        return pd.DataFrame([moment._asdict() | {"total": moment.total} for moment in self.moments])

    def plot(self) -> "Picture":
        """Draw what fills the memory over one step, stacked from the bottom up, with its phases,
        and mark the peak.
        """
        from course_utils.figures import lecture_axes, picture

        most = max(KINDS, key=lambda kind: getattr(self.peak, kind))
        share = (
            f"{getattr(self.peak, most) / self.peak.total:.0%} of {format_bytes(self.peak.total)}"
        )
        what = "Optimizer state is" if most == "optimizer" else f"{most.capitalize()} are"
        axes = lecture_axes(
            f"{what} {share} at the peak", "operations of one step, in their order", "GB in use"
        )
        moments = self.to_frame()
        amounts_gb = moments[[*KINDS, "total"]] / 1e9
        stack = axes.stackplot(moments.index, amounts_gb[[*KINDS]].T, colors=BANDS, labels=KINDS)
        for band, hatch in zip(stack, HATCHED, strict=True):
            band.set_hatch(hatch)
        peak = amounts_gb.loc[moments["total"].idxmax()]
        axes.plot(peak.name, peak["total"], "kv", markersize=16)
        for start, phase in moments["phase"].drop_duplicates().items():
            axes.axvline(start, color="black", linestyle=":", linewidth=2)
            late = start > 0.85 * len(moments)
            place, side = (start, 1), "right" if late else "left"
            axes.annotate(
                phase,
                place,
                (-6 if late else 6, -22),
                ("data", "axes fraction"),
                "offset points",
                ha=side,
            )
        axes.set(xlim=(0, len(moments) - 1), ylim=(0, 1.3 * peak["total"]))
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, 0.95),
            ncols=len(KINDS),
            edgecolor="none",
            framealpha=1,
        )
        said = ", ".join(f"{kind} {peak[kind]:.3g} GB" for kind in KINDS)
        return picture(axes, f"What fills the memory over one step; at the peak {said}.", colors=16)


def capacity_bytes(chip: Chip) -> float:
    """Return the bytes that programs can use of a chip's memory, whose GB are GiB."""
    return chip.memory_gb * GIB * (15 / 16 if chip.name in CORRECTED else 1)


@cache
def memory_evidence() -> dict[str, Any]:
    """Return the numbers that stand for the framework, what they were fitted on, and how well they
    did elsewhere.
    """
    return dict(json.loads(FITTED.read_text(encoding="utf-8")))


def memory_note(training: bool) -> str:
    """Return what the verdicts on memory stand on, in one or two sentences."""
    known = memory_evidence()
    right = f"{known['right']['tested']} of {known['questions']} verdicts on trainings published for the {known['card']}"
    checked = (
        f"with Adam; {right} were right"
        if training
        else "for inference, which was not compared with anything"
    )
    return (
        f"Memory is estimated {checked}. `estimate_memory` says what fills it and which batch fits."
    )
