import torch
from course_lessons.exercises.torch_calls import READS, TorchCalls


def test_calls_are_counted_and_get_what_they_were_given():
    rows = torch.ones(2, 3)
    with TorchCalls() as calls:
        total = rows.sum(dim=1, keepdim=True)
        read = [total[0].item(), float(total[1]), rows.tolist()]
    assert total.shape == (2, 1) and read == [3, 3, [[1, 1, 1]] * 2]
    assert calls.count(READS) == 3 and calls.count(("sum",)) == 1
