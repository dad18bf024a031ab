import torch
from course_lessons.exercises.torch_calls import READS, TorchCalls


def test_calls_are_counted_and_get_what_they_were_given():
    rows = torch.ones(2, 3)
    with TorchCalls() as calls:
        total = rows.sum(dim=1, keepdim=True)
        one = total[0, 0]
        read = [one.item(), rows.tolist(), one.numpy(), one.cpu()]
        read += [float(one), int(one), bool(one), f"{one:.0f}"]
    assert total.shape == (2, 1) and read == [3, [[1, 1, 1]] * 2, 3, 3, 3, 3, True, "3"]
    assert calls.count(READS) == len(read) and calls.count(("sum",)) == 1
