"""What lesson 0 alone needs: its picture, who initialized CUDA, and machines that are not this
one.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from course_lessons.exercises.progress import progress
from course_lessons.start.cuda_watch import CudaWatch, is_cuda_initialized
from course_utils.doctor.causes import find_cause
from course_utils.doctor.children import Outcome
from course_utils.doctor.evidence import Evidence, Finding, Package
from course_utils.figures import LOOKS, Picture, lecture_axes, picture
from course_utils.text import format_seconds


def draw_times(seconds: Mapping[str, float], title: str) -> Picture:
    """Draw one bar for each device, with its time beside it.

    Args:
        seconds: by the device's name, from top to bottom; a name that contains "CPU" is drawn as
            one.
        title: what the picture shows.
    """
    axes = lecture_axes(title, "minutes")
    colours = [LOOKS["cpu" if "CPU" in name else "cuda"]["color"] for name in seconds]
    bars = axes.barh(
        list(seconds), [time / 60 for time in seconds.values()], color=colours, height=0.6
    )
    texts = [format_seconds(time) for time in seconds.values()]
    axes.bar_label(bars, texts, padding=10, fontsize=24)
    axes.invert_yaxis()
    axes.margins(x=0.2)
    said = ", ".join(
        f"{' '.join(name.split())} {text}" for name, text in zip(seconds, texts, strict=True)
    )
    return picture(axes, f"{title}: {said}.", colors=16)


def other_machines() -> list[Finding]:
    """Return what the doctor makes of three machines whose owners reported them, with the same
    rules as for this one.

    Their places, packages and answers are in `reported_cases.json`; the lesson says what was seen.
    """
    findings = []
    for report in json.loads((Path(__file__).parent / "reported_cases.json").read_text()):
        family, torch, torch_xla = (
            report["family"],
            Package(**report["torch"]),
            Package(**report["torch_xla"]),
        )
        probes = {family: Outcome(**report["probe"])}
        findings.append(find_cause(family, Evidence(report["place"], torch, probes, torch_xla)))
    return findings
