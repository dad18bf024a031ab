"""What several test files need."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest


@pytest.fixture(scope="session")
def in_xla():
    """Call a function of a test module in a process where XLA was started before anything else, and return its result.

    In the process of the tests itself XLA could be too late: PyTorch prepares the backward pass once.
    """
    from course_utils.xla import start_xla, xla_problem

    if problem := xla_problem():
        pytest.skip(problem)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=start_xla) as process:
        yield lambda function, *arguments: process.submit(function, *arguments).result(timeout=300)
