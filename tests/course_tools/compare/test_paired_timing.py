"""Calls that are timed in turn, with a clock of our own."""

import itertools
import random
from types import SimpleNamespace

import pytest
import torch

from course_tools.compare import paired_timing
from course_tools.compare.paired_timing import TimedCall, ratio_of_rounds, time_together
from course_utils.devices import Device
from course_utils.timing import Reading, Stopwatch

CPU = Device("cpu", 0, "a cpu")


class SlowingMachine:
    """Everything takes longer and longer, as on a machine that grows hot."""

    def __init__(self, growth: float):
        self.now, self.growth, self.order = 0.0, growth, []

    def work(self, name: str, seconds: float) -> TimedCall:
        def fn():
            self.order.append(name)
            self.now += seconds * (1 + self.growth * self.now)

        return TimedCall(fn, CPU)


@pytest.fixture
def machine_that_slows(monkeypatch):
    """Return a machine by its growth, on whose clock every stopwatch runs."""

    def make(growth: float) -> SlowingMachine:
        machine = SlowingMachine(growth)
        monkeypatch.setattr(Stopwatch, "clock", lambda watch: machine.now)
        monkeypatch.setattr(Stopwatch, "cpu_clock", None)
        return machine

    return make


def test_each_round_goes_forwards_and_backwards_and_the_next_one_the_other_way(machine_that_slows):
    machine = machine_that_slows(0)
    time_together({name: machine.work(name, 1.0) for name in "abc"}, max_s=12)
    assert "".join(machine.order).endswith("abccbacbaabcabccba")


def test_a_contestant_does_not_pay_for_what_the_one_before_it_left_in_the_caches(
    machine_that_slows,
):
    machine, before = machine_that_slows(0), [""]

    def work(name: str) -> TimedCall:
        def fn():
            # the first call after something else ran
            machine.now += 1e-4 * (1.5 if before != [name] else 1.0)
            before[:] = [name]

        return TimedCall(fn, CPU)

    found = time_together({name: work(name) for name in "ab"}, max_s=0.1)
    assert found.ratio("a", "b").median == pytest.approx(1, abs=1e-9)
    assert max(found.timings["a"].blocks_s) == pytest.approx(1e-4)  # no counted call was cold


def test_contestants_of_about_the_same_size_get_blocks_of_the_same_size_and_others_do_not(
    machine_that_slows,
):
    machine = machine_that_slows(0)
    works = {
        "a": machine.work("a", 3e-5),
        "b": machine.work("b", 4e-5),
        "c": machine.work("c", 0.01),
    }
    found = time_together(works, max_s=0.5).timings
    assert found["a"].calls_per_block == found["b"].calls_per_block > 4
    # as many as the one that needs more of them has alone
    one, other = (time_together({name: works[name]}, max_s=0.5).timings[name] for name in "ab")
    assert found["a"].calls_per_block == one.calls_per_block > other.calls_per_block
    assert found["c"].calls_per_block == 1


def test_a_machine_that_slows_down_does_not_change_the_ratio(machine_that_slows):
    machine = machine_that_slows(0.05)
    found = time_together({"a": machine.work("a", 0.02), "b": machine.work("b", 0.01)})
    assert found.ratio("a", "b").median == pytest.approx(2, rel=0.002)
    assert found.timings["a"].median_s > 0.02  # while the times themselves did change


def test_it_stops_when_the_ratio_is_known(machine_that_slows):
    machine = machine_that_slows(0)
    found = time_together({"a": machine.work("a", 0.01), "b": machine.work("b", 0.01)}, max_s=99)
    assert found.ratio("a", "b").rounds == 40
    assert found.ratio("a", "b").interval == pytest.approx((1, 1))
    assert len(found.timings["a"].blocks_s) == 40


def test_noise_makes_it_go_on_until_the_ratio_is_known_to_half_a_per_cent(machine_that_slows):
    machine, noise = machine_that_slows(0), random.Random(0)

    def noisy():
        machine.now += 0.01 * noise.uniform(0.97, 1.03)

    works = {"a": TimedCall(noisy, CPU), "b": machine.work("b", 0.01)}
    found = time_together(works, max_s=99).ratio("a", "b")
    low, high = found.interval
    assert 40 < found.rounds < 800
    assert (high - low) / 2 <= 0.005 * found.median


def test_it_goes_on_until_the_ratios_of_all_pairs_are_known(machine_that_slows):
    machine = machine_that_slows(0)

    def shaking(size: float) -> TimedCall:
        signs = itertools.cycle([1, -1])

        def fn():
            machine.now += 0.01 * (1 + size * next(signs))

        return TimedCall(fn, CPU)

    # b and c are each within half a per cent of a, and not of each other.
    works = {"a": machine.work("a", 0.01), "b": shaking(0.004), "c": shaking(-0.004)}
    assert time_together(works, max_s=5).ratio("b", "c").rounds > 100


def test_rounds_without_a_clean_one_are_said_to_be_disturbed_though_each_contestant_had_clean_ones(
    monkeypatch,
):
    machine = SlowingMachine(0)
    monkeypatch.setattr(Stopwatch, "clock", lambda watch: machine.now)
    monkeypatch.setattr(Stopwatch, "cpu_clock", lambda watch: machine.mine)
    machine.mine = 0.0

    def disturbed(clean: int) -> TimedCall:
        calls = itertools.count()

        def fn():
            machine.mine += 0.01
            # another program has the core half of the time
            machine.now += 0.01 if next(calls) % 3 == clean else 0.02

        return TimedCall(fn, CPU)

    found = time_together({name: disturbed(clean) for clean, name in enumerate("abc")})
    for timed in found.timings.values():
        assert timed.median_s == pytest.approx(0.02)
        assert any("had a core for only 50% of the time" in warning for warning in timed.warnings)


def test_a_timing_stands_on_the_rounds_that_the_ratio_stands_on(monkeypatch):
    machine = SlowingMachine(0)
    monkeypatch.setattr(Stopwatch, "clock", lambda watch: machine.now)
    monkeypatch.setattr(Stopwatch, "cpu_clock", lambda watch: machine.mine)
    machine.mine, calls = 0.0, itertools.count()

    def disturbed():
        machine.mine += 0.01
        machine.now += 0.02 if next(calls) % 4 == 0 else 0.01

    found = time_together({"a": TimedCall(disturbed, CPU), "b": lambda: disturbed() or disturbed()})
    ratio, counts = found.ratio("a", "b"), {len(timed.blocks_s) for timed in found.timings.values()}
    assert counts == {ratio.rounds}
    assert {timed.left_out > 0 for timed in found.timings.values()} == {True}


@pytest.mark.parametrize(("max_s", "rounds"), [(0.1, 6), (13, 8)])
def test_at_the_time_limit_each_was_first_as_often_as_last(machine_that_slows, max_s, rounds):
    machine = machine_that_slows(0)
    works = {name: machine.work(name, 1.0) for name in "ab"}
    found = time_together(works, max_s=max_s)
    assert len(found.timings["a"].blocks_s) == rounds
    assert machine.order[4::2].count("a") == rounds / 2  # after the first calls and the warm-up


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu"), CPU])
def test_plain_functions_run_on_the_device_that_is_named_for_them(machine_that_slows, device):
    machine = machine_that_slows(0)
    works = {"a": machine.work("a", 0.02).fn, "b": machine.work("b", 0.01)}
    found = time_together(works, device=device, max_s=1)
    assert found.ratio("a", "b").median == pytest.approx(2)
    assert [timing.device for timing in found.timings.values()] == ["cpu", "cpu"]


def test_nothing_to_time_is_refused():
    with pytest.raises(ValueError, match="needs work and a positive time, but got 0 works"):
        time_together({})


def test_rounds_that_do_not_belong_together_are_refused():
    with pytest.raises(
        ValueError, match="a ratio needs the same rounds of both, but got 2 and 3 of them"
    ):
        ratio_of_rounds([1, 2], [1, 2, 3])


@pytest.mark.parametrize(("times", "shared"), [(3.9, True), (4.1, False)])
def test_calls_of_about_the_same_time_have_blocks_of_the_same_number(times, shared):
    watches = {"a": SimpleNamespace(call_s=1e-5, calls=20)}
    watches["b"] = SimpleNamespace(call_s=times * 1e-5, calls=6)
    paired_timing._share_block_size(watches)
    assert watches["b"].calls == (20 if shared else 6) and watches["a"].calls == 20


@pytest.mark.parametrize(("other", "narrow"), [(1.0099, True), (1.0102, False)])
def test_a_ratio_is_known_when_it_lies_within_half_a_per_cent_to_either_side(other, narrow):
    plain = [Reading(1.0)] * 40
    mixed = [Reading(1.0), Reading(other)] * 20
    assert paired_timing._is_narrow({"a": mixed, "b": plain}) == narrow


def test_ratios_that_are_never_known_end_after_800_rounds():
    seconds = {"a": itertools.cycle([1.0]), "b": itertools.cycle([1.0, 1.1, 1.1, 1.0])}
    watches = {}
    for name, each in seconds.items():
        watches[name] = SimpleNamespace(calls=1, lead_in=lambda: None)
        watches[name].read = lambda each=each: Reading(next(each))
    calls = {name: TimedCall(print, CPU) for name in watches}
    found = paired_timing._read_alternately(calls, watches, 1e9)
    assert [len(readings) for readings in found.values()] == [800, 800]
