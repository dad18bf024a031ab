"""What stands around the course: workflows, templates, citation, and the first screen of the README."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from course_utils import __version__
from tools.picture import PICTURE, picture

ROOT = Path(__file__).resolve().parent.parent
GITHUB = ROOT / ".github"
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
TEMPLATES = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))


def read(path: Path):
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


def test_the_readme_shows_the_picture_that_lesson_6_drew():
    assert PICTURE.read_bytes() == picture()
    assert PICTURE.stat().st_size < 60_000
    assert PICTURE.relative_to(ROOT).as_posix() in README


def test_the_first_screen_says_what_it_is_shows_it_and_has_two_commands():
    first = README.partition("\n## The lessons")[0]
    commands = re.search(r"```\n(.*?)```", first, re.DOTALL)[1].splitlines()
    assert len(commands) == 2 and commands[0].startswith("git clone ") and commands[1] == "make lab"
    assert first.index("](.github/") < first.index("```") < 2200
    assert README.count("\n|") < 30, "long tables belong into the book"


def test_every_file_that_the_readme_links_is_there():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_names_what_it_may_do_and_a_limit_and_calls_what_exists(path):
    flow = read(path)
    assert "permissions" in flow
    for name, job in flow["jobs"].items():
        assert "timeout-minutes" in job, name
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
            assert "@" in step.get("uses", "@") or step["uses"].startswith("docker://"), step
            for script in re.findall(r"(?:tools|tests|\.ci)/[\w/]+(?:\.py)?", step.get("run", "")):
                assert (ROOT / script).exists(), script
            for target in re.findall(r"\bmake ([\w.]+)", step.get("run", "")):
                assert f"\n{target}:" in MAKEFILE, target


def test_every_action_runs_on_a_node_that_github_still_has():
    # Node 20 left GitHub's runners in September 2026. The first version of each action that asks for Node 24:
    first = {"checkout": 5, "setup-python": 6, "cache": 5, "upload-pages-artifact": 5, "deploy-pages": 5}
    for path in WORKFLOWS:
        for name, version in re.findall(r"uses: actions/([\w-]+)@v(\d+)$", path.read_text(), re.MULTILINE):
            assert int(version) >= first[name], f"{path.name}: {name}@v{version}"


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.process
def test_a_release_that_broke_off_can_be_run_again(tmp_path):
    steps = read(GITHUB / "workflows" / "release.yml")["jobs"]["release"]["steps"]
    (script,) = (step["run"] for step in steps if "gh release" in step.get("run", ""))
    gh = tmp_path / "gh"  # as GitHub's: what is absent cannot be shown, and what is there cannot be created
    gh.write_text("""#!/bin/sh
case "$2" in
view) test -e made ;;
create) test ! -e made && touch made ;;
upload) test -e made && shift 3 && for each in "$@"; do echo "$each" >> sent; done ;;
esac
""")
    gh.chmod(0o755)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "course.whl").touch()
    for _ in range(2):
        here = {"PATH": f"{tmp_path}:/usr/bin:/bin", "GITHUB_REF_NAME": "v0.1.0"}
        done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=here, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "sent").read_text().split() == ["dist/course.whl", "doctor.pyz", "--clobber"] * 2


def test_other_systems_run_the_lines_of_make_check():
    recipe = "".join(re.search(rf"^{name}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)[1] for name in ("lint", "check"))
    wanted = [line.strip().replace("$(RUN)", "python") for line in recipe.splitlines()]
    job = read(GITHUB / "workflows" / "ci.yml")["jobs"]["check"]
    assert [step["run"] for step in job["steps"] if "python -m" in step.get("run", "")] == wanted
    assert set(job["strategy"]["matrix"]["os"]) == {"ubuntu-latest", "macos-latest", "windows-latest"}
    assert job["strategy"]["matrix"]["python"] == ["3.10", "3.13"]


def test_the_weekly_workflow_tries_every_set():
    from matrix.run import SETS

    assert read(GITHUB / "workflows" / "matrix.yml")["jobs"]["lessons"]["strategy"]["matrix"]["set"] == list(SETS)


@pytest.mark.skipif(not shutil.which("actionlint"), reason="actionlint is not here; CI runs it as a container")
@pytest.mark.process
def test_actionlint_finds_nothing():
    done = subprocess.run(["actionlint", *WORKFLOWS], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_a_template_of_an_issue_has_what_github_needs(path):
    form = read(path)
    assert form["name"] and form["description"]
    kinds = {"markdown", "textarea", "input", "dropdown", "checkboxes"}
    assert all(part["type"] in kinds and part["attributes"]["label"] for part in form["body"])
    ids = [part["id"] for part in form["body"]]
    assert len(ids) == len(set(ids))


def test_who_reports_a_device_or_a_lesson_is_asked_for_the_doctors_report():
    for name in ("doctor", "lesson"):
        assert "python -m course_utils.doctor --report" in (GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml").read_text()


def test_the_citation_and_the_changes_are_of_this_version():
    citation = read(ROOT / "CITATION.cff")
    assert citation["version"] == __version__ and citation["cff-version"] == "1.2.0"
    assert citation["authors"] and citation["message"]
    assert citation["title"].startswith(README.partition("\n")[0].removeprefix("# "))
    assert f"\n## {__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_a_commit_is_checked_by_ruff_and_by_the_tests_of_a_committed_lesson():
    hooks = [hook for repo in read(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    entries = " ".join(hook["entry"] for hook in hooks)
    assert "ruff check" in entries and "ruff format --check" in entries and "tests/test_notebooks.py" in entries


def test_dependabot_leaves_torch_alone():
    pip = next(each for each in read(GITHUB / "dependabot.yml")["updates"] if each["package-ecosystem"] == "pip")
    assert {"torch", "torch-xla"} <= {each["dependency-name"] for each in pip["ignore"]}
