"""PyTorch's profiler in a rehearsal."""

import pytest
import torch
from torch.profiler import ProfilerActivity

from course_tools.rehearsal import rehearse

CPU, CUDA = ProfilerActivity.CPU, ProfilerActivity.CUDA


@pytest.mark.parametrize(
    "how",
    [
        lambda: torch.profiler.profile(activities=[CPU, CUDA], record_shapes=True),
        lambda: torch.profiler.profile(activities=[CUDA]),
        lambda: torch.autograd.profiler.profile(use_device="cuda"),
    ],
)
def test_the_profiler_records_the_cpu_and_asks_no_driver_for_times(how, capfd):
    rows = torch.ones(4, 3)
    with torch.profiler.profile(activities=[CPU]) as on_cpu:
        torch.nn.functional.linear(rows, rows)
    with rehearse() as rehearsal:
        moved = rows.cuda()
        with how() as recorded:
            torch.nn.functional.linear(moved, moved)
        averages = recorded.key_averages()
        table = averages.table(sort_by="cuda_time_total")  # as PyTorch's own recipe sorts it
    seen = {each.key for each in averages}
    assert {"aten::linear", "aten::addmm"} & {each.key for each in on_cpu.key_averages()} <= seen
    assert "aten::linear" in table and not any(each.device_time_total for each in averages)
    assert "Failed to record CUDA event" not in capfd.readouterr().err
    assert [each for each in rehearsal.report.remarks if "recorded the CPU alone" in each]


def test_a_recording_of_the_cpu_is_left_alone():
    with rehearse() as rehearsal, torch.profiler.profile(activities=[CPU]) as recorded:
        torch.ones(3).add(1)
    assert "aten::add" in {each.key for each in recorded.key_averages()}
    assert not [each for each in rehearsal.report.remarks if "recorded the CPU alone" in each]
