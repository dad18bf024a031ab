"""What the launcher adds to a bare Lightning ddp_spawn script of the same training, in seconds.

Run by hand: `python tests/benchmarks/launcher_overhead.py --json overhead.json`. Both train `air_rnn` with two ranks on
the CPU for the same epochs, in turns (bare, launcher, launcher, bare), so that a machine that gets slower slows both.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BARE = """
import lightning.pytorch as pl
from torch.utils.data import DataLoader

from course_utils.launch.lessons import air_rnn

if __name__ == "__main__":
    pl.seed_everything(42)
    module, dataset = air_rnn()
    trainer = pl.Trainer(
        accelerator="cpu", devices=2, strategy="ddp_spawn", max_epochs=EPOCHS, logger=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir="FOLDER",
    )
    trainer.fit(module, DataLoader(dataset, batch_size=8, shuffle=True))
"""


def commands(folder: Path, epochs: int) -> dict[str, list[str]]:
    """Return the two ways to train, as commands."""
    script = folder / "bare.py"
    script.write_text(BARE.replace("EPOCHS", str(epochs)).replace("FOLDER", str(folder / "bare")))
    launcher = ["-m", "course_utils.launch", "--lesson", "air_rnn", "--strategy", "ddp_spawn", "--devices", "2"]
    options = ["--accelerator", "cpu", "--epochs", str(epochs), "--out", str(folder / "launcher")]
    return {"bare": [sys.executable, str(script)], "launcher": [sys.executable, *launcher, *options]}


def run_s(command: list[str]) -> tuple[float, float]:
    """Return the seconds by the clock, and the CPU seconds of the command and all its children."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    wall, after = time.perf_counter() - start, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu


def main() -> None:
    """Measure, print medians, differences and their spread, and write them as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of bare, launcher, launcher, bare")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    walls, cpus = {"bare": [], "launcher": []}, {"bare": [], "launcher": []}
    with tempfile.TemporaryDirectory() as folder:
        ways = commands(Path(folder), arguments.epochs)
        for _ in range(arguments.rounds):
            for way in ("bare", "launcher", "launcher", "bare"):
                wall, cpu = run_s(ways[way])
                walls[way].append(wall)
                cpus[way].append(cpu)
                print(f"{way:9} {wall:6.1f} s, of which {cpu:5.1f} s CPU", flush=True)
    # The rounds are ABBA: the two of a kind in a round belong together.
    pairs = [
        sum(walls["launcher"][i : i + 2]) / 2 - sum(walls["bare"][i : i + 2]) / 2
        for i in range(0, len(walls["bare"]), 2)
    ]
    report = {
        "bare_median_s": statistics.median(walls["bare"]),
        "launcher_median_s": statistics.median(walls["launcher"]),
        "added_median_s": statistics.median(pairs),
        "added_least_s": min(walls["launcher"]) - min(walls["bare"]),
        "ratio": statistics.median(walls["launcher"]) / statistics.median(walls["bare"]),
        "bare_cpu_median_s": statistics.median(cpus["bare"]),
        "launcher_cpu_median_s": statistics.median(cpus["launcher"]),
        "bare_s": walls["bare"],
        "launcher_s": walls["launcher"],
    }
    for name, value in report.items():
        if not isinstance(value, list):
            print(f"{name:22} {value:7.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
