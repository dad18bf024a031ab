"""Write the recording and the report of a run: `python tools/gpu/report.py DIR`.

DIR/recording.json holds every time that was measured, in the course's one format for results. DIR/report.md says in
Markdown what passed, what failed with its last words, and which goals were missed, to be pasted into an issue.
"""

import argparse
import json
import re
import sys
from pathlib import Path

from course_utils.compare.measurement import Measurement
from course_utils.compare.record import read_sensors
from course_utils.compare.results import Result, describe_machine
from course_utils.devices import pick_device


def main() -> int:
    """Write both files and say where they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dry", action="store_true")
    asked = parser.parse_args()
    device = pick_device("cpu" if asked.dry else "cuda")
    result = Result(
        tuple(measurements(asked.folder)),
        command="make gpu" + (" DRY=1" if asked.dry else ""),
        detail=device.detail + ("; small sizes, a rehearsal of the command" if asked.dry else ""),
        sensors=read_sensors(device),
        **describe_machine(),
    )
    if result.measurements:
        result.save(asked.folder / "recording.json")
    text = report(device.name, result, read_lines(asked.folder / "findings.jsonl"), ended(asked.folder))
    (asked.folder / "report.md").write_text(without_names(text), encoding="utf-8")
    print(f"wrote {asked.folder / 'recording.json'} and {asked.folder / 'report.md'}")
    return 0


def ended(folder: Path) -> list[dict]:
    """Return how each part ended."""
    state = folder / "state.json"
    return json.loads(state.read_text()) if state.exists() else []


def read_lines(path: Path) -> list[dict]:
    """Return the JSON objects of a file with one a line; the last one may be torn, where a part was ended."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def measurements(folder: Path) -> list[Measurement]:
    """Return what was measured, each figure once, the newest one where a section was measured again."""
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
    lines = [f"# {device}", "", f"{result.date}; {versions}; {len(result.measurements)} times measured.", ""]
    lines += ["| part | status | seconds |", "|---|---|---|"]
    lines += [f"| {part['name']} | {part['status']} | {part['seconds']:.0f} |" for part in parts]
    if findings:
        lines += ["", "| finding | value | goal |", "|---|---|---|"]
        lines += [f"| {each['name']} | {each['value']:.4g} {each['unit']} | {goal(each)} |" for each in findings]
    for part in parts:
        if part["last_words"]:
            lines += ["", f"<details><summary>{part['name']}: {part['status']}</summary>", "", "```"]
            lines += [part["last_words"].replace("```", "'''"), "```", "", "</details>"]
    return "\n".join(lines) + "\n"


def goal(finding: dict) -> str:
    """Return the goal of a finding in words, and whether it was missed."""
    low, high = finding["low"], finding["high"]
    if low is None and high is None:
        return ""
    missed = (low is not None and finding["value"] < low) or (high is not None and finding["value"] > high)
    words = f"{'' if low is None else f'{low:g}'} to {'' if high is None else f'{high:g}'}".strip()
    return words + (", **missed**" if missed else "")


def without_names(text: str) -> str:
    """Return the text without this machine's home folder, its repository's place, and addresses."""
    for path, name in (
        (Path(__file__).resolve().parents[2], "COURSE"),
        (Path.home(), "HOME"),
        (Path(sys.prefix), "PYTHON"),
    ):
        if str(path) != "/":
            text = text.replace(str(path), name)
    return re.sub(r"\b\d{1,3}(\.\d{1,3}){3}\b", "ADDRESS", text)


if __name__ == "__main__":
    sys.exit(main())
