"""Quantities with units, tables for a terminal and a notebook, and safe printing."""

from __future__ import annotations

import html
import os
import sys
import textwrap
from collections.abc import Sequence

DURATIONS = (
    ("d", 86400),
    ("h", 3600),
    ("min", 60),
    ("s", 1),
    ("ms", 1e-3),
    ("µs", 1e-6),
    ("ns", 1e-9),
)
PREFIXES = (
    *(("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)),
    *(("", 1), ("m", 1e-3), ("µ", 1e-6), ("n", 1e-9)),
)


def format_seconds(seconds: float) -> str:
    """Return a duration such as "12.3 ms" or "1.5 h"."""
    return " ".join(_scaled(seconds, DURATIONS, "s"))


def format_bytes(size_bytes: float | None) -> str:
    """Return a size such as "16.9 GB", where a GB is 10^9 bytes, or "?" when it is not known."""
    return "?" if size_bytes is None else format_count(size_bytes, "B")


def format_count(number: float, unit: str = "") -> str:
    """Return a number such as "4.83k", "2.5 GFLOP" or "4.83k images".

    A unit in capitals, such as "B" or "FLOP", takes the prefix; a word leaves it to the number.
    Below 10^-9 the number has an exponent.
    """
    digits, prefix = _scaled(number, PREFIXES, "")
    return f"{digits} {prefix}{unit}" if unit.isupper() else f"{digits}{prefix} {unit}".rstrip()


def _scaled(number: float, scale: Sequence[tuple[str, float]], plain: str) -> tuple[str, str]:
    for name, size in scale:
        # 0.9995 of a unit is 1.00 of it in three digits; the next smaller one would say 1e+03.
        if abs(number) >= 0.9995 * size:
            return f"{number / size:.3g}", name
    return f"{number:.3g}", plain


LONGEST = 160  # characters of one cell: a hostile or broken driver can report a name of any length

LINE = 90  # letters of a line in a terminal, and in JupyterLab beside its list of files
CELL, ROW = "padding:0.3em 0.6em;text-align:left", '<tr style="border-bottom:1px solid">'


def clean(text: str, longest: int = LONGEST) -> str:
    """Return `text` on one line, without control characters, cut where it is too long to show."""
    replacement = "\N{REPLACEMENT CHARACTER}"
    text = "".join(letter if letter.isprintable() else replacement for letter in str(text))
    return text if len(text) <= longest else text[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"


def wrapped(text: str, indent: int = 0) -> str:
    """Return text in lines that fit a terminal or an output, broken between words alone."""
    start = " " * indent
    return textwrap.fill(
        text,
        LINE,
        initial_indent=start,
        subsequent_indent=f"{start}{start}",
        break_long_words=False,
        break_on_hyphens=False,
    )


def text_table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return the rows as lines of text under their header, in columns of equal width."""
    lines = [[clean(cell) for cell in line] for line in [header, *rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def html_card(
    title: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]], foot: str = ""
) -> str:
    """Return the rows as an HTML table with a title, every piece of text escaped.

    It sets no colour of its own, so it follows the theme around it, and reads as a plain table
    without styles.
    """
    heads = "".join(f'<th scope="col" style="{CELL}">{_safe(cell)}</th>' for cell in header)
    body = "".join(f"{ROW}{''.join(map(_cell, row))}</tr>" for row in rows)
    caption = f'<caption style="{CELL}"><strong>{_safe(title)}</strong></caption>'
    table = f"{caption}<thead>{ROW}{heads}</tr></thead><tbody>{body}</tbody>"
    style = "border-collapse:collapse;background:transparent;color:inherit"
    note = f"<p>{_safe(foot)}</p>" if foot else ""
    return f'<table class="course-card" style="{style}">{table}</table>{note}'


def _cell(text: str) -> str:
    # A long name may break anywhere, a sentence between words, and a few short words nowhere.
    wrap = "white-space:nowrap" if len(text) <= 16 else "white-space:normal"
    wrap += ";overflow-wrap:anywhere" * any(len(word) > 16 for word in text.split())
    return f'<td style="{CELL};{wrap}">{_safe(text)}</td>'


def _safe(text: str) -> str:
    return html.escape(clean(text, 600), quote=True)


def show_result(text: object) -> None:
    """Print a command's result safely.

    Characters that the terminal cannot show are escaped, and a closed pipe is ignored. Where the
    result cannot be written, as on a full disk, the program ends with a sentence and status 1.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # where Python writes the rest at its end
        # a closed pipe, such as `... | head`, has what it wanted
        if not isinstance(error, BrokenPipeError):
            raise SystemExit(f"the result could not be written: {error}") from None
