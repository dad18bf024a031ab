"""What a rehearsal has seen, in words."""

import html
from collections import Counter
from dataclasses import dataclass

from course_tools.rehearsal.compiled_code import compiled_elsewhere
from course_tools.rehearsal.lines import describe
from course_tools.rehearsal.memory import SimulatedGpu, size_text
from course_tools.rehearsal.seen import Seen

NOT_LOOKED_AT = (
    "speed: no time in a rehearsal is a GPU's",
    "compiled code: torch.compile and torch.jit are left out, and the code runs as it stands",
    "kernels of other packages, Triton's and CUDA's among them",
    "rounding: values are the CPU's",
    "the memory of the CUDA context, of libraries, and gaps between tensors",
    "what a GPU's kernels keep for dropout, attention and LSTM: what the CPU's keep is counted",
)
SHOWN = 5


@dataclass(frozen=True)
class Occurrence:
    """Something that happened on one line of the program, and how often."""

    what: str  #: such as "to the CPU", or a wait's cause, such as ".tolist()"
    where: str  #: file below the working folder, line and code of the program
    count: int  #: 0 for memory
    size_bytes: int  #: of all of them together


@dataclass(frozen=True)
class Report:
    """What a rehearsal has seen; nothing in it is a time."""

    kind: str  #: "cuda", "mps" or "xpu"
    gpus: int  #: how many were simulated
    operations: int  #: how many ran,
    on_gpu: int  #: and how many of them on a GPU
    steps: int  #: calls of an optimizer's step
    copies: tuple[Occurrence, ...]  #: between host and GPU, or two GPUs, the largest first
    waits: tuple[Occurrence, ...]  #: of the host for the GPU
    on_cpu: tuple[Occurrence, ...]  #: work left on the CPU after the GPU was first used
    peak_bytes: tuple[int, ...]  #: of the tensors on each GPU, at its peak
    peak_by: tuple[Occurrence, ...]  #: the same by the line that made them, on all GPUs together
    remarks: tuple[str, ...]  #: what will fail or surprise on a real GPU, in sentences
    not_looked_at: tuple[str, ...] = NOT_LOOKED_AT  #: what this rehearsal cannot tell

    @property
    def touched(self) -> bool:
        """Whether anything ran on the GPU, or was put there."""
        return self.on_gpu > 0 or any(self.peak_bytes)

    @property
    def head(self) -> str:
        """What ran, and what will fail or surprise, which is enough beside an error."""
        return "\n".join([*self._beginning(), *self._notes()])

    def _beginning(self) -> list[str]:
        cards = f"{self.gpus} simulated {'GPUs' if self.gpus > 1 else 'GPU'} ({self.kind})"
        operations = _count(self.operations, "operation")
        share = self.on_gpu / self.operations if self.operations else 0.0
        ran = (
            f"Rehearsed on {cards}: {_count(self.steps, 'step')}, {operations}, "
            f"{share:.1%} of them on the GPU."
        )
        if self.touched:
            return [ran]
        return [
            "Nothing ran on the GPU, all of it on the CPU: this says nothing about the program "
            f'on a GPU. Does it move model and data, as with .to("{self.kind}")?',
            ran,
        ]

    def _notes(self) -> list[str]:
        return [f"Note: {each}" for each in self.remarks]

    def __repr__(self) -> str:
        lines = self._beginning()
        if self.touched:
            lines += self._section("Copies", self.copies)
            lines += self._section("Waits of the host for the GPU", self.waits)
            lines += self._section("On the CPU meanwhile", self.on_cpu)
        for index, peak in enumerate(self.peak_bytes):
            lines.append(f"Memory of the tensors on {self.kind}:{index}, peak: {size_text(peak)}")
        lines += [_shown(each, "") for each in self.peak_by[:SHOWN]]
        lines += self._notes()
        lines += ["Not looked at:", *(f"  {each}" for each in self.not_looked_at)]
        return "\n".join(lines)

    def _section(self, title: str, found: tuple[Occurrence, ...]) -> list[str]:
        if not found:
            return [f"{title}: none"]
        count, size = sum(each.count for each in found), sum(each.size_bytes for each in found)
        per = f", {count / self.steps:,.1f} per step" if self.steps else ""
        total = f"{title}: {count:,}{per}" + (f", {size_text(size)}" if size else "")
        rest = [f"  and {len(found) - SHOWN} lines more"] if len(found) > SHOWN else []
        return [total, *(_shown(each, each.what) for each in found[:SHOWN]), *rest]

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}" if number == 1 else f"{number:,} {name}s"


def _shown(line: Occurrence, what: str) -> str:
    size = f"{size_text(line.size_bytes)}, " if line.size_bytes else ""
    times = f"{line.count:,} x {what}, " if what else ""
    return f"  {times}{size}{line.where}"


def occurrences(seen: Seen, *beginnings: str) -> tuple[Occurrence, ...]:
    """Return what happened whose name begins so, by line of the program, the largest first."""
    counts: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    for (what, spot), count in list(seen.events.items()):
        if what.startswith(beginnings):
            line = what.removeprefix("wait: "), describe(spot)
            counts[line] += count
            sizes[line] += seen.event_bytes[what, spot]
    made = [Occurrence(*line, count, sizes[line]) for line, count in counts.items()]
    return tuple(sorted(made, key=lambda each: (-each.size_bytes, -each.count)))


def report_of(seen: Seen, cards: list[SimulatedGpu]) -> Report:
    """Return the report of a rehearsal so far."""
    peaks: dict[str, int] = {}
    for card in cards:
        for spot, size in card.at_peak.items():
            peaks[describe(spot)] = peaks.get(describe(spot), 0) + size
    by = [Occurrence("memory", where, 0, size) for where, size in peaks.items() if size]
    return Report(
        kind=cards[0].kind,
        gpus=len(cards),
        operations=seen.operations,
        on_gpu=seen.on_gpu,
        steps=seen.steps,
        copies=occurrences(seen, "to the", "from GPU"),
        waits=occurrences(seen, "wait: "),
        on_cpu=occurrences(seen, "on the CPU"),
        peak_bytes=tuple(card.highest_bytes for card in cards),
        peak_by=tuple(sorted(by, key=lambda each: -each.size_bytes)),
        remarks=(*seen.remarks, *compiled_elsewhere()),
    )
