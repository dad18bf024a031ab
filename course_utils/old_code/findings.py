"""Find what is outdated in code: names, calls, arguments, keywords, methods and strings."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from course_utils.old_code.arguments_in_code import find_arguments
from course_utils.old_code.installed import (
    PACKAGES,
    TRAINER,
    missing_arguments,
    parameters,
    version,
)
from course_utils.old_code.names_in_code import Names, is_guarded
from course_utils.old_code.notes import Edit, Finding, Note
from course_utils.old_code.old_names import (
    ALIASES,
    ATTRIBUTES,
    KEYWORDS,
    METHODS,
    TABLES,
    advise,
    replacement,
)
from course_utils.old_code.parsed_code import (
    Argument,
    Call,
    Code,
    dotted,
    names_in,
    pairs_of,
    source,
)
from course_utils.old_code.read_code import Part, parts_of
from course_utils.old_code.trainer_arguments import RULES, removed

# These are outdated where they are called; a type check of one is not.
_OLD_IF_CALLED = (
    "torch.autograd.Variable",
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
)


def find_in(part: Part, names: Names, first_line: int = 1) -> list[Finding]:
    """Return what is outdated in one part, in the order of its lines; the first has a number."""
    found: list[Finding] = []
    for code in part.codes:
        for find in _FINDERS:
            found += find(code, names)
    for place, command in part.commands:
        found += in_text(command, place)
    if not found:
        for place, line in part.commands:
            found += _in_message(line, place)
    found.sort(key=lambda finding: finding.place)
    numbered = []
    for each in found:
        number = part.text.count("\n", 0, each.place) + first_line
        numbered.append(replace(each, note=replace(each.note, line=number, cell=part.name)))
    return numbered


def in_text(text: str, place: int) -> list[Finding]:
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


def _imports(code: Code, names: Names) -> Iterator[Finding]:
    for statement, imported in code.imports:
        for each in imported:
            advice = _advise_called(each.name, each.bound, names)
            if advice is None:
                continue
            names.reported.add(each.bound or each.name)
            if is_guarded(each.node):
                continue
            edits = []
            is_alone = len(imported) == 1 and "#" not in source(statement)
            new = replacement(each.name, advice[0])
            if statement.type == "import_from" and is_alone and new:
                module, _, leaf = new.rpartition(".")
                behind = f" as {each.bound}" if each.bound != leaf else ""
                text = f"from {module} import {leaf}{behind}"
                edits = [Edit(*code.span(statement), text)]
            yield Finding(Note(each.name, *advice), code.span(each.node)[0], tuple(edits))


def _advise_called(name: str, written: str, names: Names) -> tuple[str, str] | None:
    if name.startswith(tuple(f"{each}." for each in _OLD_IF_CALLED)):
        return None
    if name in _OLD_IF_CALLED and not any(call.name == written for call in names.calls):
        return None
    return advise(name)


def _uses(code: Code, names: Names) -> Iterator[Finding]:
    for node in code.nodes:
        chain = names_in(node)
        head = chain[0][0] if chain else ""
        is_prose = head in ("lightning", "pytorch_lightning") and head not in names.imported
        is_annotation = chain and node.search_ancestor("tfpdef")
        if not chain or is_prose or is_annotation or head in names.shadowed:
            continue
        is_assigned = node.parent.type == "expr_stmt" and node is node.parent.children[0]
        if is_assigned and head not in ("self", *names.trainers):
            continue
        text = source(node)
        for pattern, form, why in TABLES["expressions"]:
            if match := re.fullmatch(pattern, text, re.DOTALL):
                start, end = code.span(node)
                new = match.expand(form)
                yield Finding(Note(text, new, why), start, (Edit(start, end, new),))
        yield from _use(code, chain, names)


def _use(code: Code, chain: list[tuple[str, Any]], names: Names) -> Iterator[Finding]:
    """Find the first part of a name such as `torch.a.b` that is outdated."""
    head, first = chain[0]
    for written, last in chain[1:]:
        name = names.full(written)
        below_reported = any(name.startswith(f"{each}.") for each in names.reported)
        if head in names.reported or below_reported:
            return
        if name.startswith(f"{TRAINER}."):
            is_trainer = head in ("self", *names.trainers)
            attribute = name.removeprefix(f"{TRAINER}.").partition(".")[0]
            advice = ATTRIBUTES.get(attribute) if is_trainer else advise(name)
        else:
            advice = _advise_called(name, written, names)
        if advice and not is_guarded(first):
            if not advice[0] and not name.startswith(f"{TRAINER}."):
                advice = advise(names.full(chain[-1][0])) or advice  # of the whole name
            new = replacement(written, (advise(written) or advice)[0]) if head in PACKAGES else ""
            edits = (Edit(*code.span(first, last), new),) if new else ()
            yield Finding(Note(written, *advice), code.span(last)[0], edits)
            return


def _calls(code: Code, names: Names) -> Iterator[Finding]:
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


def _async(code: Code, names: Names) -> Iterator[Finding]:
    why = "`async` is a keyword since Python 3.7."
    for match in re.finditer(r"\.(?:cuda|to)\([^()]*\b(async)\s*=", code.text):
        start, end = code.start + match.start(1), code.start + match.end(1)
        edit = Edit(start, end, "non_blocking")
        yield Finding(Note("async=...", "non_blocking=...", why), start, (edit,))


def _device_names(code: Code, names: Names) -> Iterator[Finding]:
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


def _loads(code: Code, names: Names) -> Iterator[Finding]:
    """Find `model = torch.load(path)` where it is used as a model: it is refused today."""
    why = (
        "Since PyTorch 2.6 torch.load has weights_only=True and refuses a pickled model. Save"
        " model.state_dict(), and load it into a new model. weights_only=False runs code of the"
        " file: only for a file of your own."
    )
    uses = (".eval", ".train", ".cuda", ".parameters", ".state_dict")
    used = {call.name for call in names.calls}
    for call in code.calls:
        if names.full(call.name) != "torch.load" or call.keyword("weights_only"):
            continue
        statement = call.node.search_ancestor("expr_stmt")
        variable = ""
        if statement and call.node.parent is statement.children[-1]:
            variable = source(statement.children[0])
        after = call.brackets.get_next_sibling()
        is_chained = after is not None and source(after) in uses
        if is_chained or any(variable and f"{variable}{use}" in used for use in uses):
            note = Note("torch.load(...)", "model.load_state_dict(torch.load(...))", why)
            yield Finding(note, code.span(call.node)[0])


def _nexts(code: Code, names: Names) -> Iterator[Finding]:
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


def _dictionaries(code: Code, names: Names) -> Iterator[Finding]:
    for node in code.nodes:
        pairs = pairs_of(node)
        keys = {each.name for each in pairs}
        if keys & {*removed(), "accelerator"} and names.is_for_trainer(node, keys):
            yield from find_arguments(code, pairs, form='"{}": {}')


def _assignments(code: Code, names: Names) -> Iterator[Finding]:
    """Find `kwargs["gpus"] = 2` and `self.hparams = ...`, which cannot be assigned any more."""
    for node in code.nodes:
        if node.type != "expr_stmt" or len(node.children) != 3 or node.children[1] != "=":
            continue
        target, _, value = node.children
        start, end = code.span(node)
        around = node.search_ancestor("classdef")
        is_module = names.is_lightning and names.may_be_lightnings(around)
        if around and "Module" not in source(around).partition(":")[0]:
            is_module = False
        if source(target) == "self.hparams" and is_module:
            new = f"self.save_hyperparameters({source(value)})"
            note = Note("self.hparams = ...", new, "hparams cannot be assigned today.")
            yield Finding(note, start, (Edit(start, end, new),))
        item = re.search(r"\[['\"](\w+)['\"]\]$", source(target))
        if item and item[1] in removed() and names.holds_arguments(dotted(target)):
            argument = Argument(item[1], target, value)
            for each in find_arguments(code, [argument])[:1]:
                yield replace(each, edits=())


def _methods(code: Code, names: Names) -> Iterator[Finding]:
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


def _results(code: Code, names: Names) -> Iterator[Finding]:
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


def _strings(code: Code, names: Names) -> Iterator[Finding]:
    for node in code.nodes:
        if node.type == "string" and not node.value.startswith(('"""', "'''", 'r"""')):
            yield from in_text(node.value, code.span(node)[0])


_FINDERS = (
    _imports,
    _uses,
    _calls,
    _async,
    _device_names,
    _loads,
    _nexts,
    _dictionaries,
    _assignments,
    _methods,
    _results,
    _strings,
)
