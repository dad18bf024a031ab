"""The set-up cell of every lesson, run by IPython with a real pip in small environments that have
no network.
"""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading

import pytest
from small_machines import (
    GOOD,
    LESSONS,
    NOWHERE,
    RUN_CELL,
    SETUP,
    SmallMachine,
    build_course,
    empty_environment,
    first_code_cell,
    write_wheel,
)

from course_utils import __version__

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the small environments are made as on Linux and Mac"
)
FAILED = "The course was not installed: without a network, put its wheel beside this notebook."
INCOMPLETE = "The course is here, but not all that it needs: "
UNCHANGED = "Nothing that was here has changed."
# IPython says it after every %pip
NOTE = "Note: you may need to restart the kernel to use updated packages."
RELEASED = f"{NOWHERE}/accelerator_course-{__version__}-py3-none-any.whl"
WITH_AN_ADDRESS = re.sub(r"(?m)^WHEEL = .*$", f'WHEEL = "{RELEASED}"', SETUP)


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
    """A hosted notebook with the course's wheel beside the lessons: all it needs but Lightning."""
    shutil.copy(course_wheel, machine.folder)
    return machine.has(torch="2.11.0+cu128", **GOOD)


def said(done: subprocess.CompletedProcess) -> list[str]:
    """Return the lines that the cell printed, without IPython's own note."""
    text = re.sub(r"\x1b\[\d*m", "", done.stdout + done.stderr)  # pip colours its errors
    return [line for line in text.splitlines() if line.strip() and line != NOTE]


def test_it_is_the_same_cell_of_four_lines_in_every_lesson():
    for lesson in LESSONS:
        cell = first_code_cell(lesson)
        assert "".join(cell["source"]) == SETUP, lesson.name
        assert cell["metadata"] == first_code_cell(LESSONS[0])["metadata"]
        assert cell["outputs"] == []
    assert len([line for line in SETUP.splitlines() if line.strip()]) <= 4


def test_where_the_course_is_here_it_prints_nothing_and_asks_neither_pip_nor_a_network(tmp_path):
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__main__.py").write_text("raise SystemExit('pip was asked')")
    path = os.pathsep.join([str(LESSONS[0].parent.parent), str(tmp_path)])
    env = {**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(tmp_path)}
    command = [sys.executable, "-c", RUN_CELL, SETUP]
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_from_wheels_beside_the_notebook_it_adds_what_is_missing_and_changes_nothing_else(hosted):
    write_wheel(hosted.folder, "lightning", "2.6.6", requires=("torch>=2.1", "torchmetrics"))
    # The newer one would drag a newer torch along, which lies ready as well.
    write_wheel(hosted.folder, "lightning", "3.0.0", requires=("torch>=9",))
    write_wheel(hosted.folder, "torch", "9.9")
    write_wheel(hosted.folder, "numpy", "9.9")
    write_wheel(hosted.folder, "torchmetrics", "1.9.0")
    before, contents = hosted.versions(), hosted.contents()
    done = hosted.set_up()
    assert (done.returncode, said(done)) == (0, [])
    assert hosted.versions() == before | {"lightning-2.6.6", "torchmetrics-1.9.0"}
    assert contents.items() <= hosted.contents().items()
    assert hosted.imports_the_course()
    again = hosted.contents()
    assert said(hosted.set_up()) == [] and hosted.contents() == again


def test_a_package_that_was_installed_from_a_file_keeps_its_version(hosted):
    """pip freeze writes such a package as `name @ file:///...`, which is no constraint that a later
    pip could meet.
    """
    hosted.pip_install("--no-deps", write_wheel(hosted.stock, "torchmetrics", "1.0.0"))
    write_wheel(hosted.folder, "torchmetrics", "1.9.0")
    write_wheel(hosted.folder, "lightning", "2.6.6", requires=("torchmetrics",))
    assert said(hosted.set_up()) == []
    assert {"torchmetrics-1.0.0", "lightning-2.6.6"} <= hosted.versions()


def test_a_data_set_attached_on_kaggle_is_found_with_the_wheels_in_it(
    machine, course_wheel, tmp_path
):
    data = tmp_path / "kaggle" / "input" / "accelerator-course"
    data.mkdir(parents=True)
    shutil.copy(course_wheel, data)
    write_wheel(data, "lightning", "2.6.6")
    machine.has(torch="2.10.0", **GOOD)
    machine.pip_install("--no-deps", "--no-index", "-f", data, "accelerator-course")
    code = "import pathlib, sys\nfrom course_lessons import setup\nsetup.KAGGLE = pathlib.Path(sys.argv[1])\n"
    done = machine.run("-c", code + "print(setup.install(), end='')", str(data.parent.parent))
    assert (done.returncode, said(done)) == (0, [])
    assert "lightning-2.6.6" in machine.versions()


# until 2026, and since
@pytest.mark.parametrize("mount", ["accelerator-course", "datasets/ada/accelerator-course"])
def test_the_cell_looks_for_the_wheel_in_the_data_set_that_the_readme_names(
    machine, course_wheel, tmp_path, mount
):
    data = tmp_path / "kaggle" / "input" / mount
    data.mkdir(parents=True)
    shutil.copy(course_wheel, data)
    machine.has(torch="2.10.0", lightning="2.6.6", **GOOD)
    done = machine.set_up(SETUP.replace("/kaggle/input", str(tmp_path / "kaggle" / "input")))
    assert said(done) == [] and machine.imports_the_course()
    assert "/kaggle/input/accelerator-course" in SETUP


def test_the_cell_gets_the_wheel_from_the_address_of_a_release_which_leads_on_to_another(
    machine, course_wheel
):
    class Release(http.server.SimpleHTTPRequestHandler):
        def send_head(self):
            if not self.path.startswith("/download/"):
                return super().send_head()
            self.send_response(302)
            self.send_header("Location", f"/{course_wheel.name}?signature=a&expires=b")
            self.end_headers()

        def log_message(self, *_):
            pass

    handler = functools.partial(Release, directory=course_wheel.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        address = f"http://127.0.0.1:{server.server_port}/download"
        try:
            machine.has(torch="2.11.0+cu128", lightning="2.6.6", **GOOD)
            done = machine.set_up(WITH_AN_ADDRESS.replace(NOWHERE, address))
        finally:
            server.shutdown()
    assert said(done) == [] and machine.imports_the_course()


def test_no_network_is_said_in_one_sentence_and_soon(machine):
    before = machine.contents()
    lines = said(machine.set_up(WITH_AN_ADDRESS))
    assert "--retries 0 --timeout 4" in SETUP  # two connections are tried: eight seconds at most
    assert lines[-1] == FAILED and not any("Traceback" in line for line in lines)
    assert len(lines) <= 3
    assert machine.contents() == before


def test_no_network_is_said_and_leaves_a_course_that_works(hosted):
    lines = said(hosted.set_up())
    assert len(lines) == 1 and lines[0].startswith(INCOMPLETE) and lines[0].endswith(UNCHANGED)
    assert "lightning" in lines[0]
    assert hosted.imports_the_course()


def test_a_version_that_is_too_old_is_named_and_left_alone(hosted):
    hosted.has(lightning="2.0.0")
    write_wheel(hosted.folder, "lightning", "2.6.6")
    lines = said(hosted.set_up())
    assert len(lines) == 1 and lines[0].startswith(INCOMPLETE)
    assert "lightning-2.0.0" in hosted.versions() and "lightning-2.6.6" not in hosted.versions()


def test_the_two_malicious_releases_of_lightning_are_never_chosen(hosted):
    for version in ("2.6.1", "2.6.2", "2.6.3"):
        write_wheel(hosted.folder, "lightning", version)
    assert said(hosted.set_up()) == []
    assert "lightning-2.6.1" in hosted.versions()


def test_a_wheel_for_another_python_is_refused_in_one_sentence(machine):
    write_wheel(machine.folder, "accelerator-course", __version__, python="<3")
    before = machine.contents()
    lines = said(machine.set_up(WITH_AN_ADDRESS))
    assert lines[-1] == FAILED
    assert machine.contents() == before


def test_without_permission_to_write_it_says_so_and_the_course_still_works(hosted):
    prefix = () if os.getuid() else ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    if prefix and not shutil.which("setpriv"):
        pytest.skip(
            "root may write everywhere, and setpriv (util-linux) is not here to give that up"
        )
    write_wheel(hosted.folder, "lightning", "2.6.6")
    hosted.pip_install("--no-deps", next(hosted.folder.glob("accelerator*.whl")))
    before = hosted.contents()
    hosted.site.chmod(0o555)
    try:
        done = hosted.run("-m", "course_lessons.setup", prefix=prefix)
    finally:
        hosted.site.chmod(0o755)
    assert done.stdout.startswith(INCOMPLETE) and "Permission denied" in done.stdout
    assert hosted.contents() == before


def test_darts_is_added_from_a_cell_in_the_same_way(hosted):
    hosted.has(lightning="2.6.6")
    hosted.pip_install("--no-deps", next(hosted.folder.glob("accelerator*.whl")))
    for name, version in {"darts": "0.48.1", "pytorch-lightning": "2.6.6"}.items():
        write_wheel(hosted.folder, name, version, requires=("torch",))
    write_wheel(hosted.folder, "torch", "9.9")
    before = hosted.versions()
    done = hosted.run("-c", RUN_CELL, "%run -m course_lessons.setup darts")
    assert (done.returncode, said(done)) == (0, [])
    added = {"darts-0.48.1", "pytorch_lightning-2.6.6"} if sys.version_info >= (3, 11) else set()
    assert hosted.versions() == before | added


def test_a_course_that_runs_from_its_source_asks_no_index_for_itself(machine):
    shutil.copytree(LESSONS[0].parent.parent / "course_utils", machine.folder / "course_utils")
    done = machine.run("-m", "course_lessons.setup")
    assert done.stdout.startswith(INCOMPLETE) and "runs from its source" in done.stdout
