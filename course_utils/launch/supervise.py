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
from dataclasses import asdict
from pathlib import Path
from typing import Any

from course_utils.launch.clusters import Cluster, find_cluster, restart_trouble
from course_utils.launch.lessons import check_lesson
from course_utils.launch.lines import Lines
from course_utils.launch.link import SHOW_STACK, Heartbeats
from course_utils.launch.messages import Fault, LaunchError, RunError, describe_death, describe_faults, describe_silence
from course_utils.launch.options import Options, count_ranks, trainer_arguments
from course_utils.launch.processes import end_group, exit_status, only_one, start_guard
from course_utils.launch.run_result import RunResult
from course_utils.launch.view import View

START_UP_S = 120.0  # how long a rank may at least take until it begins to train
REPORT_S = 3.0  # how long the other processes have to report after the first fault
END_S = 10.0  # how long the processes have to end after the training, whatever the lesson has left running
LEFT_OVER = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR")


def launch(options: Options, view: View) -> RunResult | None:
    """Train a lesson, show what its processes print, and end every one of them, whatever happens.

    Returns:
        The result, or None where another process has rank 0, which knows it.

    Raises:
        LaunchError: the request was refused, and nothing was trained.
        RunError: a rank raised, was killed, or fell silent.
    """
    cluster = find_cluster(os.environ)
    check_lesson(options.lesson)
    arguments = trainer_arguments(options, cluster)
    if cluster.kind != "none":
        view.note(f"{cluster.kind} ({cluster.found}): process {cluster.rank}, {arguments['num_nodes']} machines")
        if cluster.rank == 0 and (trouble := restart_trouble(os.environ)):
            view.note(trouble)
    out = Path(options.out)
    with contextlib.ExitStack() as stack:
        try:
            if not options.out:
                raise OSError("that is the name of no folder")
            out.mkdir(parents=True, exist_ok=True)
            if cluster.rank == 0:
                stack.enter_context(only_one(out))
        except OSError as error:
            raise LaunchError(
                f"--out {options.out or repr('')} cannot be used: {error}. Choose a folder that you may write to."
            ) from None
        return _launch_on_a_free_port(options, arguments, cluster, view)


def _launch_on_a_free_port(options: Options, arguments: dict, cluster: Cluster, view: View) -> RunResult | None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if cluster.kind == "none":
        for name in LEFT_OVER:  # from another shell: a rank would wait for others that nobody starts
            environment.pop(name, None)
    for _ in range(3):
        with Run(options, arguments, cluster, view, environment) as run:
            run.watch()
        if cluster.kind != "none" or not any("EADDRINUSE" in fault.error for fault in run.faults):
            break
        port = environment.pop("MASTER_PORT", "of the ranks")  # without one, Lightning looks for a free port
        view.note(f"port {port} is taken by another program; trying another one")
    return run.finish()


class Run:
    """One run of a lesson, from the start of its first process to the end of its last."""

    def __init__(self, options: Options, arguments: dict, cluster: Cluster, view: View, environment: dict[str, str]):
        self.options, self.arguments, self.view = options, arguments, view
        self.faults: list[Fault] = []
        self._environment = environment
        self._expected = 1 if cluster.starts_the_ranks else count_ranks(arguments) // arguments["num_nodes"]
        self._knows_result = cluster.rank == 0
        self._deaths: dict[str, int] = {}  # who ended early -> exit status (0 while unknown), or minus the signal
        self._ranks: dict[int, dict] = {}  # process id -> its hello
        self._finished: set[str] = set()  # the ranks that have trained to the end
        self._events: dict[str, Any] = {}  # the last of each other event
        self._silence = ""
        self._held: list[tuple[str, str]] = []  # lines that came after the first fault
        self._fault_s = self._finish_s = float("inf")  # when the first fault came, and when the last rank finished

    def __enter__(self) -> "Run":
        # A Unix socket has a path of at most about 100 characters.
        parent = "/tmp" if len(tempfile.gettempdir()) > 60 else None
        self._temporary = tempfile.TemporaryDirectory(prefix="launch-", dir=parent, ignore_cleanup_errors=True)
        folder = Path(self._temporary.name)
        self._heartbeats = Heartbeats(folder, create_for=max(64, self._expected))
        self._lines = Lines(folder)
        self._start_s = time.monotonic()
        with contextlib.ExitStack() as stack:
            stack.push(self.__exit__)
            ours, theirs = socket.socketpair()
            self._lines.add(ours, "main")
            self.process = self._guard = None
            with theirs:
                words = [json.dumps(asdict(self.options)), json.dumps(self.arguments), str(folder)]
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "course_utils.launch.ranks", *words],
                    stdin=subprocess.DEVNULL,
                    stdout=theirs,
                    stderr=theirs,
                    env={**self._environment, "TMPDIR": str(folder)},
                    start_new_session=True,  # a group of its own, which can be ended as a whole
                )
            self._guard = start_guard(self.process.pid, folder)
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process:
            end_group(self.process.pid)
            self.process.wait()
        if self._guard:
            self._guard.kill()
            self._guard.communicate()
        for who, message in self._lines.close():
            self._take(who, message)
        self.view.close()
        self._temporary.cleanup()

    def watch(self) -> None:
        """Listen until the run is over, or has nothing left to report after a fault."""
        while self.process.poll() is None and not self._silence:
            self._listen(0.1)
            for pid, hello in self._ranks.items():
                if pid != self.process.pid and (status := exit_status(pid)):
                    self._note_death(f"rank {hello['rank']}", status)
            self._look_for_silence()
            self.view.steps(self._step())
            now = time.monotonic()
            if now > self._fault_s + REPORT_S or now > self._finish_s + END_S:
                return

    def _step(self) -> int:
        return max(beat.step for beat in self._heartbeats.read())

    def _listen(self, wait_s: float) -> None:
        for who, message in self._lines.read(wait_s):
            self._take(who, message)

    def _take(self, who: str, message: str | dict) -> None:
        if isinstance(message, str):
            if self.faults or self._deaths:
                self._held.append((who, message))
            else:
                self.view.line(who, message)
        elif "fault" in message:
            who = "the first process" if message["rank"] is None else f"rank {message['rank']}"
            self.faults.append(Fault(who, message["error"], message["fault"], message.get("indirect", False)))
            self._fault_s = min(self._fault_s, time.monotonic())
        elif "died" in message:
            self._note_death(f"rank {message['died']}", message["status"])
        elif "closed" in message:
            if who.startswith("rank") and who not in {*self._finished, self._first()} and not self.faults:
                self._note_death(who, 0)
        elif "hello" in message:
            if "rank" in message["hello"]:
                self._ranks[message["hello"]["pid"]] = message["hello"]
        elif "finished" in message:
            self._finished.add(who)
            if len(self._finished) >= self._expected:
                self._finish_s = time.monotonic()
        else:
            self._show(message)

    def _show(self, event: dict) -> None:
        self._events.update(event)
        if "resumed" in event:
            self.view.note(f"continuing after step {event['resumed']}")
        elif "already" in event:
            self.view.note(f"all {event['already']} epochs were trained before: nothing to do")
        elif "start" in event:
            self.view.begin(**event["start"])
        elif "epoch" in event:
            self.view.epoch(event["epoch"], event["loss"])

    def _note_death(self, who: str, status: int) -> None:
        # multiprocessing ends the others with SIGTERM after one has failed: those are a consequence, not a cause.
        if (status != -signal.SIGTERM or who in self._deaths) and who not in self._finished:
            self._deaths[who] = self._deaths.get(who) or status
            self._fault_s = min(self._fault_s, time.monotonic())

    def _look_for_silence(self) -> None:
        beats = self._heartbeats.read()
        training = {hello["rank"]: beats[hello["local_rank"]] for hello in self._ranks.values()
                    if f"rank {hello['rank']}" not in self._finished}  # fmt: skip
        missing = max(0, self._expected - len(self._ranks))
        # Imports on a busy machine take their time: a rank that has not begun to train may be silent for longer.
        begun = all(beat.count for beat in training.values()) and not missing
        limit_s = max(self.options.timeout_s, 0 if begun else START_UP_S)
        latest_s = time.monotonic() - limit_s
        # Ranks wait for each other: of those that stand still, the ones with the fewest signs of life are the cause.
        fewest = min((beat.count for beat in training.values()), default=0)
        silent = {rank: beat for rank, beat in training.items() if beat.count == fewest and beat.time_s < latest_s}
        if silent or (missing and self._start_s < latest_s):
            self._silence = describe_silence(silent, limit_s, missing)
            self._ask_for_stacks(silent)

    def _ask_for_stacks(self, ranks: Any) -> None:
        for pid, hello in self._ranks.items():
            if hello["rank"] in ranks:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, SHOW_STACK)
        for _ in range(5):
            self._listen(0.1)

    def finish(self) -> RunResult | None:
        """Return the result of the run, or raise why it failed."""
        if "refusal" in self._events:
            raise LaunchError(self._events["refusal"])
        checkpoint = Path(self.options.out) / "checkpoints" / "last.ckpt"
        if why := self._cause():
            for who, line in self._held:
                self.view.line(who, line)
            raise RunError(why + f" {checkpoint} is whole: --resume continues from it." * checkpoint.exists())
        if "done" not in self._events:
            return None
        result = RunResult(
            lesson=self.options.lesson,
            strategy=self.options.strategy,
            ranks=count_ranks(self.arguments),
            checkpoint=str(checkpoint),
            total_s=time.monotonic() - self._start_s,
            **{name: tuple(part) if isinstance(part, list) else part for name, part in self._events["done"].items()},
        )
        try:
            (Path(self.options.out) / "result.json").write_text(result.to_json() + "\n")
        except OSError as error:
            self.view.note(f"the training is done, but its result.json could not be written: {error}")
        return result

    def _first(self) -> str:
        """Return what to call the first process, which may be a rank itself."""
        hello = self._ranks.get(self.process.pid)
        return f"rank {hello['rank']}" if hello else "the first process"

    def _cause(self) -> str:
        if self._silence:
            return self._silence
        status = self.process.returncode
        done = "done" in self._events or (self._finished and not self._knows_result)
        deaths = dict(self._deaths)
        faults = [fault for fault in self.faults if not fault.indirect] or self.faults
        if not deaths and not faults and (not done or (status and not self._finished)):
            deaths[self._first()] = status
        # A rank that aborts after another has raised only shows that the other is gone.
        if deaths and not (faults and set(deaths.values()) <= {-signal.SIGABRT}):
            consequences = (0, -signal.SIGTERM)
            who = next((who for who, status in deaths.items() if status not in consequences), next(iter(deaths)))
            return describe_death(who, deaths[who], self._step())
        for line in faults[0].traceback.rstrip().splitlines() if faults else ():
            self.view.line(faults[0].who, line)
        return describe_faults(faults) if faults else ""
