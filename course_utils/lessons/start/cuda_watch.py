"""Who initialized CUDA? Name the cell that first touched it in this process.

Once CUDA runs in a process, a child made with fork cannot use it ("Cannot re-initialize CUDA in forked
subprocess"), and strategies such as `ddp_notebook` fork. So the first touch matters, and it is easily overlooked:
an import can do it, and so can `torch.cuda.is_available()`.
"""

import ctypes
import os
from typing import Any

import torch
from IPython import get_ipython

NOT_INITIALISED = 3  # CUDA_ERROR_NOT_INITIALIZED of the CUDA driver API


class CudaWatch:
    """Watch for the first touch of CUDA, from `start` on: in a notebook it looks after every cell."""

    first_touch: str | None = None  #: who did it, in words; None while nothing here has initialized CUDA

    def start(self) -> "CudaWatch":
        """Begin to watch. What was initialized before can only be reported as such."""
        if is_cuda_initialized():
            self.first_touch = "something before the watch began; start it in the first cell"
        elif shell := get_ipython():
            shell.events.register("post_run_cell", self._look)
        return self

    def __repr__(self) -> str:
        self._look()
        if self.first_touch is None:
            return "Nothing has initialized CUDA in this process."
        return f"CUDA was initialized by {self.first_touch}"

    def _look(self, result: Any = None) -> None:
        if self.first_touch is None and is_cuda_initialized():
            shell = get_ipython()  # it counts on before it calls what runs after a cell, which knows its own number
            number = getattr(result, "execution_count", None) or (shell and shell.execution_count)
            who = f"cell In [{number}]" if number else "the watched code"
            self.first_touch = f"{who} (an import can do that, and so can torch.cuda.is_available())"


def is_cuda_initialized() -> bool:
    """Say whether anything in this process, torch or not, has initialized CUDA. Asking does not initialize it."""
    if torch.cuda.is_initialized():
        return True
    try:  # the driver's library only if it is loaded already
        driver = ctypes.CDLL("libcuda.so.1", mode=getattr(os, "RTLD_NOLOAD", 0) | getattr(os, "RTLD_NOW", 0))
    except OSError:
        return False
    return driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) != NOT_INITIALISED
