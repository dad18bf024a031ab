"""A stopwatch for one function on one device: it waits for the device, and notices when its readings are spoiled."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import torch

from course_utils.devices import Device, wait_for
from course_utils.xla import XLACounters, xla_counters

BLOCK_S = {"cpu": 2e-4}  # one reading of the clock spans at least this: the clock itself costs about 1e-7
QUEUED_BLOCK_S = 4e-3  # waiting for a GPU costs about 1e-5, once a block
MOST_WARM_UPS = 20
Clock = Callable[[], float]


@dataclass(frozen=True)
class Reading:
    """One timed block.

    Attributes:
        seconds: of one call.
        cpu_share: the part of the time in which the calling thread had a core; 1 where that says nothing.
    """

    seconds: float
    cpu_share: float = 1.0


class Stopwatch:
    """Reads the time of one function, block by block.

    Args:
        fn: the work, without arguments.
        device: what to wait for.
        clock: returns seconds.
        cpu_clock: returns the seconds in which this thread had a core; None does without.
    """

    def __init__(
        self,
        fn: Callable[[], object],
        device: Device,
        clock: Clock = time.perf_counter,
        cpu_clock: Clock | None = time.thread_time,
    ):
        self.fn, self.device, self.clock = fn, device, clock
        # While a device works, the thread that waits for it may well sleep: then its share of a core says nothing.
        self.cpu_clock = cpu_clock if device.kind == "cpu" else None
        self.calls = 1
        self.waited = True
        self._run = self._run_recorded if device.kind == "xla" else self._run_many
        self._forget()

    def read_first(self) -> float:
        """Return the seconds of the very first call, with whatever it compiles and allocates."""
        wait_for(self.device)
        start = self.clock()
        result = self.fn()
        wait_for(self.device)
        first_s = self.clock() - start
        # A result on an accelerator other than the one waited for shows that the clock was told the wrong device.
        where = getattr(result, "device", None)
        self.waited = not (isinstance(where, torch.device) and where.type not in ("cpu", "meta", self.device.kind))
        return first_s

    def warm_up(self) -> None:
        """Call until nothing compiles any more, and find how many calls make one block.

        Raises:
            RuntimeError: XLA compiles at every call.
        """
        self._settle_xla()
        block_s = BLOCK_S.get(self.device.kind, QUEUED_BLOCK_S)
        while (spent := self.read().seconds * self.calls) < block_s and self.calls < 10**7:
            wanted = math.ceil(1.1 * block_s * self.calls / max(spent, 1e-9))
            self.calls = max(2 * self.calls, min(20 * self.calls, wanted))
        self._forget()

    def read(self) -> Reading:
        """Time one block of calls."""
        wait_for(self.device)
        before = self._counters()
        cpu_start = self.cpu_clock() if self.cpu_clock else 0.0
        start = self.clock()
        self._run()
        seconds = self.clock() - start
        cpu_s = self.cpu_clock() - cpu_start if self.cpu_clock else seconds
        self._count(before)
        return Reading(seconds / self.calls, cpu_s / seconds if seconds > 0 else 1.0)

    def check(self) -> None:
        """Ask XLA's own counters whether each timed call ran, once, without compiling.

        Raises:
            RuntimeError: XLA compiled in a timed block, or did not run exactly one program a call.
        """
        if self._compiled:
            raise RuntimeError(
                f"XLA compiled {self._compiled} programs in {self._timed_calls} timed calls, which hides the time of "
                "the work. Give every call the same shapes, and no Python number that changes."
            )
        only_copied = self._executed == 0 and self._copied >= self._timed_calls
        if self.device.kind == "xla" and self._executed != self._timed_calls and not only_copied:
            raise RuntimeError(
                f"XLA ran {self._executed} programs in {self._timed_calls} timed calls, but it takes one a call. "
                "Fewer: return what fn computes, for XLA drops what nobody holds. More: fn reads values or syncs in "
                "its middle; time the parts."
            )

    def _forget(self) -> None:
        self._timed_calls = self._compiled = self._executed = self._copied = 0

    def _counters(self) -> XLACounters | None:
        return xla_counters() if self.device.kind == "xla" else None

    def _count(self, before: XLACounters | None) -> None:
        self._timed_calls += self.calls
        if before is not None:
            did = xla_counters() - before
            self._compiled += did.compilations
            self._executed += did.executions
            self._copied += did.to_device

    def _run_many(self) -> None:
        fn = self.fn
        for _ in repeat(None, self.calls):
            fn()
        wait_for(self.device)

    def _run_recorded(self) -> None:
        # XLA merges identical recorded calls into one, and drops those whose results nobody holds.
        for _ in repeat(None, self.calls):
            result = self.fn()
            wait_for(self.device)
        del result

    def _settle_xla(self) -> None:
        if self.device.kind != "xla":
            return
        for _ in range(MOST_WARM_UPS):
            before = xla_counters()
            self.read(), self.read()
            if (xla_counters() - before).compilations == 0:
                return
        raise RuntimeError(
            f"XLA still compiled after {2 * MOST_WARM_UPS} calls, so there is no steady state to time. Give every call "
            "the same shapes, and no Python number that changes."
        )


def seconds_spent_queueing() -> float:
    """Return how long this process's threads, all together, have been ready to run while others had the cores.

    Source: Documentation/scheduler/sched-stats.rst of the Linux kernel. Elsewhere the answer is always 0.
    """
    total_ns = 0
    for task in Path("/proc/self/task").glob("*/schedstat"):
        try:
            total_ns += int(task.read_text().split()[1])
        except OSError:  # the thread has ended meanwhile
            continue
    return total_ns * 1e-9
