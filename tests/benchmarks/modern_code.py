"""How often `explain` finds fault with code that runs today: python tests/benchmarks/modern_code.py OUT.json.

The code is that of the installed packages: every file that names torch, Lightning, torch_xla or Darts, and as many
others, drawn with a seed, as make 5,000. A finding that says that the old way still works is counted apart. Every other
one is written down, for a person to judge: `tests/old_guides/real_code.json` has what was found, and a package may
name what is old for a reason, such as to translate it.
"""

import argparse
import json
import random
import re
import signal
import sysconfig
import time
from pathlib import Path

from course_utils.old_guides import Unreadable, explain

PACKAGES = Path(sysconfig.get_path("purelib"))
NAMED = re.compile(rb"\b(torch|lightning|pytorch_lightning|torch_xla|darts)\b")
LIMIT_S = 60


def files(count: int, seed: int) -> list[Path]:
    """Return the files to read, in the order of their names."""
    named: list[Path] = []
    others: list[Path] = []
    for path in sorted(PACKAGES.rglob("*.py")):
        (named if NAMED.search(path.read_bytes()) else others).append(path)
    chance = random.Random(seed)
    drawn = named if len(named) <= count else chance.sample(named, count)
    return sorted([*drawn, *chance.sample(others, min(len(others), count - len(drawn)))])


def too_long(*_: object) -> None:
    raise TimeoutError(f"not read within {LIMIT_S} s")


def read(path: Path) -> dict:
    """Return what is found in one file, or why it cannot be read."""
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LIMIT_S)
    start = time.perf_counter()
    try:
        notes = [f"{note.line}: {note.old} -> {note.new}. {note.why}" for note in explain(path)]
        found = {"old": [note for note in notes if "still works" not in note], "deprecated": len(notes)}
        found["deprecated"] -= len(found["old"])
    except Unreadable as refusal:
        found = {"refused": str(refusal)}
    except Exception as error:  # a crash, or a file that takes too long: both are faults to be seen
        found = {"crash": repr(error)}
    finally:
        signal.alarm(0)
    return {"file": str(path.relative_to(PACKAGES)), "seconds": round(time.perf_counter() - start, 2), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    explain("import torch, pytorch_lightning\npytorch_lightning.Trainer(gpus=2)")  # imports what it asks
    rows = []
    for path in files(options.count, options.seed):
        rows.append(read(path))
        if rows[-1].get("old") or rows[-1].keys() & {"refused", "crash"}:
            print(json.dumps(rows[-1]), flush=True)
    options.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    seconds = [row["seconds"] for row in rows]
    print(f"{len(rows)} files in {sum(seconds):.0f} s, the slowest in {max(seconds):.1f} s")
    for kind in ("old", "deprecated", "refused", "crash"):
        print(f"{kind}: {sum(bool(row.get(kind)) for row in rows)} files")


if __name__ == "__main__":
    main()
