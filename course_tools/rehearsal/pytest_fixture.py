"""A simulated GPU for a test suite on machines without one.

In a conftest.py: pytest_plugins = ["course_tools.rehearsal.pytest_fixture"]. Then a test that takes
`rehearsed_gpu` runs with one simulated GPU. Where there is a real GPU, it is hidden meanwhile.
"""

from collections.abc import Iterator

import pytest

from course_tools.rehearsal import (
    gpu_modules,
    makers,
    memory,
    operations,
    placement,
    processes,
    tensors,
    world,
)
from course_tools.rehearsal.rehearse import Rehearsal, rehearse

# pytest then shows an error on the line of the test, or of the library, that caused it.
for module in (gpu_modules, makers, memory, operations, placement, processes, tensors, world):
    vars(module)["__tracebackhide__"] = True


@pytest.fixture
def rehearsed_gpu() -> Iterator[Rehearsal]:
    """Let a test believe in one CUDA GPU; its value is the rehearsal."""
    with rehearse("cuda", hide_real=True) as rehearsal:
        yield rehearsal
