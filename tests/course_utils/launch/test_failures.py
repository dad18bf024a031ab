"""What is shown of an error."""

import re
import threading
import traceback

import pytest
import torch

from course_utils.launch import child
from course_utils.launch.child import load_training
from course_utils.launch.failures import cause_of, find_unpicklable, without_library_frames


def traceback_of(function):
    try:
        function()
    except Exception:
        return traceback.format_exc()


def wrong_shape():
    torch.nn.Linear(2, 3)(torch.zeros(1, 7))


def wrong_state():
    torch.nn.Linear(2, 3).load_state_dict(torch.nn.Linear(4, 3).state_dict())


def of_several_lines():
    # The message of PyTorch for an index out of range on a GPU.
    raise RuntimeError(
        "CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously "
        "reported at some other API call.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
    )


def with_a_cause():
    try:
        of_several_lines()
    except RuntimeError as error:
        raise KeyError("labels") from error


def test_a_traceback_shows_the_calls_of_the_lesson_and_the_error():
    text = traceback_of(wrong_shape)
    shown = without_library_frames(text)
    assert "torch/nn/modules" in text and "torch/nn/modules" not in shown
    assert __file__ in shown and "cannot be multiplied" in shown


def test_the_calls_of_the_launcher_are_left_out_unless_they_are_all(tmp_path):
    path = tmp_path / "training.py"
    path.write_text("def make():\n    raise ValueError('the data are missing')\n")
    text = traceback_of(lambda: load_training(f"{path}:make"))
    shown = without_library_frames(text)
    assert "launch/child.py" in text and "launch/child.py" not in shown
    assert f'File "{path}"' in shown
    alone = text.replace(str(path), child.__file__).replace(__file__, child.__file__)
    assert "launch/child.py" in without_library_frames(alone)


@pytest.mark.parametrize(
    ("function", "start"),
    [
        # newer versions of torch name the operation before
        (wrong_shape, r"RuntimeError: (addmm: )?mat1 and mat2 shapes cannot be multiplied"),
        (
            wrong_state,
            r"RuntimeError: Error\(s\) in loading state_dict for Linear: size mismatch for weight",
        ),
        (of_several_lines, "RuntimeError: CUDA error: device-side assert triggered"),
        (with_a_cause, "KeyError: 'labels'"),
    ],
)
def test_the_cause_is_the_type_and_the_first_meaningful_line(function, start):
    assert re.match(start, cause_of(traceback_of(function)))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("DataLoader worker (pid 5) exited unexpectedly", "memory has run out.*/dev/shm"),
        ("DataLoader worker (pid 5) is killed by signal: Killed.", "memory has run out.*/dev/shm"),
        ("Connection closed by peer", "Another rank had ended before"),
    ],
)
def test_what_often_stands_behind_an_error_is_said(error, words):
    text = f"Traceback (most recent call last):\n  File\nRuntimeError: {error}"
    assert re.search(words, cause_of(text))


class Net(torch.nn.Module):
    def __init__(self, **attributes):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        vars(self.layer).update(attributes)


@pytest.mark.parametrize("value", [lambda: None, threading.Lock()])
def test_the_attribute_that_cannot_be_sent_is_named(value):
    assert find_unpicklable(Net(error=value), "module") == "module.layer.error"
    assert find_unpicklable(Net(error=1.0), "module") is None
    ring = Net(error=value)
    ring.layer.itself = ring.layer
    assert find_unpicklable(ring, "module") == "module.layer.error"
