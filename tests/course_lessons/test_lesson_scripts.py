import os

import pytest
from course_lessons import multi_gpu

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(multi_gpu, "OUT", tmp_path)
    return tmp_path


def test_the_lines_of_all_ranks_come_back_sorted_and_each_rank_has_the_threads_that_were_asked_for(
    folder,
):
    script = """import os
print("rank", *(os.environ[name] for name in ("RANK", "WORLD_SIZE", "OMP_NUM_THREADS")))
print("[Gloo] Rank 0 is connected")
"""
    (folder / "say.py").write_text(script)
    said = multi_gpu.torchrun("say.py", ranks=2, threads=3)
    assert said == ["rank 0 2 3", "rank 1 2 3"]


def test_a_script_that_fails_is_an_error_that_names_it(folder):
    (folder / "fail.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(RuntimeError, match=r"fail\.py"):
        multi_gpu.torchrun("fail.py", ranks=1)


def test_ranks_that_a_race_in_pytorch_kills_after_their_last_line_run_again_once(folder):
    # The words are those of https://github.com/pytorch/pytorch/issues/190489, as torch 2.15 under
    # load printed them.
    script = f"""import os
from pathlib import Path
with open({str(folder / "tries")!r}, "a") as tries:
    tries.write(".")
print("done", flush=True)
if len(Path(tries.name).read_text()) <= KILLED:
    os.write(2, b"terminate called without an active exception\\n")
    os.abort()
"""
    (folder / "killed.py").write_text(script.replace("KILLED", "1"))
    assert multi_gpu.torchrun("killed.py", ranks=1) == ["done"]
    (folder / "killed.py").write_text(script.replace("KILLED", "9"))
    with pytest.raises(RuntimeError, match=r"killed\.py"):
        multi_gpu.torchrun("killed.py", ranks=1)
    assert (folder / "tries").read_text() == "...."


def test_ranks_meet_on_a_machine_that_does_not_find_itself_by_its_name_as_some_macs(
    folder, monkeypatch
):
    # A Mac may say that its name is that of its address read backwards, which nothing resolves.
    (folder / "sitecustomize.py").write_text(
        "import socket\nsocket.getfqdn = lambda *_: '1.0.0.127.in-addr.arpa'\n"
    )
    (folder / "meet.py").write_text(
        "import torch.distributed as d\nd.init_process_group('gloo')\nprint('met')"
    )
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    )
    assert multi_gpu.torchrun("meet.py") == ["met", "met"]
