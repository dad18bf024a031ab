"""torchrun in a cell of a notebook, with the lines that the ranks print."""

import os
import re
import socket
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from course_lessons.needs import NO_RANKS, no_copies, what_cells_need
from course_utils.lightning import calm_lightning, messages_to_stdout, trainer_kwargs

# Some ranks die of this race in PyTorch after their last line:
# https://github.com/pytorch/pytorch/issues/190489
DIED_AT_EXIT = "terminate called without an active exception"
# What torch 2.8 and 2.9 make Python 3.13 say in each process, and Lightning 2.6 torch 2.11.
OF_TORCH = "functools.partial will be a method descriptor"
OF_LIGHTNING = "`isinstance(treespec, LeafSpec)` is deprecated"
SHORT_S = 0.5  # below it, a time that is printed in tenths may be wrong by more than 10 %


def prepare() -> None:
    """Let cells begin with `%%needs ranks` or `%%needs copies`, and keep Lightning quiet.

    The folder for the scripts of the lesson is created.
    """
    Path("runs/lesson-3").mkdir(parents=True, exist_ok=True)
    what_cells_need(ranks=NO_RANKS, copies=no_copies())
    messages_to_stdout()
    calm_lightning()
    trainer_kwargs("cpu")  # settles the question of a TPU before the first Trainer asks it
    for message in ("This DataLoader will create", OF_TORCH, OF_LIGHTNING):
        warnings.filterwarnings("ignore", message=message)
    os.environ["PYTHON_COLORS"] = "0"  # errors of scripts are plain text, also on Python 3.13


@dataclass(frozen=True)
class Run:
    """The lines that the ranks of a script printed, sorted."""

    lines: tuple[str, ...]

    @property
    def epoch_s(self) -> float:
        """Seconds of the shortest epoch after the first, from lines that end like "3.2 s"."""
        times = [re.search(r"([\d.]+) s$", line) for line in self.lines if "epoch" in line]
        return min(float(time[1]) for time in times[1:] if time)

    def __repr__(self) -> str:
        return "\n".join(self.lines)


def compare_two(one: Run, two: Run) -> str:
    """Return how many times as fast two ranks were as one, as a sentence."""
    if min(one.epoch_s, two.epoch_s) < SHORT_S:
        return "The epochs are too short to compare: their times are printed in tenths of a second."
    return f"Two ranks are {one.epoch_s / two.epoch_s:.2f} times as fast as one."


def torchrun(*arguments: str, ranks: int = 2, threads: int = 1) -> Run:
    """Run `torchrun --nproc-per-node RANKS ARGUMENTS` and return what the ranks print.

    Args:
        *arguments: the script and its options.
        ranks: how many processes.
        threads: how many cores each of them uses.

    Raises:
        RuntimeError: a rank failed; with the end of its output.
    """
    options = ["--standalone", "--local-addr=127.0.0.1", f"--nproc-per-node={ranks}"]
    command = _command(*options, *arguments)
    environment = _environment(threads)
    for last in (False, True):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return _as_run(done.stdout)
        if last or DIED_AT_EXIT not in done.stderr:
            break
    raise RuntimeError(done.stderr[-2000:])


def torchrun_on_two_hosts(*arguments: str, ranks_each: int = 1) -> Run:
    """Start two agents of torchrun on this machine, as two hosts would, and return what they print.

    Raises:
        RuntimeError: a rank failed.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--nnodes=2", f"--nproc-per-node={ranks_each}", "--rdzv-backend=c10d"]
    options += [f"--rdzv-endpoint=127.0.0.1:{port}", "--local-addr=127.0.0.1"]
    hosts = []
    for _ in range(2):
        agent = subprocess.Popen(
            _command(*options, *arguments),
            env=_environment(threads=1),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        hosts.append(agent)
    try:
        outputs = [agent.communicate(timeout=300) for agent in hosts]
    finally:
        for agent in hosts:
            agent.terminate()
    lines = []
    for name, agent, (printed, errors) in zip("AB", hosts, outputs, strict=True):
        if agent.returncode and DIED_AT_EXIT not in errors:
            raise RuntimeError(errors[-2000:])
        lines += [f"host {name}: {line}" for line in _as_run(printed).lines]
        lines.append(f"host {name}: torchrun ended with status {agent.returncode}")
    return Run(tuple(lines))


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", *arguments]


def _environment(threads: int) -> dict[str, str]:
    quiet = f"{os.environ.get('PYTHONWARNINGS', '')},ignore:{OF_TORCH}".removeprefix(",")
    settings = {"OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": quiet}
    return {**os.environ, **settings}


def _as_run(output: str) -> Run:
    # Gloo announces its connections, sometimes two ranks in one line.
    lines = [line for line in output.splitlines() if "connected peer ranks" not in line]
    return Run(tuple(sorted(line for line in lines if line)))
