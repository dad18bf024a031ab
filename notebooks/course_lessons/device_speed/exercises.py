"""The exercises of lesson 5: a timer that waits, and a fair comparison."""

from collections.abc import Callable
from typing import Any

import torch

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import Wrong, number_of, quote


class _Accelerator:
    """A stand-in for an accelerator with a clock of its own: a call queues work and returns at
    once.
    """

    WORK_S, ASK_S = 0.010, 0.00001

    def __init__(self, compile_s: float = 0.0, disturbed: int = 0, blocks: bool = False):
        self.compile_s = compile_s  # what the first call takes more of the host's time
        self.disturbed = disturbed  # the call whose work takes a second more
        self.blocks = blocks  # a call returns when its work is done, as on a CPU
        self.now, self.done_at, self.calls, self.looks = 0.0, 0.0, 0, 0

    def fn(self) -> None:
        self.calls += 1
        self.now += self.ASK_S + (self.compile_s if self.calls == 1 else 0)
        self.done_at = max(self.now, self.done_at) + self.WORK_S + (self.calls == self.disturbed)
        if self.blocks:
            self.wait()

    def wait(self) -> None:
        self.now = max(self.now, self.done_at)

    def clock(self) -> float:
        self.looks += 1
        self.now += 1e-7
        return self.now

    def is_misjudged_by(self, timer: Any) -> bool:
        self.value = number_of(timer(self.fn, self.wait, self.clock), "the seconds of one call")
        return abs(self.value - self.WORK_S) > 0.05 * self.WORK_S


@exercise(
    "Call once before you measure. Then, for each reading: wait, look, call, wait, look. "
    "What sums them up?",
    "`fn(); wait()` to warm up. A reading is `start = clock(); fn(); wait(); clock() - start`. "
    "Take a median.",
    solution="""
        def my_timer(fn, wait, clock):
            def reading():
                start = clock()
                fn()
                wait()
                return clock() - start

            fn()
            wait()  # what was queued before does not count
            return statistics.median(reading() for _ in range(9))
    """,
    right="Try it on real work: `my_timer(step, synchronize, time.perf_counter)`.",
)
def timer(answer: Any) -> Mistakes:
    """Write my_timer(fn, wait, clock): the typical seconds of one fn(), where wait() waits for the
    device.
    """
    plain = _Accelerator()
    misjudged = plain.is_misjudged_by(answer)
    yield plain.calls == 0, "Your timer never called fn."
    yield (
        plain.looks == 0,
        "Read the time from clock(), which your timer is given: this device keeps its own time.",
    )
    yield (
        0 <= plain.value < 10 * plain.ASK_S,
        "Your timer saw only the queueing of the work. Call wait() after fn().",
    )
    yield (
        misjudged,
        f"A call takes 0.01 seconds here, and your timer says {plain.value:g}. Are these the "
        "seconds of one call, from just before fn() until its work is done, without work queued "
        "earlier?",
    )
    yield (
        _Accelerator(blocks=True).is_misjudged_by(answer),
        "On a CPU fn() returns when its work is done, and your timer misses it. "
        "Look at the clock before fn().",
    )
    compiling = _Accelerator(compile_s=2).is_misjudged_by(answer)
    yield (
        compiling,
        "Your timer counts the compilation of the first call: call fn once before, to warm up.",
    )
    yield plain.looks < 4, "One reading is a matter of luck. Take several, and their median."
    disturbed = any(
        _Accelerator(disturbed=call).is_misjudged_by(answer) for call in (2, plain.calls)
    )
    yield disturbed, "One disturbed call dominates your result, as in a mean. A median resists it."


class _Pair:
    """Two stand-ins for functions, the new one spoilt, and a stand-in for a timer that knows
    them.
    """

    def __init__(self, spoil: Callable[[torch.Tensor], torch.Tensor]):
        self.spoil, self.called_s, self.timed = spoil, 0.0, False

    def old(self) -> torch.Tensor:
        self.called_s = 0.08
        return torch.linspace(1, 2, 64)

    def new(self) -> torch.Tensor:
        self.called_s = 0.02
        return self.spoil(torch.linspace(1, 2, 64))

    def seconds(self, fn: Callable[[], object]) -> float:
        fn()
        self.timed = True
        return self.called_s


# what nobody raises on purpose, but `raise "they differ"` does
SLIPS = (NameError, TypeError, AttributeError)
SPOILS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "The new way gives twice the right answer, and your function says {said}.": lambda x: x * 2,
    "The new way gives the right numbers in the wrong places, and you say {said}. "
    "Compare each.": lambda x: x.roll(1),
    "The new way gives only NaN, and you say {said}. A comparison with NaN is never true: "
    "ask whether they are close.": lambda x: x * float("nan"),
    "The new way is wrong by 1 %, far more than rounding, and you say {said}.": lambda x: x * 1.01,
}


@exercise(
    "First call both and look at their answers. Equal to the last bit is too much to ask: "
    "rounding is no mistake.",
    "`if not torch.allclose(old(), new()): raise ValueError(...)`. "
    "Then the old way's seconds over the new way's.",
    solution="""
        def my_speed_up(old, new, seconds):
            if not torch.allclose(old(), new()):
                raise ValueError("they compute something else, so there is nothing to time")
            return seconds(old) / seconds(new)
    """,
    right="compare_devices does the same: it told of sloppy_sum before it had timed anything.",
)
def speed_up(answer: Any) -> Mistakes:
    """Write my_speed_up(old, new, seconds): how many times as fast new() is as old(), or an error
    when their answers differ by more than rounding. seconds(fn) times a function.
    """
    rounded = _Pair(lambda right: right * (1 + 5e-7))
    try:
        ratio = number_of(
            answer(rounded.old, rounded.new, rounded.seconds),
            "how many times as fast the new way is",
        )
    except Exception as error:
        if isinstance(error, (Wrong, *SLIPS)) or type(error) is RuntimeError:  # PyTorch's own
            raise
        raise Wrong(
            f"They differ by rounding only, but you raise {type(error).__name__}: {quote(error)}"
        ) from None
    yield (
        not rounded.timed,
        "Time both with `seconds`, which your function is given: it knows how long they take.",
    )
    yield (
        abs(ratio - 0.25) < 1e-6,
        "Upside down: the new way takes a quarter of the time, so it is 4 times as fast.",
    )
    yield (
        abs(ratio - 4) > 1e-6,
        f"0.08 seconds against 0.02 is 4 times as fast, and your function says {ratio:g}.",
    )
    for message, spoil in SPOILS.items():
        pair = _Pair(spoil)
        try:
            said = answer(pair.old, pair.new, pair.seconds)
        except Exception as error:
            yield (
                isinstance(error, SLIPS),
                f"They differ. Raise a ValueError, and not by mistake: {quote(error)}.",
            )
            yield (
                pair.timed,
                "You timed first and looked at the answers afterwards. "
                "A wrong one is not worth timing.",
            )
        else:
            yield said != ratio, f"They differ, and you return `{quote(said)}`: raise an error."
            yield True, message.format(said=quote(said))
