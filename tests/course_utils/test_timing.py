"""The timer, with a clock of our own wherever a figure is asserted, and XLA's counters as the
oracle.
"""

import gc
import itertools
import math
import time
from functools import partial
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_tools.compare.comparison import compare_devices
from course_tools.compare.paired_timing import TimedCall, time_together
from course_tools.compare.workloads import PRODUCT
from course_utils import timing
from course_utils.devices import Device, pick_device, wait_for
from course_utils.timing import Stopwatch, Timing, median_interval, time_call
from course_utils.xla import start_xla, xla_counters

CPU = Device("cpu", 0, "a cpu")


class World:
    """Time passes only when somebody works, and another program may take the core meanwhile."""

    now = mine = 0.0

    def work(self, seconds: float, core: float = 1.0) -> None:
        self.mine += seconds
        self.now += seconds / core

    def time(self, fn, **options) -> Timing:
        return time_call(fn, threads=1, **options)


@pytest.fixture
def world(monkeypatch):
    world = World()
    monkeypatch.setattr(Stopwatch, "clock", lambda watch: world.now)
    monkeypatch.setattr(Stopwatch, "cpu_clock", lambda watch: world.mine)
    return world


def working(world: World, costs):
    """Return a function whose calls take these seconds, one after another."""
    costs = iter(costs)
    return lambda: world.work(next(costs))


def forever(*costs: float):
    yield from costs
    while True:
        yield costs[-1]


def test_the_first_call_is_kept_apart_from_the_steady_state(world):
    timed = world.time(working(world, forever(5.0, 0.003)))
    assert timed.first_s == pytest.approx(5.0)
    assert timed.median_s == pytest.approx(0.003)
    assert timed.warnings == ()


def test_what_compiling_leaves_behind_is_over_before_the_steady_state_counts(world):
    # 20 calls of 6 ms end within the 0.15 s
    slow_at_first = working(world, forever(1.0, *[0.006] * 20, 0.003))
    timed = world.time(slow_at_first)
    assert timed.blocks_s == pytest.approx([0.003] * len(timed.blocks_s))
    assert timed.warnings == ()


@pytest.mark.parametrize(
    ("first_s", "call_s", "settled_s"),
    [(0.021, 0.001, 0.15), (0.019, 0.001, 0), (0.05, 0.0051, 0), (0.05, 0.0049, 0.15)],
)
def test_a_call_settles_for_150_ms_after_a_first_one_of_20_ms_and_ten_times_its_own(
    world, first_s, call_s, settled_s
):
    watch = Stopwatch(working(world, forever(first_s, call_s)), CPU)
    watch.warm_up()
    assert world.now - first_s - call_s == pytest.approx(settled_s, abs=1.1 * call_s)


def test_a_short_call_is_not_made_to_settle(world):
    timed = world.time(working(world, forever(0.001, *[0.0006] * 2, 0.0003)))
    assert timed.runs * 0.0003 == pytest.approx(world.now - 0.001, rel=0.5)


def test_it_stops_as_soon_as_the_interval_is_narrow(world):
    timed = world.time(working(world, forever(0.01)), max_s=100)
    assert len(timed.blocks_s) == timed.runs == 20


def test_it_stops_at_the_time_limit_and_says_that_the_figure_is_vague(world):
    noisy = (cost for _ in range(10_000) for cost in (0.01, 0.03))
    timed = world.time(working(world, noisy), max_s=1.0)
    assert sum(timed.blocks_s) == pytest.approx(1.0, abs=0.04)
    assert any(
        "may lie anywhere from 10 ms to 30 ms: raise max_s" in warning for warning in timed.warnings
    )


def test_it_stops_after_ten_thousand_blocks_that_know_no_median(world):
    costs = itertools.cycle((0.01, 0.03))
    assert len(world.time(working(world, costs), max_s=1e9).blocks_s) == 10_000


@pytest.mark.parametrize(("other", "stops"), [(0.01039, True), (0.0105, False)])
def test_two_per_cent_to_either_side_are_narrow_and_more_are_not(world, other, stops):
    timed = world.time(working(world, (cost for _ in range(10_000) for cost in (0.01, other))))
    blocks = len(timed.blocks_s)
    assert blocks == 20 if stops else blocks > 100


@pytest.mark.parametrize(("seconds", "calls"), [(1.9e-3, 1), (2.1e-3, 0)])
def test_only_a_short_block_is_led_in(seconds, calls):
    called = []
    watch = Stopwatch(lambda: called.append(1), CPU)
    watch.call_s = seconds
    watch.lead_in()
    assert len(called) == calls


def test_a_queue_is_waited_for_around_the_first_call_and_each_block(world, monkeypatch):
    queue = [100.0]  # what the program asked for before

    def wait(device):
        world.work(sum(queue))
        queue.clear()

    monkeypatch.setattr(timing, "wait_for", wait)
    watch = Stopwatch(lambda: queue.append(3.0), Device("cuda", 0, "a card"))
    watch.warm_up()
    assert watch.first_s == pytest.approx(3.0)
    queue.append(100.0)
    assert watch.read().seconds == pytest.approx(3.0)


def test_a_timing_of_one_block_can_be_shown():
    assert repr(Timing("cpu", 1, 0.5, (0.25,), 1)).startswith("250 ms per call on cpu")


def test_short_calls_are_timed_many_at_once(world):
    timed = world.time(working(world, forever(1e-6)))
    assert timed.calls_per_block >= 200
    assert timed.median_s == pytest.approx(1e-6)


def test_short_calls_are_timed_for_long_enough_to_be_known_and_not_for_longer(world):
    timed = world.time(working(world, forever(5e-6)))
    assert 7e-3 <= timed.runs * 5e-6 <= 9e-3
    assert world.time(working(world, forever(5e-6)), max_s=1e-3).runs * 5e-6 <= 1.3e-3


def test_too_few_runs_are_said_to_be_too_few(world):
    for max_s in (1.0, 5.0):
        timed = world.time(working(world, forever(3.0)), max_s=max_s)
        assert len(timed.blocks_s) == 2
    assert (
        "only 2 readings, and a 95% interval needs 6: raise max_s or give fn less work."
        in timed.warnings
    )


@pytest.mark.parametrize(("other", "vague"), [(1.09, False), (1.11, True)])
def test_a_median_that_is_known_to_five_per_cent_to_either_side_is_not_vague(other, vague):
    values = [1.0, other] * 10  # the interval is from the one to the other, around their middle
    said = [line for line in timing._doubts(0.0, values) if "may lie anywhere" in line]
    assert bool(said) == vague


@pytest.mark.parametrize(("first_s", "noticed"), [(19e-6, False), (21e-6, True)])
def test_a_first_call_of_twenty_microseconds_may_have_done_all_the_work(first_s, noticed):
    said = [line for line in timing._doubts(first_s, [5e-7] * 20) if "first call only" in line]
    assert bool(said) == noticed


def test_a_clock_that_stands_still_ends_at_ten_million_calls_a_block(world):
    watch = Stopwatch(lambda: None, CPU)
    watch._run = lambda: None
    watch.warm_up()
    assert 10**7 <= watch.calls <= 20 * 10**7


@pytest.mark.parametrize(("growth", "word"), [(1.02, "slower"), (0.98, "faster")])
def test_work_that_drifts_is_noticed(world, growth, word):
    timed = world.time(working(world, (0.01 * growth**k for k in range(10_000))), max_s=0.5)
    assert any(f"{word} as it went" in warning for warning in timed.warnings)


def test_a_thread_that_waits_for_a_device_is_not_taken_for_a_disturbed_one():
    assert Stopwatch(print, Device("cuda", 0, "a GPU")).cpu_clock is None
    assert Stopwatch(print, CPU).cpu_clock is Stopwatch.cpu_clock


def test_one_slow_call_does_not_make_a_drift_larger():
    assert timing._drift([1.0] * 9 + [1.1] * 8 + [100.0]) == pytest.approx(0.1)
    # four of a half against four are the fewest
    assert timing._drift([1.0] * 4 + [1.5] * 4) == 0.5 and timing._drift([1.0] * 3 + [1.5] * 4) == 0


def test_a_block_that_was_short_by_accident_does_not_make_the_next_one_long(world):
    timed = world.time(working(world, forever(0.001, 1e-9, 0.001)), max_s=0.1)
    assert timed.calls_per_block <= 20


def test_steady_noise_is_not_taken_for_drift(world):
    noise = torch.Generator().manual_seed(0)
    flagged = 0
    for _ in range(200):
        costs = (0.01 + 0.0005 * torch.rand((), generator=noise).item() for _ in range(10_000))
        flagged += bool(world.time(working(world, costs), max_s=0.3).warnings)
    assert flagged <= 4


@pytest.mark.parametrize(("later_s", "noticed"), [(5e-7, True), (2e-6, False)])
def test_work_that_is_done_on_the_first_call_only_is_noticed(world, later_s, noticed):
    timed = world.time(working(world, forever(0.01, later_s)))
    assert any("first call only" in warning for warning in timed.warnings) == noticed


def test_blocks_in_which_another_program_had_the_core_are_left_out(world):
    shares = iter([1.0, 1.0] + [1.0, 0.4] * 1000)
    timed = world.time(lambda: world.work(0.01, next(shares)))
    assert timed.blocks_s == pytest.approx([0.01] * len(timed.blocks_s))
    assert timed.left_out >= 4
    assert timed.warnings == ()


def test_when_most_blocks_are_left_out_the_others_do_not_pass_for_the_typical_call(world):
    # as when two of three calls wait for a batch
    shares = iter([1.0, 1.0] + [1.0, 0.1, 0.1] * 1000)
    timed = world.time(lambda: world.work(0.01, next(shares)))
    assert timed.left_out > len(timed.blocks_s) >= timing.FEWEST
    assert any("a core for only 10% of the time" in warning for warning in timed.warnings)


@pytest.mark.parametrize(("clean", "used"), [(5, 20), (6, 6)])
def test_clean_blocks_are_enough_where_they_have_an_interval(clean, used):
    readings = [timing.Reading(1.0, 0.5)] * (20 - clean) + [timing.Reading(1.0, 0.97)] * clean
    assert len(timing.usable(readings)) == used


def test_without_a_clean_block_the_contention_is_said(world):
    timed = world.time(lambda: world.work(0.01, core=0.5))
    assert timed.warnings == (
        "the calling thread had a core for only 50% of the time: other programs compete for "
        "the cores, "
        "or fn itself waits, for a disk or another process.",
    )
    assert "unreliable: the calling thread" in repr(timed)


def test_a_wait_inside_the_work_is_said_too():
    assert any(
        "or fn itself waits" in warning for warning in time_call(lambda: time.sleep(0.002)).warnings
    )


@pytest.mark.parametrize(
    ("device", "of_result", "waited"),
    [
        (CPU, "cpu", True),
        (CPU, "cuda:0", False),
        (Device("cuda", 0, "the first of two cards"), "cuda:0", True),
        (Device("cuda", 0, "the first of two cards"), "cuda:1", False),
    ],
)
def test_a_result_on_another_device_than_the_one_waited_for_is_noticed(
    monkeypatch, device, of_result, waited
):
    class Result:
        device = torch.device(of_result)

    monkeypatch.setattr(torch.accelerator, "synchronize", lambda device: None)
    said = time_call(Result, device=device, max_s=0.01).warnings
    wrong = f"the result is not on {device}, so the clock did not wait for it: pass its device."
    assert (wrong in said) is not waited


def test_the_number_of_threads_is_set_for_the_timing_only():
    before, seen = torch.get_num_threads(), set()
    timed = time_call(lambda: seen.add(torch.get_num_threads()), threads=before + 1)
    assert seen == {before + 1}
    assert timed.threads == before + 1
    counts, calls = {1: set(), 2: set()}, {}
    for more, found in counts.items():
        note = partial(lambda found: found.add(torch.get_num_threads()), found)
        calls[str(more)] = TimedCall(note, CPU, before + more)
    time_together(calls, max_s=0.01)
    assert counts == {more: {before + more} for more in counts}
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("collects", [True, False])
def test_the_settings_come_back_when_the_work_fails(collects):
    before = torch.get_num_threads()
    try:
        gc.enable() if collects else gc.disable()
        with pytest.raises(ZeroDivisionError):
            time_call(lambda: 1 / 0, threads=before + 1)
        assert gc.isenabled() == collects
    finally:
        gc.enable()
    assert torch.get_num_threads() == before


def test_a_time_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="needs a positive time, but got max_s=0"):
        time_call(lambda: None, max_s=0)


@pytest.mark.parametrize("threads", [0, -1, 1025])
def test_threads_that_no_machine_has_are_refused_before_anything_is_timed(threads):
    with pytest.raises(ValueError, match=f"can use 1 to 1024 threads, but got threads={threads}"):
        time_call(lambda: 1 / 0, threads=threads)
    with pytest.raises(ValueError, match=f"can use 1 to 1024 threads, but got threads={threads}"):
        time_together({"a": TimedCall(lambda: 1 / 0, CPU, threads)})


@given(st.integers(min_value=6, max_value=1000))
def test_the_interval_of_the_median_has_its_coverage(count):
    # Oracle: the exact chance that the median lies between the order statistics k and n + 1 - k.
    low, high = median_interval(range(1, count + 1))
    ways = [math.comb(count, k) for k in range(low, high)]
    assert sum(ways) / 2**count >= 0.95
    assert sum(ways[1:-1]) / 2**count < 0.952  # the next narrower one has not
    assert low + high == count + 1


def test_a_timing_reads_as_one_sentence():
    timed = Timing("cpu", 1, 0.5, (0.001, 0.002, 0.003), 10)
    spread = "middle half 1.5 ms to 2.5 ms, 30 calls; the first took 500 ms"
    assert repr(timed) == f"2 ms per call on cpu, 1 thread ({spread})"


def a_generator():
    yield torch.ones(2)


async def a_coroutine():
    return torch.ones(2)


@pytest.mark.parametrize("fn", [a_generator, a_coroutine, lambda: (1 for _ in range(3))])
@pytest.mark.parametrize("use", [time_call, lambda fn: time_together({"it": fn})])
def test_a_call_that_has_done_none_of_its_work_is_refused(fn, use):
    with pytest.raises(
        TypeError, match=r"returned a (generator|coroutine), and none of its work was done. Pass a"
    ):
        use(fn)


REHEARSAL = Device("xla", 0, "XLA on this CPU", rehearsal=True)


def time_with_a_clock_of_compilations(changes_at: int) -> tuple[float, tuple[float, ...], int, int]:
    """Time a call on a clock that stands still except while XLA compiles, and a millisecond at each
    reading.
    """
    readings = iter(range(10**9))
    calls = []
    data = torch.ones(64, 3 + changes_at % 100).to("xla:0")  # of a shape that is new to XLA

    def work():
        calls.append(None)
        return data[: 40 if len(calls) < changes_at else 41].tanh() * 2

    def clock() -> float:
        return next(readings) / 1000 + xla_counters().compile_s

    before = xla_counters()
    with patch.object(Stopwatch, "clock", staticmethod(clock)):
        timing = time_call(work, device=REHEARSAL, max_s=0.1)
    did = xla_counters() - before
    return timing.first_s, timing.blocks_s, did.compilations, did.executions - len(calls)


@pytest.mark.parametrize("changes_at", [2, 8, 10**6])
def test_the_timer_never_counts_compilation_as_run_time(in_xla, changes_at):
    first_s, blocks_s, compilations, extra_executions = in_xla(
        time_with_a_clock_of_compilations, changes_at
    )
    assert first_s > 0.001001 and blocks_s == pytest.approx([0.001] * len(blocks_s))
    assert compilations == (1 if changes_at == 10**6 else 2)
    assert extra_executions == 0  # each call was a program of its own: none was merged with another


def time_what_is_not_returned():
    ones = torch.ones(9).to("xla:0")
    time_call(lambda: [ones + 1].clear(), device=REHEARSAL)


def test_a_call_that_runs_nothing_is_refused(in_xla):
    with pytest.raises(RuntimeError, match=r"calls\. XLA leaves out what nobody holds: return"):
        in_xla(time_what_is_not_returned)


def time_shapes_that_grow(after: int):
    calls = []

    def work():
        calls.append(None)
        return (
            torch.ones(7 if len(calls) < after else len(calls) + 7, 2 + after, device="xla:0") * 2
        )

    time_call(work, device=REHEARSAL)


@pytest.mark.parametrize("after", [0, 12])
def test_a_call_that_never_stops_compiling_is_refused(in_xla, after):
    with pytest.raises(
        RuntimeError,
        match=r"compiled a new program 10 times, so it has no steady state.*pad to one shape",
    ):
        in_xla(time_shapes_that_grow, after)


def measure_on_xla() -> dict:
    """Time calls on XLA and count what it compiled and ran meanwhile."""
    device, found, calls = start_xla(), {}, [0]
    square = torch.rand(64, 64, device=device)
    wait_for("xla")  # else the random numbers would be made in the first call

    def counted():
        calls[0] += 1
        return square @ square

    calls[0], before = 0, xla_counters()
    time_together({name: TimedCall(counted, pick_device("xla")) for name in "ab"}, max_s=0.1)
    found["calls_in_turn"] = calls[0]
    found["executed_in_turn"] = (xla_counters() - before).executions

    with pytest.raises(RuntimeError) as error:
        time_call(lambda: square + (square @ square).sum().item(), device="xla", max_s=0.2)
    found["reading"] = str(error.value)
    found["labels"] = compare_devices(PRODUCT, [32], ["cpu", "xla"], max_s=0.2).labels
    return found


@pytest.fixture(scope="module")
def found(in_xla) -> dict:
    return in_xla(measure_on_xla)


def test_in_turn_each_call_ran_too_also_the_uncounted_ones(found):
    assert found["executed_in_turn"] == found["calls_in_turn"] > 4


def test_a_call_that_runs_several_programs_is_refused(found):
    assert (
        "programs on XLA in 1 calls, so it reads values or syncs in its middle" in found["reading"]
    )


def test_the_rehearsal_is_compared_with_the_cpu_and_called_a_rehearsal(found):
    assert found["labels"][-1] == "xla:0 (rehearsal)"
