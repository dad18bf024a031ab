"""The computer that launches the kernels: how long it needs for each, measured here."""

import torch
from torch import nn

from course_tools.estimate.counting.count_work import count_work
from course_tools.estimate.time.step_time import Host
from course_utils.timing import time_call

LAYERS, WIDTH = 20, 8  # so little arithmetic that only the launching takes time


def measure_host() -> Host:
    """Measure the seconds of the host for each kernel, by a training step that hardly calculates.

    The step runs on this machine's CPU: what Python and PyTorch need to get an operation under way
    is the same for a GPU.

    Published times of small batches (1 and 2 images, on T4, V100 and A100, in NVIDIA's
    DeepLearningExamples) check one half of this: on one host, five networks of 174 to 781 kernels
    need the same time for a kernel within a factor of 1.4, and it hardly depends on the card. The
    other half, that a CPU's rate is that of a GPU's launches, no table of this package checks: no
    source gives both for one host.
    """
    layers = [part for _ in range(LAYERS) for part in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model, x = nn.Sequential(*layers), torch.zeros(1, WIDTH)

    def step() -> None:
        model.zero_grad()
        model(x).sum().backward()

    kernels = count_work(model, x, precision="fp32").kernels
    timing = time_call(step, device="cpu", threads=1, max_s=1.0)
    return Host(0.0, timing.median_s / kernels, "measured on this machine")
