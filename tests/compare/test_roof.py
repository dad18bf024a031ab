from types import SimpleNamespace

import pytest

from course_utils.compare.roof import measure_roof
from course_utils.devices import Device


def test_a_roof_is_measured():
    roof = measure_roof(Device("cpu", 0, "a cpu"), max_s=0.02)
    assert roof.flop_per_s > 0 and roof.bytes_per_s > 0


def test_a_roof_is_the_best_of_its_measurements_in_operations_and_bytes(monkeypatch):
    rates = {512: 4.0, 1024: 0.25, 1536: 0.1, 2**23: 3.0, 2**24: 1.0}  # calls a second, by size

    def measured(device, work, size, max_s):
        return SimpleNamespace(rate=work.items(size) * rates[size])

    monkeypatch.setattr("course_utils.compare.roof.measure", measured)
    roof = measure_roof(Device("cpu", 0, "a cpu"))
    assert roof.flop_per_s == pytest.approx(4 * 2 * 512**3)
    assert roof.bytes_per_s == pytest.approx(3 * 3 * 4 * 2**23)
