"""What lesson 3 needs beside the helper package: its pictures, the cores to share out, the
estimate, and torchrun.
"""

import os
import subprocess
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from course_lessons.exercises.progress import progress
from course_lessons.multi_gpu.pictures import draw_all_reduce, draw_gains
from course_lessons.needs import NO_RANKS, no_copies, what_cells_need
from course_utils.devices import usable_cores
from course_utils.estimate.counting import count_work
from course_utils.estimate.parallel import scaling
from course_utils.lightning import QUIET, calm_lightning, messages_to_stdout, trainer_kwargs
from course_utils.timeline.record import Timeline

OUT = Path("runs") / "lesson-3"
_here = ",".join(map(str, range(torch.cuda.device_count())))
# for scripts: `set_up` hides them here
GPUS = {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", _here)}
# https://github.com/pytorch/pytorch/issues/190489
DIED_AT_EXIT = "terminate called without an active exception"


def set_up() -> Path:
    """Make the folder of the scripts and return it, and keep messages that are not theirs out of
    the output.

    Cells may then begin with `%%needs ranks` or `%%needs copies`, which are copies of the kernel.
    """
    # Where PyTorch sees a GPU, the first backward pass starts a thread for it, and no copy of this
    # process can train.
    # https://github.com/pytorch/pytorch/wiki/Autograd-and-Fork
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    what_cells_need(ranks=NO_RANKS, copies=no_copies())
    OUT.mkdir(parents=True, exist_ok=True)
    messages_to_stdout()
    calm_lightning()
    trainer_kwargs("cpu")  # settles the question of a TPU before the first Trainer asks it
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    # scripts show their errors as plain text, also on Python 3.13
    os.environ["PYTHON_COLORS"] = "0"
    torch.set_num_threads(1)
    return OUT


def torchrun(script: str, ranks: int = 2, threads: int = 1, *, tries: int = 2) -> list[str]:
    """Run `torchrun --nproc-per-node=RANKS` on a script in `OUT`, and return the lines that its
    ranks print, sorted. Ranks that a race in PyTorch kills when they have finished (`DIED_AT_EXIT`)
    run again.

    Raises:
        RuntimeError: a rank failed; the end of what torchrun says of it.
    """
    with TemporaryDirectory() as logs:  # a file for each rank, so that no two write into one line
        run = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--local-addr=127.0.0.1",
        ]
        options = [
            f"--nproc-per-node={ranks}",
            "--redirects=1",
            f"--log-dir={logs}",
            str(OUT / script),
        ]
        settings = {**os.environ, **GPUS, "OMP_NUM_THREADS": str(threads)}
        if (
            done := subprocess.run(
                [*run, *options], stderr=subprocess.PIPE, text=True, env=settings
            )
        ).returncode:
            if tries > 1 and DIED_AT_EXIT in done.stderr:
                return torchrun(script, ranks, threads, tries=tries - 1)
            raise RuntimeError(done.stderr[-2000:])
        lines = [
            line for log in Path(logs).rglob("stdout.log") for line in log.read_text().splitlines()
        ]
    return sorted(line for line in lines if not line.startswith("[Gloo]"))
