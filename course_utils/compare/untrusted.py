"""Read a JSON file that somebody sent: refuse what is large, strange or wrong, with the file's name
and the reason.
"""

import json
import os
from dataclasses import is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

LARGEST_BYTES = 5_000_000
LONGEST_TEXT = 300
LONGEST_LIST = 10_000


def read_json(path: str | os.PathLike) -> Any:
    """Return what a JSON file holds. Nothing but an ordinary file is opened.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: it is a device, a pipe or a folder, it is too large, or it is not JSON.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path.name} is not an ordinary file, so it was not opened.")
    with path.open("rb") as file:
        # what a file says of its own size may be wrong, as in /proc
        content = file.read(LARGEST_BYTES + 1)
    if len(content) > LARGEST_BYTES:
        raise ValueError(f"{path.name} has more than {LARGEST_BYTES:,} bytes, so it was not read.")
    try:
        return json.loads(content)  # bytes: UTF-8 and UTF-16, with the mark that Windows puts first
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path.name} is not a complete JSON file ({error}). Save it again."
        ) from error


def build(kind: Any, value: Any, where: str) -> Any:
    """Return a value of JSON as what an annotation, `kind`, asks for: a dataclass of texts,
    numbers, lists and so on.

    Raises:
        ValueError: it is something else; `where` is what the error calls it.
    """
    origin, args = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _build_object(kind, value, where)
    if origin is UnionType:  # something or None
        return None if value is None else build(args[0], value, where)
    if origin is Literal:
        _require(value in args, where, f"one of {', '.join(args)}")
        return value
    if origin is tuple:
        least, most = (0, LONGEST_LIST) if args[-1] is ... else (len(args), len(args))
        fits = isinstance(value, list) and least <= len(value) <= most
        _require(fits, where, f"a list of {least} to {most:,} values")
        return tuple(build(args[0], item, f"{where}[{place}]") for place, item in enumerate(value))
    if origin is dict:
        _require(isinstance(value, dict), where, "a JSON object")
        return {
            build(str, name, where): build(args[1], item, f"{where}.{name}")
            for name, item in value.items()
        }
    if kind is str:
        fits = isinstance(value, str) and len(value) <= LONGEST_TEXT and value.isprintable()
        _require(fits, where, f"a text of at most {LONGEST_TEXT} printable characters")
        return value
    _require(type(value) in (int, kind), where, f"of type {kind.__name__}")
    # what NumPy and a chart can hold; NaN and infinity are not below
    _require(abs(value) < 1e18, where, "below 1e18")
    return kind(value)


def _build_object(kind: Any, value: Any, where: str) -> Any:
    hints = get_type_hints(kind)
    _require(isinstance(value, dict), where, "a JSON object")
    odd = ", ".join(map(repr, sorted(hints.keys() ^ value.keys())))
    _require(not odd, where, f"complete and without extras: see {odd[:LONGEST_TEXT]}")
    parts = {name: build(hint, value[name], f"{where}.{name}") for name, hint in hints.items()}
    try:
        return kind(**parts)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _require(fits: bool, where: str, what: str) -> None:
    if not fits:
        raise ValueError(f"{where[:LONGEST_TEXT]!r} is not {what}")
