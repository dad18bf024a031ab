"""Compiled code of other packages, which a rehearsal does not look into, and its errors."""

import dis
import functools
import mmap
import re
import sys
import traceback
from pathlib import Path
from types import TracebackType

from course_tools.rehearsal.lines import HERE, TORCH, is_users

RESOLVED_TORCH = str(Path(TORCH).resolve())
NAMES_WITHIN = 8 * 1024**2  # bytes of a library's start and end, where what it needs is listed
GRU_OF_XLA = "/torch_xla/experimental/gru.py"  # which torch_xla puts in the place of nn.GRU
SPEAKS_OF_A_GPU = re.compile(r"cuda|cublas|cudnn|cupti|nvidia|\bgpu|\bhip\b|'CPU' backend", re.I)


def compiled_elsewhere() -> list[str]:
    """Return a sentence on loaded libraries that were linked with PyTorch and are not its own."""
    maps = Path("/proc/self/maps")
    if maps.exists():
        loaded = {line.split(maxsplit=5)[-1] for line in maps.read_text().splitlines()}
    else:
        loaded = {str(getattr(each, "__file__", "")) for each in sys.modules.copy().values()}
    found = sorted(each for each in loaded if each[:1] == "/" and links_pytorch(each))
    names = ", ".join("/".join(Path(each).parts[-2:]) for each in found)
    return [f"Compiled code outside PyTorch was loaded and not looked at: {names}"] if found else []


@functools.cache
def links_pytorch(path: str) -> bool:
    """Tell whether a file outside PyTorch is a library that was linked with it."""
    if ".so" not in path[-12:] and not path.endswith((".pyd", ".dylib")):
        return False
    if str(Path(path).resolve()).startswith(RESOLVED_TORCH) or "/nvidia/" in path:
        return False
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            ends = data[:NAMES_WITHIN], data[-NAMES_WITHIN:]
            return any(b"libc10" in each for each in ends)
    except (OSError, ValueError):
        return False


def explain(error: BaseException) -> None:
    """Add a note to an error of something that looked for a real GPU."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if any(frame.f_code.co_filename.endswith(GRU_OF_XLA) for frame in frames):
        error.add_note(
            "rehearsal: torch_xla replaced nn.GRU when it was imported, as Lightning does wherever "
            "it is installed, by one that runs on XLA alone: on a real GPU it fails too. Use "
            "torch.nn.modules.rnn.GRU, or an environment without torch_xla."
        )
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or getattr(error, "__notes__", None):
        return
    if "Named tensors are" in str(error):
        error.add_note("rehearsal: no operation on a named tensor can be watched: rename(None).")
        return
    file = trace.tb_frame.f_code.co_filename
    inside = is_users(file) or str(Path(file).resolve()).startswith((RESOLVED_TORCH, HERE))
    who = "compiled code" if inside else str(trace.tb_frame.f_globals.get("__name__", file))
    raises = inside and not raised_by_compiled_code(trace)
    if raises or not SPEAKS_OF_A_GPU.search(str(error)):
        return
    error.add_note(
        f"rehearsal: this comes from {who.partition('.')[0]}, which looked for a real GPU. Only "
        "PyTorch's own operations are simulated: leave this call out in a rehearsal, or run it on "
        "a GPU."
    )


def raised_by_compiled_code(trace: TracebackType) -> bool:
    """Tell whether the last frame called compiled code that raised the error."""
    operation = dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]]
    return not operation.startswith(("RAISE", "RERAISE"))
