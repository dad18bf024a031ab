"""torchrun in a cell."""

import os
import subprocess
import sys

import pytest
from course_lessons.multi_gpu.torchrun import (
    Run,
    _environment,
    compare_two,
    torchrun,
    torchrun_on_two_hosts,
)

from course_utils.launch.run import clean_environment

pytestmark = pytest.mark.process


def test_the_lines_of_all_ranks_come_back_sorted_with_the_threads_that_were_asked_for(tmp_path):
    script = tmp_path / "say.py"
    script.write_text(
        "import os, sys\n"
        'names = ("RANK", "WORLD_SIZE", "OMP_NUM_THREADS")\n'
        'print("rank", *(os.environ[name] for name in names), *sys.argv[1:])\n'
        'print("[Gloo] Expected number of connected peer ranks is: 1")\n'
    )
    said = torchrun(str(script), "--fast", ranks=2, threads=3)
    assert said.lines == ("rank 0 2 3 --fast", "rank 1 2 3 --fast")


def test_two_hosts_make_one_group(tmp_path):
    script = tmp_path / "meet.py"
    script.write_text(
        "import torch.distributed as d\n"
        "d.init_process_group('gloo')\n"
        "print(d.get_world_size(), 'ranks')\n"
        "d.destroy_process_group()\n"
    )
    lines = torchrun_on_two_hosts(str(script)).lines
    assert "host A: 2 ranks" in lines and "host B: 2 ranks" in lines


def test_a_script_that_fails_is_an_error_that_names_it(tmp_path):
    (tmp_path / "fail.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(RuntimeError, match=r"fail\.py"):
        torchrun(str(tmp_path / "fail.py"), ranks=1)


def test_ranks_that_a_race_in_pytorch_kills_after_their_last_line_run_again_once(tmp_path):
    # The words are those of https://github.com/pytorch/pytorch/issues/190489.
    script = tmp_path / "killed.py"
    script.write_text(
        "import os\n"
        "print('done', flush=True)\n"
        "if not os.path.exists('tried'):\n"
        "    open('tried', 'w').close()\n"
        "    os.write(2, b'terminate called without an active exception\\n')\n"
        "    os.abort()\n".replace("tried", str(tmp_path / "tried"))
    )
    assert torchrun(str(script), ranks=1).lines == ("done",)


def test_ranks_meet_on_a_machine_that_does_not_find_itself_by_its_name(tmp_path, monkeypatch):
    # A Mac may say that its name is that of its address read backwards, which nothing resolves.
    (tmp_path / "sitecustomize.py").write_text(
        "import socket\nsocket.getfqdn = lambda *_: '1.0.0.127.in-addr.arpa'\n"
    )
    (tmp_path / "meet.py").write_text(
        "import torch.distributed as d\nd.init_process_group('gloo')\nprint('met')"
    )
    searched = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", searched)
    assert torchrun(str(tmp_path / "meet.py")).lines == ("met", "met")


def test_the_time_of_an_epoch_is_the_shortest_after_the_first():
    lines = ("epoch 1  loss 2.3  1.0 s", "epoch 2  loss 2.2  9.5 s", "epoch 3  loss 2.1  7.9 s")
    assert Run(lines).epoch_s == 7.9


@pytest.mark.parametrize(
    ("one", "two", "words"), [("3.0", "2.0", "1.50 times"), ("0.1", "0.0", "too short")]
)
def test_two_ranks_are_compared_with_one_where_their_epochs_last_long_enough(one, two, words):
    runs = [Run(("epoch 1  9.0 s", f"epoch 2  {seconds} s")) for seconds in (one, two)]
    assert words in compare_two(*runs)


def test_what_torch_2_9_makes_python_3_13_say_in_each_process_is_not_shown(monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "ignore:mine")
    code = (
        "import warnings; warnings.warn('mine', UserWarning); warnings.warn('functools.partial "
        "will be a method descriptor in future Python versions', FutureWarning)"
    )
    command = [sys.executable, "-c", code]
    for environment in (_environment(1), clean_environment(os.environ)):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
