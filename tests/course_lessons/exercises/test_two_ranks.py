import _thread
import multiprocessing
import subprocess
import sys
import threading
import time

import psutil
import pytest
from course_lessons.exercises.two_ranks import run_two_ranks

SCRIPT = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([1.0 + dist.get_rank()])
dist.all_reduce(total)
model = torch.nn.Linear(1, 1)
seen = [dist.get_rank(), dist.get_world_size(), total.item(), torch.get_num_threads()]
dist.destroy_process_group()
"""


@pytest.mark.process
def test_two_ranks_meet_and_each_reports_what_it_has():
    one, other = run_two_ranks(SCRIPT)
    assert (one["seen"], other["seen"]) == ([0, 2, 3.0, 1], [1, 2, 3.0, 1])
    assert len(one["weights"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("os._exit(3)", "before its last line"),
        ("if os.environ['RANK'] == '1': 1 / 0\nimport time; time.sleep(600)", "ZeroDivisionError"),
    ],
)
def test_a_rank_that_fails_is_an_error_and_nothing_goes_on(line, message):
    with pytest.raises(RuntimeError, match=message):
        run_two_ranks(f"import os\n{line}")


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["while the ranks start", "while they run"])
def test_a_check_that_is_stopped_leaves_no_rank_behind(moment, tmp_path):
    earlier = set(multiprocessing.active_children())  # other tests' loaders have workers too
    started: set = set()
    sign = tmp_path / "runs"

    def stop_at_the_moment():
        while not started:
            started.update(set(multiprocessing.active_children()) - earlier)
        while moment == "while they run" and not sign.exists():
            time.sleep(0.05)
        _thread.interrupt_main()

    threading.Thread(target=stop_at_the_moment, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_two_ranks(f"import time; open({str(sign)!r}, 'w').close(); time.sleep(600)")
    for rank in started | (set(multiprocessing.active_children()) - earlier):
        rank.join(30)
        assert not rank.is_alive()


@pytest.mark.slow
def test_a_kernel_that_is_killed_while_the_ranks_start_leaves_none(tmp_path):
    code = "from course_lessons.exercises.two_ranks import run_two_ranks\n"
    code += "if __name__ == '__main__': run_two_ranks('while True: pass')"
    (tmp_path / "kernel.py").write_text(code)
    kernel = subprocess.Popen([sys.executable, tmp_path / "kernel.py"])
    while len(ranks := psutil.Process(kernel.pid).children()) < 3:  # with multiprocessing's tracker
        time.sleep(0.05)
    kernel.kill()
    kernel.wait()
    _, left = psutil.wait_procs(ranks, timeout=60)
    for rank in left:
        rank.kill()
    assert not left


@pytest.mark.slow
def test_a_script_without_the_names_that_are_read_has_seen_nothing_and_has_no_weights():
    assert run_two_ranks("x = 1") == [{"seen": [], "weights": []}] * 2
