"""What processes exchange on simulated GPUs."""

import pytest
import torch
import torch.distributed as dist

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
