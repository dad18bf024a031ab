"""The wheel: what a lesson needs when it has nothing else of this repository."""

import subprocess
import zipfile
from pathlib import PurePosixPath

import pytest
from small_machines import ROOT, build_course

MEGABYTE = 10**6


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_course(tmp_path_factory.mktemp("wheel"))


@pytest.mark.process
def test_it_is_small_and_holds_every_file_of_the_two_packages_and_nothing_else(wheel):
    assert wheel.stat().st_size < MEGABYTE
    packages = {"course_utils": ROOT, "course_tools": ROOT, "course_lessons": ROOT / "notebooks"}
    tree = {}
    for name, home in packages.items():
        command = ["git", "ls-files", "-co", "--exclude-standard", name]
        listed = subprocess.run(command, cwd=home, capture_output=True, text=True).stdout
        tree |= {path: home / path for path in listed.splitlines() if (home / path).exists()}
    if not tree:
        pytest.skip("this is not a checkout")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert packed == tree.keys()
        assert all(archive.read(name) == tree[name].read_bytes() for name in packed)


@pytest.mark.process
def test_what_pypi_shows_has_no_link_into_the_repository(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = [PurePosixPath(name) for name in archive.namelist()]
        home = next(name for name in names if name.name == "METADATA")
        metadata = archive.read(str(home)).decode()
    assert "Eleven hands-on PyTorch and Lightning lessons" in metadata
    assert "](" not in metadata.partition("\n\n")[2]
    assert "Author: The authors of the accelerator course" in metadata
