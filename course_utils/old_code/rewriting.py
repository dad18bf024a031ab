"""Changes of a source beyond the place of a finding: names that moved, and arguments of `fit`."""

from typing import Any

from course_utils.old_code.installed import TRAINER, today
from course_utils.old_code.scope import Scope
from course_utils.old_code.syntax import Call, Code, Edit, source
from course_utils.old_code.values import write

_AMP = ("torch.amp.autocast", "torch.amp.GradScaler")  # they take the device first


def next_fit(code: Code, scope: Scope, after: int, trainer: str = "") -> Call | None:
    """Return the first `fit` of a Trainer, or of the one in a variable, after a place in the same
    code, or None.
    """
    fits = [
        each
        for each in code.calls
        if each.name.endswith(".fit") and scope.full(each.name) == f"{TRAINER}.fit"
    ]
    if trainer in scope.trainers:
        fits = [each for each in fits if each.name == f"{trainer}.fit"]
    return next(
        (each for each in fits if each.closing is not None and code.span(each.node)[0] > after),
        None,
    )


def fit_edits(code: Code, fit: Call, given: dict[str, Any]) -> list[Edit]:
    """Give arguments to a `fit`, unless it has one of that kind."""
    end = code.span(fit.closing)[0]
    text = ", ".join(f"{name}={write(value)}" for name, value in given.items())
    return [] if fit.keyword("ckpt_path") else [(end, end, f", {text}" if fit.arguments else text)]


def moved_imports(code: Code, scope: Scope, statement: Any, places: dict[str, str]) -> list[Edit]:
    """Import names of a `from` import from where they are today, and change their uses where a name
    has changed.

    Uses in other cells are not reached: there a name stays, behind `as`, and so it does if the new
    one is in use.
    """
    elsewhere = {name for other in scope.codes if other is not code for name in other.names}
    calls_lack_device = {
        name for name, place in places.items() if name in elsewhere and today(place) in _AMP
    }
    moved = {name for name, place in places.items() if place} - calls_lack_device
    if statement.type != "import_from" or not moved or "#" in source(statement):
        return []
    old = source(statement).partition(" import")[0].removeprefix("from ")
    homes: dict[str, list[str]] = {old: []}
    edits: list[Edit] = []
    for name in statement.get_defined_names():
        item = name.parent if name.parent.type == "import_as_name" else name
        if name.value not in moved:
            homes[old].append(source(item))
            continue
        module, _, leaf = places[name.value].rpartition(".")
        renamed = item is name and leaf not in code.names and not {name.value, leaf} & elsewhere
        homes.setdefault(module, []).append(
            leaf if renamed or leaf == name.value else f"{leaf} as {name.value}"
        )
        edits += _renamed(code, name.value, leaf) if renamed else []
        edits += _with_cuda(code, name.value, places[name.value])
    lines = [
        f"from {module} import {', '.join(leaves)}" for module, leaves in homes.items() if leaves
    ]
    return [(*code.span(statement), f"\n{' ' * statement.start_pos[1]}".join(lines)), *edits]


def _renamed(code: Code, name: str, new: str) -> list[Edit]:
    own = [
        node
        for node in code.names[name]
        if node.search_ancestor("import_from", "import_name") is None
    ]
    return [(*code.span(node), new) for node in own if node.get_previous_leaf() != "."]


def moved_use(
    code: Code, chain: list[tuple[str, Any]], written: str, last: Any, place: str
) -> list[Edit]:
    """Change `torch.a.b` to its new place, where the text names it from the package on."""
    first = chain[0][1]
    return [(*code.span(first, last), place), *_with_cuda(code, written, place, first.parent)]


def _with_cuda(code: Code, name: str, place: str, around: Any = None) -> list[Edit]:
    """Name the device in the calls of a name that moved to where the device comes first."""
    calls = [
        each for each in code.calls if each.name == name and around in (None, each.node.parent)
    ]
    named = "enabled=" * place.endswith("autocast")  # it came first
    texts = [
        '"cuda"' + "".join(f", {named * (not one.name)}" for one in call.arguments[:1])
        for call in calls
    ]
    ends = [code.span(call.opening)[1] for call in calls]
    return [(end, end, text) for end, text in zip(ends, texts, strict=True) if today(place) in _AMP]
