"""The doctor in one file says what the package's doctor says."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from stand_ins import REPOSITORY
from start_python import python

sys.path.insert(0, str(REPOSITORY / "tools"))
import doctor_file

sys.path.pop(0)

VERSIONS = ["here", "3.13"]


@pytest.fixture(scope="module")
def one_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("one") / "doctor.pyz"
    doctor_file.write(path)
    return path


def test_a_file_of_somebody_else_is_kept_and_one_of_ours_is_replaced(one_file):
    doctor_file.write(one_file)
    mine = one_file.with_name("mine.pyz")
    mine.write_text("my work")
    with pytest.raises(SystemExit, match="holds something else"):
        doctor_file.write(mine)
    assert mine.read_text() == "my work"


@pytest.mark.process
@pytest.mark.parametrize("names", [(), ("one.pyz", "two.pyz")])
def test_it_writes_the_one_file_that_is_named(tmp_path, names):
    done = python(doctor_file.__file__, *names, cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("Name the file to write")


def test_it_is_small(one_file):
    assert one_file.stat().st_size < 100_000


@pytest.mark.process
def test_an_older_python_is_told_in_one_line_which_one_it_takes(one_file):
    python = find_python("3.8")
    done = subprocess.run([python, one_file], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "3.11 or later" in done.stderr and "this is 3.8" in done.stderr


def find_python(version):
    others = [
        *Path.home().glob(f".pyenv/versions/{version}.*/bin/python"),
        shutil.which(f"python{version}"),
    ]
    python = sys.executable if version == "here" else others[0]
    if python is None or subprocess.run([python, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"there is no Python {version} here")
    return python


def run(one_file, version, *arguments, **environment):
    """Run it under a real Python of this machine; `-S` keeps the environment's packages away."""
    command, environment = (
        [find_python(version), "-S", str(one_file), *arguments],
        {"PATH": "/usr/bin", **environment},
    )
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=one_file.parent, env=environment
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.process
@pytest.mark.parametrize("version", VERSIONS)
def test_it_starts_where_there_is_no_torch(one_file, version):
    said = run(one_file, version, "--require", "cpu", "--report")
    assert "cpu: torch-absent" in said and "make lab" not in said and "pytorch.org" in said
