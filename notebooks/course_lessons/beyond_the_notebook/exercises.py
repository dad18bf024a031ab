"""The exercises of lesson 4: a script that starts processes, and the ranks of a cluster."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import Wrong, expect, number_of, quote

BROKEN = """\
import multiprocessing


def start():
    def train(rank, ranks):
        print(f"rank {rank} of {ranks}\\n", end="", flush=True)

    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=train, args=(rank, 2)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


start()
"""
# Lies beside the script as sitecustomize.py, which Python imports before it. "forkserver" passes:
# its copies are made by a process that has done nothing else.
NO_FORK = """\
import multiprocessing.popen_fork


def _launch(self, process):
    raise RuntimeError("COPIED")


multiprocessing.popen_fork.Popen._launch = _launch
"""
LIMIT_S = 60
MACHINES, GPUS, BATCH, RANK = 3, 4, 1536, 6


@exercise(
    "Run the script as it is, and read the last line of the error. Repair that, and run it again.",
    "A new process finds `train` by its name in the file, so it cannot lie inside `start`; "
    'and `start()` belongs under `if __name__ == "__main__":`.',
    solution='''
        my_script = """
        import multiprocessing


        def train(rank, ranks):
            print(f"rank {rank} of {ranks}\\\\n", end="", flush=True)


        def start():
            context = multiprocessing.get_context("spawn")
            processes = [context.Process(target=train, args=(rank, 2)) for rank in range(2)]
            for process in processes:
                process.start()
            for process in processes:
                process.join()


        if __name__ == "__main__":
            start()
        """
    ''',
    right="The same two rules hold for the workers of a DataLoader on a Mac and on Windows, where "
    "they are spawned.",
)
def guard(answer: Any) -> Mistakes:
    """Set `my_script` to the text of `ex.BROKEN`, repaired so that both ranks print their line."""
    expect(answer, str, "the text of the script")
    imported, _ = _run(answer, "-c", "import train")
    printed, errors = _run(answer, "train.py")
    yield (
        _of_ranks(imported),
        "The script starts its processes when it is only imported. A spawned process imports it.",
    )
    yield (
        "COPIED" in errors,
        'A forked process is a copy of this one, and CUDA does not survive that: keep "spawn".',
    )
    yield (
        "bootstrapping phase" in errors,
        "A child that imports the script comes to the line that starts children.",
    )
    yield (
        "local object" in errors or "pickle" in errors.lower(),
        "A new process gets the name of a function and looks it up in the file. A function inside "
        "another one cannot be found there.",
    )
    last = (errors.strip().splitlines() or ["no error"])[-1]
    yield (
        _of_ranks(printed) != ["rank 0 of 2", "rank 1 of 2"],
        f"The script should print a line for each of two ranks, but it printed "
        f"{quote(printed or 'nothing')} ({quote(last)}).",
    )


def _of_ranks(printed: list[str]) -> list[str]:
    """Return the lines of ranks, without those that a script prints at its top, for example."""
    return [line for line in printed if line.startswith("rank ")]


def _run(script: str, *arguments: str) -> tuple[list[str], str]:
    """Return the lines that a script printed, sorted, and its errors."""
    with TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(script, encoding="utf-8")
        if os.name == "posix":
            Path(folder, "sitecustomize.py").write_text(NO_FORK, encoding="utf-8")
        try:
            done = subprocess.run(
                [sys.executable, *arguments],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": folder},
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            raise Wrong(f"The script has not ended after {LIMIT_S} seconds.") from None
    return sorted(line for line in done.stdout.splitlines() if line), done.stderr


@exercise(
    "The ranks of the first machine are 0 to 3, and those of the second go on from there.",
    f"The world size is {MACHINES} * {GPUS}, `--batch` is the global batch, and the local rank "
    f"starts again from 0 on each machine.",
    solution="""
        machines, gpus, batch, rank = 3, 4, 1536, 6
        my_numbers = machines * gpus, batch // (machines * gpus), rank % gpus
    """,
    right="If a fourth machine joins and `--batch` stays, each rank has less work between two "
    "exchanges: lesson 3 says what that costs.",
)
def places(answer: Any) -> Mistakes:
    """Set `my_numbers` to the world size, the samples of one rank in a step, and the local rank of
    rank 6.
    """
    expect(answer, tuple | list, "three numbers")
    if len(answer) != 3:
        raise Wrong(f"These should be three numbers, but there are {len(answer)}.")
    names = ("the world size", "the samples of a rank", "the local rank")
    found = [number_of(value, name) for value, name in zip(answer, names, strict=True)]
    ranks, samples, local_rank = found
    yield ranks != MACHINES * GPUS, "The world size counts the ranks of all machines."
    yield (
        samples == BATCH,
        "`--batch` is the global batch of train_ddp.py: the ranks share it.",
    )
    yield samples != BATCH / (MACHINES * GPUS), "All ranks together have `--batch` in a step."
    yield (
        local_rank != RANK % GPUS,
        "The local rank is the number of the GPU in its own machine, and starts from 0 on each.",
    )
