"""A lesson that carries the course, opened where there is nothing else of it."""

import json
import os
import re
import shutil
import subprocess
import sys

import packaging
import pytest
from small_machines import GOOD, SmallMachine, empty_environment

from course_utils import __version__
from tools.copies import LESSONS
from tools.standalone import ROOT, build_wheel, pack, setup_cell, standalone, used_by

NAMES = [lesson.stem for lesson in LESSONS]


@pytest.fixture(scope="module")
def files():
    return build_wheel()


@pytest.fixture(scope="module")
def packed(files):
    return pack(used_by(LESSONS[0], files))


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    home = tmp_path_factory.mktemp("machine")
    env = empty_environment(home / "template")
    site = next(env.glob("lib/python*/site-packages"))
    shutil.copytree(os.path.dirname(packaging.__file__), site / "packaging")  # as with every kernel
    machine = SmallMachine(home, env)
    return machine.has(torch="2.11.0+cu128", lightning="2.6.6", **GOOD)


@pytest.mark.process
def test_it_runs_in_an_empty_folder_without_a_network_and_installs_nothing(machine, packed):
    before = machine.contents()
    look = "import course_utils, subprocess\nprint(course_utils.__file__)\n"
    look += "_ = subprocess.run(['python', '-c', 'import course_utils'], check=True)"
    done = machine.set_up(f"{setup_cell(packed)}\n{look}")
    said, where, *others = done.stdout.splitlines()
    assert said == f"Course {__version__} is here." and not others and not done.stderr
    assert "accelerator-course-" in where and not os.path.exists(where)  # it went with the kernel
    assert machine.contents() == before


@pytest.mark.process
def test_a_damaged_file_is_refused_in_one_line_before_anything_of_it_runs(machine, packed):
    cell = setup_cell(packed)
    last = re.findall(r'"([^"\n]{20,})"', cell)[-1]
    for damage in (last[:-5] + "00000", last[:-40]):
        done = machine.set_up(cell.replace(last, damage))
        assert done.returncode == 1
        assert "The course in this file is damaged" in done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr and "Course " not in done.stdout


def test_the_same_files_are_the_same_bytes_in_any_order():
    files = {f"course/{name}.py": f"name = {name!r}".encode() for name in "cab"}
    assert pack(files) == pack(dict(reversed(files.items())))


def test_no_line_of_the_cell_is_longer_than_an_editor_likes():
    lines = [len(line) for line in setup_cell(bytes(5000)).splitlines()]
    assert sorted(lines)[-7:] == [260, *[1010] * 6]  # 5,000 bytes are 6,250 letters


@pytest.mark.process
def test_it_is_the_learners_copy_with_another_folded_set_up_cell(files):
    notebook = json.loads(standalone(LESSONS[0], files))
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in codes)
    (cell,) = [cell for cell in codes if cell["id"].endswith("-setup")]
    assert cell["metadata"]["jupyter"] == {"source_hidden": True}
    words = "".join("".join(cell["source"]) for cell in notebook["cells"] if cell not in codes)
    assert "**Next:**" in words  # whoever is sent one file has no other to follow a link to
    assert set(re.findall(r"\]\((?!https://|#)[^)]*\)", words)) == set()
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    assert standalone(LESSONS[0], files) == text


@pytest.mark.process
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_it_carries_all_that_its_cells_import_and_is_small(tmp_path, files, lesson):
    for name, data in used_by(lesson, files).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    code = ["import sys", f"sys.path = [p for p in sys.path if not p.startswith({str(ROOT)!r})]"]
    code.append(f"sys.path.insert(0, {str(tmp_path)!r})")
    for cell in json.loads(lesson.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            wanted = r"(?m)^(?:from|import) course_\w+.*(?:\([^)]*\))?$"
            code += [found[0] for found in re.finditer(wanted, "".join(cell["source"]))]
    code.append("from course_lessons.openings import OPENINGS, load_function")
    code.append(f"load_function(OPENINGS[{lesson.stem[3:]!r}][0])")
    command = [sys.executable, "-c", "\n".join(code)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(standalone(lesson, files)) < 400_000
