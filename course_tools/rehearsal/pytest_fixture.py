"""A pretended GPU for a test suite on machines without one.

In a conftest.py: pytest_plugins = ["course_tools.rehearsal.pytest_fixture"]. Then a test that takes
`rehearsed_gpu` runs with one pretended GPU. Where there is a real GPU, it is hidden meanwhile.
"""

from collections.abc import Iterator

import pytest

from course_tools.rehearsal.rehearse import Rehearsal, rehearse


@pytest.fixture
def rehearsed_gpu() -> Iterator[Rehearsal]:
    """Let a test believe in one CUDA GPU; its value is the rehearsal."""
    with rehearse("cuda", hide_real=True) as rehearsal:
        yield rehearsal
