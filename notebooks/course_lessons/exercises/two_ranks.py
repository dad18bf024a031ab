"""Run a script as two ranks on this CPU, and see what each of them did."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

LIMIT_S = 80.0  # two processes import torch first, perhaps on a busy machine
# What is run after the script's last line.
REPORT = """
import json
weights = [weight.tolist() for weight in model.parameters()] if "model" in globals() else []
with open(REPORT_FILE, "w") as file:
    json.dump({"seen": globals().get("seen", []), "weights": weights}, file)
"""


def run_two_ranks(script: str) -> list[dict[str, Any]]:
    """Run a training script as torchrun would start it twice.

    Returns:
        What each rank has in `seen`, and the weights of its `model`.

    Raises:
        RuntimeError: a rank failed, or was still running after `LIMIT_S` seconds.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with TemporaryDirectory() as folder:
        ranks = [_start(script, Path(folder), rank, port) for rank in (0, 1)]
        try:
            _wait(ranks)
        finally:
            for process in ranks:
                process.kill()
                process.wait()
        return [_report(Path(folder), rank) for rank in (0, 1)]


def _start(script: str, folder: Path, rank: int, port: int) -> "subprocess.Popen[bytes]":
    file = folder / f"rank{rank}.py"
    report = REPORT.replace("REPORT_FILE", repr(str(file.with_suffix(".json"))))
    file.write_text(f"{script}\n{report}", encoding="utf-8")
    variables = {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
    with open(file.with_suffix(".err"), "wb") as errors:
        return subprocess.Popen(
            [sys.executable, str(file)],
            env={**os.environ, **variables},
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )


def _wait(ranks: "list[subprocess.Popen[bytes]]") -> None:
    """Wait until both ranks have ended well, or one has failed: the other may wait for it."""
    end_s = time.monotonic() + LIMIT_S
    while any(process.poll() is None for process in ranks):
        if any(process.poll() for process in ranks):
            return
        if time.monotonic() > end_s:
            raise RuntimeError(f"it was still running after {LIMIT_S:g} seconds")
        time.sleep(0.02)


def _report(folder: Path, rank: int) -> dict[str, Any]:
    file = folder / f"rank{rank}.json"
    if file.exists():
        return json.loads(file.read_text(encoding="utf-8"))
    for each in (rank, 1 - rank):  # a rank that was killed while it waited says nothing
        errors = (folder / f"rank{each}.err").read_text(encoding="utf-8", errors="replace")
        for line in reversed(errors.splitlines()):
            if "Error" in line:
                raise RuntimeError(line.removeprefix(f"[rank{each}]: "))
    raise RuntimeError("it ended before its last line")
