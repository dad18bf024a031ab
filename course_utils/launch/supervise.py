"""Start the processes of a run, listen to them, and end every one of them, whatever happens."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from course_utils.launch.causes import Reports
from course_utils.launch.clusters import Cluster, find_cluster
from course_utils.launch.lessons import check_lesson
from course_utils.launch.link import SHOW_STACK, Lines
from course_utils.launch.messages import LaunchError, RunError
from course_utils.launch.options import Options, count_ranks, trainer_arguments
from course_utils.launch.processes import exit_status, group_members, only_one, process_group, write_whole
from course_utils.launch.view import RunResult, View

# What another shell may have left: a rank would wait for others that nobody starts, or meet them at a port that is
# taken. Without the port, Lightning looks for a free one.
LEFT_OVER = {"RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR"}
LEFT_OVER |= {"MASTER_PORT"}


def launch(options: Options, view: View) -> RunResult | None:
    """Train a lesson, show what its processes print, and end every one of them, whatever happens.

    Returns:
        The result, or None where another process has rank 0, which knows it.

    Raises:
        LaunchError: the request was refused, and nothing was trained.
        RunError: a rank raised, was killed, or fell silent.
    """
    if not hasattr(os, "fork"):
        raise LaunchError("the launcher needs Linux or macOS. On Windows, run it in WSL.")
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
        except LaunchError:
            raise
        except (OSError, ValueError) as error:
            why = f"--out {options.out!r} cannot be used: {error}. Choose a folder that you may write to."
            raise LaunchError(why) from None
        run = Run(options, arguments, cluster, view)
        try:
            run.watch()
        except (KeyboardInterrupt, SystemExit):
            view.line("launch", f"stopped: every process has ended.{run.hint(stopped=True)}")
            raise
        return run.finish()


class Run:
    """One run of a lesson, from the start of its first process to the end of its last."""

    def __init__(self, options: Options, arguments: dict, cluster: Cluster, view: View):
        self.options, self.arguments, self.view, self._cluster = options, arguments, view, cluster
        expected = 1 if cluster.kind != "none" else count_ranks(arguments) // arguments["num_nodes"]
        self._reports = Reports(expected, has_rank_0=cluster.rank == 0)
        self._stopped: dict[int, float] = {}  # process that a signal has stopped before it trained -> since when
        self._silence, self._look_s = "", 0.0
        self._status: int | None = None  # how the first process ended, if it did by itself
        self._held: list[tuple[str, str]] = []  # lines from before torch was there, and after the first fault
        self._start_s = time.monotonic()

    def watch(self) -> None:
        """Start the processes, and listen until the run is over, or has nothing left to report after a fault."""
        # A Unix socket has a path of at most about 100 characters.
        parent = "/tmp" if len(tempfile.gettempdir()) > 60 else None
        place = tempfile.TemporaryDirectory(prefix="launch-", dir=parent, ignore_cleanup_errors=True)
        with place as folder, closing(self.view):
            lines = Lines(Path(folder))
            ours, theirs = socket.socketpair()
            lines.add(ours, "main")
            words = [json.dumps(asdict(self.options)), json.dumps(self.arguments), folder]
            command = [sys.executable, "-m", "course_utils.launch.ranks", *words]
            streams: dict[str, Any] = {"stdout": theirs, "stderr": theirs, "env": self._environment(folder)}
            try:
                with theirs, process_group(command, Path(folder), **streams) as process:
                    self._watch(process, lines)
            finally:
                for who, message in lines.close():
                    self._take(who, message)

    def _environment(self, folder: str) -> dict[str, str]:
        left_over = LEFT_OVER if self._cluster.kind == "none" else set()
        kept = {name: value for name, value in os.environ.items() if name not in left_over}
        # A driver's library may hang or crash, and Lightning asks it for GPUs whatever it trains on.
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if self.arguments["accelerator"] == "cpu" else {}
        return {**kept, **hidden, "PYTHONUNBUFFERED": "1", "TMPDIR": folder}

    def _watch(self, process: subprocess.Popen, lines: Lines) -> None:
        reports = self._reports
        reports.main_pid = process.pid
        while process.poll() is None and not self._silence and time.monotonic() < reports.deadline_s:
            for who, message in lines.read(0.1):
                self._take(who, message)
            for who, pid in reports.pids.items():
                if pid != process.pid:
                    reports.note_exit(who, exit_status(pid))
            self._look_for_silence(process.pid)
            self.view.steps(reports.step)
        self._status = process.poll()

    def _take(self, who: str, message: str | dict) -> None:
        match message:
            case str() if self._reports.failed or not self._reports.imported:
                return self._held.append((who, message))
            case str():
                return self.view.line(who, message)
            case {"resumed": step} if "resumed" not in self._reports.events:  # each rank may say so
                self.view.line("launch", f"continuing after step {step}")
            case {"already": epochs}:
                self.view.line("launch", f"all {epochs} epochs were trained before: nothing to do")
            case {"start": begin}:
                self.view.begin(**begin)
            case {"epoch": number, "loss": loss}:
                self.view.epoch(number, loss)
        self._reports.take(who, message)

    def _look_for_silence(self, group: int) -> None:
        now = time.monotonic()
        if self._reports.starting and now > self._look_s:  # a look at every process of the machine, once a second
            self._look_s = now + 1
            self._stopped = {pid: self._stopped.get(pid, now) for pid in group_members(group, stopped=True)}
        self._silence, pids = self._reports.silence(self.options.timeout_s, self._stopped)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, SHOW_STACK)
        if self._silence:
            time.sleep(0.5)  # in which they show it

    def hint(self, stopped: bool = False) -> str:
        """Return that --resume can continue, where this run or the one that it resumed has left a checkpoint."""
        if not stopped and self._reports.step <= self._reports.events.get("resumed", -1):
            advice = "It may be damaged: start anew without --resume, or put an older copy in its place."
            return f" It had made no step since it read {self.options.checkpoint}. {advice}"
        ours = self.options.resume or "epoch" in self._reports.events
        kept = ours and self.options.checkpoint.exists()
        return " The last checkpoint is whole: --resume continues from it." if kept else ""

    def finish(self) -> RunResult | None:
        """Return the result of the run, or raise why it failed."""
        events = self._reports.events
        if "refusal" in events:
            raise LaunchError(events["refusal"])
        if self._status and self._status > 0 and not self._reports.imported:
            why = f"PyTorch or Lightning does not load: {self._held[-1][1] if self._held else 'it gave no reason'}."
            import resource  # not on Windows

            limit_bytes = resource.getrlimit(resource.RLIMIT_AS)[0]
            if limit_bytes != resource.RLIM_INFINITY:
                why += f" This shell allows a process {limit_bytes / 1e9:.1f} GB of addresses (`ulimit -v`)."
            raise LaunchError(f"{why} To learn more: python -m course_utils.doctor")
        why, fault = (self._silence, None) if self._silence else self._reports.cause(self._status)
        if why:
            raised = [(fault.who, line) for line in fault.traceback.rstrip().splitlines()] if fault else []
            for who, line in raised + self._held:
                self.view.line(who, line)
            memory = f" {events['memory']}" if "memory" in events else ""
            raise RunError(f"{why}{'' if why.endswith('.') else '.'}{memory}{self.hint()}")
        return self._result() if "done" in events else None

    def _result(self) -> RunResult:
        done: dict[str, Any] = self._reports.events["done"]
        parts: Any = {name: tuple(part) if isinstance(part, list) else part for name, part in done.items()}
        parts |= {"ranks": count_ranks(self.arguments), "total_s": time.monotonic() - self._start_s}
        result = RunResult(self.options.lesson, self.options.strategy, checkpoint=str(self.options.checkpoint), **parts)
        try:
            write_whole(Path(self.options.out) / "result.json", f"{result.to_json()}\n".encode())
        except OSError as error:
            self.view.line("launch", f"the training is done, but its result.json could not be written: {error}")
        return result
