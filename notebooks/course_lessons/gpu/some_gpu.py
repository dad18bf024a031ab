"""A GPU for the cells of lesson 2: the one of this machine, or else a rehearsed T4."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from course_tools.rehearsal import rehearse


@contextmanager
def some_gpu() -> Iterator[torch.device]:
    """Give the device of a GPU to a block: this machine's, or a T4 that is rehearsed on the CPU."""
    real = torch.accelerator.current_accelerator(check_available=True)
    if real:
        yield real
        return
    with rehearse("cuda", memory="16 GB", capability=(7, 5)):
        yield torch.device("cuda")
