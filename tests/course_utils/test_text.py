"""Numbers with their units, tables and cards of whatever a device calls itself, and what a terminal
shows of them.
"""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from start_python import python

from course_utils.text import (
    LONGEST,
    clean,
    format_bytes,
    format_count,
    format_seconds,
    html_card,
    text_table,
)

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
    assert clean(name).isprintable() and len(clean(name)) <= LONGEST


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
        "devices", ("kind",), [("cpu",), ("estimated, unchecked",), ("Xeon" * 5 + " at 2.1 GHz",)]
    )
    short, sentence, long = re.findall(r'<td style="([^"]*)"', card)
    assert (
        "nowrap" in short and "anywhere" not in short + sentence and "nowrap" not in sentence + long
    )
    assert "overflow-wrap:anywhere" in long


SIZE_OF_TIMES = {"d": 86400, "h": 3600, "min": 60, "s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
SIZE_OF_PREFIX = {
    "E": 1e18,
    "P": 1e15,
    "T": 1e12,
    "G": 1e9,
    "M": 1e6,
    "k": 1e3,
    "": 1,
    "m": 1e-3,
    "µ": 1e-6,
    "n": 1e-9,
}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *(
            (2, "2 s"),
            (0.0123, "12.3 ms"),
            (4.5e-6, "4.5 µs"),
            (3e-8, "30 ns"),
            (1e-3, "1 ms"),
            (0.9999, "1 s"),
        ),
        *((0, "0 s"), (1e-12, "1e-12 s"), (90, "1.5 min"), (5400, "1.5 h"), (1.5 * 86400, "1.5 d")),
    ],
)
def test_seconds_are_written_as_a_person_would(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (16_900_000_000, "16.9 GB"),
        (None, "?"),
        (512, "512 B"),
        (123_456, "123 kB"),
        (999_999, "1 MB"),
        (0, "0 B"),
    ],
)
def test_bytes_are_written_in_powers_of_ten(size_bytes, text):
    assert format_bytes(size_bytes) == text


def test_a_count_puts_the_prefix_to_a_symbol_and_to_the_number_before_a_word():
    assert format_count(67e12, "FLOP") == "67 TFLOP"
    assert format_count(3.35e12, "B") == "3.35 TB"
    assert format_count(4830, "images") == "4.83k images"
    assert format_count(12, "images") == "12 images"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (999, "999"),
        (1000, "1k"),
        (2.5e9, "2.5G"),
        (0.002, "2m"),
        (1e-9, "1n"),
        (1e-12, "1e-12"),
        (-2500, "-2.5k"),
    ],
)
def test_a_number_has_a_prefix_from_a_thousand(number, text):
    assert format_count(number) == text


@given(st.floats(1e-9, 9e19))
def test_what_is_written_is_the_number_to_three_digits(number):
    digits, prefix = re.fullmatch(r"([\d.]+)(\D?)", format_count(number)).groups()
    assert float(digits) * SIZE_OF_PREFIX[prefix] == pytest.approx(number, rel=0.005)
    digits, unit = format_seconds(min(number, 1e7)).split()
    assert float(digits) * SIZE_OF_TIMES[unit] == pytest.approx(min(number, 1e7), rel=0.005)


SHOW = "from course_utils.text import show_result; show_result('1.5 µs\\n' * 20_000)"


@pytest.mark.process
def test_a_reader_that_has_left_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", SHOW]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.process
def test_a_terminal_that_lacks_a_character_shows_its_number():
    done = python("-c", SHOW, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and done.stdout == "1.5 \\xb5s\n" * 20_000 + "\n"
