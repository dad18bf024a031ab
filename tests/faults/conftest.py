"""What the tests of faults share."""

from contextlib import suppress

import psutil
import pytest
from launches import Classroom


@pytest.fixture
def classroom(tmp_path):
    classroom = Classroom(tmp_path)
    yield classroom
    left = classroom.family()
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    for process in classroom.started:
        process.stdout.close()
        process.wait()
