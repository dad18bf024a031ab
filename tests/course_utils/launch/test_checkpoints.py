"""The checkpoint of a launch: whole at every moment, and harmless to read."""

import os
from dataclasses import replace

import pytest
import torch

from course_utils.launch.checkpoints import WholeCheckpoints, check_checkpoint
from course_utils.launch.request import LaunchError, Request
from course_utils.launch.result import RunResult

STATE = {"epoch": 2, "callbacks": {"EpochReport": {"losses": [0.3, 0.2, 0.1], "seed": None}}}


@pytest.fixture
def request_to_resume(tmp_path):
    return Request("json:loads", out=str(tmp_path), resume=True)


def test_a_full_disk_leaves_the_old_checkpoint_and_says_what_happened(tmp_path):
    import resource

    path, request = tmp_path / "last.ckpt", Request("json:loads", out=str(tmp_path))
    WholeCheckpoints(request).save_checkpoint({"epoch": 1}, path)
    files = WholeCheckpoints(request)  # of a new run
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            files.save_checkpoint({"epoch": 2, "weights": torch.zeros(100_000)}, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert files.load_checkpoint(path) == {"epoch": 1}
    assert os.listdir(tmp_path) == ["last.ckpt"]


@pytest.mark.parametrize("linked", [True, False])
def test_each_new_run_keeps_the_checkpoint_and_the_result_of_every_earlier_one(tmp_path, linked):
    request = Request("json:loads", out=str(tmp_path / "out"))
    for name in ("out", "large"):
        (tmp_path / name).mkdir()
    if linked:
        request.checkpoint.symlink_to(tmp_path / "large" / "1.ckpt")
    for number in range(3):
        files = WholeCheckpoints(request)
        for _ in range(2):
            files.save_checkpoint({"epoch": number}, request.checkpoint)
        name = str(request.checkpoint)
        RunResult("json:loads", "ddp", "cpu", 1, [number], 1.0, name).save(request.result_file)
    results = [RunResult.load(path) for path in tmp_path.rglob("*.json")]
    assert sorted(result.losses for result in results) == [[0], [1], [2]]
    for result in results:
        assert [files.load_checkpoint(result.checkpoint)["epoch"]] == result.losses
    assert request.checkpoint.is_symlink() == linked
    names = {path.name for path in request.checkpoint.resolve().parent.glob("previous*.ckpt")}
    assert names == {"previous.ckpt", "previous-2.ckpt"}


class Hostile:
    def __reduce__(self):
        return (pytest.fail, ("the code of a checkpoint was run",))


def test_a_whole_checkpoint_is_accepted(request_to_resume):
    torch.save(STATE, request_to_resume.checkpoint)
    check_checkpoint(request_to_resume)


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("content", [b"", b"half a file", Hostile(), {"state_dict": {}}])
def test_a_checkpoint_that_is_torn_or_foreign_or_holds_code_is_refused_and_kept(
    request_to_resume, content, resume
):
    if isinstance(content, bytes):
        request_to_resume.checkpoint.write_bytes(content)
    else:
        torch.save(content, request_to_resume.checkpoint)
    with pytest.raises(LaunchError, match=r"not a whole checkpoint.*another folder") as refused:
        check_checkpoint(replace(request_to_resume, resume=resume))
    assert "weights_only" not in str(refused.value)  # torch would advise to turn that off
    assert os.listdir(request_to_resume.out) == ["last.ckpt"]


def test_lightning_is_given_no_code_either(request_to_resume):
    path, files = request_to_resume.checkpoint, WholeCheckpoints(request_to_resume)
    torch.save(Hostile(), path)
    with pytest.raises(Exception, match="Weights only load failed"):
        files.load_checkpoint(path, weights_only=False)


def test_a_run_that_has_had_all_its_epochs_is_refused(tmp_path):
    request = Request("json:loads", out=str(tmp_path), epochs=3, resume=True)
    torch.save(STATE, request.checkpoint)
    with pytest.raises(LaunchError, match="trained for 3 epochs already"):
        check_checkpoint(request)


def test_a_run_is_not_continued_with_another_seed(tmp_path):
    saved = STATE | {"callbacks": {"EpochReport": {"losses": [], "seed": 7}}}
    request = Request("json:loads", out=str(tmp_path), seed=7, resume=True)
    torch.save(saved, request.checkpoint)
    check_checkpoint(request)
    with pytest.raises(LaunchError, match="trained with seed=7, and not with seed=8"):
        check_checkpoint(replace(request, seed=8))
