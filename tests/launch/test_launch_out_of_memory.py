"""What a run says after it went out of memory: the words that it is known by, and the estimate of
its step.
"""

import numpy
import pytest
import torch

from course_utils.launch.lessons import LESSONS
from course_utils.launch.messages import OUT_OF_MEMORY
from course_utils.launch.options import Options
from course_utils.launch.out_of_memory import memory_note

TWO = {"devices": 2, "num_nodes": 1}


def raised_by(function) -> str:
    with pytest.raises((RuntimeError, MemoryError)) as caught:
        function()
    return f"{caught.type.__name__}: {caught.value}"


@pytest.mark.parametrize(
    "too_much",
    [
        lambda: torch.empty(2**50),
        lambda: numpy.empty(2**60, dtype=numpy.uint8),
        lambda: bytes(2**62),
    ],
)
def test_what_pytorch_numpy_and_python_say_is_recognised(too_much):
    assert OUT_OF_MEMORY.search(raised_by(too_much))


def test_what_cuda_says_is_recognised_and_other_errors_are_not():
    # As PyTorch 2.9 writes it (c10/cuda/CUDACachingAllocator.cpp).
    assert OUT_OF_MEMORY.search(
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ..."
    )
    assert not OUT_OF_MEMORY.search(raised_by(lambda: torch.ones(2) @ torch.ones(3)))


def test_the_note_names_the_need_of_a_rank_and_what_to_try():
    note = memory_note(Options("image_cnn", global_batch=64), TWO)
    assert note.startswith("Estimated need of a step:") and "at 32 samples in each rank" in note
    assert "--global-batch" in note and "--strategy fsdp" in note
    assert "--strategy fsdp" not in memory_note(Options("image_cnn", strategy="fsdp"), TWO)


def test_a_lesson_that_cannot_be_estimated_gets_the_reason():
    assert memory_note(Options("image_cnn", global_batch=63), TWO).startswith(
        "What a step needs could not be estimated"
    )


def test_an_error_without_a_message_is_a_reason_too(monkeypatch):
    monkeypatch.setitem(LESSONS, "image_cnn", lambda: bytes(2**62))
    assert (
        memory_note(Options("image_cnn"), TWO)
        == "What a step needs could not be estimated: MemoryError"
    )
