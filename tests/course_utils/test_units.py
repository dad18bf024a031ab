"""Numbers as a person would write them, with their units."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.units import format_bytes, format_count, format_seconds

SIZE_OF_TIMES = {"d": 86400, "h": 3600, "min": 60, "s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
SIZE_OF_PREFIX = {"E": 1e18, "P": 1e15, "T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3}
SIZE_OF_PREFIX[""] = 1


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
            (0.9995, "1 s"),
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
        (0.002, "0.002"),
        (-2500, "-2.5k"),
    ],
)
def test_a_number_has_a_prefix_from_a_thousand(number, text):
    assert format_count(number) == text


@given(st.floats(1e-9, 9e19))
def test_what_is_written_is_the_number_to_three_digits(number):
    digits, prefix = re.fullmatch(r"([\d.]+)(\D?)", format_count(max(number, 1))).groups()
    assert float(digits) * SIZE_OF_PREFIX[prefix] == pytest.approx(max(number, 1), rel=0.005)
    digits, unit = format_seconds(min(number, 1e7)).split()
    assert float(digits) * SIZE_OF_TIMES[unit] == pytest.approx(min(number, 1e7), rel=0.005)
