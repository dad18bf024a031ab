"""Changes of a source beyond the place of a finding: names that moved, callbacks to import, arguments of `fit`."""

from typing import Any

from course_utils.old_guides.installed import TRAINER, today
from course_utils.old_guides.scope import Scope
from course_utils.old_guides.syntax import Code, Edit, source

_AMP = ("torch.amp.autocast", "torch.amp.GradScaler")  # they take the device first


def fit_edits(code: Code, scope: Scope, after: int, argument: str) -> list[Edit]:
    """Give an argument to the first `fit` of a Trainer after a place, in the same stretch of code."""
    fits = (each for each in code.calls if each.name.endswith(".fit") and scope.full(each.name) == f"{TRAINER}.fit")
    found = next((each for each in fits if each.closing is not None and code.span(each.node)[0] > after), None)
    if found is None or found.keyword("ckpt_path"):
        return []
    end = code.span(found.closing)[0]
    return [(end, end, f", {argument}" if found.arguments else argument)]


def import_edits(code: Code, scope: Scope, callback: str) -> list[Edit]:
    """Import a callback after the first import of Lightning, unless the text has it."""
    for statement, names in code.imports:
        package = names[0][1].partition(".")[0]
        if package in ("pytorch_lightning", "lightning") and callback not in scope.imported:
            home = "lightning.pytorch" if package == "lightning" else package
            end = code.span(statement)[1]
            return [(end, end, f"\n{' ' * statement.start_pos[1]}from {home}.callbacks import {callback}")]
    return []


def moved_imports(code: Code, statement: Any, places: dict[str, str]) -> list[Edit]:
    """Import names of a `from` import from where they are today, and change their uses where a name has changed."""
    if statement.type != "import_from" or not any(places.values()) or "#" in source(statement):
        return []
    old = source(statement).partition(" import")[0].removeprefix("from ")
    homes: dict[str, list[str]] = {old: []}
    edits: list[Edit] = []
    for name in statement.get_defined_names():
        item = name.parent if name.parent.type == "import_as_name" else name
        module, _, leaf = places.get(name.value, "").rpartition(".")
        if not leaf:
            homes[old].append(source(item))
            continue
        homes.setdefault(module, []).append(leaf if item is name else f"{leaf} as {name.value}")
        if item is name and leaf != name.value:
            edits += _renamed(code, name.value, leaf)
        edits += _with_cuda(code, name.value, f"{module}.{leaf}")
    lines = [f"from {module} import {', '.join(leaves)}" for module, leaves in homes.items() if leaves]
    return [(*code.span(statement), f"\n{' ' * statement.start_pos[1]}".join(lines)), *edits]


def _renamed(code: Code, name: str, new: str) -> list[Edit]:
    uses = [node for node in code.nodes if node.type == "name" and node.value == name]
    own = [node for node in uses if node.search_ancestor("import_from", "import_name") is None]
    return [(*code.span(node), new) for node in own if getattr(node.get_previous_leaf(), "value", "") != "."]


def moved_use(code: Code, chain: list[tuple[str, Any]], written: str, last: Any, place: str) -> list[Edit]:
    """Change `torch.a.b` to its new place, where the text names it from the package on."""
    first = chain[0][1]
    return [(*code.span(first, last), place), *_with_cuda(code, written, place, first.parent)]


def _with_cuda(code: Code, name: str, place: str, around: Any = None) -> list[Edit]:
    """Name the device in the calls of a name that moved to where the device comes first."""
    calls = [each for each in code.calls if each.name == name and around in (None, each.node.parent)]
    ends = [(code.span(call.opening)[1], '"cuda", ' if call.arguments else '"cuda"') for call in calls]
    return [(end, end, text) for end, text in ends if today(place) in _AMP]
