"""What several test files need, and the markers that `make check` chooses by."""

import multiprocessing
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
# folder or file: the marker of every test in it
MARKED = {"faults": "process", "browser": "browser"}
# Tests that start a process and do not say so themselves, as file::function, or a file where all of them do.
PROCESSES = set((HERE / "processes.txt").read_text(encoding="utf-8").split())
# What is long begins, so that at the end no worker is left alone with it; before it, what needs a process without XLA.
FIRST = ("test_hostile_answers.py", "faults", "notebooks", "browser", "tools", "doctor")
FIRST += ("test_xla.py", "test_setup_cell.py")
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
# The launcher runs on Linux and macOS; what it says elsewhere is tested in test_launch.py.
collect_ignore_glob = ["faults/*", "launch/test_launch_*"] if sys.platform == "win32" else []
_refusing = False


def pytest_addoption(parser):
    parser.addoption("--no-processes", action="store_true", help="a test that starts a process fails: make check")


def pytest_configure(config):
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # so a shell starts what runs in its background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # and what a test starts inherits it
    if config.getoption("--no-processes"):
        sys.addaudithook(lambda event, _: _refuse() if event in STARTS else None)
        start = multiprocessing.process.BaseProcess.start
        multiprocessing.process.BaseProcess.start = lambda process: (_refuse(), start(process))


def _refuse() -> None:
    if _refusing:
        pytest.fail("this test starts a process: mark it with @pytest.mark.process", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    global _refusing
    may = any(map(item.get_closest_marker, ("process", "browser", "notebook")))
    _refusing = item.config.getoption("--no-processes") and not may
    try:
        return (yield)
    finally:
        _refusing = False


def _parts(item) -> tuple[str, ...]:
    return item.path.relative_to(HERE.parent).parts if item.path.is_relative_to(HERE.parent) else ()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        name = item.path.relative_to(HERE).as_posix() if item.path.is_relative_to(HERE) else item.path.name
        marker = MARKED.get(name, MARKED.get(name.partition("/")[0], "notebook" if name.endswith(".ipynb") else None))
        if marker:
            item.add_marker(marker)
        function = getattr(item, "originalname", None)
        if {name, f"{name}::{function}"} & PROCESSES or "in_xla" in getattr(item, "fixturenames", ()):
            item.add_marker("process")
    items.sort(key=lambda item: next((turn for turn, part in enumerate(FIRST) if part in _parts(item)), len(FIRST)))


@pytest.fixture(autouse=True)
def answers_are_judged_in_the_process_of_the_test(request, monkeypatch):
    """Except where a test may start processes: an exercise judges an answer in a copy of its process."""
    sandbox = sys.modules.get("course_utils.exercises.sandbox")
    if sandbox and not request.node.get_closest_marker("process"):
        monkeypatch.setattr(sandbox, "FORKS", False)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder in whose /sys, /proc and /dev the package looks, in place of this machine's."""
    from course_utils.hardware import machine

    monkeypatch.setattr(machine, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def needs_xla():
    """Skip a test where torch_xla does not work. To find that out takes seconds, so it is not asked at collection."""
    from course_utils.xla import xla_problem

    if problem := xla_problem():
        pytest.skip(problem)


@pytest.fixture(scope="session")
def in_xla(needs_xla):
    """Call a function of a test module in a process where XLA was started before anything else, and return its result.

    In the process of the tests itself XLA could be too late: PyTorch prepares the backward pass once.
    """
    from course_utils.xla import start_xla

    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=start_xla) as process:
        yield lambda function, *arguments: process.submit(function, *arguments).result(timeout=300)
