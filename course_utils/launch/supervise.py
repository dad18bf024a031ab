"""Start the processes of a run, listen to them, and end every one of them, whatever happens."""

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing, nullcontext, suppress
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

from course_utils.launch.causes import Reports
from course_utils.launch.clusters import Cluster, find_cluster
from course_utils.launch.lessons import check_lesson
from course_utils.launch.link import REQUEST, SHOW_STACK, Lines
from course_utils.launch.messages import CALLS, LaunchError, RunError
from course_utils.launch.options import Options, count_ranks, trainer_arguments
from course_utils.launch.processes import exit_status, only_one, process_group, write_whole
from course_utils.launch.view import RunResult, View

# What another shell may have left: a rank would wait for others that nobody starts, or meet them at
# a port that is taken. Without the port, Lightning looks for a free one.
LEFT = {
    "RANK",
    "LOCAL_RANK",
    "NODE_RANK",
    "GROUP_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
}
BEFORE = "start"  # names what the first process prints before PyTorch and Lightning are loaded


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
        view.line(
            "launch",
            f"{cluster.kind} ({cluster.found}): process {cluster.rank}, {cluster.nodes} machines",
        )
    with only_one(Path(options.out)) if cluster.rank == 0 else nullcontext():
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
        self._reports = Reports(
            range(count_ranks(arguments)) if cluster.kind == "none" else [cluster.rank]
        )
        self._silence = ""
        self._status: int | None = None  # how the first process ended, if it did by itself
        # lines from before torch was there, and after the first fault
        self._held: list[tuple[str, str]] = []
        self._start_s = time.monotonic()

    def watch(self) -> None:
        """Start the processes, and listen until the run is over, or has nothing left to report
        after a fault.
        """
        # the path of a socket has about 100 at most
        parent = "/tmp" if len(tempfile.gettempdir()) > 60 else None
        place = tempfile.TemporaryDirectory(
            prefix="launch-", dir=parent, ignore_cleanup_errors=True
        )
        with place as folder, closing(self.view):
            lines = Lines(Path(folder))
            command = [sys.executable, "-m", "course_utils.launch.ranks"]
            try:
                with process_group(command, Path(folder), self._environment(folder)) as process:
                    lines.add(process.stdout, BEFORE)
                    self._watch(process, lines)
            except BaseException:
                self.view.close()
                raise
            finally:
                for who, message in lines.close():
                    self._take(who, message)

    def _environment(self, folder: str) -> dict[str, str]:
        kept = {
            key: value
            for key, value in os.environ.items()
            if key not in LEFT or self._cluster.kind != "none"
        }
        # A driver's library may hang or crash, and Lightning asks it for GPUs whatever it trains
        # on.
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if self.arguments["accelerator"] == "cpu" else {}
        # DDP then names the parameters that a loss has not used
        named = {"TORCH_DISTRIBUTED_DEBUG": "INFO"}
        # a lesson may leave the working folder
        lesson, out = self.options.lesson, os.path.abspath(self.options.out)
        asked = replace(
            self.options, out=out, lesson=os.path.abspath(lesson) if ":" in lesson else lesson
        )
        request = {
            REQUEST: json.dumps([asdict(asked), self.arguments | {"default_root_dir": out}, folder])
        }
        return {**named, **kept, **hidden, **request, "PYTHONUNBUFFERED": "1", "TMPDIR": folder}

    def _watch(self, process: subprocess.Popen, lines: Lines) -> None:
        reports = self._reports
        while (
            process.poll() is None and not self._silence and time.monotonic() < reports.deadline_s
        ):
            for who, message in lines.read(0.1):
                self._take(who, message)
            for pid, who in reports.names.items():
                if pid != process.pid and (status := exit_status(pid)):
                    reports.note_death(who, status)
            self._silence, silent = reports.silence(self.options.timeout_s)
            for pid in silent:
                with suppress(ProcessLookupError):
                    os.kill(pid, SHOW_STACK)
            self.view.steps(reports.step)
        self._status = process.poll()
        if self._silence:
            time.sleep(0.5)  # in which they show where they stand

    def _take(self, who: str, message: str | dict) -> None:
        match message:
            case str() if self._reports.failed or self._silence or who == BEFORE:
                return self._held.append((who, message))
            case str():
                return self.view.line(who, message)
            case {"resumed": step} if "resumed" not in self._reports.events:  # each rank may say so
                self.view.line("launch", f"continuing after step {step}")
            case {"note": text}:
                self.view.line("launch", text)
            case {"start": begin}:
                self.view.begin(**begin)
            case {"epoch": number, "loss": loss}:
                self.view.epoch(number, loss)
        self._reports.take(who, message)

    def hint(self, stopped: bool = False) -> str:
        """Return that --resume can continue, where this run or the one that it resumed has left a
        checkpoint.
        """
        if not stopped and self._reports.step <= self._reports.events.get("resumed", -1):
            advice = "It may be damaged, or not fit the lesson now: start anew without --resume, or use an older copy."
            return f" It had made no step since it read {self.options.checkpoint}. {advice}"
        kept = (
            self.options.resume or "epoch" in self._reports.events
        ) and self.options.checkpoint.exists()
        return " The last checkpoint is whole: --resume continues from it." if kept else ""

    def finish(self) -> RunResult | None:
        """Return the result of the run, or raise why it failed."""
        events = self._reports.events
        if "refusal" in events:
            raise LaunchError(events["refusal"])
        last = self._held[-1][1] if self._held else "it gave no reason"
        if (
            self._status
            and self._status > 0
            and not (self._reports.names or last == "KeyboardInterrupt")
        ):
            advice = "Raise the limit of `ulimit -v`, if there is one. To learn more: python -m course_utils.doctor"
            raise LaunchError(f"PyTorch or Lightning does not load: {last}. {advice}")
        why, fault = (self._silence, None) if self._silence else self._reports.cause(self._status)
        if why:
            raised = (
                [(fault.who, line) for line in fault.traceback.rstrip().splitlines()]
                if fault
                else []
            )
            for (_, before), (who, line) in pairwise([("", ""), *raised, *self._held]):
                # of Lightning's calls, the last
                if not (self._silence and CALLS.match(before) and CALLS.match(line)):
                    self.view.line(who, line)
            memory = f" {events['memory']}" if "memory" in events else ""
            raise RunError(f"{why}{'' if why.endswith('.') else '.'}{memory}{self.hint()}")
        if "done" not in events:
            return None
        options, ranks, total_s = (
            self.options,
            count_ranks(self.arguments),
            time.monotonic() - self._start_s,
        )
        log = Path(options.out) / "metrics.csv"
        more = {
            "checkpoint": str(options.checkpoint),
            "log": str(log) if log.exists() else "",
            **events["done"],
        }
        result = RunResult(options.lesson, options.strategy, ranks, total_s=total_s, **more)
        if advice := result.advice():
            self.view.line("launch", advice)
        try:
            write_whole(Path(self.options.out) / "result.json", f"{result.to_json()}\n".encode())
        except OSError as error:
            self.view.line(
                "launch", f"the training is done, but its result.json could not be written: {error}"
            )
        return result
