"""What several test files need, and the markers that `make check` chooses by."""

import functools
import multiprocessing
import os
import re
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest

# A busy machine is no failure: neither a slow example nor a slow choice of one.
hypothesis.settings.register_profile(
    "busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("busy")
# Threads that wait leave their core to another worker. OpenMP reads this when torch is imported,
# and the processes and kernels of the tests inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# XLA compiles each program of a test once and runs it a few times: plain code is ready sooner.
PLAIN_CODE = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
os.environ.setdefault("XLA_FLAGS", PLAIN_CODE)

HERE = Path(__file__).resolve().parent
# Programs and kernels import the course from here, wherever the environment has it from.
PLACES = [HERE.parent, HERE.parent / "notebooks", *filter(None, [os.environ.get("PYTHONPATH")])]
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, PLACES))

import start_python  # noqa: E402, as it looks at the variables
from other_networks import timm, torchvision, transformers  # noqa: E402, F401

# folder or file: the marker of every test in it
MARKED = {
    "browser": "browser",
    "browser/test_book.py": "slow",
    "browser/test_lesson_in_jupyterlab.py": "slow",
    "course_lessons/test_setup.py": "slow",
    "tools/test_standalone.py": "slow",
    "course_lessons/exercises/test_exercises.py": "long",
    "course_lessons/scripts/test_train_cpu.py": "long",
    "course_lessons/device_speed/test_panel.py": "long",
    "course_lessons/test_lightning_training.py": "long",
    "course_lessons/worth_it/test_money.py": "long",
    "course_tools/estimate/test_known_networks.py": "long",
    "course_tools/rehearsal": "long",
    "course_tools/estimate/counting/test_count_work.py": "long",
    "course_lessons/evidence/test_published.py": "long",
}
# the markers of tests that may start a Python
STARTS = ("process", "slow", "long", "browser", "notebook")
# What is long begins, so that at the end no worker is left alone with it.
FIRST = ("test_launch.py", "notebooks", "test_rehearse.py", "test_train_cpu.py", "test_scripts.py")
FIRST += ("test_exercises.py", "browser", "tools", "doctor", "test_xla.py", "test_setup.py")
# The launcher runs on Linux and macOS.
collect_ignore_glob = ["course_utils/launch/test_*"] if sys.platform == "win32" else []


def pytest_configure(config):
    # A shell starts background jobs with this signal ignored, and tests would inherit that,
    # as would the programs that are forked.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.platform == "linux" and start_python.ADDRESS not in os.environ:
        until_the_end = ExitStack()
        until_the_end.enter_context(start_python.process_to_fork_from())
        config.add_cleanup(until_the_end.close)
    if start_python.ADDRESS in os.environ:
        os.environ["JUPYTER_PATH"] = str(HERE / "forked")
        config.option.nbval_current_env, config.option.nbval_kernel_name = False, "forked"


@functools.cache
def marks_and_turn(path: Path) -> tuple[tuple[str, ...], int]:
    """Return the markers of every test in a file, and how early the file has its turn."""
    parts = path.relative_to(HERE.parent).parts if path.is_relative_to(HERE.parent) else ()
    name = "/".join(parts[1:])
    marks = [mark for part, mark in MARKED.items() if f"{name}/".startswith(f"{part}/")]
    marks += ["notebook"] * (path.suffix == ".ipynb")
    turns = (turn for turn, part in enumerate(FIRST) if part in parts)
    return tuple(marks), next(turns, len(FIRST))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        for mark in marks_and_turn(item.path)[0]:
            item.add_marker(mark)
        if "in_xla" in getattr(item, "fixturenames", ()):
            item.add_marker("process")
        if item.path.name == "05_tpu.ipynb" and not find_spec("torch_xla"):
            item.options["check"] = False  # it runs, but its outputs are those of XLA
    items.sort(key=lambda item: marks_and_turn(item.path)[1])


@functools.cache
def worker_group(file: str) -> str:
    """Return what one worker runs together: a file, or all files that start XLA, which takes
    seconds.
    """
    source = (HERE.parent / file).read_text(encoding="utf-8")
    return "xla" if re.search(r"\bin_xla\b", source) else file


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadFileScheduling

    class Scheduler(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return worker_group(super()._split_scope(nodeid))

    return Scheduler(config, log)


running: list[pytest.Item] = []  # the test that runs now, if one does


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    running[:] = [item]
    if item.path.suffix == ".ipynb":
        os.environ["COURSE_QUICK"] = "0.1"  # seconds of a measurement: no figure is compared
    else:
        os.environ.pop("COURSE_QUICK", None)


def look_for_a_start(event: str, details: tuple) -> None:
    """Fail a test that starts a Python and is not marked as one that does."""
    if event == "subprocess.Popen" and details[0] == sys.executable:
        for item in running:
            if not any(item.get_closest_marker(mark) for mark in STARTS):
                pytest.fail("it starts a Python: mark it @pytest.mark.process")


sys.addaudithook(look_for_a_start)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder in whose /sys, /proc and /dev the package looks, in place of this machine's."""
    from stand_ins import FOREIGN

    from course_utils.hardware import machine

    for variable in FOREIGN:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def one_thread():
    """Compute with one thread: nothing that is tested depends on it, and a busy machine hurts
    less.
    """
    from course_utils.timing import using_threads

    with using_threads(1):
        yield


@pytest.fixture
def drawn(monkeypatch):
    """The axes of each picture that is made, before it is closed, in their order; each can be
    read.
    """
    import matplotlib.pyplot as plt
    from layout import check_layout

    axes = []
    monkeypatch.setattr(
        plt, "close", lambda figure: check_layout(figure) or axes.append(figure.axes[0])
    )
    yield axes
    monkeypatch.undo()
    plt.close("all")


@pytest.fixture(scope="session")
def needs_xla():
    """Skip a test where torch_xla does not work. To find that out takes seconds, so it is not asked
    at collection.
    """
    from course_utils.xla import xla_problem

    if problem := xla_problem():
        pytest.skip(problem)


@pytest.fixture(scope="session")
def in_xla(needs_xla):
    """Call a function of a test module in a process where XLA was started before anything else, and
    return its result.

    In the process of the tests itself XLA could be too late: PyTorch prepares the backward pass
    once.
    """
    from course_utils.xla import start_xla

    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=start_xla) as process:
        yield lambda function, *arguments: process.submit(function, *arguments).result(timeout=300)
