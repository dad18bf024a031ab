import torch

from course_tools.compare.same_draws import SameDraws, seeded
from course_tools.rehearsal import rehearse


def test_what_is_drawn_on_another_device_is_drawn_by_the_cpus_generator():
    torch.manual_seed(0)
    on_cpu = [torch.rand(3), torch.empty(4).normal_(), torch.rand(2)]
    torch.manual_seed(0)
    with SameDraws():
        first = torch.rand(3, device="meta")
        torch.empty(4, device="meta").normal_(generator=torch.Generator())  # not of the caller's
    assert first.device.type == "meta"  # which has no generator and no values
    assert torch.equal(torch.rand(2), on_cpu[2])


def test_a_tensor_that_is_filled_in_place_holds_what_the_cpu_would_have_drawn():
    with seeded(3):
        on_cpu = torch.empty(50).normal_(2, 0.1)
    with rehearse(), seeded(3), SameDraws():
        filled = torch.zeros(50, device="cuda")
        assert filled.normal_(2, 0.1) is filled
        assert torch.equal(filled.cpu(), on_cpu)


def test_the_fused_dropout_of_a_gpu_and_that_of_a_cpu_draw_the_same_mask():
    numbers = torch.ones(100)
    with seeded(3):
        plain = torch.nn.functional.dropout(numbers, 0.3)
    with seeded(3):
        fused, _ = torch.native_dropout(numbers, 0.3, True)
    assert torch.equal(plain, fused)


def test_the_callers_generator_is_left_as_it_was():
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    with seeded(5):
        drawn = torch.rand(3)
    assert torch.equal(drawn, torch.rand(3, generator=torch.Generator().manual_seed(5)))
    assert torch.equal(torch.rand(1), expected)
