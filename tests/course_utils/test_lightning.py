"""The arguments of a Trainer, and what Lightning may print and set."""

import logging
import os
import re
import warnings

import pytest
import torch
from start_python import python

from course_utils import Device
from course_utils.lightning import calm_lightning, messages_to_stdout, pl, trainer_kwargs


def test_the_cpu_arguments_make_a_cpu_trainer():
    trainer = pl.Trainer(**trainer_kwargs("cpu"), logger=False, enable_checkpointing=False)
    assert isinstance(trainer.accelerator, pl.accelerators.CPUAccelerator)
    assert trainer.num_devices == 1


def test_a_gpu_is_chosen_by_its_index():
    assert trainer_kwargs(Device("cuda", 3, "a GPU")) == {"accelerator": "cuda", "devices": [3]}


def test_a_trainer_on_an_intel_gpu_that_nobody_named_takes_the_cpu(monkeypatch):
    monkeypatch.delenv("COURSE_DEVICE", raising=False)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_: torch.device("xpu"))
    monkeypatch.setattr(torch.xpu, "device_count", lambda: 1)
    assert trainer_kwargs() == {"accelerator": "cpu", "devices": 1}
    with pytest.raises(NotImplementedError, match="cannot be pointed at xpu:0"):
        trainer_kwargs("xpu")


def test_a_missing_device_is_an_error_and_not_a_fallback():
    with pytest.raises(RuntimeError, match="'cuda:63' was requested"):
        trainer_kwargs("cuda:63")


@pytest.fixture
def logger():
    """Lightning's logger, as it was before."""
    found = logging.getLogger("lightning.pytorch")
    level, handlers = found.level, found.handlers[:]
    yield found
    found.level, found.handlers[:] = level, handlers


def test_what_lightning_says_goes_to_stdout_without_its_tips(logger, capsys):
    logger.handlers[:] = [logging.StreamHandler()]
    logger.setLevel(logging.INFO)
    messages_to_stdout()
    logger.info("Tip: buy more")
    logger.info("GPU available: False")
    assert capsys.readouterr() == ("GPU available: False\n", "")


def test_a_calm_lightning_still_warns_but_for_what_is_no_advice_for_a_small_lesson(logger, capsys):
    logger.handlers[:] = [logging.StreamHandler()]
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        calm_lightning()
        logger.info("GPU available: False")
        logger.warning("something is wrong")
        warnings.warn("The loader does not have many workers", stacklevel=1)
        warnings.warn("This is something else", stacklevel=1)
    assert capsys.readouterr().err == "something is wrong\n"
    assert [str(each.message) for each in shown] == ["This is something else"]


@pytest.mark.slow
def test_a_first_trainer_leaves_no_variable_and_writes_nothing_alarming():
    """In a new process, because Lightning and torch_xla do this once a process."""
    code = """
import os
from course_utils.lightning import messages_to_stdout, pl, trainer_kwargs
before = dict(os.environ)
messages_to_stdout()
pl.Trainer(**trainer_kwargs("cpu"), logger=True, enable_checkpointing=False)
chosen = ("PJRT_DEVICE", "CUDA_VISIBLE_DEVICES", "COURSE_DEVICE", "OMP_NUM_THREADS")
assert [os.environ.get(name) for name in chosen] == [before.get(name) for name in chosen]
"""
    foreign = [name for name in os.environ if name.startswith(("PJRT", "XLA", "COURSE"))]
    done = python("-c", code, fresh=True, **dict.fromkeys(foreign))
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"GPU available: (True|False).*, used: False", done.stdout)
    assert "Tip:" not in done.stdout
