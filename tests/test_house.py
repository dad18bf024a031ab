"""Which part of the three packages may import and name which, and where their tests stand."""

import ast
import functools
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# from the ground floor up: a package imports itself and those before it
HOMES = {"course_utils": ROOT, "course_tools": ROOT, "course_lessons": ROOT / "notebooks"}
FLOORS = [*HOMES]
TESTS = Path(__file__).resolve().parent
NUMBERED = r"(?i:lessons?('s|s')?[ _]\d)"


def modules() -> dict[str, str]:
    """Return the source of every module by its dotted name."""
    found = {}
    for package, home in HOMES.items():
        for path in sorted((home / package).rglob("*.py")):
            name = ".".join(path.relative_to(home).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return found


def imports(name: str, source: str, known: dict[str, str]) -> set[str]:
    """Return the modules of the house that a module imports, inside functions too."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name} imports relatively: write the whole name"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    homes = set()
    for each in names:
        while each not in known and "." in each:
            each = each.rpartition(".")[0]
        if each in known and each not in (name, *HOMES):
            homes.add(each)
    return homes


def upward(arrows: dict[str, set[str]]) -> list[str]:
    """Return the imports that go up a floor."""
    pairs = [(one, other) for one, others in arrows.items() for other in others]
    return [f"{one} -> {other}" for one, other in pairs if floor(other) > floor(one)]


def floor(module: str) -> int:
    """Return the floor of the house on which a module stands."""
    return FLOORS.index(module.partition(".")[0])


def tool_of(module: str) -> str:
    """Return the name of the tool that a module is a part of, or "" for what is no tool."""
    package, _, rest = module.partition(".")
    part = rest.partition(".")[0]
    return part if package == "course_tools" and part not in ("figures", "private") else ""


def circles(arrows: dict[str, set[str]]) -> list[str]:
    """Return the modules on circles: what is left when ends are taken away again and again."""
    left = {one: {other for other in others if other in arrows} for one, others in arrows.items()}
    while ends := {one for one, others in left.items() if not others}:
        left = {one: others - ends for one, others in left.items() if one not in ends}
    while starts := left.keys() - set().union(*left.values()):
        left = {one: others for one, others in left.items() if one not in starts}
    return sorted(left)


def imported(module: str) -> set[str]:
    """Return the names that a module imports from the house, but for those that it publishes."""
    if "__all__" in KNOWN[module]:
        return set()
    names = set()
    for node in ast.parse(KNOWN[module]).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in HOMES:
            names |= {alias.asname or alias.name for alias in node.names}
    return names


KNOWN = modules()


@functools.cache
def arrows() -> dict[str, set[str]]:
    """Return what each module imports of the house."""
    return {name: imports(name, text, KNOWN) for name, text in KNOWN.items() if name not in HOMES}


def test_imports_go_down_the_house():
    assert not upward(arrows())


@pytest.mark.parametrize("package", [name for name in KNOWN if "__all__" in KNOWN[name]])
def test_a_public_name_is_never_the_module_that_holds_it(package):
    """`from package import name` binds a module of that name, if there is one, before it asks."""
    for _ in range(2):  # the first access imports
        here = importlib.import_module(package)
        assert not [name for name in here.__all__ if inspect.ismodule(getattr(here, name))]
    names = {*vars(here).get("_HOMES", ())}
    assert not names & {
        module.name for module in pkgutil.iter_modules(getattr(here, "__path__", []))
    }


def test_no_tool_imports_another():
    pairs = [(tool_of(one), tool_of(other)) for one, others in arrows().items() for other in others]
    assert not [pair for pair in pairs if all(pair) and pair[0] != pair[1]]


def test_a_name_is_imported_from_the_module_that_defines_it():
    handed_on = []
    for name, others in arrows().items():
        for node in ast.walk(ast.parse(KNOWN[name])):
            if isinstance(node, ast.ImportFrom) and node.module in others:
                taken = {alias.name for alias in node.names} & imported(node.module)
                handed_on += [f"{name}: {each} from {node.module}" for each in sorted(taken)]
    assert not handed_on


def test_no_modules_import_each_other_in_a_circle():
    assert not circles(arrows())


def inside(folder: str) -> dict[str, set[str]]:
    """Return the imports between what lies in one folder, each folder in it taken as one."""
    depth = folder.count(".") + 2

    def entry(name: str) -> str:
        return ".".join(name.split(".")[:depth])

    between: dict[str, set[str]] = {}
    for name, others in arrows().items():
        if name.startswith(f"{folder}."):
            here = {entry(other) for other in others if other.startswith(f"{folder}.")}
            between.setdefault(entry(name), set()).update(here - {entry(name)})
    return between


def test_no_folders_import_each_other_in_a_circle():
    folders = {name.rpartition(".")[0] for name in arrows()}
    assert not [folder for folder in folders if circles(inside(folder))]


def test_no_text_names_a_higher_floor_or_the_number_of_a_lesson():
    talkative = set()
    for number, package in enumerate(FLOORS[:-1], 1):
        names = re.compile("|".join([*FLOORS[number:], NUMBERED]))
        for path in (ROOT / package).rglob("*.*"):
            if path.suffix in (".py", ".json", ".csv") and names.search(path.read_text("utf-8")):
                talkative.add(path.relative_to(ROOT).as_posix())
        for path in (TESTS / package).rglob("*.py"):
            if re.search(NUMBERED, path.read_text("utf-8")):
                talkative.add(path.relative_to(ROOT).as_posix())
    assert not talkative


def test_a_file_that_the_guide_for_contributors_names_is_there():
    named = set(re.findall(r"`([a-z_./]+\.py)`", (ROOT / "CONTRIBUTING.md").read_text("utf-8")))
    folders = [ROOT / each for each in ("course_utils", "course_tools", "notebooks", "tools")]
    folders += [ROOT / "benchmarks", TESTS]
    there = [f"/{file.as_posix()}" for folder in folders for file in folder.rglob("*.py")]
    assert len(named) > 9
    assert not [name for name in named if not any(each.endswith(f"/{name}") for each in there)]


@pytest.mark.parametrize("package", [name for name, text in KNOWN.items() if "_HOMES = {" in text])
def test_an_editor_sees_each_public_name_that_is_imported_later(package):
    seen = {}
    for node in ast.parse(KNOWN[package]).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for each in node.body:
                seen |= {alias.name: each.module for alias in each.names}
    homes = importlib.import_module(package)._HOMES
    assert seen == {name: f"{package}.{home}" for name, home in homes.items()}


def test_nothing_imports_tests_or_tools():
    for name, text in KNOWN.items():
        assert not re.search(r"^\s*(from|import) (tests?|tools)\b", text, re.MULTILINE), name


def mirrored(test: Path) -> bool:
    """Say whether a test is named after a module or a folder where it stands, or after the folder
    that it stands in; in the estimate, after a module.
    """
    home = {**HOMES, "tools": ROOT}[test.relative_to(TESTS).parts[0]]
    place = home / test.parent.relative_to(TESTS)
    exact = "estimate" in test.relative_to(TESTS).parts
    names = {each.stem.strip("_") for each in place.glob("*.py" if exact else "*")}
    names |= set() if exact else {place.name}
    return test.stem.removeprefix("test_") in names and place.exists()


def test_a_test_stands_where_its_module_stands_and_has_its_name():
    found = [path for part in (*HOMES, "tools") for path in (TESTS / part).rglob("test_*.py")]
    strays = {path.relative_to(TESTS).as_posix() for path in found if not mirrored(path)}
    assert not strays


def test_the_marks_of_processes_stand_on_tests_and_not_on_modules():
    for path in TESTS.rglob("test_*.py"):
        marks = re.findall(r"^pytestmark = (?s:.*?)^(?=\S)", path.read_text("utf-8"), re.MULTILINE)
        assert not re.search(r"mark\.(process|slow)\b", "".join(marks)), path.name


def test_no_thread_keeps_a_process_alive_but_the_one_that_is_there_for_that():
    for name, text in KNOWN.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "threading.Thread":
                options = {each.arg: ast.unparse(each.value) for each in node.keywords}
                keeps = name == "course_lessons.device_speed.busy_neighbours"
                assert (options.get("daemon") == "True") != keeps, name
