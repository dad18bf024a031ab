"""Find methods of a module or callback that Lightning no longer calls, and what they returned."""

import re
from collections.abc import Iterator

from course_utils.old_code.names_in_code import Names
from course_utils.old_code.notes import Finding, Note
from course_utils.old_code.old_names import KEYWORDS, METHODS
from course_utils.old_code.parsed_code import Code, source


def find_methods(code: Code, names: Names) -> Iterator[Finding]:
    """Find hooks that Lightning no longer calls, and old parameters of those that it calls."""
    for node in code.nodes:
        if node.type != "funcdef":
            continue
        owner = node.search_ancestor("classdef", "funcdef")
        arguments = [each.name.value for each in node.get_params()]
        is_method = owner.type == "classdef" if owner else arguments[:1] == ["self"]
        name = node.name.value
        is_hook = names.has_hooks or not name.startswith("on_")
        if not is_method or not is_hook or not names.may_be_lightnings(owner):
            continue
        place = code.span(node.name)[0]
        if name in METHODS:
            new_name = re.search(r"def (\w+)", METHODS[name][0])
            around = source(owner) if owner else ""
            if not (new_name and re.search(rf"def {new_name[1]}\b", around)):
                yield Finding(Note(f"def {name}", *METHODS[name]), place)
        for argument in arguments:
            if f"{name}.{argument}" in KEYWORDS:
                advice = KEYWORDS[f"{name}.{argument}"]
                yield Finding(Note(f"{name}(..., {argument})", *advice), place)
                break


def find_results(code: Code, names: Names) -> Iterator[Finding]:
    """Find "log" and "progress_bar" among the keys of what a step returns."""
    for node in code.nodes:
        if node.type != "string" or node.value[1:-1] not in ("log", "progress_bar"):
            continue
        function = node.search_ancestor("funcdef")
        if function is None or not function.name.value.endswith(("_step", "_end")):
            continue
        following = node.get_next_leaf()
        is_key = following == ":" or (following == "]" and following.get_next_leaf() == "=")
        is_ours = names.has_hooks and names.may_be_lightnings(node.search_ancestor("classdef"))
        if is_key and is_ours:
            why = "Today only the loss is read from what a step returns."
            yield Finding(Note(f"{node.value}: ...", "self.log_dict(...)", why), code.span(node)[0])
