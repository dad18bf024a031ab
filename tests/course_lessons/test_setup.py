"""The set-up cell, run by IPython with a real pip in small environments that have no network."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace

import packaging
import pytest
from course_lessons.setup import last_error
from small_machines import (
    GOOD,
    ROOT,
    RUN_CELL,
    SETUP,
    SmallMachine,
    build_course,
    empty_environment,
    write_wheel,
)

from course_utils import __version__
from tools.setup_cell import read_address, setup_cell

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the environments are as on Linux and Mac")
]
HERE = f"Course {__version__} is here"
# The wheel of a release, on a machine that reaches no network
WITH_AN_ADDRESS = setup_cell(replace(read_address(), published=True))


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    env = empty_environment(tmp_path_factory.mktemp("template") / "env")
    site = next(env.glob("lib/python*/site-packages"))
    shutil.copytree(os.path.dirname(packaging.__file__), site / "packaging")  # as with every kernel
    return env


@pytest.fixture(scope="module")
def course_wheel(tmp_path_factory):
    return build_course(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def machine(tmp_path, template):
    return SmallMachine(tmp_path, template)


@pytest.fixture
def hosted(machine, course_wheel):
    """A hosted notebook with the course's wheel beside it: all that it needs but Lightning."""
    shutil.copy(course_wheel, machine.folder)
    return machine.has(torch="2.11.0+cu128", **GOOD)


def said(done: subprocess.CompletedProcess) -> str:
    """Return what the cell printed, in which there is no traceback, but for what it begins with."""
    text = re.sub(r"\x1b\[\d*m", "", done.stdout + done.stderr).strip()
    text = re.sub(r"\AAdding [^:]*: this can take some minutes \.\.\.\n", "", text)
    assert "Traceback" not in text and len(text.splitlines()) == 1, text
    return text


@pytest.mark.process
def test_where_the_course_is_here_it_says_so_and_asks_neither_pip_nor_a_network(tmp_path):
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__main__.py").write_text("raise SystemExit('pip was asked')")
    path = os.pathsep.join([str(ROOT), str(ROOT / "notebooks"), str(tmp_path)])
    env = {**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(tmp_path)}
    command = [sys.executable, "-c", RUN_CELL]
    done = subprocess.run(
        command, input=SETUP, cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0 and said(done).startswith(HERE)


@pytest.mark.process
def test_from_wheels_beside_the_notebook_it_adds_what_is_missing_and_changes_nothing_else(hosted):
    write_wheel(hosted.folder, "lightning", "2.6.6", requires=("torch>=2.1", "torchmetrics"))
    # The newer one would drag a newer torch along, which lies ready as well.
    write_wheel(hosted.folder, "lightning", "3.0.0", requires=("torch>=9",))
    write_wheel(hosted.folder, "torch", "9.9")
    write_wheel(hosted.folder, "numpy", "9.9")
    write_wheel(hosted.folder, "torchmetrics", "1.9.0")
    before, contents = hosted.versions(), hosted.contents()
    assert said(hosted.set_up()) == f"{HERE}; added: lightning 2.6.6 and 1 that they need."
    assert hosted.versions() == before | {"lightning-2.6.6", "torchmetrics-1.9.0"}
    assert contents.items() <= hosted.contents().items()
    again = hosted.contents()
    assert said(hosted.set_up()) == f"{HERE}." and hosted.contents() == again


@pytest.mark.process
def test_where_pip_is_missing_pythons_own_is_put_in_its_place(hosted):
    for part in hosted.site.glob("pip*"):
        shutil.rmtree(part)
    write_wheel(hosted.folder, "lightning", "2.6.6")
    done = hosted.set_up()
    assert "Adding lightning: this can take some minutes" in done.stdout
    text = said(done)
    assert re.search(r"; added: lightning 2\.6\.6, pip [\d.]+( and 1 that they need)?\.$", text)


def test_of_several_wheels_the_newest_counts(machine, course_wheel):
    machine.has(torch="2.11.0+cu128", lightning="2.6.6", **GOOD)
    shutil.copy(course_wheel, machine.folder)
    for number in ("0.1.0", "0.10.0"):
        other = machine.folder / course_wheel.name.replace(__version__, number)
        with zipfile.ZipFile(course_wheel) as old, zipfile.ZipFile(other, "w") as new:
            for name in old.namelist():
                text = old.read(name).decode(errors="surrogateescape")
                text = text.replace(f'__version__ = "{__version__}"', f'__version__ = "{number}"')
                new.writestr(name, text.encode(errors="surrogateescape"))
    assert said(machine.set_up()) == "Course 0.10.0 is here."


@pytest.mark.process
def test_a_package_whose_version_pip_cannot_read_stops_nothing(hosted):
    hosted.has(distro_info="1.1build1")  # Debian's, seen beside notebooks that use its packages
    write_wheel(hosted.folder, "lightning", "2.6.6")
    assert said(hosted.set_up()) == f"{HERE}; added: lightning 2.6.6."


@pytest.mark.process
def test_without_a_network_what_is_missing_is_named_and_the_course_works(hosted):
    text = said(hosted.set_up())
    assert text.startswith(f"{HERE}, but not lightning: ") and "connect to a network" in text
    look = f"{SETUP}\nimport course_utils, subprocess\n"
    look += "_ = subprocess.run(['python', '-c', 'import course_utils'], check=True)"
    assert hosted.set_up(look).returncode == 0


@pytest.mark.process
def test_a_version_that_does_not_fit_is_named_and_left_alone(hosted):
    hosted.has(lightning="2.0.0")
    write_wheel(hosted.folder, "lightning", "2.6.6")
    text = said(hosted.set_up())
    assert "but lightning 2.0.0 does not fit" in text and "It was not changed" in text
    assert "lightning-2.0.0" in hosted.versions() and "lightning-2.6.6" not in hosted.versions()


@pytest.mark.process
def test_the_two_malicious_releases_of_lightning_are_never_chosen(hosted):
    for number in ("2.6.1", "2.6.2", "2.6.3"):
        write_wheel(hosted.folder, "lightning", number)
    assert "lightning 2.6.1" in said(hosted.set_up())


@pytest.mark.process
def test_darts_is_added_from_a_cell_in_the_same_way(hosted):
    hosted.has(lightning="2.6.6")
    hosted.pip_install("--no-deps", next(hosted.folder.glob("accelerator*.whl")))
    for name, number in {"darts": "0.48.1", "pytorch-lightning": "2.6.6"}.items():
        write_wheel(hosted.folder, name, number, requires=("torch",))
    done = hosted.set_up(SETUP.replace("set_up()", 'set_up(extra="darts")'))
    assert "added: darts 0.48.1, pytorch-lightning 2.6.6" in said(done)


@pytest.mark.process
def test_a_data_set_attached_on_kaggle_is_where_the_cell_finds_the_course(
    machine, course_wheel, tmp_path
):
    data = tmp_path / "kaggle" / "input" / "datasets" / "ada" / "course"
    data.mkdir(parents=True)
    shutil.copy(course_wheel, data)
    machine.has(torch="2.10.0", lightning="2.6.6", **GOOD)
    cell = SETUP.replace("/kaggle/input", str(tmp_path / "kaggle" / "input"))
    assert said(machine.set_up(cell)) == f"{HERE}."


@pytest.mark.process
def test_a_course_that_is_not_here_is_an_error_that_shows_the_way_out(machine):
    before = machine.contents()
    done = machine.set_up()
    assert done.returncode == 1 and "No module named 'course_lessons'" in done.stdout
    assert "Add the wheel, or use `make lab`" in done.stdout
    assert machine.contents() == before


@pytest.mark.process
@pytest.mark.parametrize(
    ("stderr", "line"),
    [
        ("WARNING: Retrying\nERROR: No matching distribution.\n", "No matching distribution"),
        ("error: Failed to fetch: `a`\n  Caused by: no route", "Failed to fetch: `a`"),
        ("Killed", "Killed"),
        ("", "pip did not say why"),
    ],
)
def test_the_line_in_which_pip_or_uv_says_why_is_without_its_beginning(stderr, line):
    assert last_error(stderr) == line


def test_a_published_course_that_cannot_be_reached_is_what_pip_says(machine):
    before = machine.contents()
    done = machine.set_up(WITH_AN_ADDRESS.replace("--quiet", "--quiet --retries=0"))
    assert done.returncode == 1 and "No matching distribution found" in done.stdout + done.stderr
    assert machine.contents() == before


@pytest.mark.process
def test_without_permission_to_write_it_says_so_and_the_course_still_works(hosted):
    prefix = () if os.getuid() else ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    if prefix and not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and setpriv (util-linux) is not here")
    write_wheel(hosted.folder, "lightning", "2.6.6")
    before = hosted.contents()
    hosted.site.chmod(0o555)
    try:
        done = hosted.run("-c", RUN_CELL, prefix=prefix, cell=SETUP)
    finally:
        hosted.site.chmod(0o755)
    assert "Permission denied" in said(done) and hosted.contents() == before
