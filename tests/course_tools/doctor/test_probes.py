"""What a probe computes on a device is held against the CPU's answer."""

import json

import pytest
import torch

from course_tools.doctor import probes
from course_tools.doctor.run_child import PREFIX


@pytest.mark.parametrize("factor", [1.0, 1.5, float("nan")])
def test_an_answer_that_differs_is_wrong_also_if_it_is_no_number(factor, monkeypatch, capsys):
    monkeypatch.setattr(torch.Tensor, "cpu", lambda self: self * factor)
    probes._try_kernels(["cpu"])
    (said,) = [line for line in capsys.readouterr().out.splitlines() if '"kernel"' in line]
    kernel = json.loads(said.removeprefix(PREFIX))["kernel"]
    assert kernel["device"] == "cpu" and ("wrong" in kernel) is (factor != 1)
