"""The result of a memory estimate: the parts at the peak, the largest batch, table and picture."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from course_tools.estimate.checks import check_positive
from course_tools.estimate.chips import find_chip
from course_tools.estimate.memory.memory_model import (
    MEMORY_PARTS,
    MemoryLine,
    Moment,
    capacity_bytes,
    fits,
    framework_bytes,
    highest_lines,
    largest_batch,
)
from course_utils.tables import html_card, text_table
from course_utils.units import format_bytes

if TYPE_CHECKING:
    # figures need matplotlib, which is imported to draw one
    from course_tools.figures import Picture

HEADER = ("part", "at the peak")
BANDS = ("#0072B2", "#D55E00", "#CC79A7", "#F0E442", "#009E73")  # Okabe and Ito
HATCHED = ("", "/", ".", "", "/")  # neighbours differ in grey, too


@dataclass(frozen=True)
class Memory:
    """The memory of one step on one device, estimated; every figure in bytes.

    Attributes:
        batch: samples in a step on this device.
        precision: as asked.
        optimizer: its name.
        shards: devices that share parameters, gradients and optimizer state.
        training: a training step, or a forward pass alone.
        loss_counted: whether the loss is among what was counted.
        assumed: what was assumed because there is no data, one sentence each.
        moments: what is in use after each operation, in the order of the step, and what one more
            sample adds to it (nan where only this batch could be followed).
    """

    batch: int
    precision: str
    optimizer: str
    shards: int
    training: bool
    loss_counted: bool
    assumed: tuple[str, ...]
    moments: tuple[Moment, ...]

    @property
    def peak(self) -> Moment:
        """The moment at which most is in use, with its amounts."""
        return max(self.moments, key=lambda moment: moment.total)

    @property
    def tensors_bytes(self) -> int:
        """Bytes of all tensors at the peak, as `torch.cuda.max_memory_allocated` shows them."""
        return self.peak.total

    @property
    def framework_bytes(self) -> float:
        """Bytes that a GPU needs beside the tensors, for CUDA, work space and gaps."""
        return framework_bytes(self.tensors_bytes)

    @property
    def needed_bytes(self) -> float:
        """Bytes that a GPU must have, for the tensors at the peak and the framework."""
        return self.tensors_bytes + self.framework_bytes

    def parts(self) -> dict[str, float]:
        """Return the bytes of each part at the peak."""
        held = {kind: float(getattr(self.peak, kind)) for kind in self._kinds}
        return held | {"framework": self.framework_bytes}

    @property
    def _kinds(self) -> tuple[str, ...]:
        """What is in use, with what is gathered where devices share the model."""
        return MEMORY_PARTS if self.shards == 1 else (*MEMORY_PARTS, "gathered")

    def under_ddp(self) -> "Memory":
        """Return the memory under DistributedDataParallel, which keeps gradients a second time.

        Its buckets hold a copy of all of them from its start to its end, unless
        `gradient_as_bucket_view=True` makes the gradients views of the buckets.
        """
        copied = max(moment.gradients for moment in self.moments)
        moments = [one._replace(gradients=one.gradients + copied) for one in self.moments]
        return replace(self, moments=tuple(moments))

    def at(self, batch: int) -> "Memory":
        """Return the same for another batch, without following the step again.

        Raises:
            ValueError: the batch is not a positive integer, or only this batch could be followed.
        """
        check_positive("batch", batch)
        self._check_growth()
        more = batch - self.batch
        moments = []
        for moment in self.moments:
            activations = round(moment.activations + moment.per_sample * more)
            moments.append(moment._replace(activations=activations))
        return replace(self, batch=batch, moments=tuple(moments))

    def fits_on(self, chip: str) -> bool:
        """Return whether it fits a chip, such as "T4".

        Raises:
            ValueError: no chip has that name.
        """
        return fits(self.needed_bytes, capacity_bytes(find_chip(chip)))

    def largest_batch(self, chip: str) -> int:
        """Return the largest batch that fits a chip, or 0 where not even one sample does.

        Raises:
            ValueError: no chip has that name, or only this batch could be followed.
        """
        return largest_batch(self.lines(), capacity_bytes(find_chip(chip)))

    def lines(self) -> list[MemoryLine]:
        """Return the bytes over the batch: the straight lines that are the highest somewhere.

        Raises:
            ValueError: only this batch could be followed.
        """
        self._check_growth()
        lines = []
        for moment in self.moments:
            held = moment.total - moment.per_sample * self.batch
            lines.append(MemoryLine(held, moment.per_sample))
        return highest_lines(lines)

    @property
    def grows(self) -> bool:
        """Whether it is known what one more sample adds."""
        return not math.isnan(self.moments[0].per_sample)

    def _check_growth(self) -> None:
        if not self.grows:
            raise ValueError(
                f"the memory is known for a batch of {self.batch} only: with twice as many samples "
                f"the model ends in an error, or does other operations. Estimate each batch by "
                f"itself."
            )

    def __repr__(self) -> str:
        return f"{text_table(HEADER, self._rows())}\n{self._note()}"

    def _repr_html_(self) -> str:
        return html_card("Does it fit?", HEADER, self._rows(), self._note())

    def _rows(self) -> list[tuple[str, ...]]:
        sizes = self.parts() | {"needed": self.needed_bytes}
        return [(name, format_bytes(size)) for name, size in sizes.items()]

    def _note(self) -> str:
        samples = "1 sample" if self.batch == 1 else f"{self.batch:,} samples"
        what = f"{samples}, {self.precision}, {self.optimizer if self.training else 'inference'}"
        if self.shards > 1:
            what += f", shared by {self.shards} devices (two blocks are whole at a time)"
        when = "optimizer's step" if self.peak.phase == "optimizer" else f"{self.peak.phase} pass"
        note = f"Estimated for {what}. The peak comes in the {when}, after {self.peak.operation!r}."
        if self.training and not self.loss_counted:
            note += " The loss is not counted: pass loss=, or labels to a model that takes them."
        return " ".join([note, *(f"Assumed: {sentence}." for sentence in self.assumed)])

    def to_dict(self) -> dict[str, Any]:
        """Return what a program in another language needs for any batch; see `memory_model`.

        Where only this batch could be followed, there is one line, which is right for this batch.
        """
        lines = self.lines() if self.grows else [MemoryLine(self.tensors_bytes, 0)]
        return {"batch": self.batch, "lines": [line._asdict() for line in lines]}

    def plot(self) -> "Picture":
        """Draw what fills the memory over one step, stacked from the bottom up.

        The phases are marked, and the peak.
        """
        from course_tools.figures import lecture_axes, picture

        peak = self.peak
        sizes = {kind: getattr(peak, kind) for kind in self._kinds}
        most = max(self._kinds, key=sizes.__getitem__)
        what = "The optimizer is" if most == "optimizer" else f"{most.capitalize()} are"
        share = f"{sizes[most] / peak.total:.0%} of {format_bytes(peak.total)}"
        axes = lecture_axes(
            f"{what} {share} at the peak", "operations of one step, in their order", "GB in use"
        )
        end = len(self.moments) - 1
        bands_gb = []
        for part in self._kinds:
            bands_gb.append([getattr(moment, part) / 1e9 for moment in self.moments])
        stack = axes.stackplot(range(end + 1), bands_gb, colors=BANDS, labels=self._kinds)
        for band, hatch in zip(stack, HATCHED, strict=False):
            band.set_hatch(hatch)
        axes.plot(self.moments.index(peak), peak.total / 1e9, "kv", markersize=16)
        phases = [moment.phase for moment in self.moments]
        for phase in dict.fromkeys(phases):
            start = phases.index(phase)
            axes.axvline(start, color="black", linestyle=":", linewidth=2)
            side, shift = ("right", -6) if start > 0.85 * end else ("left", 6)
            top = (start, 1.0)
            name = f"{phase} →" if side == "right" else phase  # it stands before its line
            axes.annotate(
                name, top, (shift, -22), ("data", "axes fraction"), "offset points", ha=side
            )
        axes.set(xlim=(0, end), ylim=(0, 1.3 * peak.total / 1e9))
        # below the names of the phases
        above = axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.95), ncols=len(self._kinds))
        above.get_frame().set(edgecolor="none", alpha=1)
        parts = ", ".join(f"{kind} {format_bytes(size)}" for kind, size in sizes.items())
        alt = f"What fills the memory over one step; at the peak {parts}."
        return picture(axes, alt, colors=16)
