import itertools
from functools import partial

import pytest
import torch

from course_tools.compare import copy_speed
from course_tools.compare.copy_speed import Copy, CopyRate, _copiers, copy_rate
from course_utils.devices import Device, pick_device
from course_utils.timing import Stopwatch


@pytest.mark.parametrize("device", [pick_device("cpu"), Device("cuda", 0, "a card")], ids=str)
def test_a_measured_copy_really_copies_in_its_direction(device, monkeypatch):
    draw, asked, there = torch.randint, [], []

    def randint(*given, pin_memory, **how):
        asked.append(pin_memory)
        return draw(*given, **how)

    monkeypatch.setattr(torch, "randint", randint)
    monkeypatch.setattr(
        copy_speed, "to_device", lambda host, to: there.append(host.clone()) or there[-1]
    )
    found = _copiers(device, 1000, device.kind == "cuda")
    assert asked == [device.kind == "cuda"]
    for direction, copier in found.items():
        target, source = copier.func.__self__, copier.args[0]
        expected = source.add_(1)  # so that the two differ before the copy
        assert not torch.equal(target, expected)
        copier()
        assert torch.equal(target, expected)
        assert direction == "in memory" or (target is there[0]) == (direction == "to the device")
    assert len(found) == (2 if device.kind == "cuda" else 1)


def test_copies_are_measured_from_1_kib_to_64_mib():
    assert (copy_speed.COPY_SIZES_BYTES[0], copy_speed.COPY_SIZES_BYTES[-1]) == (2**10, 2**26)


def test_copy_rate_divides_bytes_by_time(monkeypatch):
    ticks = itertools.count()  # each reading of this clock is a second later
    monkeypatch.setattr(Stopwatch, "clock", lambda watch: float(next(ticks)))
    measured = copy_rate(torch.device("cpu"), sizes_bytes=(2000, 1000), max_s=3)
    assert [(item.direction, item.pinned, item.size_bytes) for item in measured.copies] == [
        ("in memory", False, 2000),
        ("in memory", False, 1000),
    ]
    assert [item.median_s for item in measured.copies] == [1, 1]
    assert [item.rate_gb_per_s for item in measured.curves()[("in memory", False)]] == [1e-6, 2e-6]


def test_copies_that_were_disturbed_say_so(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(Stopwatch, "clock", lambda watch: float(next(ticks)))
    monkeypatch.setattr(Stopwatch, "cpu_clock", lambda watch: float(next(ticks)) / 4)
    measured = copy_rate("cpu", sizes_bytes=(1000, 2000), max_s=9)
    assert all(
        "the calling thread had a core for only" in one.warnings[0] for one in measured.copies
    )
    assert "unreliable: 2 of 2 figures. First: 'the calling thread" in repr(measured)


def test_the_latency_is_the_fastest_copys_time_and_the_bandwidth_the_largest_ones():
    line = [Copy("to the device", True, size, 1e-5 + size / 1e10) for size in (1, 10**6, 10**9)]
    line.append(Copy("to the device", True, 0, 5e-5))  # the smallest copy need not be the fastest
    said = repr(CopyRate("cuda:0", tuple(line)))
    assert "to the device, pinned: at least 10 µs each, and 10 GB/s for 1,000,000,000" in said


@pytest.mark.parametrize("sizes", [(), (0,), (1024, -1)])
def test_sizes_that_are_none_are_refused(sizes):
    with pytest.raises(ValueError, match="copy_rate needs sizes of at least 1 byte, but got"):
        copy_rate("cpu", sizes_bytes=sizes)


@pytest.mark.slow
def test_copies_to_and_from_xla_can_be_timed(in_xla):
    rate = in_xla(partial(copy_rate, "xla", sizes_bytes=(1024,)))
    assert {each.direction for each in rate.copies} == {"to the device", "from the device"}


@pytest.mark.parametrize(
    ("sizes", "copied"),
    [((4**power for power in (3, 4)), [64, 256]), (64, [64])],
    ids=["several", "one"],
)
def test_sizes_may_come_from_a_generator_or_be_one(sizes, copied):
    rate = copy_rate("cpu", sizes_bytes=sizes, max_s=0.01)
    assert [copy.size_bytes for copy in rate.copies] == copied
