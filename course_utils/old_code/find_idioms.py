"""Find idioms of old PyTorch and Lightning that fail today, whatever they are called with."""

import re
from collections.abc import Iterator

from course_utils.old_code.names_in_code import Names
from course_utils.old_code.notes import Edit, Finding, Note
from course_utils.old_code.old_names import TABLES
from course_utils.old_code.parsed_code import Code, source


def find_device_names(code: Code, names: Names) -> Iterator[Finding]:
    """Find `torch.device("cuda0")`, `x.to("cuda0")` and `device="cuda0"`: an invalid string."""
    for call in code.calls:
        first = [each for each in call.arguments if each.name == ""][:1]
        takes_device = call.name.endswith((".device", ".to", ".load"))
        for each in call.arguments:
            is_device = each.name in ("device", "map_location") or (takes_device and each in first)
            match = re.fullmatch(r"(['\"])(cuda|xla|mps|xpu)(\d+)\1", source(each.value))
            if is_device and match:
                new = f"{match[1]}{match[2]}:{match[3]}{match[1]}"
                start, end = code.span(each.value)
                why = "A device's number stands behind a colon; this is an invalid device string."
                note = Note(source(each.value), new, why)
                yield Finding(note, start, (Edit(start, end, new),))


def find_loads(code: Code, names: Names) -> Iterator[Finding]:
    """Find `model = torch.load(path)` where it is used as a model: it is refused today."""
    why = (
        "Since PyTorch 2.6 torch.load has weights_only=True and refuses a pickled model. Save"
        " model.state_dict(), and load it into a new model. weights_only=False runs code of the"
        " file: only for a file of your own."
    )
    uses = (".eval", ".train", ".cuda", ".parameters", ".state_dict")
    used = {(call.name, call.node.search_ancestor("funcdef")) for call in names.calls}
    for call in code.calls:
        if names.full(call.name) != "torch.load" or call.keyword("weights_only"):
            continue
        statement = call.node.search_ancestor("expr_stmt")
        variable = ""
        if statement and call.node.parent is statement.children[-1]:
            variable = source(statement.children[0])
        after = call.brackets.get_next_sibling()
        is_chained = after is not None and source(after) in uses
        function = call.node.search_ancestor("funcdef")
        is_used = any((f"{variable}{use}", function) in used for use in uses)
        if is_chained or (variable and is_used):
            note = Note("torch.load(...)", "model.load_state_dict(torch.load(...))", why)
            yield Finding(note, code.span(call.node)[0])


def find_async(code: Code, names: Names) -> Iterator[Finding]:
    """Find `.cuda(async=True)`, which is no Python any more."""
    why = "`async` is a keyword since Python 3.7."
    for match in re.finditer(r"\.(?:cuda|to)\([^()]*\b(async)\s*=", code.text):
        start, end = code.start + match.start(1), code.start + match.end(1)
        edit = Edit(start, end, "non_blocking")
        yield Finding(Note("async=...", "non_blocking=...", why), start, (edit,))


def find_nexts(code: Code, names: Names) -> Iterator[Finding]:
    """Find `.next()` of what `iter` returned."""
    why = "Python 3 iterators have no next method, and a DataLoader's has lost the one it had."
    for call in code.calls:
        owner, _, method = call.name.rpartition(".")
        is_called_so = re.search(r"(data|loader)\w*iter|iter\w*(data|loader)", owner.lower())
        is_iterator = is_called_so or "iter()" in (owner, names.assigned.get(owner))
        if method != "next" or call.arguments or not is_iterator:
            continue
        start = code.span(call.node.parent)[0]
        dot = code.span(call.node)[0]
        end = code.span(call.brackets)[1]
        before = code.text[start - code.start : dot - code.start].rstrip()
        edit = Edit(start, end, f"next({before})")
        yield Finding(Note(f"{before}.next()", edit.text, why), start, (edit,))


def find_expressions(code: Code, names: Names) -> Iterator[Finding]:
    """Find `loss.data[0]` and the like."""
    for node in code.nodes:
        if node.type not in ("atom_expr", "power"):
            continue
        for pattern, form, why in TABLES["expressions"]:
            if match := re.fullmatch(pattern, source(node), re.DOTALL):
                start, end = code.span(node)
                new = match.expand(form)
                yield Finding(Note(match[0], new, why), start, (Edit(start, end, new),))


def find_hparams(code: Code, names: Names) -> Iterator[Finding]:
    """Find `self.hparams = ...` in a module of Lightning: it cannot be assigned any more."""
    for node in code.nodes:
        if node.type != "expr_stmt" or source(node.children[0]) != "self.hparams":
            continue
        owner = node.search_ancestor("classdef")
        is_module = owner is None or "Module" in source(owner).partition(":")[0]
        if node.children[1] != "=" or not is_module or not names.may_be_lightnings(owner):
            continue
        start, end = code.span(node)
        new = f"self.save_hyperparameters({source(node.children[-1])})"
        note = Note("self.hparams = ...", new, "hparams cannot be assigned today.")
        yield Finding(note, start, (Edit(start, end, new),))
