"""The set-up cell of every lesson, run with a real pip in small environments that have no network."""

import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from small_machines import (
    GOOD,
    LESSONS,
    NOWHERE,
    SETUP,
    SmallMachine,
    build_course,
    empty_environment,
    first_code_cell,
    write_wheel,
)

from course_utils import __version__

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the small environments are made as on Linux and Mac")
FAILED = "AssertionError: Set-up failed. Without internet, put the wheels it needs beside this notebook."
WITH_AN_ADDRESS = re.sub(r'WHEEL = "https://[^"]*/', f'WHEEL = "{NOWHERE}/', SETUP)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return empty_environment(tmp_path_factory.mktemp("template") / "env")


@pytest.fixture(scope="module")
def course_wheel(tmp_path_factory):
    return build_course(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def machine(tmp_path, template):
    return SmallMachine(tmp_path, template)


@pytest.fixture
def hosted(machine, course_wheel):
    """A hosted notebook with the course's wheel beside the lessons: all it needs but Lightning and optree."""
    shutil.copy(course_wheel, machine.folder)
    return machine.has(torch="2.9.0", **GOOD)


def test_it_is_the_same_short_cell_in_every_lesson():
    for lesson in LESSONS:
        cell = first_code_cell(lesson)
        assert "".join(cell["source"]) == SETUP, lesson.name
        assert cell["metadata"] == first_code_cell(LESSONS[0])["metadata"]
        assert not any(output.get("name") == "stderr" for output in cell["outputs"])
    assert len([line for line in SETUP.splitlines() if line.strip()]) <= 15
    assert f"/v{__version__}/accelerator_course-{__version__}-py3-none-any.whl" in SETUP


def test_where_the_course_is_here_it_says_so_and_asks_neither_pip_nor_a_network(tmp_path):
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__main__.py").write_text("raise SystemExit('pip was asked')")
    path = os.pathsep.join([str(LESSONS[0].parent.parent), str(tmp_path)])
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", SETUP], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "The course is here, and nothing is missing.\n", "")


def test_from_wheels_beside_the_notebook_it_adds_what_is_missing_and_changes_nothing_else(hosted):
    write_wheel(hosted.folder, "lightning", "2.6.6", requires=("torch>=2.1", "torchmetrics"))
    # The newer one would drag a newer torch along, which lies ready as well.
    write_wheel(hosted.folder, "lightning", "3.0.0", requires=("torch>=9",))
    write_wheel(hosted.folder, "torch", "9.9")
    write_wheel(hosted.folder, "numpy", "9.9")
    write_wheel(hosted.folder, "torchmetrics", "1.9.0")
    write_wheel(hosted.folder, "optree", "0.20.0", requires=("numpy",))
    before = hosted.versions()
    done = hosted.set_up()
    added = "Added lightning 2.6.6, optree 0.20.0, and 1 more that they need. Nothing that was here was changed.\n"
    assert (done.returncode, done.stdout) == (0, added), done.stderr
    assert hosted.versions() == before | {"lightning-2.6.6", "optree-0.20.0", "torchmetrics-1.9.0"}
    assert hosted.set_up().stdout == "The course is here, and nothing is missing.\n"


def test_a_data_set_attached_on_kaggle_is_found_with_the_wheels_in_it(machine, course_wheel, tmp_path):
    data = tmp_path / "kaggle" / "input" / "some owner" / "course"
    data.mkdir(parents=True)
    shutil.copy(course_wheel, data)
    write_wheel(data, "optree", "0.20.0")
    machine.has(torch="2.10.0", pytorch_lightning="2.6.6", **GOOD)
    done = machine.set_up(SETUP.replace("/kaggle/input", str(data.parent.parent)))
    assert done.stdout == "Added optree 0.20.0. Nothing that was here was changed.\n", done.stderr


def test_a_course_that_pip_put_into_a_new_folder_of_the_user_can_be_imported_at_once(tmp_path, course_wheel):
    """As on a shared server, where the Python of all is not yours to write to."""
    python, shared = sys._base_executable, tmp_path / "shared"
    shared.mkdir()
    shutil.copy(course_wheel, tmp_path)
    for name, version in {"torch": "2.9.0", "lightning": "2.6.6", "optree": "0.20.0", **GOOD}.items():
        with zipfile.ZipFile(write_wheel(shared, name, version)) as archive:
            archive.extractall(shared)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    env |= {"PYTHONPATH": str(shared), "PYTHONUSERBASE": str(tmp_path / "user"), "PIP_USER": "1"}
    if subprocess.run([python, "-m", "pip", "--version"], env=env, capture_output=True).returncode:
        pytest.skip(f"{python} has no pip")
    cell = SETUP + "\nfrom importlib.util import find_spec\nprint(find_spec('course_utils').origin)"
    done = subprocess.run([python, "-c", cell], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    if "externally-managed" in done.stderr:
        pytest.skip(f"{python} belongs to the system, which lets pip install nothing")
    said, origin = done.stdout.splitlines()
    assert said == "The course is here, and nothing is missing." and origin.startswith(str(tmp_path / "user"))


def test_pytorch_lightning_is_lightning_enough_and_no_network_is_needed_then(hosted):
    hosted.has(pytorch_lightning="2.6.6", optree="0.20.0")
    before = hosted.versions()
    assert hosted.set_up().stdout == "The course is here, and nothing is missing.\n"
    assert hosted.versions() == before


def test_without_torch_it_says_so_and_installs_no_other(machine, course_wheel):
    shutil.copy(course_wheel, machine.folder)
    for name in ("torch", "lightning", "optree"):
        write_wheel(machine.folder, name, "9.9")
    machine.has(**GOOD)
    before = machine.versions()
    last = machine.set_up().stderr.splitlines()[-1]
    assert last.startswith(f"{FAILED} Why: PyTorch is not installed here, and this set-up never installs it")
    assert machine.versions() == before


def test_no_network_is_said_and_leaves_a_course_that_works(hosted):
    hosted.pip_install("--no-deps", next(hosted.folder.glob("*.whl")))
    before = hosted.contents()
    done = hosted.set_up()
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        f"{FAILED} Why: lightning and optree could not be added: there is no way from here to the package index. "
        "Nothing that was here was changed. With the internet on, run the cell again."
    )
    assert hosted.contents() == before


def test_no_network_and_no_wheel_is_a_sentence_and_not_a_page(machine):
    done = machine.set_up(WITH_AN_ADDRESS)
    error = done.stderr[done.stderr.index("AssertionError") :]
    assert NOWHERE.removeprefix("http://").partition(":")[0] in error
    assert error.startswith(f"{FAILED} Why: ERROR: ")
    assert len(error) < 700 and len(error.splitlines()) <= 3


def test_the_placeholder_for_an_address_is_never_fetched(machine):
    assert "/OWNER/REPO/" in SETUP or WITH_AN_ADDRESS != SETUP
    placeholder = re.sub(r'(WHEEL = "https://github.com)/[^/]+/[^/]+/', r"\1/OWNER/REPO/", SETUP)
    done = machine.set_up(placeholder)
    last = done.stderr.splitlines()[-1]
    assert last == "AssertionError: Put the course's wheel next to this notebook: it has no address yet."


def test_a_wheel_for_another_python_is_refused_in_one_sentence(machine):
    write_wheel(machine.folder, "accelerator-course", __version__, python="<3")
    before = machine.contents()
    done = machine.set_up()
    assert FAILED in done.stderr
    assert "requires a different Python" in done.stderr and "not in '<3'" in done.stderr
    assert machine.contents() == before


def test_without_permission_to_write_it_says_so_and_the_course_still_works(hosted):
    prefix = () if os.getuid() else ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    if prefix and not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and setpriv (util-linux) is not here to give that up")
    for name in ("lightning", "optree"):
        write_wheel(hosted.folder, name, "2.6.6")
    hosted.pip_install("--no-deps", next(hosted.folder.glob("accelerator*.whl")))
    before = hosted.contents()
    hosted.site.chmod(0o555)
    try:
        done = hosted.set_up(prefix=prefix)
    finally:
        hosted.site.chmod(0o755)
    last = done.stderr.splitlines()[-1]
    assert "lightning and optree could not be added" in last and "Permission denied" in last
    assert hosted.contents() == before


@pytest.mark.parametrize("lost", ["*.dist-info/RECORD", "*.dist-info", "course_utils/data/series.py", "course_utils"])
def test_a_half_finished_installation_is_finished(hosted, lost):
    hosted.has(lightning="2.6.6", optree="0.20.0")
    hosted.pip_install("--no-deps", next(hosted.folder.glob("accelerator*.whl")))
    whole = {path for path in hosted.contents() if "direct_url" not in path.name and "REQUESTED" not in path.name}
    lost = "accelerator_course" + lost if lost.startswith("*") else lost
    for path in list(hosted.site.glob(lost)):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert not whole <= hosted.contents().keys()
    assert hosted.run("-m", "course_utils.extras").returncode == 1
    done = hosted.set_up()
    assert (done.returncode, done.stdout) == (0, "The course is here, and nothing is missing.\n"), done.stderr
    assert whole <= hosted.contents().keys()


def test_a_half_finished_installation_that_cannot_be_finished_is_said(hosted):
    wheel = next(hosted.folder.glob("accelerator*.whl"))
    hosted.pip_install("--no-deps", wheel)
    wheel.unlink()
    (hosted.site / "course_utils" / "data.py").unlink()
    before = hosted.contents()
    done = hosted.set_up(WITH_AN_ADDRESS)
    assert done.returncode == 1 and FAILED in done.stderr
    assert hosted.contents() == before
    found = hosted.run("-m", "course_utils.extras")
    assert (found.returncode, found.stdout) == (1, "The course is here without its file course_utils/data/series.py.\n")
