"""Write the recording and the report of a run: `python tools/gpu/report.py DIR`.

DIR/recording.json holds every time that was measured, in the course's one format for results.
DIR/report.md says in Markdown what passed, what failed with its last words, and which goals were
missed, to be pasted into an issue.
"""

import argparse
import json
import sys
from pathlib import Path

from course_utils.compare.measurement import Measurement
from course_utils.compare.results import Result, describe_machine
from course_utils.devices import pick_device
from course_utils.text import format_count
from tools.gpu.run import without_names

SENSORS = ("sm_clock_mhz", "power_w")


def main() -> int:
    """Write both files and say where they are."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dry", action="store_true")
    asked = parser.parse_args()
    name, detail = described("cpu" if asked.dry else "cuda")
    # the newest of each name
    findings = {each["name"]: each for each in read_lines(asked.folder / "findings.jsonl")}
    result = Result(
        tuple(measurements(asked.folder)),
        command="make gpu" + (" DRY=1" if asked.dry else ""),
        detail=detail + ("; small sizes, a rehearsal of the command" if asked.dry else ""),
        sensors={sensor: findings[sensor]["value"] for sensor in SENSORS if sensor in findings},
        **describe_machine(),
    )
    written = [asked.folder / "report.md"]
    text = report(name, result, list(findings.values()), ended(asked.folder))
    written[0].write_text(without_names(text), encoding="utf-8")
    if result.measurements:
        written.append(asked.folder / "recording.json")
        result.save(written[1])
    print("wrote", " and ".join(map(str, written)))
    return 0


def described(kind: str) -> tuple[str, str]:
    """Return name and detail of the device of a kind, or that there is none: a report of that is
    wanted too.
    """
    try:
        device = pick_device(kind)
    except (RuntimeError, OSError) as error:
        return f"No {kind} device", str(error)[:300]
    return device.name, device.detail


def ended(folder: Path) -> list[dict]:
    """Return how each part ended."""
    state = folder / "state.json"
    return json.loads(state.read_text()) if state.exists() else []


def read_lines(path: Path) -> list[dict]:
    """Return the JSON objects of a file with one a line; the last one may be torn, where a part was
    ended.
    """
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def measurements(folder: Path) -> list[Measurement]:
    """Return what was measured, each figure once, the newest one where a section was measured
    again.
    """
    newest = {}
    for line in read_lines(folder / "measurements.jsonl"):
        line.pop("section")
        for name in ("interval_s", "rounds_s", "warnings"):
            line[name] = tuple(line[name]) if line[name] is not None else None
        found = Measurement(**line)
        newest[found.workload, found.precision, found.size, found.label] = found
    return list(newest.values())


def report(device: str, result: Result, findings: list[dict], parts: list[dict]) -> str:
    """Return the report as Markdown.

    Args:
        device: its name.
        result: the recording.
        findings: ratios, shares and bytes with their goals.
        parts: how each part ended.
    """
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    lines = [
        f"# {device}",
        "",
        f"{result.date}; {versions}; {len(result.measurements)} times measured.",
        "",
    ]
    rest = [f"{part['name']} ({part['status']})" for part in parts if part["status"] != "passed"]
    lines += [
        f"{len(parts) - len(rest)} of {len(parts)} parts passed. Others: {', '.join(rest) or 'none'}.",
        "",
    ]
    lines += ["| part | status | seconds |", "|---|---|---|"]
    lines += [f"| {part['name']} | {part['status']} | {part['seconds']:.0f} |" for part in parts]
    if findings:
        lines += ["", "| finding | value | goal |", "|---|---|---|"]
        lines += [
            f"| {each['name']} | {each['value']:.4g} {each['unit']} | {goal(each)} |"
            for each in findings
        ]
    if result.measurements:
        lines += ["", "| fastest | precision | at | rate |", "|---|---|---|---|", *fastest(result)]
    for part in parts:
        if part["last_words"]:
            lines += [
                "",
                f"<details><summary>{part['name']}: {part['status']}</summary>",
                "",
                "```",
            ]
            lines += [part["last_words"].replace("```", "'''"), "```", "", "</details>"]
    return "\n".join(lines) + "\n"


def fastest(result: Result) -> list[str]:
    """Return a line of a table for each kind of work and precision: the size with the highest
    rate.
    """
    best: dict[tuple[str, str], Measurement] = {}
    for one in sorted(result.measurements, key=lambda one: one.rate):
        best[one.workload, one.precision] = one
    return [
        f"| {one.workload} | {one.precision} | {one.size_name} {one.size:,} | {format_count(one.rate, one.unit)}/s |"
        for one in sorted(best.values(), key=lambda one: (one.workload, one.precision))
    ]


def goal(finding: dict) -> str:
    """Return the goal of a finding in words, and whether it was missed."""
    low, high = finding["low"], finding["high"]
    if low is None and high is None:
        return ""
    missed = (low is not None and finding["value"] < low) or (
        high is not None and finding["value"] > high
    )
    words = f"{'' if low is None else f'{low:g}'} to {'' if high is None else f'{high:g}'}".strip()
    return words + (", **missed**" if missed else "")


if __name__ == "__main__":
    sys.exit(main())
