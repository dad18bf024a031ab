"""The launcher with NCCL: train, kill a rank, resume: `python tools/gpu/launcher.py --out DIR
[--dry]`.

On one card it trains one rank; on two or more, two. A dry run does the same with gloo on the CPU,
and kills a rank that
was forked: one that is spawned imports Lightning anew.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path


def command(out: Path, *, accelerator: str, devices: int, epochs: int, strategy: str) -> list[str]:
    """Return the command line of a run."""
    words = [
        "-m",
        "course_utils.launch",
        "--lesson",
        "air_rnn",
        "--out",
        str(out),
        "--json",
        "--resume",
    ]
    words += ["--accelerator", accelerator, "--devices", str(devices), "--strategy", strategy]
    return [sys.executable, *words, "--epochs", str(epochs)]


def main() -> int:
    """Run the three steps; return 0 when all of them did what they should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry", action="store_true")
    asked = parser.parse_args()
    if asked.dry:
        machine = {"accelerator": "cpu", "devices": 2}
    else:
        import torch

        machine = {"accelerator": "cuda", "devices": min(2, torch.cuda.device_count())}
    folder = asked.out / "launcher"
    shutil.rmtree(folder, ignore_errors=True)
    strategies = ("ddp_spawn",) if asked.dry else ("ddp", "ddp_spawn")
    steps = {name: partial(trained, folder / name, strategy=name, **machine) for name in strategies}
    spawn_or_fork = "ddp_notebook" if asked.dry else "ddp_spawn"
    steps["killed and resumed"] = partial(
        killed_and_resumed, folder / "killed", strategy=spawn_or_fork, **machine
    )
    found: dict[str, dict[str, object]] = {}
    for name, step in steps.items():
        found[name] = step()
        print(name, json.dumps(found[name], indent=1), flush=True)
        (asked.out / "launcher.json").write_text(json.dumps(found, indent=1))
    return 0 if all(one["ok"] for one in found.values()) else 1


def trained(folder: Path, *, accelerator: str, devices: int, strategy: str) -> dict[str, object]:
    """Train some epochs, and say whether that worked and how long it took."""
    start = time.monotonic()
    words = command(folder, accelerator=accelerator, devices=devices, epochs=5, strategy=strategy)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    end = done.stderr[-800:] if done.returncode else ""
    return {
        "ok": done.returncode == 0,
        "seconds": time.monotonic() - start,
        "devices": devices,
        "error": end,
    }


def killed_and_resumed(
    folder: Path, *, accelerator: str, devices: int, strategy: str
) -> dict[str, object]:
    """Kill the youngest process of a long run once it has a checkpoint, then resume; a rank's end
    must end the run.
    """
    words = command(
        folder, accelerator=accelerator, devices=devices, epochs=20_000, strategy=strategy
    )
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + 60
    while not list(folder.rglob("*.ckpt")) and time.monotonic() < limit and process.poll() is None:
        time.sleep(0.2)
    victims = descendants(process.pid)
    if victims:
        os.kill(victims[-1], signal.SIGKILL)
    try:
        said = process.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        said = process.communicate()[1]
        return {
            "ok": False,
            "status": None,
            "error": f"the run went on without its rank. {said[-800:]}",
        }
    left = still_running(victims, limit_s=10)
    killed = process.returncode == 1 and bool(victims) and not left
    resumed = went_on(words, list(folder.rglob("*.ckpt")))
    found = {"status": process.returncode, "left": left, "resumed": resumed, "error": said[-800:]}
    return {"ok": killed and resumed == "", **found}


def went_on(words: list[str], checkpoints: list[Path]) -> str:
    """Resume a run for three more epochs, and return what was wrong with that, or nothing."""
    if not checkpoints:
        return "there was no checkpoint"
    import torch

    epochs = torch.load(checkpoints[0], map_location="cpu", weights_only=True)["epoch"] + 1
    again = subprocess.run(
        [*words[:-1], str(epochs + 3)], capture_output=True, text=True, check=False
    )
    if again.returncode:
        return again.stderr[-800:]
    losses = json.loads(again.stdout)["losses"]
    return (
        "" if len(losses) == epochs + 3 else f"{epochs} epochs and three more came to {len(losses)}"
    )


def still_running(pids: list[int], *, limit_s: float) -> list[int]:
    """Return which of these processes still run after a while; one that has ended and waits to be
    counted does not.
    """
    end = time.monotonic() + limit_s
    while (
        left := [pid for pid in pids if state(pid) not in ("", "Z", "X")]
    ) and time.monotonic() < end:
        time.sleep(0.2)
    return left


def state(pid: int) -> str:
    """Return the letter that Linux has for the state of a process, or nothing when there is no such
    process.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def descendants(pid: int) -> list[int]:
    """Return the processes that a process started, and those that these started, oldest first."""
    children = [
        int(word)
        for path in Path(f"/proc/{pid}/task").glob("*/children")
        for word in path.read_text().split()
    ]
    return [*children, *(each for child in children for each in descendants(child))]


if __name__ == "__main__":
    sys.exit(main())
