"""Run a script as two ranks on this CPU, and see what each of them did."""

import importlib
import multiprocessing
import os
import socket
import warnings
from multiprocessing.connection import Connection
from typing import Any

import torch

from course_utils.exercises.sandbox import FORKS


def run_two_ranks(script: str) -> list[dict[str, Any]]:
    """Run a training script as torchrun would start it twice, and return what each rank has in `seen` and `model`.

    Raises:
        RuntimeError: a rank failed.
    """
    # Copies of this process know PyTorch already; where none can be made, new ones import it.
    importlib.import_module("torch._dynamo")  # an optimizer imports it at its first use: here once, and not in each
    copies = FORKS and not torch.cuda.device_count()  # PyTorch started a thread for a GPU, which a copy would lack
    context: Any = multiprocessing.get_context("fork" if copies else "spawn")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pipes = [context.Pipe(duplex=False) for _ in (0, 1)]
    ranks = [context.Process(target=_rank, args=(script, rank, port, pipes[rank][1]), daemon=True) for rank in (0, 1)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, which warns of threads and forks
            for rank in ranks:
                rank.start()
        for _, end in pipes:
            end.close()  # so that a rank that ends without a word closes its pipe
        said = [pipe.recv() for pipe, _ in pipes]
    except EOFError:
        raise RuntimeError("it ended before its last line") from None
    finally:
        for rank in ranks:
            if rank.pid:
                rank.kill()
                rank.join()
    if failed := [report for report in said if isinstance(report, str)]:
        raise RuntimeError(failed[0])
    return said


def _rank(script: str, rank: int, port: int, pipe: Connection) -> None:
    """Run the script in this process as one of two ranks, and send what it has, or its error in words."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # gloo greets on stdout
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in place.items()})
    torch.set_num_threads(1)
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(compile(script, "<your script>", "exec"), names)
        pipe.send({"seen": names["seen"], "weights": [weight.tolist() for weight in names["model"].parameters()]})
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
