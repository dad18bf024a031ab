"""Several devices: the exchange of gradients, and what it leaves of their speed."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from course_tools.estimate import estimate
from course_tools.estimate.chips import all_links
from course_tools.estimate.counting.count_work import count_work
from course_tools.estimate.time.parallel import exchange_s, scaling
from course_tools.estimate.time.step_time import fitted


def test_gradients_that_the_host_copies_do_not_travel_during_the_backward_pass():
    # P. Patarasuk and X. Yuan (2009): each of n sends 2 (n - 1) / n times all gradients
    work = count_work(nn.Linear(4096, 4096), torch.empty(1, 4096), batch=64, precision="bf16")
    for name, hidden in (("PCIe through the host", 0.0), ("PCIe 4.0 x16", 2 / 3)):
        link = next(one for one in all_links() if one.name == name)
        found = scaling(work, "RTX 4090", link=name, counts=(1, 2))
        one_s, sent = found.steps_s[0], exchange_s(work.parameters, link, 2)
        assert sent > one_s  # so that it counts
        two_s = 1.02 * one_s + sent - hidden * one_s
        assert found.steps_s[1] == pytest.approx(two_s, rel=1e-3)


def test_the_ring_moves_each_gradient_twice_and_a_slow_link_costs_speed():
    link = next(link for link in all_links() if link.name == "NVLink 3")
    latency_s = fitted()["numbers"]["round_s"]["value"]
    carried = 0.8 * 300e9  # four fifths of the line rate
    assert exchange_s(10**9, link, 8) == pytest.approx(2 * 7 / 8 * 4e9 / carried + 14 * latency_s)
    work = count_work(nn.Linear(4096, 4096), torch.empty(1, 4096), batch=4096)
    scaled = scaling(work, "A100", counts=(1, 8))
    assert scaled.speedups[0] == 1 and 4 < scaled.speedups[1] < 8
    slow = scaling(work, "A100", link="Ethernet 10G", counts=(1, 8))
    assert slow.speedups[1] < scaled.speedups[1]
    own = replace(link, name="a link of nobody's list", gb_per_s=10 / 8)
    assert scaling(work, "A100", link=own, counts=(1, 8)) == slow
    # this chip has no link of its own
    without = scaling(work, "M4 Max", link="Ethernet 10G", counts=(1, 8))
    assert without.speedups[1] > 1


def test_several_cards_are_compiled_and_launched_as_one_is():
    model, x = nn.Sequential(nn.Linear(16, 512), nn.ReLU(), nn.Linear(512, 10)), torch.empty(1, 16)

    def step_s(count, **asked):
        return estimate(model, x, devices=["A100"], count=count, **asked).rows[0].step_s

    def ratio(count, **asked):
        return step_s(count, **asked) / step_s(count)

    assert ratio(2, compiled=True) == pytest.approx(ratio(1, compiled=True), rel=0.02)


def test_scaling_wants_a_training():
    with pytest.raises(ValueError, match="training"):
        scaling(count_work(nn.Linear(4, 4), torch.empty(1, 4), training=False), "A100")
