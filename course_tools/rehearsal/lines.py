"""Which line of the user's program is running, and what it calls a tensor."""

import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, ClassVar

import torch

from course_tools.private import code_without_keys


class Spot:
    """A place in a program: its code and the index of the instruction. There is one for each."""

    __slots__ = ("code", "instruction")
    known: ClassVar[dict[tuple[int, int], "Spot"]] = {}

    def __init__(self, code: CodeType, instruction: int) -> None:
        self.code = code
        self.instruction = instruction

    @classmethod
    def of(cls, frame: FrameType) -> "Spot":
        """Return the place where a frame is."""
        key = (id(frame.f_code), frame.f_lasti)
        found = cls.known.get(key)
        if found is None:
            found = cls.known[key] = cls(frame.f_code, frame.f_lasti)
        return found


TORCH = torch.__path__[0]
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
FOLDERS = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
FOLDERS.append(os.path.dirname(TORCH))
LIBRARIES = (*(folder + os.sep for folder in FOLDERS), "<frozen", "<__array_function__", HERE)
_of_user: dict[str, bool] = {}


def is_users(filename: str) -> bool:
    """Tell whether a file is the user's, and not one of Python, of a package or of this tool."""
    known = _of_user.get(filename)
    if known is None:
        inside = filename.startswith(LIBRARIES) or f"{os.sep}site-packages{os.sep}" in filename
        known = _of_user[filename] = not inside
    return known


def users_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the user's program, from a frame outwards."""
    while frame is not None and not (is_users(frame.f_code.co_filename) and not is_written(frame)):
        frame = frame.f_back
    return frame


def is_written(frame: FrameType) -> bool:
    """Tell whether a package wrote this code, as dataclasses do, and not who typed `python -c`."""
    return frame.f_code.co_filename == "<string>" and "__file__" in frame.f_globals


def calling_frame() -> FrameType:
    """Return the frame that called the caller; a thread that C++ began may have no other.

    Who keeps its own frame in a variable keeps all tensors there alive until Python collects.
    """
    here = sys._getframe(1)
    return here.f_back or here


def current_spot() -> Spot:
    """Return the place of the user's program that is running now, or else of the package."""
    frame = sys._getframe(1)
    found = users_frame(frame)
    if found is not None:
        return Spot.of(found)
    while frame.f_code.co_filename.startswith(HERE) and frame.f_back is not None:
        frame = frame.f_back
    return Spot.of(frame)


def file_and_line(spot: Spot) -> tuple[str, int]:
    """Return file and line number of a place."""
    code, instruction = spot.code, spot.instruction
    positions = list(code.co_positions())
    line = positions[instruction // 2][0] if 0 <= instruction // 2 < len(positions) else None
    return code.co_filename, line or code.co_firstlineno


def describe(spot: Spot) -> str:
    """Return a place as "file:line", and what stands there."""
    filename, number = file_and_line(spot)
    text = code_without_keys(linecache.getline(filename, number).strip())
    return f"{_short(filename)}:{number}" + (f": {text}" if text else "")


def _short(filename: str) -> str:
    """Return a file's path below this folder, or else below one from which Python imports."""
    if not os.path.isabs(filename):
        return filename
    for folder in (os.getcwd(), *sorted(map(os.path.abspath, sys.path), key=len, reverse=True)):
        if filename.startswith(folder.rstrip(os.sep) + os.sep):
            return os.path.relpath(filename, folder)
    return filename


def name_of(tensor: torch.Tensor) -> str:
    """Return what the running program calls a tensor, such as "self.weights", or ""."""
    frame = users_frame(sys._getframe())
    while frame is not None:
        for name, value in (*frame.f_locals.items(), *_globals_of(frame).items()):
            found = _inside(name, value, tensor)
            if found:
                return found
        frame = users_frame(frame.f_back)
    return ""


def _globals_of(frame: FrameType) -> dict[str, Any]:
    names = frame.f_code.co_names
    return {name: frame.f_globals[name] for name in names if name in frame.f_globals}


def _inside(name: str, value: Any, tensor: torch.Tensor) -> str:
    """Return how a tensor is reached from a variable: itself, an attribute or an item."""
    if value is tensor:
        return name
    for way, each in (*_of_module(value), *_of_list(value), *_of_names(value)):
        if each is tensor:
            return name + way
    return ""


def _of_module(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of a network, and how each is reached."""
    if isinstance(value, torch.nn.Module):
        for path, each in (*value.named_parameters(), *value.named_buffers()):
            yield f".{path}", each


def _of_list(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of a short list."""
    if isinstance(value, (list, tuple)) and len(value) < 100:
        for index, each in enumerate(value):
            yield f"[{index}]", each


def _of_names(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of a dictionary, or the attributes of an object."""
    is_dict = isinstance(value, dict)
    held = value if is_dict else getattr(value, "__dict__", None)
    if isinstance(held, dict) and len(held) < 200 and not isinstance(value, type(torch)):
        for key, each in list(held.items()):
            yield f"[{key!r}]" if is_dict else f".{key}", each
