"""Photographs that are slow to load, and the timeline of a training run that waits for them."""

import time
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

from course_tools.figures import Picture
from course_tools.timeline.drawing import draw_runs
from course_tools.timeline.timeline import Timeline
from course_utils.devices import as_device, wait_for

SIDE, BATCH = 64, 4  # of the images that the network sees, in pixels; and their number in a batch
STORAGE_S = 0.07  # the pause that stands for a slow network drive
# who loaded a batch, from when to when, by the clock that all processes share
Note = tuple[str, float, float]


class Photographs(Dataset[tuple[torch.Tensor, Note]]):
    """Batches of photographs on a slow network drive, for which a pause stands; their pixels are
    random. Each batch notes which process loaded it, and when.
    """

    def __init__(self, batches: int = 64):
        self.batches = batches

    def __len__(self) -> int:
        return self.batches

    def __getitem__(self, index: int) -> tuple[torch.Tensor, Note]:
        start, worker = time.perf_counter(), get_worker_info()
        time.sleep(STORAGE_S)
        pixels = torch.randint(0, 256, (BATCH, 3, SIDE, SIDE), dtype=torch.uint8)
        who = f"worker {worker.id}" if worker else "loading"
        return pixels, (who, start, time.perf_counter())


def make_step() -> Callable[[tuple[torch.Tensor, Note]], None]:
    """Return a function that takes one training step of a small network on a batch."""
    device = as_device(None).torch_device
    network = nn.Sequential(nn.Conv2d(3, 64, 7), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network = network.to(device)
    optimizer = torch.optim.SGD(network.parameters(), 1e-3)

    def step(batch: tuple[torch.Tensor, Note]) -> None:
        pixels, _ = batch
        loss = network(pixels.to(device).float()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def watch_training(workers: int) -> Timeline:
    """Train on six batches of photographs, and return who loaded which of them, and when; the time
    begins when the loader is asked for its iterator, so it includes the start of the workers.
    """
    step = make_step()
    photographs = Photographs(batches=6)
    step(photographs[0])  # the first step is slower
    lanes: dict[str, list[tuple[str, float, float]]] = {}
    training = []
    begin_s = time.perf_counter()
    for batch in DataLoader(photographs, batch_size=None, num_workers=workers):
        who, *times = batch[1]
        lanes.setdefault(who, []).append(("load", *times))
        start_s = time.perf_counter()
        step(batch)
        wait_for(None)
        training.append(("step", start_s, time.perf_counter()))
    first_s = min(start_s for loads in lanes.values() for _, start_s, _ in loads)
    lanes = {"starting": [("start", begin_s, first_s)], **dict(sorted(lanes.items()))}
    return Timeline.of_spans({**lanes, "device: training": training})


def draw_own_workers(*counts: int) -> Picture:
    """Draw the training on photographs with each of these numbers of workers, measured here."""
    runs = {f"num_workers={count}": watch_training(count).lanes for count in counts}
    return draw_runs(runs, "Workers load while the network trains")
