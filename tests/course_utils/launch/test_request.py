"""What a request means."""

import numpy
import pytest

from course_utils import LaunchError, run_training
from course_utils.launch.request import Request

TRAINING = "json:loads"


def test_a_tilde_is_the_home_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.py").touch()
    request = Request("~/mine.py:make", out="~/runs")
    assert request.checkpoint == tmp_path / "runs" / "last.ckpt"
    assert request.training == f"{tmp_path}/mine.py:make"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"training": len}, "write 'path/to/file.py:function'"),
        ({"out": None}, "out must be the name of a folder"),
    ],
)
def test_what_is_no_name_is_refused(arguments, words):
    with pytest.raises(LaunchError, match=words):
        run_training(**{"training": TRAINING} | arguments)


def test_every_seed_that_numpy_takes_is_taken():
    for seed in (0, 2**32 - 1):
        numpy.random.RandomState(Request(TRAINING, seed=seed).seed)
    for seed in (-1, 2**32):
        with pytest.raises(LaunchError, match="seed must"):
            Request(TRAINING, seed=seed)


def test_every_strategy_of_ddp_that_lightning_advises_is_taken():
    from lightning.pytorch.strategies import StrategyRegistry

    names = [name for name in StrategyRegistry if name.startswith(("ddp_find", "ddp_spawn"))]
    assert len(names) >= 5
    for name in ["ddp", *names]:
        assert Request(TRAINING, strategy=name).spawns == name.startswith("ddp_spawn")
    for name in ("ddp_notebook", "ddp_find_unused_parameters", "fsdp", ""):
        with pytest.raises(LaunchError, match="ddp_spawn or ddp"):
            Request(TRAINING, strategy=name)
