"""The exercises of lesson 5: a summary, a timer that waits, a fair comparison, and a crossover."""

import statistics
from collections.abc import Callable

import torch

from course_utils.exercises.answers import number_of
from course_utils.exercises.exercise import Wrong, exercise, expect_function, quote

READINGS_MS = (53.8, 4.6, 4.3, 4.4, 31.0, 4.5, 4.4)  # made up: the first call compiled, the fifth was disturbed


@exercise(
    hints=(
        "Two of the seven are not like the others, each for its own reason. Which of the six mistakes are they?",
        "Leave out the first, and take the `statistics.median` of the rest.",
    ),
    solution="my_typical_ms = statistics.median(ex.READINGS_MS[1:])",
)
def typical(answer: object) -> str:
    """Give the milliseconds to report for the steady state, from the seven readings in ex.READINGS_MS."""
    value = number_of(answer, "the typical reading in milliseconds")
    steady = READINGS_MS[1:]
    mistakes = {
        statistics.mean(READINGS_MS): "This mean counts the first call, and with it the compilation.",
        statistics.mean(steady): "In a mean the one disturbed reading, 31 ms, rules. Which summary does not mind it?",
        statistics.median(READINGS_MS): "The right summary, but it counts the first call, which is of another kind.",
        min(READINGS_MS): "The minimum is the luckiest reading: it hides that there is noise.",
        READINGS_MS[0]: "That is the first call: mostly compilation.",
    }
    if abs(value - statistics.median(steady)) < 1e-6:
        return (
            "time_call does the same: `timing.first_s` keeps the first call, `timing.median_s` is the rest, and "
            "`timing.interval_s` says how far the median can be trusted."
        )
    for wrong, message in mistakes.items():
        if abs(value - wrong) < 0.006:
            raise Wrong(message)
    if abs(value - statistics.median(steady) / 1e3) < 1e-6:
        raise Wrong("That is in seconds: the readings are milliseconds, and so should the answer be.")
    raise Wrong(f"{value:g} is not what is typical of the readings after the first. Which summary did you take?")


class Accelerator:
    """A stand-in for an accelerator with a clock of its own: a call queues work and returns at once.

    Args:
        compile_s: what the first call takes more.
        disturbed_s: what the work of the second call takes more.
    """

    WORK_S, ASK_S = 0.010, 0.00001

    def __init__(self, compile_s: float = 0.0, disturbed_s: float = 0.0):
        self.compile_s, self.disturbed_s = compile_s, disturbed_s
        self.now, self.done_at = 0.0, 0.0
        self.calls = self.looks = 0

    def fn(self) -> None:
        """Queue the work."""
        self.calls += 1
        self.now += self.ASK_S + (self.compile_s if self.calls == 1 else 0)
        work_s = self.WORK_S + (self.disturbed_s if self.calls == 2 else 0)
        self.done_at = max(self.now, self.done_at) + work_s

    def wait(self) -> None:
        """Let the time pass until the work is done."""
        self.now = max(self.now, self.done_at)

    def clock(self) -> float:
        """Return the seconds."""
        self.looks += 1
        self.now += 1e-7
        return self.now


@exercise(
    hints=(
        "Call once before you measure. Then, for each reading: wait, look, call, wait, look. What sums them up?",
        "`fn(); wait()` to warm up. A reading is `start = clock(); fn(); wait(); clock() - start`. Return the median "
        "of nine.",
    ),
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
)
def timer(answer: object) -> str:
    """Write my_timer(fn, wait, clock): the typical seconds of one fn(), where wait() waits for the device."""
    expect_function(answer, "fn", "wait", "clock")
    plain = Accelerator()
    value = _timed(answer, plain)
    if plain.calls == 0:
        raise Wrong("Your timer never called fn.")
    if plain.looks == 0:
        raise Wrong("Read the time from clock(), which your timer is given: the device of this check has its own.")
    if value < plain.WORK_S / 2:
        raise Wrong(
            "Your timer saw next to nothing: only how long it takes to ask. Call wait() after fn() and before you "
            "look at the clock again."
        )
    if not _is_right(value):
        raise Wrong(
            f"A call takes 0.01 seconds on a device that nothing disturbs, and your timer says {value:g}. Are these "
            "the seconds of one call? Was older work still running when you first looked at the clock?"
        )
    if not _is_right(_timed(answer, Accelerator(compile_s=2))):
        raise Wrong(
            "Where the first call compiles, your timer counts the compilation: call fn once before, to warm up."
        )
    if plain.looks < 4:
        raise Wrong("One reading is a lottery ticket: another program may disturb it. Take several, and their median.")
    if not _is_right(_timed(answer, Accelerator(disturbed_s=1))):
        raise Wrong("Where one call is disturbed, it rules your result, as in a mean. The median does not mind it.")
    return (
        "Waits, warms up, repeats, and survives a disturbed reading. Try it on real work with "
        "`my_timer(lambda: square @ square, lambda: wait_for(cpu), time.perf_counter)`, and compare with `timing`."
    )


def _timed(answer: Callable, device: Accelerator) -> float:
    return number_of(answer(device.fn, device.wait, device.clock), "the seconds of one call")


def _is_right(value: float) -> bool:
    return abs(value - Accelerator.WORK_S) < 0.05 * Accelerator.WORK_S


class Pair:
    """Two stand-ins for functions, and a stand-in for a timer that knows them."""

    def __init__(self, spoil: Callable[[torch.Tensor], torch.Tensor]):
        self.right, self.spoil, self.called, self.timed = torch.linspace(1, 2, 64), spoil, [], []

    def old(self) -> torch.Tensor:
        """Return the answer of the old way."""
        self.called.append("old")
        return self.right.clone()

    def new(self) -> torch.Tensor:
        """Return the answer of the new way."""
        self.called.append("new")
        return self.spoil(self.right.clone())

    def seconds(self, fn: Callable[[], object]) -> float:
        """Return what a timer would find."""
        fn()
        self.timed.append(self.called[-1])
        return {"old": 0.08, "new": 0.02}[self.called[-1]]


SPOILS = (
    (
        lambda right: right * 2,
        "The new way gives twice the right answer, and your function calls it {said} times as fast.",
    ),
    (
        lambda right: right.roll(1),
        "The new way gives the right numbers in the wrong places, and your function says {said}. Compare number by "
        "number.",
    ),
    (
        lambda right: right * float("nan"),
        "The new way gives only NaN, and your function says {said}. A comparison with NaN is never true: ask whether "
        "they are close, not whether they are far apart.",
    ),
)


@exercise(
    hints=(
        "First call both and look at their answers. Equal to the last bit is too much to ask: rounding is no mistake.",
        "`if not torch.allclose(old(), new()): raise ValueError(...)`. Then the old way's seconds over the new way's.",
    ),
    solution="""
        def my_speed_up(old, new, seconds):
            if not torch.allclose(old(), new()):
                raise ValueError("they compute something else, so there is nothing to time")
            return seconds(old) / seconds(new)
    """,
)
def speed_up(answer: object) -> str:
    """Write my_speed_up(old, new, seconds): how many times as fast new() is as old(), or an error when their answers
    differ by more than rounding. seconds(fn) times a function.
    """
    expect_function(answer, "old", "new", "seconds")
    rounded = Pair(lambda right: right * (1 + 5e-7))
    try:
        ratio = number_of(answer(rounded.old, rounded.new, rounded.seconds), "how many times as fast the new way is")
    except (ValueError, AssertionError) as error:
        raise Wrong(
            f"These two differ by rounding only, one part in two million, and your function refuses: {quote(error)}"
        ) from None
    if abs(ratio - 0.25) < 1e-6:
        raise Wrong("Upside down: the new way takes a quarter of the time, so it is 4 times as fast.")
    if abs(ratio - 4) > 1e-6:
        raise Wrong(f"0.08 seconds against 0.02 is 4 times as fast, and your function says {ratio:g}.")
    for spoil, message in SPOILS:
        _refuses(answer, Pair(spoil), message)
    return (
        "compare_devices does the same, with a tolerance for each precision. What did it say of sloppy_sum, and what "
        "had it timed by then?"
    )


def _refuses(answer: Callable, pair: Pair, message: str) -> None:
    try:
        said = answer(pair.old, pair.new, pair.seconds)
    except Exception:
        if pair.timed:
            raise Wrong(
                "You timed first and looked at the answers afterwards. A wrong one is not worth timing."
            ) from None
        return
    if said is None:
        raise Wrong("The answers differ, and your function returns None. Raise an error, so that nobody goes on.")
    raise Wrong(message.format(said=quote(said)))


SIZES = [16, 64, 256, 1024]
CASES = (
    # seconds of the CPU, of the GPU, the right answer, what is wrong with another one
    (
        [1, 2, 8, 32],
        [3, 3, 4, 5],
        256,
        "The GPU takes less time at 256 and 1024, and only there. Your function says {said}.",
    ),
    (
        [1, 5, 8, 32],
        [3, 4, 9, 5],
        1024,
        "Here the GPU wins at 64, loses at 256 and wins at 1024, so it wins for good from 1024 on. Your function says "
        "{said}.",
    ),
    ([1, 2, 3, 4], [2, 3, 4, 5], None, "Here the GPU never wins. Say so with None, and not with {said}."),
    (
        [1, 3, 5, 4],
        [2, 2, 2, 9],
        None,
        "Here the GPU loses at the largest size: for good it wins nowhere, not at {said}.",
    ),
    ([4, 5, 6, 7], [1, 1, 1, 1], 16, "Here the GPU wins everywhere, so from 16 on. Your function says {said}."),
)


@exercise(
    hints=(
        "A single win may be luck. Start at the largest size and go down: where is the first defeat?",
        "Keep a variable that is None. Go through the sizes: a win sets it where it is None, a defeat makes it None.",
    ),
    solution="""
        def my_crossover(sizes, cpu_s, gpu_s):
            wins_from = None
            for size, cpu_takes, gpu_takes in zip(sizes, cpu_s, gpu_s):
                if gpu_takes >= cpu_takes:
                    wins_from = None
                elif wins_from is None:
                    wins_from = size
            return wins_from
    """,
)
def crossover(answer: object) -> str:
    """Write my_crossover(sizes, cpu_s, gpu_s): the size from which on the GPU is faster, there and at every larger
    size, or None.
    """
    expect_function(answer, "sizes", "cpu_s", "gpu_s")
    for cpu_s, gpu_s, right, message in CASES:
        try:
            said = answer(list(SIZES), list(cpu_s), list(gpu_s))
        except (StopIteration, IndexError, ValueError) as error:
            if right is not None:
                raise
            raise Wrong(
                f"Where the GPU does not win for good, your function raises {type(error).__name__}: return None."
            ) from None
        said = None if said is None else number_of(said, "a size, or None")
        if said == right:
            continue
        if right == 256 and said == 16:
            raise Wrong("16 is where the CPU wins: less time is faster.")
        if right == 256 and said == SIZES.index(256):
            raise Wrong("That is a position in the list. Return the size that stands there.")
        raise Wrong(message.format(said=f"{said:g}" if said is not None else None))
    return (
        "Here the sizes were few. Between two sizes that you measured, the true crossover can lie anywhere: that is "
        "why `cnn.crossover()` says which sizes were measured."
    )
