"""What the processes of a run have reported so far, and which of it is the cause when the run
fails.
"""

import re
import signal
import time
from collections.abc import Iterable
from math import inf
from typing import Any, NamedTuple

from course_utils.launch.messages import OUT_OF_MEMORY

START_UP_S = 120.0  # how long a rank may at least take until it begins to train
REPORT_S = 3.0  # how long the other processes have to report after the first fault
ESTIMATE_S = 20.0  # how much longer where memory ran out: they estimate what the step needs
# how long the processes have to end after the training, whatever the lesson has left running
END_S = 10.0
FIRST = "the first process"
# What DDP says of a step in which the loss used only some of the parameters, and of the others.
UNUSED = r"not used in producing loss.*?which did not receive grad for rank \d+: ([^\n]+)"
# torch, around a worker's own error
WORKER = r"^\w+: Caught \w+ (in DataLoader worker process \d+)\.\n[\s\S]*\n(.+)"
# what gloo raises in a rank when another has gone
LOST = "Connection (reset|closed) by peer|Broken pipe"


class Heartbeat(NamedTuple):
    """The last sign of life of one process."""

    time_s: float  # by the clock of `time.monotonic`
    # how many there were; ranks that train together are never more than one step apart
    number: int = 0
    step: int = 0  # training steps that it has finished
    where: str = "it has not begun to train"


class Fault(NamedTuple):
    """An exception of one process."""

    who: str  # such as "rank 1"
    error: str  # its kind and what it says
    traceback: str = ""


class Reports:
    """What the first process and the ranks of this machine have reported; the first process may
    itself be a rank.
    """

    def __init__(self, ranks: Iterable[int]):
        self.step = 0  # training steps that are finished
        self.deadline_s = inf  # when to end the processes, by `time.monotonic`
        self.names: dict[int, str] = {}  # process that has PyTorch and Lightning loaded -> "rank 0"
        self.events: dict[str, Any] = {}  # the last of each event that says nothing about a failure
        self._faults: list[Fault] = []
        # who ended early -> exit status (0 while unknown), or minus the signal
        self._deaths: dict[str, int] = {}
        # Each rank that has not finished -> its last sign of life.
        self._beats = {f"rank {rank}": Heartbeat(time.monotonic()) for rank in ranks}
        # of processes that are in the lesson's file or function
        self._loading: dict[str, Heartbeat] = {}
        self._finished: set[str] = set()  # who has trained to the end

    @property
    def failed(self) -> bool:
        """Whether any process has failed."""
        return bool(self._faults or self._deaths)

    def take(self, who: str, event: dict) -> None:
        """Take in one event that a process has sent."""
        now, who = time.monotonic(), FIRST if who == "main" else who
        match event:
            case {"hello": pid}:
                self.names[pid] = who
                if who in self._beats:
                    self._beats[who] = Heartbeat(now)
            case {"loading": True}:
                self._loading[who] = Heartbeat(now, where="it is loading the lesson")
            case {"loading": False}:
                self._loading.pop(who, None)
                self._beats = {
                    rank: beat._replace(time_s=now) for rank, beat in self._beats.items()
                }
            case {"step": step, "where": where} if who in self._beats:
                self.step = max(self.step, step)
                self._beats[who] = Heartbeat(now, self._beats[who].number + 1, step, where)
            # the first process may name a rank that it has spawned
            case {"fault": text, "error": error, **more}:
                self._faults.append(Fault(f"rank {more['rank']}" if more else who, error, text))
                self._end_within(REPORT_S + ESTIMATE_S * bool(OUT_OF_MEMORY.search(error)))
            case {"died": rank, "status": status}:
                self.note_death(f"rank {rank}", status, first=True)
            case {"closed": True}:
                # Of a rank that leaves without a word, another may say first that its connection is
                # lost.
                if who in self._beats and all(
                    re.search(LOST, fault.error) for fault in self._faults
                ):
                    self.note_death(who, 0)
            case {"finished": True}:
                self._beats.pop(who, None)
                self._finished.add(who)
                if not self._beats:
                    self._end_within(END_S)
            case _:
                self.events.update(event)

    def note_death(self, who: str, status: int, *, first: bool = False) -> None:
        """Note that a process has ended early, and whether it is known to be the first that did.

        multiprocessing ends the others with SIGTERM after one has failed: a consequence, and not
        the cause.
        """
        if who not in self._finished and (
            first or status != -signal.SIGTERM or who in self._deaths
        ):
            self._deaths[who] = self._deaths.get(who) or status
            self._end_within(REPORT_S)

    def silence(self, timeout_s: float) -> tuple[str, list[int]]:
        """Return which processes have been silent for too long, in words, and their ids; "" when
        none has.

        Args:
            timeout_s: how long a rank that trains, or a process that loads the lesson, may be
                silent.
        """
        now = time.monotonic()
        # Ranks wait for each other: of those that stand still, the ones with the fewest signs of
        # life are the cause.
        fewest = min((beat.number for beat in self._beats.values()), default=0)
        behind = {
            who: beat
            for who, beat in self._beats.items()
            if beat.number == fewest and not self._loading
        }
        # imports on a busy machine take their time
        patience_s = timeout_s if fewest else max(timeout_s, START_UP_S)
        for beats, limit_s in ((self._loading, timeout_s), (behind, patience_s)):
            if silent := {who: beat for who, beat in beats.items() if beat.time_s < now - limit_s}:
                return describe_silence(silent, limit_s), [
                    pid for pid, who in self.names.items() if who in silent
                ]
        return "", []

    def cause(self, status: int | None) -> tuple[str, Fault | None]:
        """Return why the run failed, or "", and the exception that caused it, if one did.

        Args:
            status: how the first process ended, or None if it had to be ended.
        """
        first = next(iter(self.names.values()), FIRST)  # it may be a rank itself
        # PyTorch interrupts its ranks when it goes
        if first == FIRST and status is not None and status < 0:
            return describe_death(first, status, self.step), None
        # A rank that has reported what it raised then ends with a status above 0, which says
        # nothing new.
        raised = {fault.who for fault in self._faults}
        deaths = {who: code for who, code in self._deaths.items() if code < 0 or who not in raised}
        faults = [fault for fault in self._faults if fault.who != FIRST] or self._faults
        if first in deaths or not (deaths or faults or self._finished):
            deaths[first] = status or deaths.get(first, 0)
        # A rank that aborts after another has raised only shows that the other is gone.
        if deaths and not (faults and set(deaths.values()) <= {-signal.SIGABRT}):
            who = [
                *(who for who, code in deaths.items() if code not in (0, -signal.SIGTERM)),
                *deaths,
            ][0]
            return describe_death(who, deaths[who], self.step), None
        return (describe_faults(faults), faults[0]) if faults else ("", None)

    def _end_within(self, wait_s: float) -> None:
        self.deadline_s = min(self.deadline_s, time.monotonic() + wait_s)


def describe_faults(faults: list[Fault]) -> str:
    """Return who raised first, and who failed because of it."""
    if unused := re.search(UNUSED, faults[0].traceback, re.DOTALL):
        which = f"the loss does not use these parameters of the module, and DDP waits for their gradients: {unused[1]}"
        advice = "Where only some steps use them, add 0 * sum(p.sum() for p in self.parameters()) to the loss."
        return f"{faults[0].who} raised RuntimeError: {which}. Freeze or delete them. {advice}"
    # the first of each process
    said = {fault.who: headline(fault.error) for fault in reversed(faults)}
    error = said.pop(faults[0].who)
    then = "".join(
        f" Then {who} failed, most likely because of it: {text}" for who, text in said.items()
    )
    if "ForkingPickler(" in faults[0].traceback:
        then = " A spawned process finds only what a file defines at its top: define it there, or pass --strategy ddp."
    return f"{faults[0].who} raised {error}{'' if error.endswith('.') else '.'}{then}"


def headline(error: str) -> str:
    """Return an error's kind and the beginning of what it says, in one line."""
    return (
        re.sub(r":\s*\n\s*", ": ", re.sub(WORKER, r"\2 (\1)", error).strip())
        .partition("\n")[0]
        .rstrip(" :")
    )


def describe_death(who: str, status: int, step: int) -> str:
    """Return what ended a process that raised nothing after this step, and what to try; status as
    in `subprocess`.
    """
    if status >= 0:
        early = f"{who} ended with exit status {status} after step {step} and raised nothing"
        return f"{early}, before the training was done: something in it called exit, or it was interrupted."
    advice = "That comes from C++ or CUDA code rather than from Python: its own message, if any, is above."
    if -status in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        advice = "A person or another program asked it to stop."
    elif -status == signal.SIGKILL:
        advice = "Most often the system does this when memory runs out (`dmesg` or the job's log says so): "
        advice += "try a smaller --global-batch, fewer --devices, or --num-workers 0."
    # most real-time signals have none
    names = {number.value: f" ({number.name})" for number in signal.Signals}
    return (
        f"{who} was killed by signal {-status}{names.get(-status, '')} after step {step}. {advice}"
    )


def describe_silence(silent: dict[str, Heartbeat], limit_s: float) -> str:
    """Return which processes gave no sign of life, since when, and where they stood."""
    reasons = []
    for who, beat in silent.items():
        silent_s = time.monotonic() - beat.time_s
        since = time.strftime("%H:%M:%S", time.localtime(time.time() - silent_s))
        after = f"after step {beat.step}, " * (beat.step > 0)
        reasons.append(
            f"{who} has been silent since {since}, for {silent_s:.0f} s: {after}{beat.where}"
        )
    advice = (
        f"The limit of {limit_s:g} s ended the run. If it was only slow, pass a longer --timeout."
    )
    return f"{'; '.join(reasons)}. {advice}"
