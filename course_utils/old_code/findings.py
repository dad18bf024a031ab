"""Find everything in a text that is outdated, in its code, its commands and its errors."""

import re
from collections.abc import Iterator
from dataclasses import replace

from course_utils.old_code.find_calls import find_calls, find_dictionaries, find_items
from course_utils.old_code.find_hooks import find_methods, find_results
from course_utils.old_code.find_idioms import (
    find_async,
    find_device_names,
    find_expressions,
    find_hparams,
    find_loads,
    find_nexts,
)
from course_utils.old_code.find_names import find_imports, find_uses
from course_utils.old_code.names_in_code import Names
from course_utils.old_code.notes import Finding, Note
from course_utils.old_code.old_names import TABLES
from course_utils.old_code.parsed_code import Code
from course_utils.old_code.read_code import Part, parts_of
from course_utils.old_code.trainer_arguments import RULES


def find_in(part: Part, names: Names, first_line: int = 1) -> list[Finding]:
    """Return what is outdated in one part, in the order of its lines; the first has a number."""
    found: list[Finding] = []
    for code in part.codes:
        for find in _FINDERS:
            found += find(code, names)
    for place, command in part.commands:
        found += _in_text(command, place)
    if not found:
        for place, line in part.commands:
            found += _in_message(line, place)
    found.sort(key=lambda finding: finding.place)
    numbered = []
    for each in found:
        number = part.text.count("\n", 0, each.place) + first_line
        numbered.append(replace(each, note=replace(each.note, line=number, cell=part.name)))
    return numbered


def _in_text(text: str, place: int) -> list[Finding]:
    """Return what is outdated in a command or a string: wheels, versions, variables."""
    found = []
    for pattern, new, why in TABLES["texts"]:
        match = re.search(pattern, text)
        if match:
            found.append(Finding(Note(match[0], new, why), place + match.start()))
    return found


def _in_message(line: str, place: int) -> list[Finding]:
    """Read the message of an error as the code that it is about."""
    argument = re.search(r"__init__\(\) got an unexpected keyword argument '(\w+)'", line)
    if argument:
        # Python up to 3.9 does not say whose `__init__` it was.
        is_trainers = argument[1] in RULES or "Trainer.__init__" in line
        texts = [f"{'Trainer' if is_trainers else 'Model'}({argument[1]}=...)"]
    else:
        rows = [(re.search(pattern, line), code) for pattern, code in TABLES["messages"]]
        texts = [match.expand(code) for match, code in rows if match]
    found = []
    for text in texts:
        (part,) = parts_of(text)
        found += [replace(each, place=place, edits=()) for each in find_in(part, Names([part]))]
    for pattern, new, why in TABLES["advice_on_messages"]:
        if re.search(pattern, line):
            found.append(Finding(Note(line[:80], new, why), place))
    return found


def find_strings(code: Code, names: Names) -> Iterator[Finding]:
    """Find old packages and variables in strings, but not in docstrings."""
    for node in code.nodes:
        if node.type == "string" and not node.value.startswith(('"""', "'''", 'r"""')):
            yield from _in_text(node.value, code.span(node)[0])


_FINDERS = (
    find_imports,
    find_uses,
    find_calls,
    find_dictionaries,
    find_items,
    find_async,
    find_device_names,
    find_expressions,
    find_hparams,
    find_loads,
    find_nexts,
    find_methods,
    find_results,
    find_strings,
)
