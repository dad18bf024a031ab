"""Tables for a terminal and a notebook, and text that is safe to show in them."""

from __future__ import annotations

import html
import itertools
import os
import sys
import textwrap
from collections.abc import Sequence

LONGEST = 160  # characters of one cell: a hostile or broken driver can report a name of any length

LINE = 90  # letters of a line in a terminal, and in JupyterLab beside its list of files
CELL_STYLE = "padding:0.3em 0.6em;text-align:left"
ROW_START = '<tr style="border-bottom:1px solid">'


def clean(text: str, longest: int = LONGEST) -> str:
    """Return `text` on one line, without control characters, cut where it is too long to show."""
    replacement = "\N{REPLACEMENT CHARACTER}"
    text = "".join(letter if letter.isprintable() else replacement for letter in str(text))
    return text if len(text) <= longest else text[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"


def terminal_width() -> int | None:
    """Return the letters of a line of this terminal, or None where the output is no terminal."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (AttributeError, OSError, ValueError):  # a file, a pipe, a notebook, or no output at all
        return None


def wrapped(text: str, indent: int = 0) -> str:
    """Return text in lines that fit a terminal or an output, broken between words alone."""
    start = " " * indent
    return textwrap.fill(
        text,
        min(LINE, terminal_width() or LINE),
        initial_indent=start,
        subsequent_indent=f"{start}{start}",
        break_long_words=False,
        break_on_hyphens=False,
    )


def text_table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return the rows as lines of text under their header, in columns of equal width.

    In a terminal that is too narrow for them, the widest columns are broken between words.
    """
    cells = [[clean(cell) for cell in line] for line in [header, *rows]]
    columns = [*zip(*cells, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    longest_words = [max(map(len, " ".join(column).split()), default=0) for column in columns]
    room = (terminal_width() or LONGEST * len(widths)) - 2 * (len(widths) - 1)
    while sum(widths) > room:
        wider = [place for place, word in enumerate(longest_words) if widths[place] > word]
        if not wider:
            break
        widths[max(wider, key=widths.__getitem__)] -= 1
    lines: list[tuple[str, ...]] = []
    for line in cells:
        pairs = zip(line, widths, strict=True)
        broken = [textwrap.wrap(cell, size) if len(cell) > size else [cell] for cell, size in pairs]
        lines += itertools.zip_longest(*broken, fillvalue="")
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def html_card(
    title: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]], foot: str = ""
) -> str:
    """Return the rows as an HTML table with a title, every piece of text escaped.

    It sets no colour of its own, so it follows the theme around it, and reads as a plain table
    without styles.
    """
    heads = "".join(f'<th scope="col" style="{CELL_STYLE}">{_safe(cell)}</th>' for cell in header)
    body = "".join(f"{ROW_START}{''.join(map(_cell, row))}</tr>" for row in rows)
    caption = f'<caption style="{CELL_STYLE}"><strong>{_safe(title)}</strong></caption>'
    table = f"{caption}<thead>{ROW_START}{heads}</tr></thead><tbody>{body}</tbody>"
    style = "border-collapse:collapse;background:transparent;color:inherit"
    note = f"<p>{_safe(foot)}</p>" if foot else ""
    return f'<table class="course-card" style="{style}">{table}</table>{note}'


def _cell(text: str) -> str:
    # A long name may break anywhere, a sentence between words, and a few short words nowhere.
    wrap = "white-space:nowrap" if len(text) <= 16 else "white-space:normal"
    wrap += ";overflow-wrap:anywhere" * any(len(word) > 16 for word in text.split())
    return f'<td style="{CELL_STYLE};{wrap}">{_safe(text)}</td>'


def _safe(text: str) -> str:
    return html.escape(clean(text, 600))
