"""Everything of this course that only a real GPU can show, in one command: `make gpu`.

It needs a Python with torch and nothing else; what a part needs beyond that, and this Python lacks,
is named in the report. Every part runs in a process of its own with a time limit, and writes what
it finds at once. A part that fails or hangs ends alone. Measurements come first and lessons last:
the first call may end before them. A second call goes on where the first one stopped; `--again`
starts over.

    python tools/gpu/run.py [--dry] [--out DIR] [--minutes 8] [--only PART ...] [--again]

`--dry` goes through all parts on the CPU with small sizes. It proves that the command works, and
measures nothing.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
LESSONS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
# the exit status of a section of measure.py that came to its end, and missed a goal
GOAL_MISSED = 9
COMPLETE = ("passed", "goal missed")  # a part that ended so is not run again
SECTIONS = {  # what measure.py measures: seconds that it may take
    "copies": 40,
    "products": 90,
    "elementwise": 30,
    "rnn": 60,
    "cnn": 120,
    "transformer": 60,
    "resnet": 120,
    "timer": 60,
    "zeros": 30,
    "memory": 90,
    "estimate": 90,
}


@dataclass(frozen=True)
class Part:
    """One part of the run: a command in a process of its own.

    Attributes:
        name: under which status and output are kept.
        command: the words after the Python that runs it.
        limit_s: seconds after which it is ended.
        needs: the modules that it cannot do without.
    """

    name: str
    command: tuple[str, ...]
    limit_s: float
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """How a part ended.

    Attributes:
        name: of the part.
        status: "passed", "goal missed", "failed", "too long", "no time left" or "not possible
            here".
        seconds: that it took.
        last_words: the end of what it printed, when it did not pass.
    """

    name: str
    status: str
    seconds: float
    last_words: str = ""


def parts(out: Path, dry: bool) -> list[Part]:
    """Return all parts, the most valuable first, since the time may run out."""
    flags = ("--dry",) if dry else ()
    measure = [
        Part(
            f"measure-{name}", (str(HERE / "measure.py"), name, "--out", str(out), *flags), limit_s
        )
        for name, limit_s in SECTIONS.items()
    ]
    pytest = (
        "-m",
        "pytest",
        "tests/gpu",
        "-o",
        "addopts=",
        "-o",
        "filterwarnings=default",
        "-q",
        "-ra",
    )
    # a rehearsal compiles the cells of a lesson: the tests execute them
    need = () if dry else ("matplotlib", "pandas")
    lessons = [
        Part(
            f"lesson-{path.stem}",
            (str(HERE / "lesson.py"), str(path), "--out", str(out), *flags),
            150,
            needs=need,
        )
        for path in LESSONS
    ]
    return [
        # From a cold disk, torch and CUDA's libraries can take longer than the doctor usually
        # allows.
        Part(
            "doctor",
            ("-m", "course_utils.doctor", "--require", "cpu" if dry else "cuda", "--limit", "30"),
            150,
        ),
        *measure,
        Part("tests", (*pytest, "-p", "no:cacheprovider"), 120, needs=("pytest", "matplotlib")),
        Part(
            "launcher",
            (str(HERE / "launcher.py"), "--out", str(out), *flags),
            240,
            needs=("psutil", "lightning"),
        ),
        Part(
            "timelines",
            (str(HERE / "timelines.py"), "--out", str(out), *flags),
            60,
            needs=("matplotlib",),
        ),
        *lessons,
    ]


def with_course() -> dict[str, str]:
    """Return the variables of this process, with the course before what PYTHONPATH names
    already.
    """
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }


def run_part(part: Part, out: Path, limit_s: float, dry: bool) -> Ended:
    """Run one part, with its output in a file, and end everything that it started."""
    if missing := [name for name in part.needs if importlib.util.find_spec(name) is None]:
        return Ended(
            part.name, "not possible here", 0.0, f"This Python lacks {', '.join(missing)}."
        )
    log = out / "logs" / f"{part.name}.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {**with_course(), "PYTHONUNBUFFERED": "1"}
    environment |= {"COURSE_DEVICE": "cpu", "COURSE_DRY": "1"} if dry else {}
    start = time.monotonic()
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, *part.command],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = {0: "passed", GOAL_MISSED: "goal missed"}.get(process.wait(limit_s), "failed")
        except subprocess.TimeoutExpired:
            status = "too long"
        finally:
            end_group(process)
    text = log.read_bytes()[-4000:].decode(errors="replace")
    return Ended(part.name, status, time.monotonic() - start, "" if status == "passed" else text)


def end_group(process: subprocess.Popen) -> None:
    """End a process and all that it started and left in its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run(out: Path, *, dry: bool, minutes: float, only: list[str], again: bool) -> list[Ended]:
    """Run the parts that have not passed yet until the time is over, and return how each of them
    ended, ever.
    """
    state = out / "state.json"
    ended = (
        {}
        if again or not state.exists()
        else {one["name"]: Ended(**one) for one in json.loads(state.read_text())}
    )
    if again:
        for name in ("measurements.jsonl", "findings.jsonl"):
            (out / name).unlink(missing_ok=True)
    deadline = time.monotonic() + 60 * minutes
    for part in parts(out, dry):
        if (only and part.name not in only) or (
            part.name in ended and ended[part.name].status in COMPLETE
        ):
            continue
        left_s = deadline - time.monotonic()
        if left_s < 5:
            ended[part.name] = Ended(part.name, "no time left", 0.0)
        else:
            print(f"{part.name} ...", end=" ", flush=True)
            ended[part.name] = run_part(part, out, min(part.limit_s, left_s), dry)
            print(f"{ended[part.name].status}, {ended[part.name].seconds:.0f} s", flush=True)
        new = state.with_suffix(".new")
        new.write_text(json.dumps([asdict(one) for one in ended.values()], indent=1))
        new.replace(state)
    return list(ended.values())


def without_names(text: str) -> str:
    """Return what a part printed without this machine's folders, user, host name and addresses."""
    for path, name in ((ROOT, "COURSE"), (Path.home(), "HOME"), (Path(sys.prefix), "PYTHON")):
        if path != Path(path.anchor):
            text = text.replace(str(path), name)
    for word, name in (
        (os.environ.get("USER"), "USER"),
        (Path.home().name, "USER"),
        (socket.gethostname(), "HOST"),
    ):
        if word and word not in ("root", "localhost"):
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", name, text)
    return re.sub(r"\b\d{1,3}(\.\d{1,3}){3}\b", "ADDRESS", text)


def main() -> int:
    """Run what is left, write the recording and the report; return 0 when all that can run here
    came to its end.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--dry", action="store_true", help="small sizes on the CPU: a rehearsal of the command"
    )
    parser.add_argument(
        "--out", type=Path, default=None, help="folder for the results (default gpu-results)"
    )
    parser.add_argument(
        "--minutes", type=float, default=8.0, help="stop after about so many minutes (default 8)"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help="these parts alone")
    parser.add_argument("--again", action="store_true", help="measure everything anew")
    asked = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        parser.error(
            f"{sys.executable} has no torch. Name a Python that has it: make gpu PYTHON=/path/to/python"
        )
    # A part has a session of its own, and would go on alone.
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(stop) != signal.SIG_IGN:  # nohup
            signal.signal(
                stop, lambda *_: sys.exit("\nStopped. The same command again goes on from here.")
            )
    out = (asked.out or Path("gpu-dry" if asked.dry else "gpu-results")).resolve()
    out.mkdir(parents=True, exist_ok=True)
    known = [part.name for part in parts(out, asked.dry)]
    if unknown := sorted(set(asked.only) - set(known)):
        parser.error(f"there is no part {unknown[0]!r}. There are: {', '.join(known)}")
    ended = run(out, dry=asked.dry, minutes=asked.minutes, only=asked.only, again=asked.again)
    report = [sys.executable, str(HERE / "report.py"), str(out), *(["--dry"] if asked.dry else [])]
    if late := [one.name for one in ended if one.status in ("too long", "no time left")]:
        print(f"The same command again goes on with what had no time: {', '.join(late)}")
    done = subprocess.run(report, cwd=ROOT, env=with_course(), check=False)
    fine = (*COMPLETE, "not possible here")
    return 0 if done.returncode == 0 and all(one.status in fine for one in ended) else 1


if __name__ == "__main__":
    sys.exit(main())
