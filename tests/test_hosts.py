"""Neither the package nor a lesson names a host that it would need when it runs, but for the set-up
cell and CIFAR-10.

Comments and docstrings may name hosts as sources. Code may not: there every string with an address
or a host's name in it is looked at.
"""

import ast
import json
import re

import pytest
from small_machines import LESSONS, ROOT

TOP_LEVEL = "com|org|net|io|edu|gov|ai|dev|app|eu|de|uk|ca|cn|co|cloud|google|info|sh|us"
HOST = re.compile(
    r"(?:https?|ftp|git|ssh|s3|gs|hf)(?:\+\w+)?://([^/\s:'\"]+)"
    rf"|\b((?:[a-z0-9-]+\.)+(?:{TOP_LEVEL}))\b",
    re.IGNORECASE,
)
LOCAL = re.compile(r"127\.0\.0\.1|localhost|\[::1\]|0\.0\.0\.0|\{.*")
# file: the hosts that its code may name, none of which a lesson has to reach
ALLOWED = {
    # the CIFAR-10 download; without it there are offline images
    "notebooks/course_lessons/data/images.py": {"www.cs.toronto.edu"},
    "notebooks/course_lessons/device_speed/published.py": {"github.com"},  # a source, shown
    "notebooks/course_lessons/multi_gpu/pictures.py": {"github.com"},  # a source, shown
    # PyTorch's message names where it is explained
    "course_tools/rehearsal/memory.py": {"pytorch.org"},
}
CODE = sorted(
    path.relative_to(ROOT).as_posix()
    for package in ("course_utils", "course_tools", "notebooks/course_lessons")
    for path in (ROOT / package).rglob("*.py")
)


def hosts_in(text: str) -> set[str]:
    found = {(scheme or bare).lower() for scheme, bare in HOST.findall(text)}
    return {host for host in found if not LOCAL.match(host)}


def strings(source: str) -> list[str]:
    """Return the strings of a program that are not docstrings."""
    tree = ast.parse(source)
    nodes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body[0] for node in ast.walk(tree) if isinstance(node, nodes) and node.body]
    documentation = {id(first.value) for first in bodies if isinstance(first, ast.Expr)}
    constants = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and id(node) not in documentation
    )
    return [node.value for node in constants if isinstance(node.value, str)]


def code_of(lesson) -> list[str]:
    """Return the code cells of a lesson as Python, without IPython's own lines; a cell that writes
    a file of another kind is one string.
    """
    cells = json.loads(lesson.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    magic = re.compile(r"^(\s*)[%!](?:.*\\\n)*.*$", re.MULTILINE)  # and the lines that go on
    not_python = re.compile(r"%%writefile \S+(?<!\.py)\n")
    return [
        repr(source) if not_python.match(source) else magic.sub(r"\1pass", source)
        for source in sources
    ]


@pytest.mark.parametrize("name", CODE)
def test_the_package_names_no_host_but_that_of_cifar(name):
    found = set().union(*map(hosts_in, strings((ROOT / name).read_text(encoding="utf-8"))))
    assert found <= ALLOWED.get(name, set()), f"{name} names {found}"


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_reaches_a_host_by_its_set_up_cell_alone(lesson):
    setup, *_ = code_of(lesson)
    for source in code_of(lesson):
        found = set().union(*map(hosts_in, strings(source)))
        assert found <= ({"github.com"} if source == setup else set()), (
            f"{lesson.name} names {found}"
        )


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_stored_output_loads_nothing_from_elsewhere(lesson):
    cells = json.loads(lesson.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        stored = json.dumps(cell.get("outputs", []))
        assert not re.search(r"(src|href|url|import)\s*[=(]\s*[\\\"']*https?:", stored), cell["id"]
