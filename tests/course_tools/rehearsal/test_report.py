"""What a rehearsal has seen, in numbers and in words."""

import pytest
import torch
from torch import nn

from course_tools.rehearsal import rehearse


def test_who_moved_data_and_met_an_error_at_once_is_not_asked_whether_anything_was_moved():
    with rehearse() as rehearsal, pytest.raises(RuntimeError, match="same device"):
        torch.ones(3).cuda() + torch.ones(3)
    assert rehearsal.report.on_gpu == 0 and "Nothing ran on the GPU" not in repr(rehearsal.report)
    assert "Copies: 1" in repr(rehearsal.report)


def test_the_report_counts_copies_waits_and_steps():
    with rehearse() as rehearsal:
        model = nn.Linear(4, 1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            rows = torch.ones(8, 4)
            model(rows.cuda()).mean().backward()
            optimizer.step()
        model(torch.ones(1, 4).pin_memory().cuda()).item()
        torch.ones(1, 4).pin_memory().to("cuda", non_blocking=True)
    report = rehearsal.report
    assert report.steps == 3
    moved = {line.where.partition(": ")[2]: line for line in report.copies}
    assert moved["model(rows.cuda()).mean().backward()"].size_bytes == 3 * 8 * 4 * 4
    copying = [line for line in report.waits if line.what == "copy to the GPU"]
    others = [line for line in report.waits if line not in copying]
    assert sum(line.count for line in copying) == 2 + 3 + 1  # parameters, batches, the last batch
    assert [line.count for line in others] == [1]
    assert any("pinned" in line.what for line in report.copies)
    assert "Not looked at" in repr(report) and report.to_dict()["gpus"] == 1
    count = sum(line.count for line in report.copies)
    assert f"Copies: {count}, {count / 3:.1f} per step" in repr(report)
    with rehearse() as rehearsal:
        torch.ones(1, device="cuda") + 1
    assert "\nCopies: none\nWaits of the host for the GPU: none\n" in repr(rehearsal.report)
