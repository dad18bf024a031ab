"""Read the time of one function block by block: wait for its device, and notice disturbances."""

import math
import os
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import torch

from course_utils.devices import Device, wait_for
from course_utils.hardware.machine import read_text
from course_utils.xla import XLACounters, start_xla, xla_counters

# One reading of the clock spans at least this: the clock itself costs about 1e-7, and waiting for a
# GPU about 1e-5, once a block. XLA is waited for at every call. The system's timer interrupts come
# every 1 to 4 ms and miss most blocks of this length, and so the median; in a long loop they cost
# 2.5 % on the virtual machine where this was measured.
BLOCK_S = {"cpu": 2e-4, "xla": 2e-4}
QUEUED_BLOCK_S = 4e-3
COMPILED_S = 0.02  # a first call longer than this, and than ten blocks, has compiled,
SETTLE_S = 0.15  # and for so long after it calls are slower
LEAD_IN_S = 2e-3  # blocks shorter than this feel what ran before them, see `Stopwatch.lead_in`
MOST_COMPILING = 10  # blocks that may compile on XLA before that is called a fault of the call


@dataclass(frozen=True)
class Reading:
    """One timed block."""

    seconds: float  # of one call
    # the part of the time in which the calling thread had a core; 1 where that says nothing
    cpu_share: float = 1.0


@dataclass(frozen=True)
class Blocks:
    """The readings of a stopwatch for one function."""

    device: Device
    first_s: float  # of the very first call
    calls: int  # in a block
    readings: Sequence[Reading]  # every block
    used: Sequence[Reading]  # the blocks to be counted
    waited: bool  # False where the result was on another device than the one that was waited for


class Stopwatch:
    """Reads the time of a function without arguments, in blocks of calls, on one device."""

    clock: Callable[[], float] = staticmethod(time.perf_counter)
    # The seconds in which this thread had a core; None where that says nothing: Windows counts them
    # in steps of 16 ms.
    cpu_clock: Callable[[], float] | None = (
        None if os.name == "nt" else staticmethod(time.thread_time)
    )

    def __init__(self, fn: Callable[[], object], device: Device):
        if device.kind == "xla":
            start_xla()
        self.fn, self.device = fn, device
        if device.kind != "cpu":
            # while a device works, the thread that waits for it may well sleep
            self.cpu_clock = None
        self.calls = 1  # in a block
        self.first_s = 0.0  # of the very first call
        self.call_s = math.inf  # of one call at the end of the warm-up
        # whether the clock waited for the device that held the result of the first call
        self.waited = True
        self._run = self._run_recorded if device.kind == "xla" else self._run_many

    def blocks(self, readings: Sequence[Reading], used: Sequence[Reading]) -> Blocks:
        """Return these readings, and those of them that count, with what else was noticed."""
        return Blocks(
            device=self.device,
            first_s=self.first_s,
            calls=self.calls,
            readings=readings,
            used=used,
            waited=self.waited,
        )

    def _read_first(self) -> None:
        wait_for(self.device)
        start = self.clock()
        result = self.fn()
        wait_for(self.device)
        self.first_s = self.clock() - start
        check_ran(result)
        # A result on another accelerator shows that the clock waited for the wrong device.
        where = getattr(result, "device", None)
        self.waited = not (
            isinstance(where, torch.device) and where.type not in ("cpu", "meta", self.device.kind)
        )

    def warm_up(self) -> None:
        """Time the first call, choose the calls in a block, and go on until the state is steady."""
        self._read_first()
        block_s = BLOCK_S.get(self.device.kind, QUEUED_BLOCK_S)
        while (spent := self.read().seconds * self.calls) < block_s and self.calls < 10**7:
            wanted = math.ceil(1.1 * block_s * self.calls / max(spent, 1e-9))
            self.calls = max(2 * self.calls, min(20 * self.calls, wanted))
        self.call_s = spent / self.calls
        if self.first_s > COMPILED_S and self.first_s > 10 * spent:
            end = self.clock() + SETTLE_S
            while self.clock() < end:
                self.read()

    def lead_in(self) -> None:
        """Call once, uncounted, so that a short block starts with its own data in the caches."""
        if self.call_s * self.calls < LEAD_IN_S:
            result = self.fn()  # held, or XLA would leave it out
            wait_for(self.device)
            del result

    def read(self) -> Reading:
        """Time one block of calls. A block in which XLA compiled is taken again.

        Raises:
            RuntimeError: XLA's counters say that it compiles again and again, or does not run one
                program a call.
        """
        if self.device.kind != "xla":
            return self._read_block()
        for _ in range(MOST_COMPILING):
            before = xla_counters()
            reading = self._read_block()
            did = xla_counters() - before
            self._check_executions(did)
            if did.compilations == 0:
                return reading
        raise RuntimeError(
            f"the call to be timed compiled a new program {MOST_COMPILING} times, so it has no "
            "steady state. A shape or a constant changes from call to call: pad to one shape, and "
            "make the constant a tensor."
        )

    def _read_block(self) -> Reading:
        wait_for(self.device)
        cpu_start = self.cpu_clock() if self.cpu_clock else 0.0
        start = self.clock()
        self._run()
        seconds = self.clock() - start
        cpu_s = self.cpu_clock() - cpu_start if self.cpu_clock else seconds
        return Reading(seconds / self.calls, cpu_s / seconds if seconds > 0 else 1.0)

    def _check_executions(self, did: XLACounters) -> None:
        # a copy runs no program
        copied = did.executions == 0 and did.to_device + did.from_device >= self.calls
        ran = f"the call to be timed ran {did.executions} programs on XLA in {self.calls} calls"
        if did.executions < self.calls and not copied:
            raise RuntimeError(f"{ran}. XLA leaves out what nobody holds: return its result.")
        if did.executions > self.calls:
            raise RuntimeError(
                f"{ran}, so it reads values or syncs in its middle. "
                "Take that out, or time the parts."
            )

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


def check_ran(result: object) -> None:
    """Raise TypeError if a call returned a generator or a coroutine: its work was not done."""
    if isinstance(result, Generator | Coroutine):
        result.close()
        raise TypeError(
            f"the call returned a {type(result).__name__}, and none of its work was done. "
            "Pass a function that does all of the work, such as: lambda: list(work())"
        )


def seconds_spent_queueing() -> float:
    """Return how long threads of this process have been ready to run while others had the cores.

    Their times are added up. It is always 0 where the system does not count them.
    Source: Documentation/scheduler/sched-stats.rst of the Linux kernel.
    """
    total_ns = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        numbers = read_text(path).split()
        if numbers:  # none where the thread has ended meanwhile
            total_ns += int(numbers[1])
    return 1e-9 * total_ns
