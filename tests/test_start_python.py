"""A program that is forked does what a Python of its own does."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from start_python import python, torchrun

# What lessons that run as tests start.
COMMANDS = Path(__file__).with_name("forked") / "kernels" / "forked"
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="forked under Linux only")

LOOK = """
import os, sys
print(sys.argv, sys.path[:3], os.getcwd(), sorted(os.environ.items()), sys.stdin.read(), __name__)
print("to stderr", file=sys.stderr)
"""


def both(*words, **how) -> list[subprocess.CompletedProcess]:
    return [python(*words, fresh=fresh, **how) for fresh in (False, True)]


@pytest.mark.process
@pytest.mark.parametrize("way", ["-c", "file", "-m"])
def test_words_path_folder_variables_and_input_are_those_of_a_python_of_its_own(way, tmp_path):
    (tmp_path / "look.py").write_text(LOOK)
    words = {"-c": ("-c", LOOK), "file": ("look.py",), "-m": ("-m", "look")}[way]
    forked, fresh = both(*words, "a", "b c", cwd=tmp_path, input="in", MINE="1", HOME=None)
    assert vars(forked) == vars(fresh)


ENDS = [
    "import sys; sys.exit(3)",
    "import sys; sys.exit('a sentence')",
    "import os; os.kill(os.getpid(), 9)",
    "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "import atexit; atexit.register(print, 'at the end')",
    "import threading; threading.Timer(0.1, print, ['from a thread']).start()",
    "1 / 0",
]


def command(*words, **how) -> subprocess.Popen:
    """Start the `python` of a lesson."""
    kept = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([COMMANDS / "python", *words], text=True, **kept, **how)


@needs_linux
@pytest.mark.process
@pytest.mark.parametrize("end", ENDS)
def test_a_program_and_the_python_of_a_lesson_end_as_a_python_of_its_own(end):
    forked, fresh = both("-c", end)
    assert vars(forked) == vars(fresh)
    with command("-c", end) as ended:
        said = ended.communicate()
    assert (ended.returncode, *said) == (fresh.returncode, fresh.stdout, fresh.stderr)


@needs_linux
@pytest.mark.process
def test_the_python_of_a_lesson_is_forked_where_it_can_be_and_hands_on_signals(tmp_path):
    look = "import os, sys; print('torch' in sys.modules, sys.executable, os.environ['MINE'])"
    for words, forked in (["-u", "-c"], True), (["-c"], True), (["-X", "utf8", "-c"], False):
        with command(*words, look, env=os.environ | {"MINE": "1"}) as ended:
            said, _ = ended.communicate()
        assert said.startswith(f"{forked} ") and said.endswith(" 1\n")
        assert (str(COMMANDS) in said) == forked
    wait = "print('here', flush=True); import time; time.sleep(100)"
    with command("-c", wait) as waits:
        assert waits.stdout.readline() == "here\n"
        waits.send_signal(signal.SIGTERM)
        assert waits.wait(60) == -signal.SIGTERM


JUPYTER = """
import os, subprocess, sys
os.environ["JPY_PARENT_PID"] = str(os.getpid())
subprocess.run(sys.argv[1:])
"""


@needs_linux
@pytest.mark.process
def test_a_kernel_ends_with_the_process_that_started_it():
    kernel = [COMMANDS / "python", "-c", "print('here', flush=True); import time; time.sleep(300)"]
    with subprocess.Popen(
        [sys.executable, "-c", JUPYTER, *kernel], stdout=subprocess.PIPE, text=True
    ) as jupyter:
        assert jupyter.stdout.readline() == "here\n"
        jupyter.kill()
        assert jupyter.stdout.read() == ""  # it returns when nobody can write any more


@pytest.mark.process
def test_a_program_is_forked_where_it_can_be_and_not_where_its_start_matters():
    look = "import sys; print('torch' in sys.modules)"
    assert python("-c", look).stdout == "True\n"
    assert python("-c", look, fresh=True).stdout == "False\n"
    assert python("-c", look, PYTHONUTF8="1").stdout == "False\n"


OTHERS = """
import subprocess, sys
from start_python import process_to_fork_from
change = "import sys; [each.reconfigure(errors='replace') for each in (sys.stdout, sys.stderr)]"
with process_to_fork_from():
    ended = subprocess.run([sys.argv[1], "-c", change + "; print('torch' in sys.modules)"],
                           capture_output=True, text=True)
print(ended.stdout, ended.stderr, sys.stdout.seekable())
"""


@needs_linux
@pytest.mark.process
def test_a_pipe_is_one_to_a_forked_program_where_the_output_of_the_tests_is_a_file():
    here = os.pathsep.join((str(Path(__file__).parent), os.environ["PYTHONPATH"]))
    ended = python("-c", OTHERS, COMMANDS / "python", fresh=True, PYTHONPATH=here)
    assert (ended.stdout, ended.stderr) == ("True\n  True\n", "")


@pytest.mark.process
def test_a_process_of_a_program_finds_what_its_file_defines(tmp_path):
    (tmp_path / "main.py").write_text(
        "import multiprocessing\n"
        "def double(number):\n    return 2 * number\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(double, [1, 2]))\n"
    )
    assert python("main.py", cwd=tmp_path).stdout == "[2, 4]\n"


@pytest.mark.process
def test_a_program_that_does_not_end_is_ended():
    with pytest.raises(subprocess.TimeoutExpired):
        python("-c", "import time; time.sleep(100)", timeout=0.1)


@pytest.mark.process
def test_ranks_meet():
    code = (
        "import torch, torch.distributed as dist; dist.init_process_group('gloo')\n"
        "total = torch.tensor([dist.get_rank() + 1]); dist.all_reduce(total); print(total.item())\n"
        "dist.destroy_process_group()"
    )
    assert [done.stdout.splitlines()[-1] for done in torchrun(2, "-c", code)] == ["3", "3"]


@pytest.mark.process
def test_a_program_that_is_forked_may_use_a_gpu():
    look = "import torch; print(torch.cuda._is_in_bad_fork())"
    assert python("-c", look).stdout == "False\n"
