"""Comparisons as JSON files: written whole or not at all, and read without trusting a word of them."""

import datetime
import json
import os
import platform
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from course_utils.compare.results import Comparison, Row
from course_utils.devices import KINDS, cpu_name

SCHEMA = "accelerator-course comparison"
SCHEMA_VERSION = 1
LARGEST_BYTES = 5_000_000
LONGEST_TEXT = 300
MOST_ROWS = 2_000


class ForeignFile(ValueError):
    """A file that is no comparison, or not a whole one."""


def made_here() -> dict[str, str]:
    """Return the date, the versions and the machine, for who reads the result later."""
    made = {"date": datetime.date.today().isoformat(), "machine": cpu_name(), "system": platform.system()}
    made["python"] = platform.python_version()
    for package in ("torch", "torch_xla", "accelerator-course"):
        try:
            made[package] = version(package)
        except PackageNotFoundError:
            continue
    return made


def save(comparison: Comparison, path: str | os.PathLike) -> None:
    """Write a comparison as JSON; the file appears whole or not at all."""
    content = {"schema": SCHEMA, "version": SCHEMA_VERSION, **asdict(comparison)}
    path = Path(path)
    half = path.with_name(path.name + ".part")
    half.write_text(json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(half, path)


def load(path: str | os.PathLike) -> Comparison:
    """Read a comparison that `save` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        ForeignFile: it is torn, or no comparison, or from a newer version of the course.
    """
    path = Path(path)
    if path.stat().st_size > LARGEST_BYTES:
        raise ForeignFile(f"{path.name} has {path.stat().st_size:,} bytes, and no comparison is that large.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # ValueError: torn JSON, or no text at all
        raise ForeignFile(f"{path.name} is no whole JSON file ({error}). Save the comparison again.") from error
    try:
        return _comparison(content)
    except _Misfit as misfit:
        raise ForeignFile(f"{path.name} is no comparison that this course can read: {misfit}.") from misfit


class _Misfit(Exception):
    pass


def _comparison(content: object) -> Comparison:
    content = _object(content, "the file")
    if content.pop("schema", None) != SCHEMA:
        raise _Misfit(f"its schema is not {SCHEMA!r}")
    if content.pop("version", None) != SCHEMA_VERSION:
        raise _Misfit(f"its version is not {SCHEMA_VERSION}, which is the one that this copy of the course knows")
    _same_names(content, Comparison, "the comparison")
    rows = _list(content.pop("rows"), "rows", MOST_ROWS)
    made = _object(content.pop("made"), "made")
    tf32 = content.pop("tf32")
    if not isinstance(tf32, bool):
        raise _Misfit("tf32 is neither true nor false")
    texts = {name: _text(value, name) for name, value in content.items()}
    made = {_text(name, "made"): _text(value, "made") for name, value in made.items()}
    return Comparison(**texts, tf32=tf32, rows=tuple(_row(row, k) for k, row in enumerate(rows)), made=made)


def _row(content: object, number: int) -> Row:
    where = f"row {number}"
    row = _object(content, where)
    _same_names(row, Row, where)
    if row["kind"] not in KINDS:
        raise _Misfit(f"kind in {where} is none of {', '.join(KINDS)}")
    return Row(
        size=_whole(row["size"], f"size in {where}"),
        label=_text(row["label"], f"label in {where}"),
        kind=row["kind"],
        device=_text(row["device"], f"device in {where}"),
        threads=_whole(row["threads"], f"threads in {where}"),
        first_s=_positive(row["first_s"], f"first_s in {where}"),
        rounds_s=tuple(_positive(x, f"rounds_s in {where}") for x in _list(row["rounds_s"], f"rounds_s in {where}")),
        items=_positive(row["items"], f"items in {where}"),
        error=_positive(row["error"], f"error in {where}", least=0.0),
        warnings=tuple(_text(text, f"warnings in {where}") for text in _list(row["warnings"], where, least=0)),
    )


def _same_names(content: dict, cls: type, where: str) -> None:
    wanted = {field.name for field in fields(cls)}
    if odd := sorted(wanted ^ content.keys()):
        raise _Misfit(f"{where} has not the right names, see {', '.join(map(repr, odd))[:LONGEST_TEXT]}")


def _object(value: object, where: str) -> dict:
    if not isinstance(value, dict):
        raise _Misfit(f"{where} is no JSON object")
    return dict(value)


def _list(value: object, where: str, most: int = 10_000, least: int = 1) -> list:
    if not isinstance(value, list) or not least <= len(value) <= most:
        raise _Misfit(f"{where} is no list of {least} to {most:,} values")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise _Misfit(f"{where} is no text of at most {LONGEST_TEXT} characters")
    return value


def _whole(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**53:
        raise _Misfit(f"{where} is no whole number from 1 on")
    return value


def _positive(value: object, where: str, least: float = 1e-12) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < 1e18:
        raise _Misfit(f"{where} is no number of at least {least:g}")
    return float(value)
