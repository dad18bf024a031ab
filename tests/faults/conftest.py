"""What the tests of faults share."""

import subprocess
from contextlib import suppress

import psutil
import pytest
from launches import FORK, Classroom


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


@pytest.fixture(scope="session")
def one_epoch(tmp_path_factory):
    """What a training of one epoch has left in --out; every strategy goes on from it."""
    classroom = Classroom(tmp_path_factory.mktemp("one-epoch"))
    status, output = classroom.run(*FORK, "--epochs", "1")
    assert status == 0, output
    return classroom.out


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 400 kB, which only root can make."""
    disk = tmp_path / "out"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here: that needs root on Linux")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)
