"""The CPU time of lesson 9's ways to train, on a clock that the test moves."""

import platform
from pathlib import Path

import pytest
import torch
from course_lessons.memory import record


@pytest.fixture
def runs(monkeypatch):
    """Two runs, of 4 seconds and of others, and the order in which they ran."""
    order, now, others = [], [100.0], iter((6, 60, 7))
    monkeypatch.setattr(record.time, "process_time", lambda: now[0])

    def run(name, seconds):
        assert torch.get_num_threads() == 1
        order.append(name)
        now[0] += seconds

    return {"short": lambda: run("short", 4), "long": lambda: run("long", next(others))}, order


def test_runs_take_turns_and_each_has_its_median(runs):
    both, order = runs
    assert record.cpu_times_s(both, rounds=3, enough_s=99) == {"short": 4, "long": 7}
    assert order == ["short", "long"] * 3


def test_a_slow_machine_gets_whole_rounds_but_fewer(runs):
    both, order = runs
    assert record.cpu_times_s(both, rounds=9, enough_s=15) == {"short": 4, "long": 33}
    assert order == ["short", "long"] * 2


def test_the_memory_in_use_is_the_sum_of_what_the_cpu_has_handed_out_so_far(monkeypatch):
    def event(ts, size, device=0, name="[memory]"):
        return {"name": name, "ts": ts, "args": {"Device Type": device, "Bytes": size}}

    events = [event(3_000_000.0, -60), event(1_000_000.0, 100), event(2_000_000.0, 40)]
    events += [event(1_500_000.0, 7, device=1), {"name": "aten::ones", "ts": 0.0}]
    monkeypatch.setattr(record, "read_trace", lambda profiler: {"traceEvents": events})
    done = []
    found = record.record_memory(lambda: done.append(True))
    assert done == [True] and found.used_bytes == (100, 140, 80) and found.peak_bytes == 140
    assert found.times_s == (0, 1, 2)  # a trace counts in microseconds
    assert record.Record((), ()).peak_bytes == 0


@pytest.mark.parametrize("fast", [True, False])
def test_a_run_in_bf16_is_left_out_where_a_cpu_has_no_instructions_for_it(monkeypatch, fast):
    runs = {"baseline": int, "bf16 (autocast)": float}
    monkeypatch.setattr(record, "_has_fast_bf16", lambda: fast)
    assert list(record.without_slow_bf16(runs)) == [*runs][: 2 if fast else 1]


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="Linux says what the CPU has")
def test_a_cpu_without_avx512_has_no_fast_bf16():
    flags = Path("/proc/cpuinfo").read_text().split("flags", 1)[-1].partition("\n")[0]
    if "avx512" not in flags and platform.machine() == "x86_64":
        assert not record._has_fast_bf16()
