"""Start the processes of a run, listen to them, notice what goes wrong, and end every one of them."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from course_utils.launch.clusters import Cluster, find_cluster, restart_trouble
from course_utils.launch.lessons import check_lesson
from course_utils.launch.options import LaunchError, Options, count_ranks, trainer_arguments
from course_utils.launch.processes import died_by, end_group, free_port, is_free, only_one
from course_utils.launch.rank_link import SHOW_STACK, Mark, Marks
from course_utils.launch.run_result import RunResult
from course_utils.launch.switchboard import Switchboard
from course_utils.launch.verdict import Fault, RunError, describe_death, describe_faults, describe_silence
from course_utils.launch.view import View

START_UP_S = 120.0  # how long a rank may at least take until it begins to train
LAST_WORDS_S = 3.0  # how long the other ranks have to report after the first fault
ALONE = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR")


def launch(options: Options, view: View) -> RunResult | None:
    """Train a lesson and return what came of it.

    Args:
        options: what to train, where and how.
        view: shows the output of the ranks and the progress.

    Returns:
        The result, or None where another process has rank 0, which knows it.

    Raises:
        LaunchError: the request was refused, and nothing was trained.
        RunError: a rank raised, was killed, or fell silent.
        KeyboardInterrupt: the user stopped it. In each case every process has ended.
    """
    try:
        cluster = find_cluster(os.environ)
    except ValueError as error:
        raise LaunchError(str(error)) from None
    check_lesson(options.lesson)
    arguments = trainer_arguments(options, cluster)
    if cluster.kind != "none":
        view.note(f"{cluster.kind} ({cluster.found}): process {cluster.rank}, {arguments['num_nodes']} machines")
        if cluster.rank == 0 and (trouble := restart_trouble(os.environ)):
            view.note(trouble)
    out = Path(options.out)
    with contextlib.ExitStack() as stack:
        try:
            out.mkdir(parents=True, exist_ok=True)
            if cluster.rank == 0:
                stack.enter_context(only_one(out))
        except RuntimeError as error:
            raise LaunchError(str(error)) from None
        except OSError as error:
            raise LaunchError(f"--out {out} cannot be used: {error}. Choose a folder that you may write to.") from None
        return _launch_on_a_free_port(options, arguments, cluster, view)


def _launch_on_a_free_port(options: Options, arguments: dict, cluster: Cluster, view: View) -> RunResult | None:
    port = os.environ.get("MASTER_PORT", "")
    port = int(port) if port.isdigit() else free_port()
    for _ in range(3):
        if cluster.kind == "none" and not is_free(port):
            taken, port = port, free_port()
            view.note(f"port {taken} is taken by another program; the ranks meet at port {port}")
        with Run(options, arguments, cluster, port, view) as run:
            run.watch()
        # Between our look at the port and the first rank's use of it, another program can be faster.
        if cluster.kind != "none" or not any("EADDRINUSE" in fault.error for fault in run.faults):
            break
    return run.finish()


class Run:
    """One run of a lesson, from the start of its first process to the end of its last."""

    def __init__(self, options: Options, arguments: dict, cluster: Cluster, port: int, view: View):
        self.options, self.arguments, self.cluster, self.port, self.view = options, arguments, cluster, port, view
        self.faults: list[Fault] = []
        self.deaths: dict[str, int] = {}  # who died of itself -> exit status, or minus the signal
        self.ranks: dict[int, dict] = {}  # process id -> its hello
        self.told: dict = {}  # the last of each other event
        self.silence = ""
        self._held: list[tuple[str, str]] = []  # lines that came after the first fault
        self._first_fault_s = 0.0

    def __enter__(self) -> "Run":
        # A Unix socket has a path of at most about 100 characters.
        parent = "/tmp" if len(tempfile.gettempdir()) > 60 else None
        self._temporary = tempfile.TemporaryDirectory(prefix="launch-", dir=parent, ignore_cleanup_errors=True)
        self._folder = Path(self._temporary.name)
        self._here = count_ranks(self.arguments) // self.arguments["num_nodes"]
        self._marks = Marks(self._folder, create_for=max(64, self._here))
        self._switchboard = Switchboard(self._folder)
        self._start_s = time.time()
        self.process: subprocess.Popen | None = None
        return self

    def _start(self) -> None:
        what = [self.options.to_json(), json.dumps(self.arguments), str(self._folder)]
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "course_utils.launch.ranks", *what],
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                env=self._environment(),
                start_new_session=True,  # a group of its own, which can be ended as a whole
            )
        self._switchboard.add(ours, "main")

    def _environment(self) -> dict[str, str]:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "TMPDIR": str(self._folder)}
        if self.cluster.kind == "none":
            for name in ALONE:  # left over from another shell, they would make a rank wait for others for ever
                environment.pop(name, None)
            environment["MASTER_PORT"] = str(self.port)
        return environment

    def __exit__(self, *_) -> None:
        if self.process:
            end_group(self.process.pid)
            self.process.wait()
        for who, message in self._switchboard.hear_out():
            self._take(who, message)
        self.view.close()
        self._temporary.cleanup()

    def watch(self) -> None:
        """Start the run, and listen until it is over, or has nothing left to say after a fault."""
        self._start()
        while self.process.poll() is None and not self.silence:
            self._listen(0.1)
            self._look_for_the_dead()
            self._look_for_the_silent()
            self.view.steps(max(mark.step for mark in self._marks.read()))
            if self._first_fault_s and time.time() - self._first_fault_s > LAST_WORDS_S:
                return

    def _listen(self, patience_s: float) -> None:
        for who, message in self._switchboard.hear(patience_s):
            self._take(who, message)

    def _take(self, who: str, message: str | dict) -> None:
        if isinstance(message, str):
            if self._first_fault_s:
                self._held.append((who, message))
            else:
                self.view.line(who, message)
        elif "fault" in message:
            self._first_fault_s = self._first_fault_s or time.time()
            who = "the first process" if message["rank"] is None else f"rank {message['rank']}"
            self.faults.append(Fault(who, message["error"], message["fault"], message.get("late", False)))
        elif "killed" in message:
            self._bury(f"rank {message['killed']}", message["status"])
        elif "hello" in message:
            if "rank" in message["hello"]:
                self.ranks[message["hello"]["pid"]] = message["hello"]
        else:
            self._show(message)

    def _show(self, event: dict) -> None:
        self.told.update(event)
        if "start" in event:
            self.view.begin(**event["start"])
        elif "epoch" in event:
            self.view.epoch(event["epoch"], event["loss"])
        elif "resumed" in event:
            self.view.note(f"continuing after step {event['resumed']}")
        elif "already" in event:
            self.view.note(f"nothing to do: the checkpoint already has {event['already']} epochs")

    def _bury(self, who: str, status: int) -> None:
        # torch ends the ranks that are left with SIGTERM, so that this one says nothing about a cause.
        if status != -signal.SIGTERM:
            self._first_fault_s = self._first_fault_s or time.time()
            self.deaths.setdefault(who, status)

    def _look_for_the_dead(self) -> None:
        for pid, hello in self.ranks.items():
            if pid != self.process.pid and (number := died_by(pid)):
                self._bury(f"rank {hello['rank']}", -number)

    def _look_for_the_silent(self) -> None:
        marks = self._marks.read()
        mine = {hello["rank"]: marks[hello["local_rank"]] for hello in self.ranks.values()}
        missing = (1 if self.cluster.starts_the_ranks else self._here) - len(mine)
        # Imports on a busy machine take their time: a rank that has not begun to train may be silent for longer.
        begun = all(mark.count for mark in mine.values()) and missing <= 0
        limit = time.time() - max(self.options.timeout_s, 0 if begun else START_UP_S)
        # Ranks wait for each other: of those that stand still, the ones with the fewest signs of life are the cause.
        fewest = min((mark.count for mark in mine.values()), default=0)
        silent = {rank: mark for rank, mark in mine.items() if mark.count == fewest and mark.time < limit}
        if silent or (missing > 0 and self._start_s < limit):
            self._ask_for_stacks(silent)
            self.silence = describe_silence(silent, self.options.timeout_s, max(0, missing))

    def _ask_for_stacks(self, silent: dict[int, Mark]) -> None:
        for pid, hello in self.ranks.items():
            if hello["rank"] in silent:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, SHOW_STACK)
        for _ in range(5):
            self._listen(0.1)

    def finish(self) -> RunResult | None:
        """Return the result of the run, or raise what its processes told about its failure."""
        if "refusal" in self.told:
            raise LaunchError(self.told["refusal"])
        why = self._why()
        if why:
            for who, line in self._held:
                self.view.line(who, line)
            raise RunError(why)
        if "done" not in self.told:
            return None
        result = RunResult(
            lesson=self.options.lesson,
            strategy=self.options.strategy,
            ranks=count_ranks(self.arguments),
            checkpoint=str(Path(self.options.out) / "checkpoints" / "last.ckpt"),
            total_s=time.time() - self._start_s,
            **{name: tuple(part) if isinstance(part, list) else part for name, part in self.told["done"].items()},
        )
        try:
            (Path(self.options.out) / "result.json").write_text(result.to_json() + "\n")
        except OSError as error:
            self.view.note(f"the training is done, but its result.json could not be written: {error}")
        return result

    def _why(self) -> str:
        if self.silence:
            return self.silence
        status = self.process.returncode
        own = [hello["rank"] for pid, hello in self.ranks.items() if pid == self.process.pid]
        deaths = dict(self.deaths)
        faults = [fault for fault in self.faults if not fault.late] or self.faults
        if status and not deaths and not faults:
            deaths[f"rank {own[0]}" if own else "the first process"] = status
        # A rank that aborts after another has raised only shows that the other is gone.
        if deaths and not (faults and set(deaths.values()) <= {-signal.SIGABRT}):
            who, status = next(iter(deaths.items()))
            return describe_death(who, status, max(mark.step for mark in self._marks.read()))
        if faults:
            for line in faults[0].traceback.rstrip().splitlines():
                self.view.line(faults[0].who, line)
            return describe_faults(faults)
        return ""
