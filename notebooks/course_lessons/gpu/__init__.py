"""What lesson 2 needs beside the helper package: its pictures, published speeds, and photographs to
decode.
"""

import io
import time

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset, get_worker_info

from course_lessons.exercises.progress import progress
from course_lessons.gpu.pictures import draw_batches, draw_copies, draw_lanes, draw_losses
from course_utils.devices import usable_cores
from course_utils.estimate import find_chip
from course_utils.estimate.speeds import published
from course_utils.figures import lecture_axes, picture

SIDE = 64  # of the images that the network sees, in pixels
BATCHES, BATCH = 12, 4  # and how many images are in each
# who decoded a batch, from when to when, by the clock that all processes share
Note = tuple[str, float, float]


class Photographs(Dataset[tuple[torch.Tensor, Note]]):
    """A JPEG file in memory that is slow to decode: each item decodes it BATCH times, and says who
    did so and when.
    """

    def __init__(self):
        noise = torch.randint(0, 256, (96, 128, 3), dtype=torch.uint8)
        buffer = io.BytesIO()
        Image.fromarray(noise.numpy()).resize((1024, 768)).save(buffer, "JPEG", quality=90)
        self.file = buffer.getvalue()

    def __len__(self) -> int:
        return BATCHES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, Note]:
        if not 0 <= index < BATCHES:
            raise IndexError(
                f"there are {BATCHES} batches, counted from 0, but number {index} was requested."
            )
        start, worker = time.perf_counter(), get_worker_info()
        images = [
            Image.open(io.BytesIO(self.file)).convert("RGB").resize((SIDE, SIDE))
            for _ in range(BATCH)
        ]
        # (BATCH, 3, SIDE, SIDE)
        pixels = (
            torch.from_numpy(np.stack(list(map(np.asarray, images))))
            .permute(0, 3, 1, 2)
            .contiguous()
        )
        return pixels, (f"worker {worker.id}" if worker else "loading", start, time.perf_counter())
