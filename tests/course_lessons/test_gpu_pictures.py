import io

import pytest
from course_lessons.gpu import pictures
from course_lessons.gpu.pictures import draw_copies, draw_losses, draw_memories
from PIL import Image

from course_tools.estimate.chips import find_chip
from course_utils.copy_speed import Copy, CopyRate


def copies(*directions):
    sizes = (2**10, 2**20, 2**26)
    return CopyRate(
        "cuda:0",
        tuple(Copy(d, p, size, 1e-5 + size / 1e10) for d, p in directions for size in sizes),
    )


PICTURES = {
    "memories": draw_memories,
    "copies": lambda: draw_copies(
        copies(("to the device", True), ("from the device", False)), "cuda"
    ),
    "losses": lambda: draw_losses(
        "Losses", {"float32": [2.0] * 10, "float16": [2.0] * 5 + [1.0] * 5}
    ),
}
WORDS = {
    "memories": "a T4, with 40 multiprocessors of 64 lanes",
    "copies": "to the device, pinned: at least 10.1 µs each, and 9.99 GB/s for 67,108,864 bytes",
    "losses": "float32 at 2.000, float16 at 1.000",
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_says_in_words_what_it_shows(name):
    assert WORDS[name] in PICTURES[name]().alt


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_opaque_on_white_and_of_lecture_size(name):
    image = Image.open(io.BytesIO(PICTURES[name]().png)).convert("RGBA")
    assert image.size == (1280, 720)
    assert image.getextrema()[3] == (255, 255) and image.getpixel((2, 716)) == (255, 255, 255, 255)


@pytest.fixture
def words(monkeypatch):
    """Return the alternative text and the texts of the picture that is drawn."""
    shown = []

    def keep(axes, alt, colors):
        shown.extend([alt, *(text.get_text() for text in axes.texts)])

    monkeypatch.setattr(pictures, "picture", keep)
    return shown


def in_memory(size_bytes, median_s, *warnings):
    return Copy("in memory", False, size_bytes, median_s, warnings)


def test_a_picture_of_copies_says_how_many_are_unreliable(words):
    draw_copies(CopyRate("cpu", (in_memory(1024, 1e-6), in_memory(2048, 1, "No."))), "cpu")
    assert words[0].endswith("unreliable: 1 of 2 figures. First: 'No.'.")
    assert "1 of 2 points unreliable" in words


def test_a_copy_in_memory_is_not_doubted_because_it_takes_less_than_a_microsecond(words):
    copies = in_memory(1024, 5e-7, "Hardly anything is that fast."), in_memory(2048, 1e-5)
    draw_copies(CopyRate("cpu", copies), "cpu")
    assert "in memory: at least 500 ns each" in words[0]
    assert not [text for text in words if "unreliable" in text]


def test_the_memory_of_the_picture_is_as_fast_as_the_data_sheet_says():
    assert find_chip("T4").bandwidth_gb_per_s == pictures.GPU_MEMORY_GB_PER_S
