"""The picture that lesson 5 opens with: six training steps on XLA, measured on this machine."""

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from course_lessons.tpu.pictures import draw_steps
from course_lessons.tpu.xla_activity import time_steps
from course_tools.figures import Picture
from course_utils.xla import start_xla, xla_problem


def draw_own_steps() -> Picture | None:
    """Draw what six steps of a small network were spent on, or say why XLA is not here."""
    if problem := xla_problem():
        print(f"The first picture needs XLA, but {problem}")
        return None
    from course_lessons.scripts.train_xla import Network, load_data  # imports torch_xla

    device = start_xla()  # before the first backward pass in this kernel
    torch.manual_seed(0)
    network = Network().to(device)
    optimizer = torch.optim.Adam(network.parameters())
    loader = DataLoader(load_data(430)[0], batch_size=64, drop_last=True)

    def step(pixels: torch.Tensor, labels: torch.Tensor) -> None:
        cross_entropy(network(pixels), labels).backward()
        optimizer.step()
        optimizer.zero_grad()

    return draw_steps(time_steps(step, [(x.to(device), y.to(device)) for x, y in loader]))
