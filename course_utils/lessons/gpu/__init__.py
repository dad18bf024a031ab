"""What lesson 2 needs beside the helper package: its pictures, published speeds, and photographs to decode."""

import io
import time

import torch
from PIL import Image
from torch.utils.data import Dataset, get_worker_info

from course_utils.devices import usable_cores
from course_utils.display.figures import lecture_axes, picture
from course_utils.estimate.chips import find_chip
from course_utils.estimate.speeds import published
from course_utils.lessons.gpu.pictures import draw_batches, draw_copies, draw_lanes, draw_losses
from course_utils.lessons.progress import progress

__all__ = ["Photographs", "draw_batches", "draw_copies", "draw_lanes", "draw_losses", "find_chip", "lecture_axes"]
__all__ += ["picture", "progress", "published", "usable_cores"]

SIDE = 64  # of the images that the network sees, in pixels
Note = tuple[str, float, float]  # who decoded a batch, from when to when, by the clock that all processes share


class Photographs(Dataset[tuple[torch.Tensor, Note]]):
    """JPEG files in memory that are slow to decode, `batch` of them an item, which says who decoded them and when.

    Args:
        batches: how many items there are.
        batch: photographs in each.
        size: width and height of a photograph, in pixels.
    """

    def __init__(self, batches: int = 12, batch: int = 4, size: tuple[int, int] = (1024, 768)):
        noise = torch.randint(0, 256, (size[1] // 8, size[0] // 8, 3), dtype=torch.uint8)
        buffer = io.BytesIO()
        Image.fromarray(noise.numpy()).resize(size).save(buffer, "JPEG", quality=90)
        self.batches, self.batch, self.file = batches, batch, buffer.getvalue()

    def __len__(self) -> int:
        return self.batches

    def __getitem__(self, index: int) -> tuple[torch.Tensor, Note]:
        if not 0 <= index < self.batches:
            raise IndexError(f"there are {self.batches} batches, counted from 0, but number {index} was requested.")
        start, worker = time.perf_counter(), get_worker_info()
        pixels = torch.stack([self._decode() for _ in range(self.batch)])  # (batch, 3, SIDE, SIDE)
        return pixels, (f"worker {worker.id}" if worker else "loading", start, time.perf_counter())

    def _decode(self) -> torch.Tensor:
        image = Image.open(io.BytesIO(self.file)).convert("RGB").resize((SIDE, SIDE))
        return torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).view(SIDE, SIDE, 3).permute(2, 0, 1)
