"""What torch says of its GPUs."""

import pytest
import torch

from course_tools.rehearsal import rehearse


def test_a_device_is_refused_or_ignored_as_pytorch_does():
    with pytest.raises(ValueError) as of_torch:
        torch.cuda._utils._get_device_index("cpu", optional=True)
    with rehearse(gpus=2):
        with pytest.raises(ValueError) as refused:
            torch.cuda.memory_allocated("cpu")
        torch.cuda.set_device(1)
        torch.cuda.set_device(-1)
        assert torch.cuda.current_device() == 1
    assert str(refused.value) == str(of_torch.value)


def test_the_time_between_two_events_is_in_milliseconds():
    with rehearse():
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.time_s, end.time_s = 2.0, 2.25
        assert start.elapsed_time(end) == 250  # torch.cuda.Event: "time elapsed in milliseconds"
