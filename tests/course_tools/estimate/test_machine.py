"""Machines by the names of their parts."""

import pytest

from course_tools.estimate import Chip, Machine
from course_tools.estimate.machine import machines


def test_a_device_that_is_named_twice_is_one_machine():
    assert len(machines(["T4", "t4", Machine("T4")])) == 1


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        ([Machine("T4"), Chip("T4", 1, 1, 1)], "two unlike chips"),
        ([Machine("T4"), Machine("T4", link="Ethernet 10G")], "asked for twice"),
        (5, "devices is a list of names"),
        ("T4", r"\['T4'\]"),
        ([4], "by its name"),
    ],
)
def test_devices_that_are_no_list_or_contradict_each_other_are_refused(devices, words):
    with pytest.raises((ValueError, TypeError), match=words):
        machines(devices)
