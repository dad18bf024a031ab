"""Code that would be compiled."""

import pytest
import torch

from course_tools.rehearsal import rehearse


def test_code_that_would_be_compiled_runs_as_it_stands_and_its_lines_are_named():
    layer, before = torch.nn.Linear(2, 2), (torch.compile, torch.jit.script)
    with rehearse() as rehearsal:
        layer.cuda()
        assert torch.compile(layer) is layer
        assert torch.jit.script(layer) is layer

        @torch.compile(dynamic=True)
        def twice(rows):
            return rows * 2

        assert twice(torch.ones(2, device="cuda")).is_cuda
    said = [each for each in rehearsal.report.remarks if "was not compiled but ran" in each]
    assert len(said) == 3 and "torch.compile(layer) is layer" in said[0]
    assert (torch.compile, torch.jit.script) == before


@pytest.mark.parametrize("strict", [False, True])
def test_a_model_is_exported_from_the_cpu_and_refused_on_a_gpu(strict):
    # PyTorch would ask the driver for a stream of the GPU, and the process would end there
    layer, rows = torch.nn.Linear(2, 2), torch.ones(1, 2)
    with rehearse():
        exported = torch.export.export(mod=layer, args=(rows,), strict=strict)
        assert torch.equal(exported.module()(rows), layer(rows))
        for moved in (layer, layer.cuda()):
            with pytest.raises(NotImplementedError, match=r"model\.cpu\(\), and its inputs"):
                torch.export.export(moved, (rows.cuda(),), strict=strict)
