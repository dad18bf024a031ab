"""Who initialized CUDA? Name the import, the cell or the line that first touched it in this process.

Once CUDA runs in a process, a child made with fork cannot use it ("Cannot re-initialize CUDA in forked
subprocess"), and strategies such as `ddp_notebook` fork. So the first touch matters, and it is easily overlooked:
an import can do it, and so can `torch.cuda.is_available()`.
"""

import ctypes
import linecache
import os
import sys
import traceback
from typing import Any

import torch
from IPython import get_ipython

NOT_INITIALISED = 3  # CUDA_ERROR_NOT_INITIALIZED of the CUDA driver API
NO_IMPORTS = ("__main__", "runpy", "IPython", "ipykernel", "torch")  # their modules' own lines are no import to blame


class CudaWatch:
    """Watch for the first touch of CUDA, from `start` on.

    In a notebook it also looks after every cell, so a library that starts CUDA behind torch's back is traced
    to its cell.
    """

    first_touch: str | None = None  #: who did it and where, in words; None while nothing here has initialized CUDA

    def start(self) -> "CudaWatch":
        """Begin to watch. What was initialized before can only be reported as such."""
        if is_cuda_initialized():
            self.first_touch = "something before the watch began; start it in the first cell"
            return self
        # torch runs these calls at the end of its own initialization, on the stack of whoever caused it.
        torch.cuda._lazy_call(self._note_stack)  # there is no public hook
        if shell := get_ipython():
            shell.events.register("post_run_cell", self._look)
        return self

    def __repr__(self) -> str:
        self._look()
        if self.first_touch is None:
            return "Nothing has initialized CUDA in this process."
        return f"CUDA was initialized by {self.first_touch}"

    def _note_stack(self) -> None:
        """Blame the import under way, if there is one, and else the line of the user's that led here."""
        for frame, _ in traceback.walk_stack(sys._getframe(1)):  # the last call comes first
            module, file = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
            importing = frame.f_code.co_name == "<module>" and module.partition(".")[0] not in NO_IMPORTS
            if importing or module == "__main__":
                break
        who = f"the import of {module}, {file}" if importing else _cell() or file
        line = frame.f_lineno
        self.first_touch = self.first_touch or f"{who} line {line}: {linecache.getline(file, line).strip()}"

    def _look(self, result: Any = None) -> None:
        if self.first_touch is None and is_cuda_initialized():
            who = _cell(getattr(result, "execution_count", None)) or "the watched code"
            hint = "(torch.cuda.is_available() does that, and so do other CUDA libraries)"
            self.first_touch = f"{who} without torch's own start-up {hint}"


def is_cuda_initialized() -> bool:
    """Say whether anything in this process, torch or not, has initialized CUDA. Asking does not initialize it."""
    if torch.cuda.is_initialized():
        return True
    try:  # the driver's library only if it is loaded already
        driver = ctypes.CDLL("libcuda.so.1", mode=getattr(os, "RTLD_NOLOAD", 0) | getattr(os, "RTLD_NOW", 0))
    except OSError:
        return False
    return driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) != NOT_INITIALISED


def _cell(number: int | None = None) -> str:
    shell = get_ipython()  # it counts on before it calls what runs after a cell, which knows its own number
    return f"cell In [{number or shell.execution_count}]" if shell else ""
