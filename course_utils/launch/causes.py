"""What the processes of a run have reported so far, and which of it is the cause when the run fails."""

import signal
import time
from math import inf
from typing import Any

from course_utils.launch.messages import (
    Fault,
    Heartbeat,
    describe_death,
    describe_faults,
    describe_silence,
    is_out_of_memory,
)

START_UP_S = 120.0  # how long a rank may at least take until it begins to train
REPORT_S = 3.0  # how long the other processes have to report after the first fault
ESTIMATE_S = 20.0  # how much longer where memory ran out: they estimate what the step needs
END_S = 10.0  # how long the processes have to end after the training, whatever the lesson has left running


class Reports:
    """What has been heard of the ranks of this machine.

    Attributes:
        step: training steps that are finished.
        deadline_s: when to end the processes, by `time.monotonic`; infinite while nothing has failed or finished.
        pids: process ids by name, such as "rank 0".
        loading: processes that are in the lesson's file or function, and since when.
        events: the last of each event that says nothing about a failure.
    """

    def __init__(self, expected: int, has_rank_0: bool = True):
        self.step, self.deadline_s, self.main_pid = 0, inf, 0
        self.pids: dict[str, int] = {}
        self.loading: dict[int, float] = {}
        self.events: dict[str, Any] = {}
        self._expected, self._has_rank_0, self._start_s = expected, has_rank_0, time.monotonic()
        self._faults: list[Fault] = []
        self._deaths: dict[str, int] = {}  # who ended early -> exit status (0 while unknown), or minus the signal
        self._beats: dict[str, Heartbeat] = {}  # of the ranks that have not finished
        self._finished: set[str] = set()  # the ranks that have trained to the end

    @property
    def failed(self) -> bool:
        """Whether any process has failed."""
        return bool(self._faults or self._deaths)

    @property
    def main(self) -> str:
        """The name of the first process, which may be a rank itself."""
        return next((who for who, pid in self.pids.items() if pid == self.main_pid), "the first process")

    @property
    def starting(self) -> bool:
        """Whether a rank has not begun to train."""
        return len(self.pids) < self._expected or not all(beat.number for beat in self._beats.values())

    def take(self, who: str, event: dict) -> None:
        """Take in one event that a process has sent."""
        now = time.monotonic()
        match event:
            case {"step": step, "where": where} if who in self._beats:
                self.step = max(self.step, step)
                self._beats[who] = Heartbeat(now, self._beats[who].number + 1, step, where)
            case {"fault": text, "error": error, "rank": rank}:
                name = "the first process" if rank is None else f"rank {rank}"
                self._faults.append(Fault(name, error, text, "indirect" in event))
                self._end_within(REPORT_S + ESTIMATE_S * is_out_of_memory(error))
            case {"died": rank, "status": status}:
                self.note_death(f"rank {rank}", status, certain=True)
            case {"closed": True} if who in self._beats and not self._faults:
                self.note_death(who, 0)
            case {"hello": {"rank": _, "pid": pid}}:
                self.pids[who] = pid
                self._beats.setdefault(who, Heartbeat(now))
            case {"loading": pid}:
                self.loading[pid] = now
            case {"loaded": pid}:
                self.loading.pop(pid, None)
            case {"finished": True}:
                self._beats.pop(who, None)
                self._finished.add(who)
                if len(self._finished) >= self._expected:
                    self._end_within(END_S)
            case _:
                self.events.update(event)

    def note_death(self, who: str, status: int, *, certain: bool = False) -> None:
        """Note that a process has ended early.

        multiprocessing ends the others with SIGTERM after one has failed. Those are a consequence, and not the cause,
        unless it is `certain` that this process ended first.
        """
        if who not in self._finished and (certain or status != -signal.SIGTERM or who in self._deaths):
            self._deaths[who] = self._deaths.get(who) or status
            self._end_within(REPORT_S)

    def note_main_status(self, status: int | None) -> None:
        """Note how the first process ended, where it is one that ended early."""
        if self.main in self._deaths and status is not None:
            self._deaths[self.main] = status

    def silence(self, timeout_s: float, stopped: dict[int, float]) -> tuple[str, list[int]]:
        """Return which processes have been silent for too long, in words, and their ids; "" when none has.

        Args:
            timeout_s: how long a rank that trains, or a process that loads the lesson, may be silent.
            stopped: processes that a signal has stopped, and since when.
        """
        now, missing = time.monotonic(), max(0, self._expected - len(self.pids))
        # Imports on a busy machine take their time: a rank that has not begun to train may be silent for longer.
        limit_s = max(timeout_s, START_UP_S) if self.starting else timeout_s
        late = self._late_before_training(now - timeout_s, stopped) if self.starting else {}
        if late:
            pids = {who: int(who.split()[1]) for who in late}
            return describe_silence(late, timeout_s, 0), list(pids.values())
        # Ranks wait for each other: of those that stand still, the ones with the fewest signs of life are the cause.
        fewest = min((beat.number for beat in self._beats.values()), default=0)
        late = {who: one for who, one in self._beats.items() if one.number == fewest and one.time_s < now - limit_s}
        if late or (missing and self._start_s < now - limit_s):
            return describe_silence(late, limit_s, missing), [self.pids[who] for who in late]
        return "", []

    def cause(self, status: int | None) -> tuple[str, str, str]:
        """Return why the run failed, and of a fault who raised it and its traceback; empty texts where it did not.

        Args:
            status: how the first process ended.
        """
        # A rank that has reported what it raised then ends with a status above 0, which says nothing new.
        raised = {fault.who for fault in self._faults}
        deaths = {who: code for who, code in self._deaths.items() if code < 0 or who not in raised}
        faults = [fault for fault in self._faults if not fault.indirect] or self._faults
        done = "done" in self.events or (self._finished and not self._has_rank_0)
        if not deaths and not faults and (not done or (status and not self._finished)):
            deaths[self.main] = status or 0
        # A rank that aborts after another has raised only shows that the other is gone.
        if deaths and not (faults and set(deaths.values()) <= {-signal.SIGABRT}):
            causes = [who for who, code in deaths.items() if code not in (0, -signal.SIGTERM)]
            who = [*causes, *deaths][0]
            return describe_death(who, deaths[who], self.step), "", ""
        return (describe_faults(faults), faults[0].who, faults[0].traceback) if faults else ("", "", "")

    def _end_within(self, wait_s: float) -> None:
        self.deadline_s = min(self.deadline_s, time.monotonic() + wait_s)

    def _late_before_training(self, latest_s: float, stopped: dict[int, float]) -> dict[str, Heartbeat]:
        waits = [(stopped, "a signal has stopped it"), (self.loading, "it is loading the lesson")]
        return {
            f"process {pid}": Heartbeat(since_s, where=where)
            for times, where in waits
            for pid, since_s in times.items()
            if since_s < latest_s
        }
