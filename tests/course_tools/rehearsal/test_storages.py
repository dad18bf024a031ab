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
