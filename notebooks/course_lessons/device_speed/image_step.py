"""A training step of the image CNN as work to compare, beside the tool's own two workloads."""

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import nn

from course_lessons.data.drawn_images import draw_shapes
from course_lessons.data.models import ImageCNN
from course_lessons.fast_adam import fast_adam
from course_tools.compare.workloads import DTYPES, ELEMENTWISE, PRODUCT, Call, Workload
from course_utils.devices import Device
from course_utils.transfers import to_device


def cnn_step(device: Device, size: int, precision: str = "fp32") -> Call:
    """Return a function that takes one training step of the image CNN on a batch that is on the
    device.

    "bf16" and "fp16" run under autocast; `using_tf32`, around the call, decides whether "fp32" and
    "tf32" differ.
    """
    images, labels = draw_shapes(size, seed=42)
    return training_step(ImageCNN(), images, labels, nn.functional.cross_entropy, device, precision)


def training_step(
    model: nn.Module,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    loss_fn: Callable,
    device: Device,
    precision: str,
) -> Call:
    """Return a function that takes one training step with Adam on one batch, and returns its
    loss.
    """
    dtype = DTYPES[precision]
    model, inputs, targets = to_device((model, inputs, targets), device)
    optimizer = fast_adam(model.parameters(), device.torch_device)

    def step() -> torch.Tensor:
        with nullcontext() if dtype is torch.float32 else torch.autocast(device.kind, dtype):
            loss = loss_fn(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


CNN_STEP = Workload(
    name="CNN step",
    build=cnn_step,
    size_name="batch",
    unit="samples",
    items=float,
    precisions=("fp32", "tf32", "bf16"),
)
SUITE = (CNN_STEP, PRODUCT, ELEMENTWISE)
