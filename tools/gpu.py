"""Everything of this course that only a real GPU can show, in one command: `make gpu`.

    python tools/gpu.py [--dry] [--out FOLDER] [--only PART ...]

It runs the doctor, the tests of tests/gpu, the measurements below and every lesson, each in a
process of its own with a time limit, and writes to the folder (default gpu-results):

    report.md        how each part ended, and every figure, to paste into an issue
    recording.json   the times, as `course_tools.compare` keeps them, with device, versions and date
    lessons/         the executed lessons, where this Python has nbconvert
    logs/            what each part printed

A part that ended well is not run again unless --only names it, so the same command goes on where it
was stopped. `--dry` goes through all parts on the CPU with small sizes, and measures nothing.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from course_tools.private import without_secrets  # noqa: E402
from course_utils.atomic_write import write_atomically  # noqa: E402

LESSONS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
MEASURE_S, LESSON_S = 400, 240  # limits of the longest parts


@dataclass(frozen=True)
class Part:
    """One part of the run: what follows `python`, its time limit, and the modules it needs."""

    name: str
    command: tuple[str, ...]
    limit_s: float
    needs: tuple[str, ...] = ()


def parts(out: Path, dry: bool) -> list[Part]:
    """Return all parts, the most valuable first."""
    kind = "cpu" if dry else "cuda"
    doctor = ("-m", "course_tools.doctor", "--require", kind, "--limit", "120")
    measure = (__file__, "--measure", "--out", str(out), *(["--dry"] if dry else []))
    tests = ("-m", "pytest", "tests/gpu", "-o", "addopts=", "-o", "filterwarnings=default", "-q")
    found = [
        Part("doctor", doctor, 150),
        Part("measure", measure, MEASURE_S),
        Part("tests", (*tests, "-p", "no:cacheprovider"), 240, needs=("pytest", "matplotlib")),
    ]
    for lesson in LESSONS:
        command = ("-m", "nbconvert", "--to", "notebook", "--execute", str(lesson))
        target = ("--output-dir", str(out / "lessons"))
        needs = ("nbconvert", "ipykernel", "matplotlib", "pandas", "lightning")
        found.append(Part(f"lesson-{lesson.stem}", (*command, *target), LESSON_S, needs))
    return found


def run(part: Part, out: Path, dry: bool) -> str:
    """Run one part with its output in a file, and return how it ended."""
    missing = [name for name in part.needs if importlib.util.find_spec(name) is None]
    if missing:
        return f"not possible here: this Python lacks {', '.join(missing)}"
    folders = [str(ROOT), str(ROOT / "notebooks"), os.environ.get("PYTHONPATH")]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    if dry:
        variables |= {"COURSE_DEVICE": "cpu", "COURSE_DRY": "1"}
    start = time.monotonic()
    with (out / "logs" / f"{part.name}.txt").open("wb") as log:
        try:
            done = subprocess.run(
                [sys.executable, *part.command],
                cwd=ROOT,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=part.limit_s,
            )
        except subprocess.TimeoutExpired:
            return f"stopped after {part.limit_s:g} s"
    ended = "passed" if done.returncode == 0 else f"failed with status {done.returncode}"
    return f"{ended} in {time.monotonic() - start:.0f} s"


def measure(out: Path, dry: bool) -> None:
    """Time copies, products and training steps, and hold the estimate against two of them."""
    import torch
    from course_lessons.device_speed.image_step import CNN_STEP

    from course_tools.compare.comparison import measure as measure_one
    from course_tools.compare.results import Result, describe_machine
    from course_tools.compare.workloads import PRODUCT
    from course_utils.devices import as_device

    device = as_device("cpu" if dry else "cuda")
    seconds = 0.02 if dry else 0.5
    modern = device.kind == "cuda" and torch.cuda.get_device_capability() >= (8, 0)
    precisions = ("fp32", "tf32", "bf16") if modern else ("fp32",)
    asked = []
    for precision in precisions:
        for side in (64, 128) if dry else (512, 1024, 2048, 4096, 8192):
            asked.append((PRODUCT, side, precision))
        for batch in (16, 64) if dry else (16, 64, 256, 1024, 4096):
            asked.append((CNN_STEP, batch, precision))
    found = []
    for work, size, precision in asked:
        found.append(measure_one(device, work, size, precision, max_s=seconds))
        print(f"{work.name}, {precision}, {size:,}: {found[-1].rate:.4g} {work.unit}/s", flush=True)
        result = Result(tuple(found), **describe_machine())
        result = replace(result, command="python tools/gpu.py", detail=device.detail)
        if not dry:
            result.save(out / "recording.json")  # each time, so that nothing is lost
    time_copies(device, dry)
    compare_estimates(device, dry)


def time_copies(device, dry: bool) -> None:
    """Print how fast copies from the host's memory arrive, small ones and large ones."""
    import torch

    from course_utils.timing import time_call

    for size in (4096, 65_536) if dry else (4096, 2**20, 2**26):
        host = torch.randint(256, (size,), dtype=torch.uint8)  # never written, it costs nothing
        copy = partial(host.to, device.torch_device, copy=True)
        took_s = time_call(copy, device=device, max_s=0.02 if dry else 0.1).median_s
        print(f"copy of {size:,} bytes: {took_s:.3g} s, {size / took_s / 1e9:.3g} GB/s", flush=True)


def compare_estimates(device, dry: bool) -> None:
    """Print the estimated over the measured time of training steps of two networks."""
    import torch
    from course_lessons.data.models import ImageCNN, ResNet50
    from course_lessons.device_speed.image_step import training_step
    from torch import nn

    from course_tools.estimate import count_work, find_chip, step_time
    from course_utils.timing import time_call

    try:
        chip = find_chip("T4" if dry else device.name)
    except ValueError as error:
        print(f"no estimate to compare: {error}")
        return
    networks = {"ImageCNN": (ImageCNN, 32, 256), "ResNet-50": (ResNet50, 224, 64)}
    for name, (build, side, batch) in networks.items():
        batch = 2 if dry else batch
        for precision in ("fp32",) if dry else ("fp32", "fp16"):
            images = torch.randint(256, (batch, 3, side, side), dtype=torch.uint8).float()
            labels = torch.randint(10, (batch,))
            model = build()
            work = count_work(model, images[:1], batch=batch, precision=precision)
            estimated_s = step_time(work, chip).total_s
            loss = nn.functional.cross_entropy
            step = training_step(model, images, labels, loss, device, precision)
            measured_s = time_call(step, device=device, max_s=0.02 if dry else 2).median_s
            ratio = "" if dry else f", estimated / measured {estimated_s / measured_s:.2f}"
            figures = f"estimated {estimated_s:.4g} s, measured {measured_s:.4g} s{ratio}"
            print(f"{name}, batch {batch}, {precision}: {figures}", flush=True)


def write_report(out: Path, ended: dict[str, str], dry: bool) -> Path:
    """Write how each part ended and what it printed, without secrets."""
    lines = ["# What a GPU showed", ""]
    if dry:
        lines += ["A rehearsal on a CPU: no figure here is a measurement of a GPU.", ""]
    lines += ["| part | ended |", "|---|---|"]
    lines += [f"| {name} | {how} |" for name, how in ended.items()]
    for name, how in ended.items():
        log = out / "logs" / f"{name}.txt"
        if log.exists() and not (name.startswith("lesson") and how.startswith("passed")):
            text = log.read_text(encoding="utf-8", errors="replace").replace(str(ROOT), "COURSE")
            if len(text) > 12_000:
                text = text[-12_000:].partition("\n")[2]  # half a key is not known for a key
            text = without_secrets(text)[-6000:].strip()
            lines += ["", f"## {name}", "", "~~~text", text, "~~~"]
    report = out / "report.md"
    write_atomically(report, "\n".join(lines) + "\n")
    return report


def read_state(state: Path, known: Container[str]) -> dict[str, str]:
    """Return how the parts ended that ran before in this folder.

    Raises:
        ValueError: the folder holds files that this program did not write, and would overwrite.
    """
    names = ("logs", "lessons", "report.md", "recording.json")
    foreign = [name for name in names if (state.parent / name).exists()]
    if state.exists():
        foreign = [state.name]
        with suppress(ValueError):
            ended = json.loads(state.read_text(encoding="utf-8"))
            ours = isinstance(ended, dict) and all(
                name in known or name.startswith("lesson-") for name in ended
            )
            if ours:  # a lesson of that name may have gone, or have another number now
                return {name: how for name, how in ended.items() if name in known}
    if foreign:
        raise ValueError(f"{state.parent} holds {foreign[0]} of another program")
    return {}


def main() -> int:
    """Run what is left, and return 0 when everything that can run here has passed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dry", action="store_true", help="small sizes, on the CPU")
    parser.add_argument("--out", type=Path, help="folder for what is written")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help="these parts alone")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    out = (options.out or Path("gpu-dry" if options.dry else "gpu-results")).resolve()
    if options.measure:
        measure(out, options.dry)
        return 0
    if importlib.util.find_spec("torch") is None:
        parser.error(f"{sys.executable} has no torch. Name another: make gpu PYTHON=python3.12")
    known = {part.name: part for part in parts(out, options.dry)}
    unknown = [name for name in options.only if name not in known]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}. There are: {', '.join(known)}")
    state = out / "state.json"
    try:
        ended = read_state(state, known)
        (out / "logs").mkdir(parents=True, exist_ok=True)
        write_atomically(state, json.dumps(ended, indent=1))  # from now on the folder is known
    except (OSError, ValueError) as error:
        parser.error(f"{error}. Name another folder: --out")
    for name, part in known.items():
        wanted = name in options.only if options.only else not ended.get(name, "").startswith("pas")
        if not wanted:
            continue
        print(f"{name} ...", end=" ", flush=True)
        ended[name] = run(part, out, options.dry)
        print(ended[name], flush=True)
        write_atomically(state, json.dumps(ended, indent=1))
        write_report(out, ended, options.dry)
    print(f"The report: {write_report(out, ended, options.dry)}")
    fine = [how.startswith(("passed", "not possible")) for how in ended.values()]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
