"""Tables and cards of whatever a device calls itself."""

import os
import re
import struct
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils import tables
from course_utils.tables import clean, html_card, text_table, wrapped

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&lt;b&gt; & ' \"",
    "x" * 100_000,
    "\x1b[31mred\x1b[0m\a\r\n\0",
    "\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe",
    "图形处理器 αβγ 🚀",
    "</td></tr></table><h1>out</h1>",
    "{braces} %s %(x)s",
]


class Reader(HTMLParser):
    """What a browser makes of a card: its tags, its attributes and its text."""

    def __init__(self, card):
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], []
        self.feed(card)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_adds_no_tag_and_no_attribute_to_a_card(name):
    read = Reader(html_card(name, ("a", name), [(name, "y")], foot=name))
    tags = ["table", "caption", "strong", "thead", "tr", "th", "th", "tbody", "tr", "td", "td", "p"]
    assert read.tags == tags
    assert {attribute for attribute, _ in read.attributes} == {"class", "style", "scope"}
    assert all("url" not in value and "expression" not in value for _, value in read.attributes)


@given(st.text())
def test_every_printable_text_comes_back_from_a_card_as_it_was(name):
    read = Reader(html_card("t", ("h",), [(name,)]))
    assert "".join(read.texts) == "th" + clean(name, 600)


@given(st.text())
def test_a_clean_text_is_one_printable_line_of_limited_length(name):
    for text in (name, f"{name:x<160}", f"{name:x<161}"):
        assert clean(text).isprintable() and len(clean(text)) == min(len(text), 160)
        assert (clean(text) == text) == (text.isprintable() and len(text) <= 160)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_in_its_row_of_a_table(name):
    lines = text_table(("device", "name"), [("cpu", name), ("cuda:0", "ok")]).split("\n")
    assert len(lines) == 3 and all(line.isprintable() for line in lines)


def test_a_card_sets_no_colour_and_reads_as_a_plain_table_without_styles():
    card = html_card("Devices", ("device", "name"), [("cpu", "AMD")])
    styles = " ".join(value for key, value in Reader(card).attributes if key == "style")
    assert "#" not in styles and "rgb" not in styles and "color:inherit" in styles
    assert Reader(card).texts == ["Devices", "device", "name", "cpu", "AMD"]


def test_only_a_word_that_is_too_long_may_break_within():
    # else a narrow column reads "esti mate d"
    card = html_card(
        "devices", ("kind",), [("x" * 16,), ("estimated, unchecked",), ("X" * 17 + " at 2.1 GHz",)]
    )
    short, sentence, long = re.findall(r'<td style="([^"]*)"', card)
    assert "nowrap" in short
    assert "anywhere" not in short + sentence
    assert "nowrap" not in sentence + long
    assert "overflow-wrap:anywhere" in long


def test_a_line_of_a_terminal_has_up_to_90_letters():
    words = "nine " * 17 + "more to say"
    assert [len(line) for line in wrapped(words).splitlines()] == [89, 6]
    assert wrapped(words, 2).splitlines()[1].startswith("    ")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudoterminal")
def test_the_width_is_that_of_the_terminal_and_unknown_for_a_pipe_or_a_file(tmp_path, monkeypatch):
    import fcntl
    import pty
    import termios

    monkeypatch.setenv("COLUMNS", "40")  # which a pipe and a kernel inherit, and have no use for
    ends = pty.openpty()
    fcntl.ioctl(ends[1], termios.TIOCSWINSZ, struct.pack("4H", 24, 72, 0, 0))
    with (
        os.fdopen(ends[0]),
        os.fdopen(ends[1], "w") as terminal,
        (tmp_path / "out").open("w") as file,
    ):
        for output, width in ((terminal, 72), (file, None), (None, None)):
            monkeypatch.setattr(sys, "stdout", output)
            assert tables.terminal_width() == width


def test_in_a_narrow_terminal_a_wide_column_is_broken_between_words_and_stays_a_column(monkeypatch):
    rows = [("T4", "no: needs 18.3 GB, has 16.1 GB", ""), ("A100 80GB", "yes", "67 tokens/s")]
    wide = text_table(("device", "fits", "why"), rows).split("\n")
    assert wide[1] == "T4         no: needs 18.3 GB, has 16.1 GB" and len(wide) == 3
    monkeypatch.setattr(tables, "terminal_width", lambda: 40)
    assert text_table(("device", "fits", "why"), rows).split("\n") == [
        "device     fits              why",
        "T4         no: needs 18.3",
        "           GB, has 16.1 GB",
        "A100 80GB  yes               67 tokens/s",
    ]
    assert max(map(len, wrapped("nine " * 30).splitlines())) == 39
    monkeypatch.setattr(tables, "terminal_width", lambda: 8)  # narrower than any table can be
    narrow = text_table(("device", "fits", "why"), rows).split("\n")
    assert len(narrow) > 4 and "tokens/s" in "\n".join(narrow)
