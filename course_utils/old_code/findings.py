"""Find what is outdated in the code of a text: names, calls, arguments, keywords, methods, strings
and clocks.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from course_utils.old_code.arguments import Finding, find_arguments
from course_utils.old_code.installed import (
    ROOTS,
    TRAINER,
    lacking,
    misfit,
    parameters,
    trainer_attributes,
    version,
)
from course_utils.old_code.names import (
    ALIASES,
    ATTRIBUTES,
    EXPRESSIONS,
    KEYWORDS,
    METHODS,
    TABLES,
    advise,
    new_place,
)
from course_utils.old_code.old_devices import COUNTS
from course_utils.old_code.old_trainer import Note, removed
from course_utils.old_code.reading import Part, read
from course_utils.old_code.rewriting import moved_imports, moved_use, next_fit
from course_utils.old_code.scope import Scope, guarded
from course_utils.old_code.shell import in_commands, in_text
from course_utils.old_code.syntax import Argument, Call, Code, names_in, pairs_of, source

# in use if called
_CALLED = ("torch.autograd.Variable", "torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
_HOOK = re.compile("on_|(optimizer|lr_scheduler|configure|transfer)_|backward")
# `owner["name"]` or `owner.name`
_ITEM = re.compile(r"(.*)(?:\[['\"](\w+)['\"]\]|\.(\w+))", re.DOTALL)


def _imports(code: Code, scope: Scope) -> Iterator[Finding]:
    for statement, names in code.imports:
        places: dict[str, str] = {}
        found: list[Finding] = []
        for node, name, bound in names:
            advice = (
                advise(name)
                if name not in _CALLED or any(call.name == bound for call in code.calls)
                else None
            )
            if advice:
                scope.gone.add(bound or name)
            if advice and not guarded(node):
                places[bound or name] = new_place(name, advice[0])
                found.append((Note(name, *advice), code.span(node)[0], []))
        if found:
            found[0][2].extend(moved_imports(code, scope, statement, places))
        yield from found


def _uses(code: Code, scope: Scope) -> Iterator[Finding]:
    for node in code.nodes:
        chain = names_in(node)
        head = chain[0][0] if chain else ""
        is_prose = head in ("lightning", "pytorch_lightning") and head not in scope.imported
        # the type of a parameter
        if not chain or is_prose or head in scope.hidden or node.search_ancestor("tfpdef"):
            continue
        is_assigned = node.parent.type == "expr_stmt" and node is node.parent.children[0]
        if is_assigned and head not in ("self", *scope.trainers):
            continue
        text, (start, end) = source(node), code.span(node)
        for pattern, form, why in EXPRESSIONS:
            if found := re.fullmatch(pattern, text, re.DOTALL):
                yield Note(text, new := found.expand(form), why), start, [(start, end, new)]
        yield from _use(code, chain, scope)


def _use(code: Code, chain: list[tuple[str, Any]], scope: Scope) -> Iterator[Finding]:
    """Find the first part of a name such as `torch.a.b` that is outdated."""
    head, first = chain[0]
    for written, last in chain[1:]:
        name = scope.full(written)
        is_called = name not in _CALLED or any(call.name == written for call in code.calls)
        if (
            head in scope.gone
            or not is_called
            or any(name.startswith(f"{gone}.") for gone in scope.gone)
        ):
            return
        if (advice := _advise_use(name, scope, head)) and not guarded(first):
            place = new_place(written, (advise(written) or advice)[0]) if head in ROOTS else ""
            if not place and not advice[0] and not name.startswith(f"{TRAINER}."):
                advice = advise(scope.full(chain[-1][0])) or advice
            edits = moved_use(code, chain, written, last, place) if place else []
            yield Note(written, *advice), code.span(last)[0], edits
            return


def _advise_use(name: str, scope: Scope, head: str) -> tuple[str, str] | None:
    if name.startswith(f"{TRAINER}.") and head in ("self", *scope.trainers):
        attribute, _, below = name.removeprefix(f"{TRAINER}.").partition(".")
        if attribute in ATTRIBUTES:
            return ATTRIBUTES[attribute]
        known = (
            below
            or attribute.startswith("_")
            or attribute in trainer_attributes()
            or not scope.names_lightning
        )
        return (
            None if known else ("", f"A Trainer of {version('lightning')} has no such attribute.")
        )
    return None if name.startswith(tuple(f"{each}." for each in _CALLED)) else advise(name)


def _calls(code: Code, scope: Scope) -> Iterator[Finding]:
    for call in code.calls:
        name = scope.full(call.name)
        place = code.span(call.node)[0]
        if call.name in ALIASES and call.name not in scope.imported and (advice := advise(name)):
            yield Note(f"{call.name}(...)", *advice), place, []
        if scope.is_trainer(name, call):
            target = call.node.search_ancestor("expr_stmt")
            fit = next_fit(code, scope, place, source(target.children[0]) if target else "")
            yield from find_arguments(code, call.arguments, fit, whole=name == TRAINER)
            continue
        nprocs = call.keyword("nprocs")
        if (
            name.endswith("xla_multiprocessing.spawn")
            and nprocs
            and source(nprocs) not in ("1", "None")
        ):
            why = "spawn takes nprocs=1 or None today. launch has no number: it uses all devices."
            yield Note(f"{call.name}(nprocs=...)", "torch_xla.launch(function)", why), place, []
        owner, _, method = name.rpartition(".")
        takes = method == "update" and scope.holds_arguments(owner)
        if takes or (
            method == "set_defaults" and any("argparse_args" in each.text for each in scope.codes)
        ):
            yield from find_arguments(code, call.arguments, next_fit(code, scope, place))
        if name != TRAINER or "Trainer" in (*scope.imported, call.name.partition(".")[2]):
            yield from _keywords(code, call, name, scope)


# A model that the text saves or uses as one, and what it would do with a dictionary.
_WHOLE = r"torch\.save\(\s*[\w.]*\b{0}\s*,|\b{0}\.(?:eval|train|parameters|state_dict)\("
_DICT = r"\b{0}(?:\[|\.(?:get|items|keys|pop|update)\()|load_state_dict\(\s*{0}\b"


def _loads(code: Code, scope: Scope) -> Iterator[Finding]:
    """Find `model = torch.load(path)`: where that is a model, and no dictionary, it is refused
    today.
    """
    why = "Since 2.6 it reads weights only. Save model.state_dict(), and load it into a new model; "
    why += "weights_only=False runs code of the file."
    loads = [
        call
        for call in code.calls
        if scope.full(call.name) == "torch.load" and not call.keyword("weights_only")
    ]
    for call in loads:
        target = call.node.parent.parent
        name = target.type == "expr_stmt" and re.search(
            r"\w*(?:model|net)$", source(target.children[0])
        )
        if (
            name
            and re.search(_WHOLE.format(name[0]), scope.text)
            and not re.search(_DICT.format(name[0]), scope.text)
        ):
            yield (
                Note("torch.load(...)", "model.load_state_dict(torch.load(...))", why),
                code.span(call.node)[0],
                [],
            )


def _nexts(code: Code, scope: Scope) -> Iterator[Finding]:
    """Find `.next()` of what `iter` returned, or of what is called as an iterator over data is."""
    for call in code.calls:
        owner, _, method = call.name.rpartition(".")
        by_name = re.search(r"(data|loader)\w*iter|iter\w*(data|loader)", owner.lower())
        is_iterator = by_name or "iter()" in (owner, scope.assigned.get(owner))
        if method == "next" and is_iterator and not call.arguments:
            start, end = code.span(call.node.parent)[0], code.span(call.closing or call.opening)[1]
            before = code.between(start, code.span(call.opening)[0]).rpartition(".")[0].strip()
            why = "Python 3 iterators have no next method, and a DataLoader's has lost the one that it had."
            yield (
                Note(f"{before}.next()", f"next({before})", why),
                start,
                [(start, end, f"next({before})")],
            )


def _dictionaries(code: Code, scope: Scope) -> Iterator[Finding]:
    for node in code.nodes:
        pairs = pairs_of(node)
        names = {each.name for each in pairs}
        if pairs and names & {*removed(), "accelerator"} and scope.is_for_trainer(node, names):
            yield from find_arguments(code, pairs, next_fit(code, scope, 0), '"{}": {}')


def _keywords(code: Code, call: Call, name: str, scope: Scope) -> Iterator[Finding]:
    """Find keywords that the installed function does not take."""
    known = parameters(name)
    given = {each.name for each in call.arguments}
    texts = [source(each.value).replace('"', "'") for each in call.arguments]
    if not {"*", "**"} & given and "..." not in texts and call.closing and not guarded(call.node):
        for needed in lacking(name, sum(not each.name for each in call.arguments), given):
            why = f"{version(name)}, which is installed here, needs this argument."
            yield Note(f"{call.name}(...)", needed, why), code.span(call.node)[0], []
    # the end of a call that began elsewhere
    is_cut = name == "_Trainer" and given & {"save_top_k", "monitor"}
    function = "ModelCheckpoint" if is_cut else name.rpartition(".")[2]
    head = call.name.partition(".")[0]  # the text's own, or of a package that is not asked?
    is_other = head in scope.defined or (
        head in scope.imported and name.partition(".")[0] not in ROOTS
    )
    for number, each in enumerate(call.arguments):
        key = f"{function}.{each.name or number}"  # an argument by position has its number
        is_open = known is not None or not is_other
        advice = KEYWORDS.get(f"{key}={texts[number]}") if is_open else None
        if (
            not advice
            and known is not None
            and (each.name in known or not each.name.isidentifier())
        ):
            continue
        advice = (
            advice or (KEYWORDS.get(key) if is_open else None) or KEYWORDS.get(f"*.{each.name}")
        )
        if advice is None and known is not None and not guarded(call.node):
            advice = ("", f"{version(name)}, which is installed here, has no such argument.")
        if advice:
            start = code.span(each.first)[0]
            is_name = advice[0].isidentifier() and advice[0] not in {*given, "nothing"}
            edit = [(start, start + len(each.name), advice[0])] if is_name else []
            what = (
                f"{each.name.replace('asynC', 'async')}=..."
                if each.name
                else f"..., {texts[number]}"
            )
            yield Note(f"{function}({what})", *advice), start, edit


def _assignments(code: Code, scope: Scope) -> Iterator[Finding]:
    """Find `kwargs["gpus"] = 2` and `args.resume_from_checkpoint = path`, and hparams, which cannot
    be assigned.
    """
    for node in code.nodes:
        if (
            node.type != "expr_stmt"
            or len(node.children) != 3
            or node.children[1].type != "operator"
        ):
            continue
        target, _, value = node.children
        start, end = code.span(node)
        around = node.search_ancestor("classdef")  # None where the statement was cut out of a class
        in_module = around is None or any("Module" in base for base in scope.bases(around))
        if source(target) == "self.hparams" and scope.lightning and in_module:
            new = f"self.save_hyperparameters({source(value)})"
            yield (
                Note("self.hparams = ...", new, "hparams cannot be assigned today."),
                start,
                [(start, end, new)],
            )
        part = _ITEM.fullmatch(source(target))
        owner, item, attribute = part.groups("") if part else ("", "", "")
        # a part of a configuration
        is_for_trainer = owner.endswith(".trainer") and owner != "self.trainer"
        if owner in ("args", "hparams"):  # many scripts call something else so
            is_for_trainer = scope.names_lightning and attribute not in COUNTS
        if (item in removed() and scope.holds_arguments(owner)) or (
            attribute in removed() and is_for_trainer
        ):
            for note, place, edits in find_arguments(
                code, [Argument(item or attribute, target, value)]
            )[:1]:
                changes = [
                    (start, end, f"{owner}.update({new})") for _, _, new in edits[:1]
                ] + edits[1:]
                yield note, place, changes if item else []


def _methods(code: Code, scope: Scope) -> Iterator[Finding]:
    functions = [
        (node, node.search_ancestor("classdef", "funcdef"))
        for node in code.nodes
        if node.type == "funcdef"
    ]
    for node, owner in functions:
        base = scope.lightning_base(owner) if owner is None or owner.type == "classdef" else None
        is_method = owner is not None or [each.name.value for each in node.get_params()][:1] == [
            "self"
        ]
        if (
            base is not None
            and is_method
            and (base or scope.has_hooks or not node.name.value.startswith("on_"))
        ):
            beside = {
                each.name.value for each, other in functions if other is owner and each is not node
            }
            # cut out of a class
            if owner is None and scope.has_hooks and _HOOK.match(node.name.value):
                base = "lightning.pytorch." + (
                    "Callback" if "pl_module" in source(node) else "LightningModule"
                )
            yield from _method(code, node, base, beside)


def _method(code: Code, method: Any, base: str, beside: set[str]) -> Iterator[Finding]:
    name, place = method.name.value, code.span(method.name)[0]
    parameters = [each for each in method.get_params() if not each.star_count]
    names = [each.name.value for each in parameters]
    if name in METHODS:
        counterpart = re.search(r"def (\w+)", METHODS[name][0])
        if not (counterpart and counterpart[1] in beside):
            yield Note(f"def {name}", *METHODS[name]), place, []
    elif old := [each for each in names if f"{name}.{each}" in KEYWORDS]:
        yield Note(f"{name}(..., {old[0]})", *KEYWORDS[f"{name}.{old[0]}"]), place, []
    else:
        needed = sum(not each.default for each in parameters)
        most = 99 if any(each.star_count == 1 for each in method.get_params()) else len(names)
        if advice := misfit(base, name, needed, most):
            yield Note(f"def {name}({', '.join(names)})", *advice), place, []


def _results(code: Code, scope: Scope) -> Iterator[Finding]:
    """Find "log" and "progress_bar" in what a step returns: `{"log": ...}` or `output["log"] =
    ...`.
    """
    for node in code.nodes:
        if node.type == "string" and node.value[1:-1] in ("log", "progress_bar"):
            function = node.search_ancestor("funcdef")
            is_cut = (
                function is None and node.search_ancestor("return_stmt", "expr_stmt") is not None
            )
            is_step = is_cut or (
                function is not None and function.name.value.endswith(("_step", "_end"))
            )
            following = node.get_next_leaf()
            is_key = following == ":" or (following == "]" and following.get_next_leaf() == "=")
            base = scope.lightning_base(node.search_ancestor("classdef"))
            if is_key and is_step and scope.has_hooks and base is not None:
                why = "Today only the loss is read from what a step returns."
                yield Note(f"{node.value}: ...", "self.log_dict(...)", why), code.span(node)[0], []


def _strings(code: Code, scope: Scope) -> Iterator[Finding]:
    for node in code.nodes:
        if node.type == "string" and not node.value.startswith(('"""', "'''", 'r"""')):
            yield from ((note, code.span(node)[0], []) for note in in_text(node.value))


# Reading a clock, and what waits for a GPU before it is read.
_CLOCKS = {
    "time.time",
    "time.perf_counter",
    "time.monotonic",
    "datetime.datetime.now",
    "timeit.default_timer",
}
_WAITS = {
    "synchronize",
    "item",
    "tolist",
    "cpu",
    "numpy",
    "sync",
    "wait_device_ops",
    "wait_for",
    "elapsed_time",
}


def _clocks(code: Code, scope: Scope) -> Iterator[Finding]:
    """Find a clock that is read twice around GPU work in a function, with nothing that waits for
    the GPU.
    """
    inside: dict[Any, list[Call]] = {}
    for call in code.calls:
        inside.setdefault(call.node.search_ancestor("funcdef"), []).append(call)
    for function, calls in inside.items():
        reads = [call for call in calls if scope.full(call.name) in _CLOCKS]
        waits = any(call.name.rpartition(".")[2] in _WAITS for call in calls)
        strings = (node for node in code.nodes if node.type in ("string", "fstring"))
        named = (node for node in strings if source(node).lstrip("bfruBFRU")[1:5] == "cuda")
        on_gpu = any(call.name.endswith(".cuda") for call in calls)
        on_gpu = on_gpu or any(
            function in (None, node.search_ancestor("funcdef")) for node in named
        )
        if len(reads) >= 2 and not waits and on_gpu:
            why = "A GPU is only handed its work: this clock stops before the work is done."
            note = Note(f"{reads[-1].name}()", "torch.cuda.synchronize() before it", why)
            yield note, code.span(reads[-1].node.parent)[0], []


_FINDERS = (
    _imports,
    _uses,
    _calls,
    _loads,
    _nexts,
    _dictionaries,
    _assignments,
    _methods,
    _results,
    _strings,
    _clocks,
)


def find_in(part: Part, scope: Scope) -> list[Finding]:
    """Return what is outdated in one part, in the order of its lines."""
    found: list[Finding] = [
        each for code in part.codes for find in _FINDERS for each in find(code, scope)
    ]
    found += in_commands(part.shell, scope)
    # the message of an error alone is read as the code that it names
    for place, line in part.shell * (not found):
        found_in = ((re.search(pattern, line), code) for pattern, code in TABLES["messages"])
        for parts, _ in (read(match.expand(code)) for match, code in found_in if match):
            found += [(note, place, []) for note, _, _ in find_in(parts[0], Scope(parts))]
    found.sort(key=lambda finding: finding[1])
    return [
        (replace(note, line=part.text.count("\n", 0, place) + 1, cell=part.name), place, edits)
        for note, place, edits in found
    ]
