"""The timer on XLA's CPU compiler, in a process of its own, with XLA's counters as the oracle."""

import importlib.util
import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process


if importlib.util.find_spec("torch_xla") is None:
    pytest.skip("torch_xla is not installed", allow_module_level=True)

SCRIPT = """
import json, torch
from course_utils.xla import start_xla
device = start_xla()
from course_tools.compare.comparison import compare_devices
from course_utils.devices import pick_device, wait_for
from course_tools.compare.time_together import TimedCall, time_together
from course_tools.compare.workloads import PRODUCT
from course_utils.timing import time_call
from course_utils.xla import xla_counters

found = {}
square = torch.rand(64, 64, device=device)
calls = [0]
wait_for("xla")  # else the random numbers would be made in the first call
def counted():
    calls[0] += 1
    return square @ square
before = xla_counters()
timed = time_call(counted, device="xla", max_s=0.2)
did = xla_counters() - before
found["calls"], found["executed"], found["compiled"] = calls[0], did.executions, did.compilations
found["first"], found["median"] = timed.first_s, timed.median_s
calls, before = [0], xla_counters()
time_together({name: TimedCall(counted, pick_device("xla")) for name in "ab"}, max_s=0.1)
found["calls_in_turn"], found["executed_in_turn"] = calls[0], (xla_counters() - before).executions

def error_of(fn):
    try:
        time_call(fn, device="xla", max_s=0.2)
    except RuntimeError as error:
        return str(error)

sizes = iter(range(1, 10**6))
found["reshaping"] = error_of(lambda: torch.ones(next(sizes), device=device) + 1)
found["dropping"] = error_of(lambda: (square @ square, None)[1])
found["reading"] = error_of(lambda: square + (square @ square).sum().item())
late, before = iter(range(10**6)), xla_counters()
work = lambda: square.sin() if next(late) == 5 else square.cos()
timed = time_call(work, device="xla", max_s=0.2)
did = xla_counters() - before
found["late_compilations"], found["late_compile_s"] = did.compilations, did.compile_s
found["late_slowest"] = max(timed.blocks_s)
here = compare_devices(PRODUCT, [32], ["cpu", "xla"], max_s=0.2)
found["labels"] = here.labels
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> dict:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_each_call_ran_and_compilation_is_in_the_first(found):
    assert found["executed"] == found["calls"]
    assert 1 <= found["compiled"] <= 2
    assert found["first"] > found["median"]


def test_in_turn_each_call_ran_too_also_the_uncounted_ones(found):
    assert found["executed_in_turn"] == found["calls_in_turn"] > 4


def test_a_shape_that_changes_at_every_call_is_refused(found):
    assert "compiled a new program 10 times, so it has no steady state" in found["reshaping"]


def test_a_compilation_in_the_middle_is_no_part_of_the_figures(found):
    assert found["late_compilations"] == 2
    assert found["late_slowest"] < found["late_compile_s"] / 2


def test_work_that_xla_drops_is_refused(found):
    assert (
        "programs on XLA in 1 calls. XLA leaves out what nobody holds: return its result."
        in found["dropping"]
    )


def test_a_call_that_runs_several_programs_is_refused(found):
    assert (
        "programs on XLA in 1 calls, so it reads values or syncs in its middle" in found["reading"]
    )


def test_the_rehearsal_is_compared_with_the_cpu_and_called_a_rehearsal(found):
    assert found["labels"][-1] == "xla:0 (rehearsal)"
