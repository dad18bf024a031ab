"""Files of tensors."""

import pytest
import torch

from course_tools.rehearsal import rehearse


def test_a_checkpoint_remembers_where_its_tensors_were(tmp_path):
    with rehearse() as rehearsal:
        torch.save(torch.ones(2, device="cuda"), tmp_path / "one.pt")
        assert torch.load(tmp_path / "one.pt").device.type == "cuda"
        assert torch.load(tmp_path / "one.pt", map_location="cpu").device.type == "cpu"
    with pytest.raises(RuntimeError, match="deserialize object on a CUDA device"):
        torch.load(tmp_path / "one.pt")
    assert any("map_location" in each for each in rehearsal.report.remarks)
    with rehearse(gpus=2):
        torch.save(torch.ones(2, device="cuda:1"), tmp_path / "second.pt")
    with rehearse(), pytest.raises(RuntimeError, match="deserialize object on CUDA device 1 but"):
        torch.load(tmp_path / "second.pt")


@pytest.mark.parametrize(("gpus", "current", "told"), [(2, 0, True), (2, 1, False), (1, 0, False)])
def test_a_checkpoint_read_onto_another_gpu_than_the_process_uses_is_remarked_upon(
    gpus, current, told, tmp_path
):
    with rehearse(gpus=gpus) as rehearsal:
        torch.save(torch.ones(2, device=f"cuda:{gpus - 1}"), tmp_path / "one.pt")
        torch.cuda.set_device(current)
        assert torch.load(tmp_path / "one.pt").device.index == gpus - 1
    assert any("Each process fills that GPU" in each for each in rehearsal.report.remarks) == told


def test_memory_moves_to_the_gpu_that_is_asked_for_and_is_sent_to_no_other_process():
    with rehearse(gpus=2):
        plain = torch.ones(256).untyped_storage()
        kept = [plain.cuda(), plain.cuda(1)]
        sizes = [torch.cuda.memory_allocated(number) for number in (0, 1)]
        assert sizes == [each.nbytes() for each in kept] == [1024, 1024]
        assert torch.UntypedStorage._new_shared(8).nbytes() == 8
        with pytest.raises(NotImplementedError, match="and move them in the loop"):
            torch.UntypedStorage._new_shared(8, device="cuda")
