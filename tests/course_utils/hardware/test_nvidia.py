"""What the NVIDIA driver's management library says, from a stub of that library."""

import pytest
from stand_ins import STUBS, compile_stub, needs_gcc, needs_linux

from course_utils.hardware import nvidia
from course_utils.hardware.card import Card
from course_utils.hardware.nvidia import Driver, card_called, read_driver, split_version

TWO = "NVIDIA H200|GPU-aaaa-1|150754820096|9|0;Tesla T4|GPU-bbbb-2|15843721216|7|5"
CARDS = (
    Card("NVIDIA H200", 150754820096, "compute capability 9.0", "GPU-aaaa-1"),
    Card("Tesla T4", 15843721216, "compute capability 7.5", "GPU-bbbb-2"),
)


@pytest.fixture
def library(tmp_path, monkeypatch):
    stub = compile_stub(STUBS / "nvml.c", tmp_path / "libnvidia-ml.so.1")
    monkeypatch.setattr(nvidia, "LIBRARY", str(stub))
    monkeypatch.setenv("STUB_CARDS", TWO)


@needs_linux
@needs_gcc
def test_the_driver_tells_its_version_its_cuda_and_its_cards(library):
    assert read_driver() == Driver("575.57.08", (12, 8), CARDS)


@needs_linux
@needs_gcc
def test_a_driver_that_does_not_start_is_no_driver(library, monkeypatch):
    monkeypatch.setenv("STUB_NVML_BROKEN", "1")
    assert read_driver() is None


@needs_linux
@needs_gcc
def test_a_card_may_keep_its_memory_and_capability_to_itself(library, monkeypatch):
    monkeypatch.setenv("STUB_CARDS", "Odd card|GPU-c|0|0|0")
    assert read_driver().cards == (
        Card("Odd card", None, "compute capability not reported", "GPU-c"),
    )


def test_without_the_library_there_is_no_driver(monkeypatch):
    monkeypatch.setattr(nvidia, "LIBRARY", "libthere-is-no-such-library.so")
    assert read_driver() is None


@pytest.mark.parametrize(
    ("uuid", "index"),
    [("GPU-bbbb", 1), ("GPU-aaaa-1", 0), ("GPU-", None), ("GPU-c", None), ("bbbb", None)],
)
def test_a_card_is_called_by_any_beginning_of_its_uuid_that_is_its_alone(uuid, index):
    assert card_called(CARDS, uuid) == (None if index is None else CARDS[index])


def test_a_version_of_cuda_is_split_as_the_driver_writes_it():
    assert (split_version(12080), split_version(11100), split_version(13000)) == (
        (12, 8),
        (11, 10),
        (13, 0),
    )
