"""The exercises of lesson 6: a timer that waits, and two versions of one's own step."""

from typing import Any

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import expect, expect_pair, number_of
from course_tools.compare.paired_timing import Ratio

WORK_S = 0.010  # of a call on the simulated device
TOO_CLOSE = "too close to call"
SMALL_LEAD = 0.2  # a new process can change the ratio of equal calls by this much


class _Accelerator:
    """A simulated device with a clock of its own: a call queues work and returns at once."""

    def __init__(self, slow_call: int = 0, slow_s: float = 0.0):
        self.slow_call, self.slow_s = slow_call, slow_s  # one call takes so much longer, or less
        self.now, self.done_at, self.calls, self.looks = 0.0, 0.0, 0, 0

    def fn(self) -> None:
        self.calls += 1
        self.now += 1e-5
        self.done_at = max(self.now, self.done_at) + WORK_S
        if self.calls == self.slow_call:
            self.done_at += self.slow_s

    def wait(self) -> None:
        self.now = max(self.now, self.done_at)

    def clock(self) -> float:
        self.looks += 1
        return self.now


def _measure(timer: Any, device: _Accelerator) -> tuple[float, bool]:
    """Return the seconds that a timer says, and whether they are right."""
    said_s = number_of(timer(device.fn, device.wait, device.clock), "the seconds of one call")
    return said_s, abs(said_s - WORK_S) < 0.05 * WORK_S


@exercise(
    "Call once before you measure. Then, for each reading: wait, look, call, wait, look. "
    "What sums them up?",
    "`fn(); wait()` to warm up. A reading is `start = clock(); fn(); wait(); clock() - start`. "
    "Take a median.",
    solution="""
        def my_timer(fn, wait, clock):
            readings = []
            for _ in range(9):
                wait()  # what was queued before does not count
                start = clock()
                fn()
                wait()
                readings.append(clock() - start)
            return statistics.median(readings[1:])  # without the warm-up
    """,
    right="Try it on real work: `my_timer(step, lambda: wait_for(best), time.perf_counter)`.",
)
def timer(answer: Any) -> Mistakes:
    """Write my_timer(fn, wait, clock): the typical seconds of one fn(), where wait() waits for the
    device.
    """
    plain = _Accelerator()
    said_s, right = _measure(answer, plain)
    yield plain.calls == 0, "Your timer never called fn."
    yield plain.looks == 0, "Read the time from clock(): this device keeps its own time."
    yield (
        said_s < WORK_S / 10,
        "Your timer saw only the queueing of the work. Call wait() after fn().",
    )
    yield (
        not right,
        f"A call takes 0.01 seconds here, and your timer says {said_s:g}. Are these the seconds of "
        "one call, without work queued earlier?",
    )
    _, right = _measure(answer, _Accelerator(slow_call=1, slow_s=2.0))
    yield not right, "Your timer counts the compilation of the first call: call fn once before."
    yield (
        plain.looks < 4,
        "One reading is a matter of luck, also one of ten calls. Take several, and their median.",
    )
    _, right = _measure(answer, _Accelerator(slow_call=plain.calls, slow_s=1.0))
    yield not right, "One disturbed call dominates your result, as in a mean. A median resists it."
    _, right = _measure(answer, _Accelerator(slow_call=plain.calls, slow_s=-0.8 * WORK_S))
    yield (
        not right,
        "One lucky call decides your result, as in a minimum: it was five times as fast as all the "
        "others. Return what is typical, such as the median.",
    )


@exercise(
    "Is 1 inside the interval? Then they are too close to call.",
    "`time_together({'a': one, 'b': other}).ratio('a', 'b')` is how many times as long `a` takes "
    "as `b`. Above 1, `b` is faster.",
    solution="""
        one, other = my_step(best, 64), my_step(best, 64, fused=True)
        ratio = time_together({"a": one, "b": other}, max_s=2).ratio("a", "b")
        low, high = ratio.interval
        if low > 1.2:
            my_verdict = (ratio, "b")
        elif high < 0.8:
            my_verdict = (ratio, "a")
        else:
            my_verdict = (ratio, "too close to call")
    """,
    right="That holds for this network, batch and machine. Does it hold at another batch?",
)
def own_step(answer: Any) -> Mistakes:
    """Time two versions of your own step alternately, and decide which is faster: my_verdict =
    (time_together({"a": ..., "b": ...}).ratio("a", "b"), "a" or "b" or "too close to call").
    """
    expect_pair(answer, "the ratio and which version is faster")
    ratio, verdict = answer
    expect(ratio, Ratio, 'what time_together(...).ratio("a", "b") returns')
    expect(verdict, str, f'"a", "b" or "{TOO_CLOSE}"')
    verdict = verdict.strip().lower()
    yield verdict not in ("a", "b", TOO_CLOSE), f'Choose "a", "b" or "{TOO_CLOSE}".'
    low, high = ratio.interval
    words = f"`a` takes {low:.3f} to {high:.3f} times as long as `b`"
    lead = max(low - 1, 1 - high)  # not above 0 where the interval includes 1
    yield lead <= 0 and verdict != TOO_CLOSE, f"{words}, and 1 is in between: {TOO_CLOSE}."
    if lead > 0:
        faster = "b" if low > 1 else "a"
        yield verdict not in (faster, TOO_CLOSE), f"{words}, so the other one is faster."
        yield (
            verdict == TOO_CLOSE and lead > SMALL_LEAD,
            f"{words}: that is more than a new process changes, so one of them is faster.",
        )
    if 0 < lead <= SMALL_LEAD:
        return "A lead of less than a fifth: repeat it in a new process before you believe it."
    return None
