"""Try the launcher with NCCL: train, kill a rank, resume: `launcher.py --out DIR [--dry]`.

On one card it trains one rank; on two or more, two. A dry run does the same with gloo on the CPU.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import torch


def main() -> int:
    """Run the steps; return 0 when all of them did what they should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry", action="store_true")
    asked = parser.parse_args()
    if asked.dry:
        machine = ["--accelerator", "cpu", "--devices", "2"]
    else:
        machine = ["--accelerator", "gpu", "--devices", str(min(2, torch.cuda.device_count()))]
    folder = asked.out / "launcher"
    shutil.rmtree(folder, ignore_errors=True)
    problems = {
        "ddp_spawn": train(folder / "spawn", *machine, "--epochs", "5", "--strategy", "ddp_spawn"),
        "ddp": train(folder / "ddp", *machine, "--epochs", "5", "--strategy", "ddp"),
        "killed": train_and_kill(folder / "killed", *machine),
        "resumed": resume(folder / "killed", *machine),
    }
    print(json.dumps(problems, indent=1))
    (asked.out / "launcher.json").write_text(json.dumps(problems, indent=1))
    return 1 if any(problems.values()) else 0


def command(out: Path, *options: str) -> list[str]:
    """Return the command line of a launch."""
    words = ["-m", "course_utils.launch", "--lesson", "air_rnn", "--out", str(out), *options]
    return [sys.executable, *words]


def train(out: Path, *options: str) -> str:
    """Train, and return what went wrong, or nothing."""
    done = subprocess.run(command(out, *options), capture_output=True, text=True, check=False)
    return done.stdout[-800:] + done.stderr[-800:] if done.returncode else ""


def train_and_kill(out: Path, *options: str) -> str:
    """Kill the youngest rank of a long run after two epochs; return what went wrong, or nothing."""
    process = subprocess.Popen(
        command(out, *options, "--epochs", "100000"), stdout=subprocess.PIPE, text=True
    )
    for line in process.stdout or ():
        if line.startswith("epoch 2/"):
            break
    started = psutil.Process(process.pid).children(recursive=True)
    started[-1].kill()
    process.communicate()
    _, left = psutil.wait_procs(started, timeout=10)
    if process.returncode != 1 or left:
        return f"status {process.returncode}, and {len(left)} processes still run"
    return ""


def resume(out: Path, *options: str) -> str:
    """Continue a run for three epochs, and return what went wrong, or nothing."""
    checkpoint = torch.load(out / "last.ckpt", map_location="cpu", weights_only=True)
    epochs = checkpoint["epoch"] + 4
    if problem := train(out, *options, "--epochs", str(epochs), "--resume"):
        return problem
    losses = json.loads((out / "result.json").read_text())["losses"]
    return "" if len(losses) == epochs else f"{len(losses)} losses after {epochs} epochs"


if __name__ == "__main__":
    sys.exit(main())
