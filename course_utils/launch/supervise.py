"""Start the processes of a run, listen to them, notice what goes wrong, and end every one of them."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Any

from course_utils.launch.clusters import Cluster, find_cluster
from course_utils.launch.lessons import check_lesson
from course_utils.launch.link import Lines, show_stack
from course_utils.launch.messages import (
    Fault,
    Heartbeat,
    LaunchError,
    RunError,
    describe_death,
    describe_faults,
    describe_silence,
    is_out_of_memory,
)
from course_utils.launch.options import CHECKPOINT, Options, count_ranks, trainer_arguments
from course_utils.launch.processes import exit_status, group_members, only_one, process_group, write_whole
from course_utils.launch.view import RunResult, View

START_UP_S = 120.0  # how long a rank may at least take until it begins to train
ESTIMATE_S = 20.0  # how much longer where memory ran out: they estimate what the step needs
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
        where = f"process {cluster.rank}, {arguments['num_nodes']} machines"
        view.line("launch", f"{cluster.kind} ({cluster.found}): {where}")
    with ExitStack() as stack:
        try:
            if not options.out:
                raise OSError("a folder needs a name")
            Path(options.out).mkdir(parents=True, exist_ok=True)
            if cluster.rank == 0:
                stack.enter_context(only_one(Path(options.out)))
        except (OSError, ValueError) as error:
            why = f"--out {options.out!r} cannot be used: {error}. Choose a folder that you may write to."
            raise LaunchError(why) from None
        return _launch_on_a_free_port(options, arguments, cluster, view)


def _launch_on_a_free_port(options: Options, arguments: dict, cluster: Cluster, view: View) -> RunResult | None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if cluster.kind == "none":
        for name in LEFT_OVER:  # from another shell: a rank would wait for others that nobody starts
            environment.pop(name, None)
    for _ in range(3):
        run = Run(options, arguments, cluster, view)
        run.watch(environment)
        if cluster.kind != "none" or not any("EADDRINUSE" in fault.error for fault in run.faults):
            break
        port = environment.pop("MASTER_PORT", "of the ranks")  # without it, Lightning looks for a free port
        view.line("launch", f"port {port} is taken by another program: the ranks will meet at another one")
    return run.finish()


class Run:
    """One run of a lesson, from the start of its first process to the end of its last."""

    process: subprocess.Popen

    def __init__(self, options: Options, arguments: dict, cluster: Cluster, view: View):
        self.options, self.arguments, self.view = options, arguments, view
        self.faults: list[Fault] = []
        self._expected = 1 if cluster.starts_the_ranks else count_ranks(arguments) // arguments["num_nodes"]
        self._has_rank_0 = cluster.rank == 0
        self._deaths: dict[str, int] = {}  # who ended early -> exit status (0 while unknown), or minus the signal
        self._pids: dict[str, int] = {}  # "rank 0" -> its process id
        self._beats: dict[str, Heartbeat] = {}  # of the ranks that have not finished
        self._finished: set[str] = set()  # the ranks that have trained to the end
        self._events: dict[str, Any] = {}  # the last of each other event
        self._loading: dict[int, float] = {}  # process that is in the lesson's file or function -> since when
        self._stopped: dict[int, float] = {}  # process that a signal has stopped before it trained -> since when
        self._limit_bytes = resource.getrlimit(resource.RLIMIT_AS)[0]
        self._silence, self._step, self._look_s = "", 0, 0.0
        self._held: list[tuple[str, str]] = []  # lines that came after the first fault
        self._start_s, self._fault_s, self._finish_s = time.monotonic(), inf, inf

    def watch(self, environment: dict[str, str]) -> None:
        """Start the processes, and listen until the run is over, or has nothing left to report after a fault."""
        # A Unix socket has a path of at most about 100 characters.
        parent = "/tmp" if len(tempfile.gettempdir()) > 60 else None
        place = tempfile.TemporaryDirectory(prefix="launch-", dir=parent, ignore_cleanup_errors=True)
        with place as folder, closing(self.view):
            self._lines = Lines(Path(folder))
            ours, theirs = socket.socketpair()
            self._lines.add(ours, "main")
            words = [json.dumps(asdict(self.options)), json.dumps(self.arguments), folder]
            ranks = "sharded" if self.arguments["strategy"] == "fsdp" else "ranks"
            command = [sys.executable, "-m", f"course_utils.launch.{ranks}", *words]
            environment = {**environment, "TMPDIR": folder}
            try:
                streams = {"stdout": theirs, "stderr": theirs}
                with process_group(command, Path(folder), env=environment, **streams) as self.process:
                    theirs.close()
                    self._watch()
            finally:
                theirs.close()
                for who, message in self._lines.close():
                    self._take(who, message)

    def _watch(self) -> None:
        while self.process.poll() is None and not self._silence:
            self._listen(0.1)
            for who, pid in self._pids.items():
                if pid != self.process.pid and (status := exit_status(pid)):
                    self._note_death(who, status)
            self._look_for_silence()
            self.view.steps(self._step)
            now = time.monotonic()
            if now > self._fault_s + REPORT_S or now > self._finish_s + END_S:
                break
        if self._first() in self._deaths and (status := self.process.poll()) is not None:
            self._deaths[self._first()] = status

    def _listen(self, wait_s: float) -> None:
        for who, message in self._lines.read(wait_s):
            self._take(who, message)

    def _take(self, who: str, message: str | dict) -> None:
        match message:
            case str() if self.faults or self._deaths or self._may_lack_room():
                self._held.append((who, message))
            case str():
                self.view.line(who, message)
            case {"step": step, "where": where} if who in self._beats:
                self._step = max(self._step, step)
                self._beats[who] = Heartbeat(time.monotonic(), self._beats[who].number + 1, step, where)
            case {"fault": text, "error": error, "rank": rank}:
                name = "the first process" if rank is None else f"rank {rank}"
                self.faults.append(Fault(name, error, text, "indirect" in message))
                later_s = ESTIMATE_S if is_out_of_memory(error) else 0.0
                self._fault_s = min(self._fault_s, time.monotonic() + later_s)
            case {"died": rank, "status": status}:
                self._note_death(f"rank {rank}", status, told=True)
            case {"closed": True} if who in self._beats and not self.faults:
                self._note_death(who, 0)
            case {"hello": {"rank": _, "pid": pid}}:
                self._pids[who] = pid
                self._beats.setdefault(who, Heartbeat(time.monotonic()))
            case {"loading": pid}:
                self._loading[pid] = time.monotonic()
            case {"loaded": pid}:
                self._loading.pop(pid, None)
            case {"finished": True}:
                self._beats.pop(who, None)
                self._finished.add(who)
                self._finish_s = time.monotonic() if len(self._finished) >= self._expected else inf
            case _:
                self._show(message)

    def _show(self, event: dict) -> None:
        self._events.update(event)
        if "resumed" in event:
            self.view.line("launch", f"continuing after step {event['resumed']}")
        elif "already" in event:
            self.view.line("launch", f"all {event['already']} epochs were trained before: nothing to do")
        elif "start" in event:
            self.view.begin(**event["start"])
        elif "epoch" in event:
            self.view.epoch(event["epoch"], event["loss"])

    def _may_lack_room(self) -> bool:
        """Say whether the first process has yet to import torch, in a shell that limits its address space."""
        return self._limit_bytes != resource.RLIM_INFINITY and "hello" not in self._events and not self._pids

    def _note_death(self, who: str, status: int, told: bool = False) -> None:
        # multiprocessing ends the others with SIGTERM after one has failed: those are a consequence, not a cause. The
        # one of which it tells is the cause.
        if who not in self._finished and (told or status != -signal.SIGTERM or who in self._deaths):
            self._deaths[who] = self._deaths.get(who) or status
            self._fault_s = min(self._fault_s, time.monotonic())

    def _look_for_silence(self) -> None:
        missing = max(0, self._expected - len(self._pids))
        # Imports on a busy machine take their time: a rank that has not begun to train may be silent for longer.
        begun = all(beat.number for beat in self._beats.values()) and not missing
        limit_s = max(self.options.timeout_s, 0 if begun else START_UP_S)
        latest_s = time.monotonic() - limit_s
        stuck = self._stuck() if limit_s > self.options.timeout_s else {}
        if stuck:
            self._silence = describe_silence(stuck, self.options.timeout_s, 0)
            for pid in self._loading:
                show_stack(pid)
        # Ranks wait for each other: of those that stand still, the ones with the fewest signs of life are the cause.
        fewest = min((beat.number for beat in self._beats.values()), default=0)
        silent = {who: beat for who, beat in self._beats.items() if beat.number == fewest and beat.time_s < latest_s}
        if silent or (missing and self._start_s < latest_s):
            self._silence = describe_silence(silent, limit_s, missing)
            for who in silent:
                show_stack(self._pids[who])
        for _ in range(5 * bool(self._silence)):
            self._listen(0.1)

    def _stuck(self) -> dict[str, Heartbeat]:
        """Return what --timeout ends before any rank trains: a lesson that does not load, or a stopped process."""
        now = time.monotonic()
        if now > self._look_s:
            self._look_s = now + 1
            stopped = group_members(self.process.pid, stopped=True)
            self._stopped = {pid: self._stopped.get(pid, now) for pid in stopped}
        waits = [(self._stopped, "a signal has stopped it"), (self._loading, "it is loading the lesson")]
        latest_s = now - self.options.timeout_s
        return {
            f"process {pid}": Heartbeat(since_s, where=where)
            for times, where in waits
            for pid, since_s in times.items()
            if since_s < latest_s
        }

    def finish(self) -> RunResult | None:
        """Return the result of the run, or raise why it failed."""
        if "refusal" in self._events:
            raise LaunchError(self._events["refusal"])
        if self._may_lack_room() and not self._silence:
            why = f"this shell allows a process {self._limit_bytes / 1e9:.1f} GB of addresses (`ulimit -v`)"
            last = self._held[-1][1] if self._held else "nothing"
            advice = "Write `ulimit -v unlimited` before, or ask your administrator."
            raise LaunchError(f"{why}, and torch could not be imported, which said: {last}. {advice}")
        checkpoint = Path(self.options.out) / CHECKPOINT
        if why := self._cause():
            for who, line in self._held:
                self.view.line(who, line)
            why += f"{'' if why.endswith('.') else '.'} {self._events['memory']}" if "memory" in self._events else ""
            raise RunError(why + " The last checkpoint is whole: --resume continues from it." * checkpoint.exists())
        if "done" not in self._events:
            return None
        parts: Any = {
            name: tuple(part) if isinstance(part, list) else part for name, part in self._events["done"].items()
        }
        parts |= {"ranks": count_ranks(self.arguments), "total_s": time.monotonic() - self._start_s}
        result = RunResult(self.options.lesson, self.options.strategy, checkpoint=str(checkpoint), **parts)
        try:
            write_whole(Path(self.options.out) / "result.json", f"{result.to_json()}\n".encode())
        except OSError as error:
            self.view.line("launch", f"the training is done, but its result.json could not be written: {error}")
        return result

    def _first(self) -> str:
        names = {pid: who for who, pid in self._pids.items()}
        return names.get(self.process.pid, "the first process")  # which may be a rank itself

    def _cause(self) -> str:
        """Return why the run failed, or "" if it did not."""
        if self._silence:
            return self._silence
        # A rank that has reported what it raised then ends with a status above 0, which says nothing new.
        raised = {fault.who for fault in self.faults}
        deaths = {who: status for who, status in self._deaths.items() if status < 0 or who not in raised}
        status = self.process.returncode
        faults = [fault for fault in self.faults if not fault.indirect] or self.faults
        done = "done" in self._events or (self._finished and not self._has_rank_0)
        if not deaths and not faults and (not done or (status and not self._finished)):
            deaths[self._first()] = status
        # A rank that aborts after another has raised only shows that the other is gone.
        if deaths and not (faults and set(deaths.values()) <= {-signal.SIGABRT}):
            causes = [who for who, status in deaths.items() if status not in (0, -signal.SIGTERM)]
            who = [*causes, *deaths][0]
            return describe_death(who, deaths[who], self._step)
        for line in faults[0].traceback.rstrip().splitlines() if faults else ():
            self.view.line(faults[0].who, line)
        return describe_faults(faults) if faults else ""
