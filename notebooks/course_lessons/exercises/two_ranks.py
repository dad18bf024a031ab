"""Run a script as two ranks on this CPU, and see what each of them did."""

import importlib
import os
import socket
from functools import partial
from typing import Any

from course_lessons.exercises.frame import LIMIT_S
from course_lessons.exercises.sandbox import can_copy, in_processes


def run_two_ranks(script: str) -> list[dict[str, Any]]:
    """Run a training script as torchrun would start it twice, and return what each rank has in
    `seen` and `model`.

    Raises:
        RuntimeError: a rank failed.
    """
    # an optimizer imports it at its first use: here once, and not in each
    importlib.import_module("torch._dynamo")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ranks = [partial(_rank, script, rank, port) for rank in (0, 1)]
    said = in_processes(ranks, LIMIT_S, "fork" if can_copy() else "spawn")
    if failed := [report for report in said if not isinstance(report, dict)]:
        raise RuntimeError(failed[0] or "it ended before its last line")
    return said


def _rank(script: str, rank: int, port: int) -> dict[str, Any] | str:
    """Run the script in this process as one of two ranks, and return what it has, or its error in
    words.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # gloo greets on stdout
    place = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": 2,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    os.environ.update({name: str(value) for name, value in place.items()})
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(compile(script, "<your script>", "exec"), names)
        weights = (
            [weight.tolist() for weight in names["model"].parameters()] if "model" in names else []
        )
        return {"seen": names.get("seen", []), "weights": weights}
    except Exception as error:
        return f"{type(error).__name__}: {error}"
