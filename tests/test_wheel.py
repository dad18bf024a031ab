"""The wheel: what a lesson needs when it has nothing else of this repository."""

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import torch
from small_machines import ROOT, build_course

pytestmark = pytest.mark.process


MEGABYTE = 10**6


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_course(tmp_path_factory.mktemp("wheel"))


def test_it_is_small_and_holds_every_file_of_the_package_and_nothing_else(wheel):
    assert wheel.stat().st_size < MEGABYTE
    assert wheel.name.endswith("-py3-none-any.whl")
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "course_utils"],
        cwd=ROOT,
        capture_output=True,
    )
    tree = {path for path in files.stdout.decode().splitlines() if (ROOT / path).exists()}
    if not tree:
        pytest.skip("this is not a checkout")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert packed == tree
        assert "course_utils/py.typed" in packed
        assert not [name for name in archive.namelist() if name.startswith(("tools/", "tests/"))]
        assert all(archive.read(name) == (ROOT / name).read_bytes() for name in packed)


LOOK = """
import json
import course_utils
from course_lessons.start import other_machines
from course_utils.compare import recorded
opened = [f"{name}.json" for name in recorded()]
print(json.dumps([course_utils.__file__, sorted(opened), len(other_machines()), course_utils.pick_device("cpu").kind]))
"""


def test_installed_alone_outside_of_the_checkout_it_opens_its_recordings(wheel, tmp_path):
    """The environment sees this one's packages, behind its own: the course in it is the wheel's."""
    home = tmp_path / "env"
    venv.create(home, with_pip=True)
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pip = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True, capture_output=True, timeout=120)
    (next(home.glob("**/site-packages")) / "behind.pth").write_text(
        f"{Path(torch.__file__).parent.parent}\n"
    )
    done = subprocess.run(
        [python, "-I", "-c", LOOK], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    where, opened, cases, kind = json.loads(done.stdout)
    assert where.startswith(str(home))
    assert opened == sorted(
        path.name for path in (ROOT / "course_utils" / "compare" / "recordings").glob("*.json")
    )
    assert cases > 0 and kind == "cpu"
