"""How an operation of a rehearsal runs on the CPU."""

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from course_tools.rehearsal import rehearse


class Types(TorchDispatchMode):
    """Counts the types of numbers with which products and convolutions run."""

    def __init__(self):
        super().__init__()
        self.found = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(each in str(func) for each in ("mm", "convolution")):
            self.found.update(each.dtype for each in args if isinstance(each, torch.Tensor))
        return func(*args, **kwargs or {})


PRODUCTS = {  # an operation, and the shapes of what it is given
    torch.mm: [(4, 8), (8, 3)],
    torch.addmm: [(3,), (4, 8), (8, 3)],
    torch.bmm: [(2, 4, 8), (2, 8, 3)],
    torch.baddbmm: [(2, 4, 3), (2, 4, 8), (2, 8, 3)],
    torch.addbmm: [(4, 3), (2, 4, 8), (2, 8, 3)],
    torch.conv2d: [(2, 3, 6, 6), (4, 3, 3, 3)],
}


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_of_16_bits_and_their_gradients_run_in_32_and_are_rounded(product, dtype):
    torch.manual_seed(0)
    given = [torch.randn(shape).to(dtype) for shape in PRODUCTS[product]]
    exact = [each.double().requires_grad_() for each in given]
    product(*exact).sum().backward()
    with Types() as types, rehearse():
        tensors = [each.cuda().requires_grad_() for each in given]
        made = product(*tensors)
        made.sum().backward()
        assert made.dtype == dtype and made.device.type == "cuda"
        found = [made.detach(), *(each.grad for each in tensors)]
        found = [each.cpu() for each in found]
    for mine, right in zip(
        found, [product(*exact).detach(), *(each.grad for each in exact)], strict=True
    ):
        assert mine.dtype == dtype
        one_rounding = torch.finfo(dtype).eps
        assert torch.allclose(mine.double(), right, rtol=one_rounding, atol=one_rounding)
    assert set(types.found) == {torch.float32}


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda each: each.__name__)
def test_two_types_of_numbers_are_refused_as_by_pytorch(product):
    given = [torch.ones(shape) for shape in PRODUCTS[product]]
    given[-1] = given[-1].half()
    with pytest.raises(RuntimeError) as refused:
        product(*given)
    with rehearse(), pytest.raises(RuntimeError) as rehearsed:
        product(*(each.cuda() for each in given))
    assert str(rehearsed.value) == str(refused.value)
