"""Launches in processes of their own, and a count of those left behind."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

PATIENCE_S = 240  # for what has no limit of its own; a busy machine takes long to import
TWO = ("--devices", "2", "--accelerator", "cpu", "--epochs", "4")
# imports Lightning once, where ddp_spawn does three times
FORK = (*TWO, "--strategy", "ddp_notebook")
CLASSROOM = Path(__file__).with_name("classroom.py")
SEARCHED = os.environ.get("PYTHONPATH", "")
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join(filter(None, (str(Path(__file__).with_name("bare")), SEARCHED))),
    "OMP_NUM_THREADS": "1",
}


class Classroom:
    """Launches the lesson of `classroom.py`, and knows every process that came of it by a variable
    it inherits.
    """

    def __init__(self, folder: Path):
        self.folder, self.out = folder, folder / "out"
        self.mark = uuid.uuid4().hex
        self.started: list[subprocess.Popen] = []

    def environment(self, **variables: str) -> dict[str, str]:
        return {**ENVIRONMENT, "CLASSROOM": self.mark, "NOTES": str(self.folder), **variables}

    def launch(
        self, *arguments: str, lesson="make_lesson", fault="", **variables: str
    ) -> subprocess.Popen:
        command = [sys.executable, "-m", "course_utils.launch", "--lesson", f"{CLASSROOM}:{lesson}"]
        process = subprocess.Popen(
            [*command, "--global-batch", "8", "--out", str(self.out), *arguments],
            env=self.environment(FAULT=fault, **variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(process)
        return process

    def run(self, *arguments: str, **keywords) -> tuple[int, str]:
        process = self.launch(*arguments, **keywords)
        output, _ = process.communicate(timeout=PATIENCE_S)
        return process.returncode, output

    def left_behind(self) -> list[str]:
        return [" ".join(process.cmdline())[:200] for process in self.family()]

    def family(self) -> list[psutil.Process]:
        members = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("CLASSROOM") == self.mark:
                    members.append(process)
        return members

    def wait_for_note(self, name: str, writers: Sequence[subprocess.Popen] = ()) -> str:
        writers = writers or self.started
        deadline = time.monotonic() + PATIENCE_S
        while True:
            all_well = not any(writer.poll() for writer in writers) and time.monotonic() < deadline
            with suppress(FileNotFoundError):
                if text := (self.folder / name).read_text():
                    return text
            if not all_well:
                raise TimeoutError(f"nobody wrote {name}, and nobody will")
            time.sleep(0.02)

    def seconds_until_all_ended(self, limit_s: float) -> float:
        start = time.monotonic()
        while self.family() and time.monotonic() - start < limit_s:
            time.sleep(0.05)
        return time.monotonic() - start
