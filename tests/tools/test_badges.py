"""The launch links, and the command that writes another repository's address into all of them."""

import json
import re
import shutil
import subprocess
import sys
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from small_machines import LESSONS, ROOT, first_code_cell

from course_utils import __version__

pytestmark = pytest.mark.process


FILES = ["pyproject.toml", "README.md", *(f"notebooks/{lesson.name}" for lesson in LESSONS)]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
REPO = re.search(r'^repository = "(.*)"$', PYPROJECT, re.MULTILINE)[1]
HERE = [] if REPO == "OWNER/REPO" else [REPO]  # no link before there is an address
BRANCH = re.search(r'^branch = "(.*)"$', PYPROJECT, re.MULTILINE)[1]


@pytest.fixture
def copy(tmp_path):
    """A copy of what shows the address, in a folder of its own."""
    (tmp_path / "notebooks").mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def badges(root, *words) -> subprocess.CompletedProcess:
    command = [sys.executable, ROOT / "tools" / "badges.py", *words, "--root", root]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def texts(root) -> dict[str, str]:
    return {name: (root / name).read_bytes().decode() for name in FILES}


def addresses(link: str) -> tuple[str, str, str]:
    """Return the repository, the branch and the lesson that a launch link opens, read as its host
    reads it.
    """
    url = urlsplit(link)
    if url.hostname == "mybinder.org":
        _, _, host, owner, name, branch = url.path.split("/")
        assert host == "gh"
        return f"{owner}/{name}", unquote(branch), parse_qs(url.query)["labpath"][0]
    if url.hostname == "kaggle.com":
        assert url.path == "/kernels/welcome"
        path = urlsplit(parse_qs(url.query)["src"][0]).path
    else:
        assert url.hostname == "colab.research.google.com"
        path = url.path.removeprefix("/github")
    owner, name, branch, lesson = re.fullmatch(
        r"/([^/]+)/([^/]+)/blob/(.+?)/(notebooks/.+)", path
    ).groups()
    return f"{owner}/{name}", branch, lesson


def launch_links(text: str) -> list[str]:
    return re.findall(r"\]\((https://(?:colab|kaggle|mybinder)[^)]*)(?<!\.svg)\)", text)


def test_every_launch_link_opens_its_own_lesson_at_the_address_of_pyproject():
    for lesson in LESSONS:
        opening = "".join(json.loads(lesson.read_text(encoding="utf-8"))["cells"][0]["source"])
        expected = [(repo, BRANCH, f"notebooks/{lesson.name}") for repo in HERE for _ in range(3)]
        assert [addresses(link) for link in launch_links(opening)] == expected


def test_the_readme_has_the_links_of_every_lesson():
    links = launch_links((ROOT / "README.md").read_text(encoding="utf-8"))
    expected = [
        (repo, BRANCH, f"notebooks/{lesson.name}")
        for repo in HERE
        for lesson in LESSONS
        for _ in range(3)
    ]
    assert [addresses(link) for link in links] == expected


def test_until_there_is_an_address_no_link_leads_nowhere_and_one_line_says_how_to_set_it(copy):
    assert badges(copy, "OWNER/REPO").returncode == 0
    before = texts(copy)
    assert not any("github.com/OWNER" in text for text in before.values())
    for name, text in before.items():
        if name != "pyproject.toml":
            assert text.count("`make badges REPO=owner/name` puts the links here") == 1, name
    assert badges(copy, "ada/course").returncode == 0
    assert not any("puts the links here" in text for text in texts(copy).values())
    assert "git clone https://github.com/ada/course course" in texts(copy)["README.md"]
    assert "<https://ada.github.io/course/>" in texts(copy)["README.md"]


def test_the_set_up_cell_gets_the_address_that_the_release_gives_the_wheel(copy):
    badges(copy, "ada/course")
    lesson = copy / "notebooks" / LESSONS[0].name
    where = "https://github.com/ada/course/releases/download"
    wheel = f"v{__version__}/accelerator_course-{__version__}-py3-none-any.whl"
    assert f'WHEEL = "{where}/{wheel}"' in "".join(first_code_cell(lesson)["source"])


def test_the_launch_links_are_badges_with_words_for_who_does_not_see_them(copy):
    badges(copy, "ada/course")
    opening = "".join(
        json.loads((copy / FILES[-1]).read_text(encoding="utf-8"))["cells"][0]["source"]
    )
    words = re.findall(r"\[!\[([^]]*)\]\(https://\S+\.svg\)\]\(https://", opening)
    assert words == [f"Open this lesson in {host}" for host in ("Colab", "Kaggle", "Binder")]


@pytest.mark.parametrize(
    ("repo", "branch"), [("ada-l/gpu.course_1", "lessons"), ("OWNER2/REPO2", "autumn/2026")]
)
def test_a_fork_changes_every_address_and_nothing_else_and_comes_back(copy, repo, branch):
    badges(copy, "OWNER/REPO", "lessons")
    before = texts(copy)
    done = badges(copy, repo, branch)
    assert done.returncode == 0, done.stderr
    after = texts(copy)
    for name, text in after.items():
        assert "OWNER/REPO" not in text.replace("OWNER/REPO is a placeholder", ""), name
        assert all(addresses(link)[:2] == (repo, branch) for link in launch_links(text)), name
        changed = [
            new
            for old, new in zip(before[name].splitlines(), text.splitlines(), strict=False)
            if old != new
        ]
        if name.endswith(".ipynb"):
            assert len(changed) == 2 and len(before[name].splitlines()) == len(text.splitlines())
            assert "Launch: " in changed[0] and "WHEEL = " in changed[1]
    assert badges(copy, repo, branch).stdout.endswith("nothing, all of it was right.\n")
    assert texts(copy) == after
    badges(copy, "OWNER/REPO", "lessons")
    assert texts(copy) == before


def test_no_other_committed_file_names_the_address(copy):
    done = subprocess.run(
        ["git", "grep", "-l", f"github.com/{REPO}", ":!tests"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode > 1:
        pytest.skip("this is not a checkout")
    assert set(done.stdout.split()) <= set(FILES)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("",), "REPO='' is not an address. Write owner/name"),
        (("course",), "REPO='course' is not an address"),
        (("https://github.com/a/b",), "is not an address"),
        (('a/b"',), "is not an address"),
        (("a/b.git",), "is not an address"),
        (("a/b", "two words"), "BRANCH='two words' is not the name of a branch"),
        (("a/b", "../x"), "is not the name of a branch"),
        (("a/b", ""), "BRANCH='' is not the name of a branch"),
    ],
)
def test_what_is_no_address_is_refused_and_nothing_is_written(copy, words, error):
    before = texts(copy)
    done = badges(copy, *words)
    assert done.returncode == 2 and error in done.stderr
    assert texts(copy) == before


def test_a_file_without_its_place_is_named_and_nothing_is_written(copy):
    lesson = copy / FILES[-1]
    lesson.write_text(
        lesson.read_text(encoding="utf-8").replace('"Launch: ', '"Start: '), encoding="utf-8"
    )
    before = texts(copy)
    done = badges(copy, "ada/course")
    assert done.returncode == 1 and f"{lesson}: found 0 places like" in done.stderr
    assert texts(copy) == before


def test_no_lesson_loads_a_picture_from_elsewhere_but_its_badges():
    for lesson in LESSONS:
        for cell in json.loads(lesson.read_text(encoding="utf-8"))["cells"]:
            lines = "".join(cell["source"]).splitlines()
            source = "\n".join(line for line in lines if not line.startswith("Launch: "))
            assert not re.search(r"!\[[^]]*\]\(https?:|<img[^>]+src=.https?:", source), (
                lesson.name,
                cell["id"],
            )


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_nothing_in_a_name_is_run_by_make_or_the_shell(tmp_path):
    """With a stand-in for Python, which writes down what it is given."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "python").write_text('#!/bin/sh\nprintf "%s" "$REPO" > given\n')
    (tmp_path / "python").chmod(0o755)
    for attack in (
        "x$(shell touch ran)",
        "x`touch ran`",
        '"; touch ran; "',
        "$(touch ran)",
        "'; touch ran #",
        "${x}",
    ):
        command = ["make", "badges", f"REPO={attack}", f"BRANCH={attack}", "PYTHON=./python"]
        subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert not (tmp_path / "ran").exists(), attack
        assert (tmp_path / "given").read_text() == attack
