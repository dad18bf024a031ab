"""Run a script as two ranks on this CPU, and see what each of them did."""

import json
import multiprocessing
import os
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException, spawn

from course_utils.launch.rendezvous import open_rendezvous


def run_two_ranks(script: str) -> list[dict[str, Any]]:
    """Run a training script as torchrun would start it twice.

    Returns:
        What each rank has in `seen`, and the weights of its `model`.

    Raises:
        RuntimeError: a rank failed.
    """
    try:
        _store, address = open_rendezvous()  # held until both have ended
    except ConnectionError as error:
        raise RuntimeError(str(error)) from None
    earlier = set(multiprocessing.active_children())
    with TemporaryDirectory() as folder:
        try:
            ranks = spawn(_run_rank, (script, address, folder), nprocs=2, join=False)
            while not ranks.join(timeout=1):
                pass
        except ProcessRaisedException as error:
            raise RuntimeError(str(error).strip().splitlines()[-1]) from None
        except ProcessExitedException:
            raise RuntimeError("it ended before its last line") from None
        finally:  # also when the reader stops the check, be it while the ranks start
            for process in set(multiprocessing.active_children()) - earlier:
                process.kill()
        reports = [Path(folder, f"{rank}.json").read_text(encoding="utf-8") for rank in (0, 1)]
    return [json.loads(report) for report in reports]


def _run_rank(rank: int, script: str, address: dict[str, str], folder: str) -> None:
    """Run the script in this process, and leave a report in the folder."""
    threading.Thread(target=_end_with_the_kernel, daemon=True).start()
    os.environ.update(address, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")
    torch.set_num_threads(1)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(script, "<your script>", "exec"), names)
    parameters = names["model"].parameters() if "model" in names else []
    report = {"seen": names.get("seen", []), "weights": [each.tolist() for each in parameters]}
    Path(folder, f"{rank}.json").write_text(json.dumps(report), encoding="utf-8")


def _end_with_the_kernel() -> None:
    """End this rank when its kernel has ended, even if that was killed while the rank started."""
    if kernel := multiprocessing.parent_process():
        kernel.join()
    os._exit(1)
