"""The host's time for a kernel, from a step of which it is known what it launches."""

import inspect
from types import SimpleNamespace

import torch

from course_tools.estimate.time import host


def test_the_time_of_a_step_is_shared_by_its_kernels(monkeypatch):
    def time_call(step, **how):
        assert how == {"device": "cpu", "threads": 1, "max_s": 1.0}
        model = inspect.getclosurevars(step).nonlocals["model"]
        seen = []
        for _ in range(2):  # steps do the same
            step()
            seen.append([each.grad.clone() for each in model.parameters()])
        assert all(map(torch.equal, *seen)) and any(grad.any() for grad in seen[0])
        return SimpleNamespace(median_s=1.0)

    monkeypatch.setattr(host, "time_call", time_call)
    found = host.measure_host()
    # of 20 layers and their ReLUs: 2 forward; backward 1, and 2 or 3 for the layer
    assert found.step_s == 0 and "measured" in found.source
    assert 20 * 5 <= 1 / found.launch_s <= 20 * 8
