import pytest

from course_utils.lessons import multi_gpu


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(multi_gpu, "OUT", tmp_path)
    return tmp_path


def test_the_lines_of_all_ranks_come_back_sorted_and_each_rank_has_the_threads_that_were_asked_for(folder):
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
