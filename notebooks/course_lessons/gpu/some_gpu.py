"""A GPU for the cells of lesson 2: this machine's, or a rehearsed T4; and how errors are shown."""

from collections.abc import Callable, Iterator
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


def show_error(action: Callable[[], object]) -> None:
    """Call `action`, and print the error that it ends in: its kind, and the line that says what.

    That is the last one, as of an error in a worker; but CUDA's own errors go on with advice.
    """
    try:
        action()
    except Exception as error:
        lines = str(error).strip().splitlines()
        said = lines[0] if lines[0].startswith("CUDA error") else lines[-1]
        print(f"{type(error).__name__}: {said}")
    else:
        print("no error")
