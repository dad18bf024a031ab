"""The doctor in one file: Python 3.8 understands all of it, and it says what the package's doctor
says.
"""

import ast
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from stand_ins import REPOSITORY, stub_package

sys.path.insert(0, str(REPOSITORY / "tools"))
import doctor_file

sys.path.pop(0)

VERSIONS = ["here", "3.8", "3.13"]


@pytest.fixture(scope="module")
def one_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("one") / "doctor.pyz"
    doctor_file.write(path)
    return path


def test_it_is_small_and_python_3_8_can_read_all_of_it(one_file):
    assert one_file.stat().st_size < 100_000
    with zipfile.ZipFile(one_file) as archive:
        sources = {
            name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".py")
        }
    assert len(sources) >= 15
    for name, source in sources.items():
        tree = ast.parse(source, name, feature_version=(3, 8))
        calls = [
            node.func.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and hasattr(node.func, "attr")
        ]
        assert not {"removeprefix", "removesuffix", "bit_count"} & set(calls), name
        assert "from __future__ import annotations" in source or not any(
            map(_is_annotated, ast.walk(tree))
        ), name


def _is_annotated(node: ast.AST) -> bool:
    return bool(getattr(node, "annotation", None) or getattr(node, "returns", None))


def run(one_file, version, *arguments, **environment):
    """Run it under a real Python of this machine; `-S` keeps the environment's packages away."""
    others = [
        *Path.home().glob(f".pyenv/versions/{version}.*/bin/python"),
        shutil.which(f"python{version}"),
    ]
    python = sys.executable if version == "here" else others[0]
    if python is None or subprocess.run([python, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"there is no Python {version} here")
    command, environment = (
        [python, "-S", str(one_file), *arguments],
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


@pytest.mark.process
@pytest.mark.parametrize("version", VERSIONS)
def test_a_torch_that_does_not_load_is_named_with_its_error(one_file, version, tmp_path):
    """Stand-in: a torch whose import fails as one with a missing library does."""
    path = stub_package(
        tmp_path, "torch", "2.9.0", "raise ImportError('libcudart.so.12: cannot open')"
    )
    said = run(one_file, version, "--require", "cpu", PYTHONPATH=str(path))
    assert "cpu: broken-install" in said and "libcudart.so.12: cannot open" in said
