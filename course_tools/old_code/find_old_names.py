"""Find outdated names, arguments of calls, methods and idioms in code, and old texts beside it."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from course_tools.old_code import old_names
from course_tools.old_code.find_trainer_arguments import find_trainer_arguments
from course_tools.old_code.names_in_code import Names, is_guarded
from course_tools.old_code.parsed_code import Argument, Call, Code, Outdated, source, steps
from course_tools.old_code.read_text import parts_of
from course_tools.old_code.trainer_arguments import Note


def find_imports(code: Code, names: Names) -> Iterator[Outdated]:
    """Find imported names that have gone or moved."""
    for each in code.imports:
        advice = _advise_called(each.name, each.bound, names)
        if advice and not is_guarded(each.node):
            yield Outdated(Note(each.name, *advice), code.span(each.node)[0])


def find_uses(code: Code, names: Names) -> Iterator[Outdated]:
    """Find names such as `torch.a.b` and attributes of a Trainer that are outdated."""
    for node in code.nodes:
        chain = steps(node) if node.type in ("atom_expr", "power") else []
        chain = [(name, last) for name, last in chain if not set(name) & set("([")]
        if not chain or node.search_ancestor("tfpdef"):  # an annotation
            continue
        is_assigned = node.parent.type == "expr_stmt" and node is node.parent.children[0]
        if not is_assigned:
            yield from _use(code, chain, names)


def _use(code: Code, chain: list[tuple[str, Any]], names: Names) -> Iterator[Outdated]:
    """Find the first part of a name such as `torch.a.b` that is outdated."""
    head, first = chain[0]
    imported = names.imported.get(head, "")
    if imported != head and _advise_called(imported, head, names):
        return  # the import is reported
    for written, last in chain:
        name = names.full(written)
        if name.startswith(f"{old_names.TRAINER}."):
            is_trainer = head in ("self", *names.trainers)
            attribute = name.removeprefix(f"{old_names.TRAINER}.").partition(".")[0]
            advice = old_names.ATTRIBUTES.get(attribute) if is_trainer else old_names.advise(name)
        else:
            advice = _advise_called(name, written, names)
        if advice and not is_guarded(first):
            yield Outdated(Note(written, *advice), code.span(last)[0])
            return


def _advise_called(name: str, written: str, names: Names) -> tuple[str, str] | None:
    """Return the advice for a name, but none for a check of a type that still works."""
    for type_name in old_names.TABLES["fine_in_type_checks"]:
        is_check = name == type_name and written not in names.called
        if is_check or name.startswith(f"{type_name}."):
            return None
    return old_names.advise(name)


def find_keywords(code: Code, names: Names) -> Iterator[Outdated]:
    """Find keywords that a function no longer takes, and arguments that it needs today."""
    for call in code.calls:
        name = names.full(call.name)
        place = code.span(call.node)[0]
        if names.makes_trainer(call) or name == old_names.TRAINER:
            continue
        processes = call.keyword("nprocs") if name.endswith("xla_multiprocessing.spawn") else None
        if processes and processes.type != "name" and source(processes) not in ("1", "None"):
            why = "It takes nprocs=1 or None today. launch has no number: it uses all devices."
            note = Note(f"{call.name}(nprocs=...)", "torch_xla.launch(function)", why)
            yield Outdated(note, place)
        given = {each.name for each in call.arguments}
        values = [source(each.value) for each in call.arguments]
        is_open = bool({"*", "**"} & given) or "..." in values
        if not is_open and not is_guarded(call.node):
            by_position = sum(not each.name for each in call.arguments)
            for needed in old_names.missing_arguments(name, by_position, given):
                why = f"{old_names.version(name)}, which is installed here, needs this argument."
                yield Outdated(Note(f"{call.name}(...)", needed, why), place)
        for each in call.arguments:
            yield from _keyword(code, call, each, names)


def _keyword(code: Code, call: Call, argument: Argument, names: Names) -> Iterator[Outdated]:
    """Find a keyword that a function no longer takes."""
    name, keyword = names.full(call.name), argument.name
    takes = old_names.takes(name, keyword)
    if not keyword.isidentifier() or takes:
        return
    function = name.rpartition(".")[2]
    advice = old_names.KEYWORDS.get(f"*.{keyword}")
    if not names.is_from_elsewhere(call.name):
        advice = old_names.KEYWORDS.get(f"{function}.{keyword}", advice)
    if advice is None and takes is False and not is_guarded(call.node):
        advice = ("", f"{old_names.version(name)}, which is installed here, has no such argument.")
    if advice is None:
        return
    start = code.span(argument.first)[0]
    is_new_name = advice[0].isidentifier() and call.keyword(advice[0]) is None
    edits = ((start, start + len(keyword), advice[0]),) if is_new_name else ()
    yield Outdated(Note(f"{function}({keyword}=...)", *advice), start, edits)


def find_methods(code: Code, names: Names) -> Iterator[Outdated]:
    """Find hooks that Lightning no longer calls, and old parameters of those that it calls."""
    for node in code.nodes:
        if node.type != "funcdef":
            continue
        owner = node.search_ancestor("classdef", "funcdef")
        arguments = [each.name.value for each in node.get_params()]
        is_method = owner.type == "classdef" if owner else arguments[:1] == ["self"]
        name = node.name.value
        is_hook = names.names_lightning or not name.startswith("on_")
        if not is_method or not is_hook or not names.may_be_lightnings(owner):
            continue
        place = code.span(node.name)[0]
        if name in old_names.METHODS:
            new_name = re.search(r"def (\w+)", old_names.METHODS[name][0])
            around = source(owner) if owner else ""
            if not (new_name and re.search(rf"def {new_name[1]}\b", around)):
                yield Outdated(Note(f"def {name}", *old_names.METHODS[name]), place)
        for argument in arguments:
            if name.endswith("_step") and f"{name}.{argument}" in old_names.KEYWORDS:
                advice = old_names.KEYWORDS[f"{name}.{argument}"]
                yield Outdated(Note(f"{name}(..., {argument})", *advice), place)


def find_results(code: Code, names: Names) -> Iterator[Outdated]:
    """Find "log" and "progress_bar" among the keys of what a step returns."""
    why = "Today only the loss is read from what a step returns."
    for node in code.nodes:
        if node.type != "string" or node.value[1:-1] not in ("log", "progress_bar"):
            continue
        function = node.search_ancestor("funcdef")
        following = node.get_next_leaf()
        is_key = following == ":" or (following == "]" and following.get_next_leaf() == "=")
        is_hook = function is not None and function.name.value.endswith(("_step", "_end"))
        is_ours = names.may_be_lightnings(node.search_ancestor("classdef"))
        if is_key and is_hook and is_ours and names.names_lightning:
            note = Note(f"{node.value}: ...", "self.log_dict(...)", why)
            yield Outdated(note, code.span(node)[0])


def find_hparams(code: Code, names: Names) -> Iterator[Outdated]:
    """Find `self.hparams = ...` in a module of Lightning: it cannot be assigned any more."""
    for node in code.nodes:
        if node.type != "expr_stmt" or source(node.children[0]) != "self.hparams":
            continue
        owner = node.search_ancestor("classdef")
        is_module = owner is None or "Module" in source(owner).partition(":")[0]
        if node.children[1] == "=" and is_module and names.may_be_lightnings(owner):
            new = f"self.save_hyperparameters({source(node.children[-1])})"
            note = Note("self.hparams = ...", new, "hparams cannot be assigned today.")
            yield Outdated(note, code.span(node)[0], ((*code.span(node), new),))


def find_patterns(code: Code, names: Names) -> Iterator[Outdated]:
    """Find `loss.data[0]`, `device="cuda0"` and the like, outside strings and comments."""
    for pattern, form, why in old_names.TABLES["patterns"]:
        for match in re.finditer(pattern, code.text):
            before = code.text[: match.start()]
            line = before.count("\n") + 1
            column = len(before) - (before.rfind("\n") + 1)
            leaf = code.tree.get_leaf_for_position((line, column))
            is_inside_string = leaf and leaf.type == "string" and leaf.start_pos != (line, column)
            if leaf and not is_inside_string:
                start, end = code.start + match.start(), code.start + match.end()
                new = match.expand(form)
                yield Outdated(Note(match[0], new, why), start, ((start, end, new),))


def find_strings(code: Code, names: Names) -> Iterator[Outdated]:
    """Find old packages and variables in strings, but not in docstrings."""
    for node in code.nodes:
        if node.type == "string" and not node.value.startswith(('"""', "'''", 'r"""')):
            yield from find_in_text(node.value, code.span(node)[0])


def find_in_text(text: str, place: int) -> Iterator[Outdated]:
    """Find what is outdated in a command or a string: wheels, versions, variables."""
    for pattern, new, why in old_names.TABLES["texts"]:
        if match := re.search(pattern, text):
            yield Outdated(Note(match[0], new, why), place + match.start())


def find_in_message(line: str, place: int) -> Iterator[Outdated]:
    """Read the message of an error as the code that it is about."""
    for pattern, code in old_names.TABLES["messages"]:
        if match := re.search(pattern, line):
            part = parts_of(match.expand(code))[0]
            for each in find_in_code(part.codes[0], Names([part])):
                yield Outdated(each.note, place)
    for pattern, new, why in old_names.TABLES["advice_on_messages"]:
        if re.search(pattern, line):
            yield Outdated(Note(line[:80], new, why), place)


def find_in_code(code: Code, names: Names) -> Iterator[Outdated]:
    """Find everything in a stretch of code that is outdated."""
    for find in _FINDERS:
        yield from find(code, names)


_FINDERS: tuple[Callable[[Code, Names], Iterator[Outdated]], ...] = (
    find_imports,
    find_uses,
    find_trainer_arguments,
    find_keywords,
    find_methods,
    find_results,
    find_hparams,
    find_patterns,
    find_strings,
)
