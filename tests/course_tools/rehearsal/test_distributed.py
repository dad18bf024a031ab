"""What processes exchange on simulated GPUs."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from course_tools.rehearsal import rehearse


@pytest.mark.filterwarnings("ignore:barrier")  # of the device that it takes, as with NCCL
def test_an_average_of_whole_numbers_is_cut_as_nccl_cuts_it(monkeypatch):
    with rehearse():
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
        try:
            assert dist.get_backend() == "nccl" and dist.barrier() is None
            whole, plain = torch.tensor([-7, 7]).cuda(), torch.tensor([-7.0, 7.0]).cuda()
            monkeypatch.setattr(dist, "get_world_size", lambda group=None: 2)  # the other has zeros
            for op, numbers in ((dist.ReduceOp.SUM, [-7, 7]), (dist.ReduceOp.AVG, [-3, 3])):
                dist.all_reduce(whole, op)
                assert whole.tolist() == numbers
            dist.all_reduce(plain, dist.ReduceOp.SUM)
            assert plain.tolist() == [-7, 7] and plain.is_cuda
        finally:
            dist.destroy_process_group()


@pytest.mark.parametrize(
    ("backend", "refused"), [("nccl", True), ("gloo", False), ("cpu:gloo,cuda:nccl", False)]
)
def test_a_tensor_of_the_cpu_is_exchanged_by_gloo_and_refused_by_nccl(backend, refused):
    told = pytest.raises(RuntimeError, match="No backend type associated with device type cpu")
    with rehearse():
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
        try:
            with told if refused else nullcontext():
                dist.all_reduce(torch.ones(2))
        finally:
            dist.destroy_process_group()


def test_an_average_that_is_not_waited_for_is_still_that_of_what_was_exchanged(monkeypatch):
    def exchange(tensor, op, **_):  # the other's 4 arrive when they are waited for
        return SimpleNamespace(wait=lambda: tensor.add_(4))

    monkeypatch.setattr(c10d, "all_reduce", exchange)
    monkeypatch.setattr(dist, "get_world_size", lambda group=None: 2)
    with rehearse():
        whole = torch.tensor([2]).cuda()
        c10d.all_reduce(whole, dist.ReduceOp.AVG, async_op=True)
        assert whole.tolist() == [3]
