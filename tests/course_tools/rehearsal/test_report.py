"""What a rehearsal has seen, in numbers and in words."""

import pytest
import torch
from gpu_programs import GOING_ON, MORE_THAN_ONE, WAITING, given_on
from torch import nn

from course_tools.rehearsal import Occurrence, Report, rehearse


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
    assert "Not looked at" in repr(report) and report.gpus == 1
    count = sum(line.count for line in report.copies)
    assert f"Copies: {count}, {count / 3:.1f} per step" in repr(report)
    with rehearse() as rehearsal:
        torch.ones(1, device="cuda") + 1
    assert "\nCopies: none\nWaits of the host for the GPU: none\n" in repr(rehearsal.report)


SEEN = """\
Rehearsed on 2 simulated GPUs (cuda): 2 steps, 1,000 operations, 25.0% of them on the GPU.
Copies: 21, 10.5 per step, 6.00 KiB
  1 x a, 1.00 KiB, a.py:1
  2 x a, 1.00 KiB, a.py:2
  3 x a, 1.00 KiB, a.py:3
  4 x a, 1.00 KiB, a.py:4
  5 x a, 1.00 KiB, a.py:5
  and 1 lines more
Waits of the host for the GPU: 3, 1.5 per step
  3 x .item(), a.py:9
On the CPU meanwhile: none
Memory of the tensors on cuda:0, peak: 2.00 GiB
Memory of the tensors on cuda:1, peak: 0 bytes
  2.00 GiB, a.py:7
Note: take care
Not looked at:
  speed"""


def test_the_words_of_a_report_say_its_numbers_line_by_line():
    report = Report(
        kind="cuda",
        gpus=2,
        operations=1000,
        on_gpu=250,
        steps=2,
        copies=tuple(Occurrence("a", f"a.py:{line}", line, 1024) for line in range(1, 7)),
        waits=(Occurrence(".item()", "a.py:9", 3, 0),),
        on_cpu=(),
        peak_bytes=(2 * 1024**3, 0),
        peak_by=(Occurrence("memory", "a.py:7", 0, 2 * 1024**3),),
        remarks=("take care",),
        not_looked_at=("speed",),
    )
    assert repr(report) == SEEN
    assert report.head.splitlines() == [SEEN.splitlines()[0], "Note: take care"]


def waits_in(rehearsal):
    events = rehearsal._world.seen.events  # without the words of a report, which take their time
    return sum(count for (what, _), count in events.items() if what.startswith("wait: "))


@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta state")
def test_the_host_waits_where_pytorch_says_that_it_waits_and_nowhere_else():
    wrong = []
    with rehearse() as rehearsal:
        for code in (*WAITING, *GOING_ON):
            given = given_on("cuda")
            before = waits_in(rehearsal)
            exec(code, given)
            waits = waits_in(rehearsal) - before
            if waits != (MORE_THAN_ONE.get(code, 1) if code in WAITING else 0):
                wrong.append((code, waits))
    assert wrong == []
    assert sum(line.count for line in rehearsal.report.waits) == waits_in(rehearsal) > 0


@pytest.mark.parametrize(
    ("code", "what", "size_bytes"),
    [
        ("torch.tensor([1, 2], device=device)", "pageable", 16),
        ("torch.as_tensor(numbers, device=device)", "pageable", 12),
        ("rows.new_tensor([1, 2])", "pageable", 8),
        ("rows[[0, 1]]", "pageable", 16),
        ("rows[indices_of_cpu]", "pageable", 24),
        ("rows[mask_of_cpu]", "pinned" if torch.__version__ >= "2.9" else "pageable", 16),
        ("torch.where(mask, torch.tensor(1.0), rows)", "pageable", 4),
        ("torch.empty(2, 3, device=device)", "", 0),
        ("torch.tensor([], device=device)", "", 0),
        ("torch.cuda.FloatTensor(2, 3)", "", 0),
    ],
)
def test_what_pytorch_copies_inside_a_call_is_counted_with_its_bytes(code, what, size_bytes):
    with rehearse() as rehearsal:
        given = given_on("cuda")
        before = len(rehearsal.report.copies)
        exec(code, given)
    copies = [(line.what, line.size_bytes) for line in rehearsal.report.copies]
    expected = [(f"to the GPU, from {what} memory", size_bytes)] if what else []
    assert len(copies) == before + len(expected)
    assert [each for each in expected if each not in copies] == []


def test_what_happened_on_one_line_is_added_up_and_the_largest_stands_first():
    with rehearse(gpus=2) as rehearsal:
        small, large = torch.ones(256), torch.ones(1024)
        small.add(1)  # before a GPU was used
        for _ in range(2):
            small.cuda(), small.cuda(1)
        kept = [large.cuda() for _ in range(3)]
        kept[0].copy_(kept[1])  # on one card, which is no copy between two
        torch.ones(2).add(1)
        torch.ones(()).add(1)  # one value is no work
        del kept
        torch.ones(1, device="cuda")
    report = rehearsal.report
    assert [(line.count, line.size_bytes) for line in report.copies] == [(3, 3 * 4096), (4, 4096)]
    assert [line.count for line in report.waits] == [4, 3]
    assert [(line.count, line.size_bytes) for line in report.on_cpu] == [(1, 0)]
    assert report.peak_bytes == (3 * 4096, 1024)
    assert [line.size_bytes for line in report.peak_by] == [3 * 4096, 1024]


def test_each_operation_is_counted_once_where_it_runs():
    with rehearse() as rehearsal:
        there, here = torch.ones(2, device="cuda"), torch.ones(2)
        before = rehearsal.report
        there.add(1)
        both = rehearsal.report
        here.add(1)
        last = rehearsal.report
    assert (both.operations, both.on_gpu) == (before.operations + 1, before.on_gpu + 1)
    assert (last.operations, last.on_gpu) == (both.operations + 1, both.on_gpu)
