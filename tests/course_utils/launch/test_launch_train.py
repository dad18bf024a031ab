"""The decisions of a training: its devices, its checkpoint, and what is shown of an error."""

import traceback

import pytest
import torch

from course_utils.devices import Device
from course_utils.launch import train
from course_utils.launch.request import LaunchError, Request
from course_utils.launch.run import run_lesson


def request_for(**arguments):
    return Request("course_lessons.air_rnn:air_rnn", **{**run_lesson.__kwdefaults__, **arguments})


@pytest.fixture
def machine(monkeypatch):
    """Let this machine have so many GPUs, and four cores."""

    def have(gpus):
        cpu = Device(kind="cpu", index=0, name="a CPU")
        cards = [Device(kind="cuda", index=index, name="a GPU") for index in range(gpus)]

        def pick_device(name):
            if name == "cuda" and not cards:
                raise RuntimeError("device 'cuda' was requested, but this machine has cpu.")
            return cards[0] if cards and name != "cpu" else cpu

        monkeypatch.setattr(train, "find_devices", lambda: [*cards, cpu])
        monkeypatch.setattr(train, "pick_device", pick_device)
        monkeypatch.setattr(train, "usable_cores", lambda: 4)

    return have


@pytest.mark.parametrize(
    ("gpus", "accelerator", "devices", "chosen"),
    [
        (0, "auto", None, ("cpu", 1)),
        (0, "cpu", 2, ("cpu", 2)),
        (2, "auto", None, ("gpu", 2)),
        (2, "gpu", 1, ("gpu", 1)),
        (2, "cpu", 4, ("cpu", 4)),
    ],
)
def test_the_devices_come_from_the_machine(machine, gpus, accelerator, devices, chosen):
    machine(gpus)
    request = request_for(accelerator=accelerator, devices=devices)
    assert train.choose_devices(request) == chosen


@pytest.mark.parametrize(
    ("gpus", "accelerator", "devices", "words"),
    [
        (0, "gpu", None, "'cuda' was requested"),
        (2, "gpu", 3, "3 GPUs were requested, but this machine allows 2"),
        (0, "cpu", 5, "5 CPU processes were requested, but this machine allows 4"),
    ],
)
def test_what_is_asked_for_and_missing_is_refused(machine, gpus, accelerator, devices, words):
    machine(gpus)
    with pytest.raises(LaunchError, match=words):
        train.choose_devices(request_for(accelerator=accelerator, devices=devices))


def test_another_kind_of_device_is_refused_and_not_replaced_by_the_cpu(monkeypatch):
    mps = Device(kind="mps", index=0, name="a Mac's GPU")
    monkeypatch.setattr(train, "pick_device", lambda name: mps)
    with pytest.raises(LaunchError, match="ask for accelerator cpu"):
        train.choose_devices(request_for())


def test_an_interrupted_write_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path, files = tmp_path / "last.ckpt", train.AtomicCheckpoints()
    files.save_checkpoint({"epoch": 1}, path)

    def stop(state, part):
        open(part, "wb").close()
        raise OSError("no space left on device")

    monkeypatch.setattr(torch, "save", stop)
    with pytest.raises(OSError, match="no space"):
        files.save_checkpoint({"epoch": 2}, path)
    assert files.load_checkpoint(path) == {"epoch": 1}


class Hostile:
    def __reduce__(self):
        return (pytest.fail, ("the code of a checkpoint was run",))


@pytest.mark.parametrize("content", [b"", b"half a file", Hostile()])
def test_a_checkpoint_that_is_torn_or_holds_code_is_refused(tmp_path, content):
    request = request_for(out=str(tmp_path), resume=True)
    if isinstance(content, bytes):
        request.checkpoint.write_bytes(content)
    else:
        torch.save(content, request.checkpoint)
    with pytest.raises(LaunchError, match="not a whole checkpoint"):
        train.check_checkpoint(request)


def test_a_run_that_has_had_all_its_epochs_is_refused(tmp_path):
    request = request_for(out=str(tmp_path), epochs=3, resume=True)
    torch.save({"epoch": 2}, request.checkpoint)
    with pytest.raises(LaunchError, match="trained for 3 epochs already"):
        train.check_checkpoint(request)


def test_a_traceback_shows_the_calls_of_the_lesson_and_the_error():
    try:
        torch.nn.Linear(2, 3)(torch.zeros(1, 7))
    except RuntimeError:
        text = traceback.format_exc()
    shown = train.without_library_frames(text)
    assert "torch/nn/modules" in text and "torch/nn/modules" not in shown
    assert __file__ in shown and "cannot be multiplied" in shown
