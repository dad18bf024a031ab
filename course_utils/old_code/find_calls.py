"""Find Trainer arguments that are outdated, and outdated arguments of other calls."""

import re
from collections.abc import Iterator
from dataclasses import replace

from course_utils.old_code.arguments_in_code import find_arguments
from course_utils.old_code.installed import TRAINER, missing_arguments, parameters, version
from course_utils.old_code.names_in_code import Names, is_guarded
from course_utils.old_code.notes import Edit, Finding, Note
from course_utils.old_code.old_names import ALIASES, KEYWORDS, advise
from course_utils.old_code.parsed_code import Argument, Call, Code, dotted, pairs_of, source
from course_utils.old_code.trainer_arguments import removed


def find_calls(code: Code, names: Names) -> Iterator[Finding]:
    """Find calls of a Trainer with old arguments, and calls with outdated keywords."""
    for call in code.calls:
        name = names.full(call.name)
        place = code.span(call.node)[0]
        is_alias = call.name in ALIASES and call.name not in names.imported
        if is_alias and (advice := advise(name)):
            yield Finding(Note(f"{call.name}(...)", *advice), place)
        if names.makes_trainer(call):
            yield from find_arguments(code, call.arguments, whole=name == TRAINER)
            continue
        is_spawn = name.endswith("xla_multiprocessing.spawn")
        processes = call.keyword("nprocs") if is_spawn else None
        if processes and source(processes) not in ("1", "None"):
            why = "It takes nprocs=1 or None today. launch has no number: it uses all devices."
            note = Note(f"{call.name}(nprocs=...)", "torch_xla.launch(function)", why)
            yield Finding(note, place)
        owner, _, method = name.rpartition(".")
        is_update = method == "update" and names.holds_arguments(owner)
        if is_update or (method == "set_defaults" and names.reads_command_line):
            yield from find_arguments(code, call.arguments)
        if name != TRAINER or "Trainer" in (*names.imported, call.name.partition(".")[2]):
            yield from _keywords(code, call, name, names)


def find_dictionaries(code: Code, names: Names) -> Iterator[Finding]:
    """Find old Trainer arguments in a dictionary in braces."""
    for node in code.nodes:
        pairs = pairs_of(node)
        keys = {each.name for each in pairs}
        if keys & {*removed(), "accelerator"} and names.is_for_trainer(node, keys):
            yield from find_arguments(code, pairs, form='"{}": {}')


def find_items(code: Code, names: Names) -> Iterator[Finding]:
    """Find `kwargs["gpus"] = 2`."""
    for node in code.nodes:
        if node.type != "expr_stmt" or len(node.children) != 3 or node.children[1] != "=":
            continue
        target, _, value = node.children
        item = re.search(r"\[['\"](\w+)['\"]\]$", source(target))
        if item and item[1] in removed() and names.holds_arguments(dotted(target)):
            argument = Argument(item[1], target, value)
            for each in find_arguments(code, [argument])[:1]:
                yield replace(each, edits=())


def _keywords(code: Code, call: Call, name: str, names: Names) -> Iterator[Finding]:
    """Find keywords that a function no longer takes, and arguments that it needs today."""
    takes = parameters(name)
    given = {each.name for each in call.arguments}
    values = [source(each.value).replace('"', "'") for each in call.arguments]
    is_open = bool({"*", "**"} & given) or "..." in values or is_guarded(call.node)
    if not is_open:
        by_position = sum(not each.name for each in call.arguments)
        for needed in missing_arguments(name, by_position, given):
            why = f"{version(name)}, which is installed here, needs this argument."
            yield Finding(Note(f"{call.name}(...)", needed, why), code.span(call.node)[0])
    function = name.rpartition(".")[2]
    has_entries = takes is not None or not names.is_from_elsewhere(call.name)
    for number, each in enumerate(call.arguments):
        key = f"{function}.{each.name or number}"  # an argument by position has its number
        advice = KEYWORDS.get(f"{key}={values[number]}") if has_entries else None
        is_taken = takes is not None and (each.name in takes or not each.name.isidentifier())
        if advice is None and is_taken:
            continue
        if advice is None and has_entries:
            advice = KEYWORDS.get(key)
        advice = advice or KEYWORDS.get(f"*.{each.name}")
        if advice is None and takes is not None and not is_guarded(call.node):
            advice = ("", f"{version(name)}, which is installed here, has no such argument.")
        if advice is None:
            continue
        start = code.span(each.first)[0]
        is_new_name = advice[0].isidentifier() and advice[0] not in {*given, "nothing"}
        edits = (Edit(start, start + len(each.name), advice[0]),) if is_new_name else ()
        argument = f"{each.name}=..." if each.name else f"..., {values[number]}"
        yield Finding(Note(f"{function}({argument})", *advice), start, edits)
