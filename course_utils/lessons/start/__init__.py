"""What lesson 0 alone needs: its picture, who initialized CUDA, and machines that are not this one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.display.cards import html_card
from course_utils.display.figures import LOOKS, Picture, lecture_axes, picture
from course_utils.display.units import format_seconds
from course_utils.doctor.causes import find_cause
from course_utils.doctor.children import Outcome
from course_utils.doctor.evidence import Evidence, Finding, Package
from course_utils.lessons.progress import progress
from course_utils.lessons.start.cuda_watch import CudaWatch, is_cuda_initialized

__all__ = ["CudaWatch", "draw_times", "is_cuda_initialized", "other_machines", "progress"]


def draw_times(seconds: Mapping[str, float], title: str) -> Picture:
    """Draw one bar for each device, with its time beside it.

    Args:
        seconds: by the device's name, from top to bottom; a name that contains "CPU" is drawn as one.
        title: what the picture shows.
    """
    axes = lecture_axes(title, "minutes")
    colours = [LOOKS["cpu" if "CPU" in name else "cuda"]["color"] for name in seconds]
    bars = axes.barh(list(seconds), [time / 60 for time in seconds.values()], color=colours, height=0.6)
    texts = [format_seconds(time) for time in seconds.values()]
    axes.bar_label(bars, texts, padding=10, fontsize=24)
    axes.invert_yaxis()
    axes.margins(x=0.2)
    said = ", ".join(f"{' '.join(name.split())} {text}" for name, text in zip(seconds, texts, strict=True))
    return picture(axes, f"{title}: {said}.", colors=16)


@dataclass(frozen=True, repr=False)
class Case:
    """What the owner of another machine reported in public: what they saw, when and where they said so."""

    title: str
    date: str
    source: str
    symptom: str
    family: str
    place: str
    torch: dict[str, Any]
    torch_xla: dict[str, Any]
    probe: dict[str, Any]

    def finding(self) -> Finding:
        """Return what the doctor makes of it, with the same rules as on this machine."""
        torch, xla, probes = Package(**self.torch), Package(**self.torch_xla), {self.family: Outcome(**self.probe)}
        return find_cause(self.family, Evidence(self.place, torch, probes, xla))

    def _rows(self) -> list[tuple[str, ...]]:
        cuda = f"CUDA {self.torch['cuda']}" if self.torch["cuda"] else "CPUs"
        built_for = f"{self.torch['version']}, built for {cuda}"
        return [("Seen", self.symptom), ("torch", built_for), ("Reported", f"{self.date}, {self.source}")]

    def __repr__(self) -> str:
        return "\n".join([f"{self.title} (another machine)", *(f"  {what}: {told}" for what, told in self._rows())])

    def _repr_html_(self) -> str:
        return html_card(self.title, ("", "another machine"), self._rows())


def other_machines() -> list[Case]:
    """Return the cases: a card that is too old, a driver that is too old, and a torch_xla that does not fit."""
    return [Case(**told) for told in json.loads((Path(__file__).parent / "reported_cases.json").read_text())]
