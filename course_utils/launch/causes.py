"""What the processes of a run have reported so far, and which of it is the cause when the run fails."""

import re
import signal
import time
from math import inf
from typing import Any, NamedTuple

from course_utils.launch.messages import is_out_of_memory

START_UP_S = 120.0  # how long a rank may at least take until it begins to train
REPORT_S = 3.0  # how long the other processes have to report after the first fault
ESTIMATE_S = 20.0  # how much longer where memory ran out: they estimate what the step needs
END_S = 10.0  # how long the processes have to end after the training, whatever the lesson has left running
LOST = "Connection (reset|closed) by peer|Broken pipe"  # what gloo raises in a rank when another has gone


class Heartbeat(NamedTuple):
    """The last sign of life of one process."""

    time_s: float  # by the clock of `time.monotonic`
    number: int = 0  # how many there were; ranks that train together are never more than one step apart
    step: int = 0  # training steps that it has finished
    where: str = "it has not begun to train"


class Fault(NamedTuple):
    """An exception of one process."""

    who: str  # such as "rank 1"
    error: str  # the last line of the traceback
    traceback: str = ""
    indirect: bool = False  # reported by another process than the rank


class Reports:
    """What has been heard of the `expected` ranks of this machine, one of which may be rank 0, which has the result."""

    def __init__(self, expected: int, has_rank_0: bool = True):
        self.step = self.main_pid = 0  # training steps that are finished; the process id of the first process
        self.imported = False  # whether a process has come so far that PyTorch and Lightning are loaded
        self.deadline_s = inf  # when to end the processes, by `time.monotonic`
        self.pids: dict[str, int] = {}  # "rank 0" -> its process id
        self.events: dict[str, Any] = {}  # the last of each event that says nothing about a failure
        self._expected, self._has_rank_0, self._start_s = expected, has_rank_0, time.monotonic()
        self._faults: list[Fault] = []
        self._deaths: dict[str, int] = {}  # who ended early -> exit status (0 while unknown), or minus the signal
        self._beats: dict[str, Heartbeat] = {}  # of the ranks that have not finished
        self._finished: set[str] = set()  # the ranks that have trained to the end
        self._closed: set[str] = set()  # whose messages have all been read
        self._loading: dict[int, float] = {}  # process that is in the lesson's file or function -> since when

    @property
    def failed(self) -> bool:
        """Whether any process has failed."""
        return bool(self._faults or self._deaths)

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
                self.note_death(f"rank {rank}", status, first=True)
            case {"closed": True}:
                self._closed.add(who)
                # Of a rank that leaves without a word, another may say first that its connection is lost.
                if who in self._beats and all(re.search(LOST, fault.error) for fault in self._faults):
                    self.note_death(who, 0)
            case {"hello": {"pid": pid, **more}}:
                self.imported = True
                if "rank" in more:
                    self.pids[who] = pid
                    self._beats.setdefault(who, Heartbeat(now))
            case {"loading": pid}:
                self._loading[pid] = now
            case {"loaded": pid}:
                self._loading.pop(pid, None)
            case {"finished": True}:
                self._beats.pop(who, None)
                self._finished.add(who)
                if len(self._finished) >= self._expected:
                    self._end_within(END_S)
            case _:
                self.events.update(event)

    def note_exit(self, who: str, status: int | None) -> None:
        """Note how the system says a process ended: 0 is early too, if all it said is read and it was not done."""
        if status or (status == 0 and who in self._closed):
            self.note_death(who, status)

    def note_death(self, who: str, status: int, *, first: bool = False) -> None:
        """Note that a process has ended early, and whether it is known to be the first that did.

        multiprocessing ends the others with SIGTERM after one has failed: a consequence, and not the cause.
        """
        if who not in self._finished and (first or status != -signal.SIGTERM or who in self._deaths):
            self._deaths[who] = self._deaths.get(who) or status
            self._end_within(REPORT_S)

    def silence(self, timeout_s: float, stopped: dict[int, float]) -> tuple[str, list[int]]:
        """Return which processes have been silent for too long, in words, and their ids; "" when none has.

        Args:
            timeout_s: how long a rank that trains, or a process that loads the lesson, may be silent.
            stopped: processes that a signal has stopped, and since when.
        """
        now, missing = time.monotonic(), max(0, self._expected - len(self.pids))
        if self.starting:
            waits = ((stopped, "a signal has stopped it"), (self._loading, "it is loading the lesson"))
            beats = {pid: Heartbeat(since_s, where=where) for times, where in waits for pid, since_s in times.items()}
            late = {pid: beat for pid, beat in beats.items() if beat.time_s < now - timeout_s}
            if late:
                return describe_silence({f"process {pid}": beat for pid, beat in late.items()}, timeout_s), list(late)
            timeout_s = max(timeout_s, START_UP_S)  # imports on a busy machine take their time
        # Ranks wait for each other: of those that stand still, the ones with the fewest signs of life are the cause.
        fewest = min((beat.number for beat in self._beats.values()), default=0)
        slow = {who: one for who, one in self._beats.items() if one.number == fewest and one.time_s < now - timeout_s}
        if slow or (missing and self._start_s < now - timeout_s):
            return describe_silence(slow, timeout_s, missing), [self.pids[who] for who in slow]
        return "", []

    def cause(self, status: int | None) -> tuple[str, Fault | None]:
        """Return why the run failed, or "", and the exception that is the cause, if one is.

        Args:
            status: how the first process ended, or None if it had to be ended.
        """
        main = next((who for who, pid in self.pids.items() if pid == self.main_pid), "the first process")
        # A rank that has reported what it raised then ends with a status above 0, which says nothing new.
        raised = {fault.who for fault in self._faults}
        deaths = {who: code for who, code in self._deaths.items() if code < 0 or who not in raised}
        faults = [fault for fault in self._faults if not fault.indirect] or self._faults
        done = "done" in self.events or (self._finished and not self._has_rank_0)
        if main in deaths or not (deaths or faults or (done and (self._finished or not status))):
            deaths[main] = status or deaths.get(main, 0)
        # A rank that aborts after another has raised only shows that the other is gone.
        if deaths and not (faults and set(deaths.values()) <= {-signal.SIGABRT}):
            causes = [who for who, code in deaths.items() if code not in (0, -signal.SIGTERM)]
            who = [*causes, *deaths][0]
            return describe_death(who, deaths[who], self.step), None
        return (describe_faults(faults), faults[0]) if faults else ("", None)

    def _end_within(self, wait_s: float) -> None:
        self.deadline_s = min(self.deadline_s, time.monotonic() + wait_s)


def describe_faults(faults: list[Fault]) -> str:
    """Return who raised first, and who failed because of it."""
    first, *rest = faults
    others = {fault.who: fault.error.partition("\n")[0] for fault in reversed(rest) if fault.who != first.who}
    then = "".join(f" Then {who} failed, most likely because of it: {error}" for who, error in others.items())
    error = first.error.partition("\n")[0]  # the rest stands in its traceback
    return f"{first.who} raised {error}{'' if error.endswith('.') else '.'}{then}"


def describe_death(who: str, status: int, step: int) -> str:
    """Return what ended a process that raised nothing after this step, and what to try; status as in `subprocess`."""
    if status >= 0:
        early = f"{who} ended with exit status {status} after step {step} and raised nothing"
        return f"{early}, before the training was done: something in it called exit, or it was interrupted."
    advice = "That comes from C++ or CUDA code rather than from Python: its own message, if any, is above."
    if -status in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        advice = "A person or another program asked it to stop."
    elif -status == signal.SIGKILL:
        advice = "Most often the system does this when memory runs out (`dmesg` or the job's log says so): "
        advice += "try a smaller --global-batch, fewer --devices, or --num-workers 0."
    names = {number.value: f" ({number.name})" for number in signal.Signals}  # most real-time signals have none
    return f"{who} was killed by signal {-status}{names.get(-status, '')} after step {step}. {advice}"


def describe_silence(silent: dict[str, Heartbeat], limit_s: float, missing: int = 0) -> str:
    """Return which processes gave no sign of life, since when and where they stood, and how many never started."""
    reasons = []
    for who, beat in silent.items():
        silent_s = time.monotonic() - beat.time_s
        since = time.strftime("%H:%M:%S", time.localtime(time.time() - silent_s))
        after = f"after step {beat.step}, " * (beat.step > 0)
        reasons.append(f"{who} has been silent since {since}, for {silent_s:.0f} s: {after}{beat.where}")
    reasons += [f"{missing} of the ranks of this machine never started"] if missing else []
    advice = f"The limit of {limit_s:g} s ended the run. If it was only slow, pass a longer --timeout."
    return f"{'; '.join(reasons)}. {advice}"
