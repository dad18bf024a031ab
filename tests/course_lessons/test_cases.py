"""The three reported cases, judged by the doctor's rules."""

import pytest
from course_lessons.start import other_machines


@pytest.mark.parametrize(
    ("number", "cause", "words"),
    [
        (0, "card-too-old", ("Tesla P100-PCIE-16GB", "6.0", "sm_70")),
        (1, "driver-too-old", ("12.8", "13.0")),
        (2, "torch-xla-mismatch", ("2.7.0", "2.6.0+cpu", "undefined symbol")),
    ],
)
def test_the_doctor_names_what_the_owners_found_out(number, cause, words):
    finding = other_machines()[number]
    assert finding.cause == cause and not finding.usable
    assert all(word in finding.why for word in words)
