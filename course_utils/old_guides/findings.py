"""Find what is outdated in the parts of a text: names, calls, arguments, methods, and lines for a shell."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from course_utils.old_guides.arguments import Edit, translate_arguments
from course_utils.old_guides.installed import (
    IMPORTED,
    READ,
    TRAINER,
    is_gone,
    new_home,
    parameters,
    today,
    too_many,
    trainer_attributes,
    version,
)
from course_utils.old_guides.names import ATTRIBUTES, KEYWORDS, METHODS, NAMES, TEXTS
from course_utils.old_guides.old_trainer import Note, removed, translate
from course_utils.old_guides.reading import Part
from course_utils.old_guides.scope import Scope
from course_utils.old_guides.syntax import Argument, Call, Code, dotted, names_in, statement_of
from course_utils.old_guides.values import Expression, NewCallback, write

Finding = tuple[Note, int, list[Edit]]  # what, its place in the part, and how to change it
_ROOTS = {*IMPORTED, *READ}
_FLAG = re.compile(r"(?<!\S)(?:--|\+?(?:trainer|pl_trainer)\.)(\w+)(?:[= ]+(-?[^\s-]\S*))?")
_CALLERS = {TRAINER, "Trainer", "_Trainer", f"{TRAINER}.from_argparse_args", "functools.partial", "partial"}
SPAWN = "torch_xla.launch(function)"
_SPAWN = "spawn takes nprocs=1 or None today. launch has no number: it uses all devices."
_NEXT = "Python 3 iterators have no next method, and a DataLoader's has lost the one that it had."
_LOG = "Today only the loss is read from what a step returns."
_IDX = (
    "Automatic optimization takes one optimizer: with several, set automatic_optimization and call self.optimizers()."
)
_MODULES = {
    f"lightning.pytorch.{each}" for each in ("LightningModule", "Callback", "LightningDataModule", "callbacks.Callback")
}


def find_in(part: Part, codes: list[Code], scope: Scope) -> list[Finding]:
    """Return what is outdated in one part, in the order of its lines."""
    found: list[Finding] = []
    for code in codes:
        for each in (_names, _calls, _dictionaries, _methods, _strings, _clocks):
            found += each(code, scope)
    starts = [0, *(match.end() for match in re.finditer("\n", part.text))]
    for line, command in part.shell:
        found += [(note, starts[line - 1], []) for note in _in_shell(command, scope)]
    found.sort(key=lambda finding: finding[1])
    lines = (part.text.count("\n", 0, place) + 1 for _, place, _ in found)
    return [
        (replace(note, line=line, cell=part.name), place, edits)
        for line, (note, place, edits) in zip(lines, found, strict=True)
    ]


def _names(code: Code, scope: Scope) -> Iterator[Finding]:
    moved: dict[Any, dict[str, str]] = {}  # for each statement: what each of its names is today
    for node, name, bound in code.imports():
        is_used = name != "torch.autograd.Variable" or any(call.name == bound for call in code.calls)
        if name.partition(".")[0] in _ROOTS and is_used and not scope.guarded(node, code) and (advice := advise(name)):
            scope.gone.add(bound or name)
            moved.setdefault(statement_of(node), {})[bound] = advice[0] * is_sure(name, advice[0])
            edits = scope.renamed_imports(code, statement_of(node), name, moved[statement_of(node)])
            yield Note(name, *advice), code.span(node)[0], edits
    for node in code.nodes:
        chain = names_in(node) if node.type in ("atom_expr", "power") else []
        if chain and chain[0][0] in ("lightning", "pytorch_lightning") and chain[0][0] not in scope.imported:
            continue  # prose about the package
        yield from _loss_data(code, node, chain)
        for written, last in chain[1:]:
            name = scope.full(written)
            if name == "torch.autograd.Variable" and not any(call.node.parent is node for call in code.calls):
                break
            if chain[0][0] in scope.gone or any(name.startswith(f"{gone}.") for gone in scope.gone):
                break
            if (advice := _advise_use(name, scope, chain[0][0])) and not scope.guarded(node, code):
                edits = (
                    scope.renamed_use(code, chain, written, last, name, advice[0]) if is_sure(name, advice[0]) else []
                )
                if not edits and not advice[0]:
                    advice = advise(scope.full(chain[-1][0])) or advice
                yield Note(written, *advice), code.span(last)[0], edits
                break


def _loss_data(code: Code, node: Any, chain: list) -> Iterator[Finding]:
    """Find `loss.data[0]`, which a tensor without dimensions refuses since PyTorch 0.5."""
    name, (start, end) = code.source(node), code.span(node)
    if found := re.fullmatch(r"((?:\w+\.)*\w*loss\w*)\.data\[0\]", name):
        yield (
            Note(name, f"{found[1]}.item()", "It raises IndexError today."),
            start,
            [(start, end, f"{found[1]}.item()")],
        )


def _advise_use(name: str, scope: Scope, head: str) -> tuple[str, str] | None:
    if name.startswith(f"{TRAINER}.") and head in ("self", *scope.trainers):
        attribute = name.removeprefix(f"{TRAINER}.").partition(".")[0]
        if attribute in ATTRIBUTES:
            return ATTRIBUTES[attribute][0], ATTRIBUTES[attribute][1]
        known = (
            name.count(".") > TRAINER.count(".") + 1 or attribute in trainer_attributes() or attribute.startswith("_")
        )
        return None if known or not scope.names_lightning else ("", f"A Trainer of {version('lightning')} has none.")
    is_asked = name.partition(".")[0] in _ROOTS and not name.startswith("torch.autograd.Variable.")
    return advise(name) if is_asked else None


def advise(name: str) -> tuple[str, str] | None:
    """Return what to write in place of a full name and why, or None for one that is there today."""
    if name.startswith("pytorch_lightning"):
        found = advise(today(name))
        return found and (found[0].replace("lightning.pytorch", "pytorch_lightning"), found[1])
    whole = [name[: match.start()] for match in re.finditer(r"\.|$", name)]
    written = next((NAMES[each] for each in whole if each in NAMES), None)
    below = next((NAMES[f"{each}."] for each in reversed(whole) if f"{each}." in NAMES), None)
    moved = below and below[0].startswith("lightning") and new_home(name)
    if entry := written or (below if not moved else None):
        return entry[0], entry[1]
    if below or is_gone(name):
        home = new_home(name)
        return home, "It has moved." if home else f"{version(name)}, which is installed here, has none."
    return None


def is_sure(name: str, new: str) -> bool:
    """Say whether a name can be replaced by the advice as it stands: not where that is for a whole module."""
    return bool(new) and (
        (today(name) in NAMES and today(new) == today(NAMES[today(name)][0])) or today(new) == new_home(name)
    )


def _calls(code: Code, scope: Scope) -> Iterator[Finding]:
    for call in code.calls:
        name = scope.full(call.name)
        place = code.span(call.node)[0]
        if (
            name.rpartition(".")[2] == "next"
            and not call.arguments
            and scope.is_iterator(call.name.removesuffix(".next"))
        ):
            yield from _next(code, call)
        if name == "torch.autograd.Variable" and call.name == "Variable" and call.name not in scope.imported:
            yield Note("Variable(...)", NAMES[name][0], NAMES[name][1]), place, []
        if scope.is_trainer(name, call) and (name in _CALLERS or name == "dict" or name.endswith(".Trainer")):
            yield from _trainer(code, call, list(call.arguments), scope, whole=name in (TRAINER, "Trainer"))
            continue
        if name.endswith("xla_multiprocessing.spawn") and getattr(call.keyword("nprocs"), "value", "1") not in (
            "1",
            "None",
        ):
            yield Note(f"{call.name}(nprocs=...)", SPAWN, _SPAWN), place, []
        if name.endswith((".set_defaults", ".update")) and scope.holds_arguments(
            name.rpartition(".")[0], name.endswith("defaults")
        ):
            yield from _trainer(code, call, list(call.arguments), scope, whole=False)
        if name != TRAINER or "Trainer" in (*scope.imported, call.name.partition(".")[2]):
            yield from _keywords(code, call, name, scope)


def _next(code: Code, call: Call) -> Iterator[Finding]:
    whole = call.node.parent
    start, end = code.span(whole)[0], code.span(call.closing or call.opening)[1]
    before = code.text[start - code.offset : code.span(call.opening)[0] - code.offset].rpartition(".")[0].strip()
    yield Note(f"{before}.next()", f"next({before})", _NEXT), start, [(start, end, f"next({before})")]


def _trainer(
    code: Code, call: Call | None, arguments: list[Argument], scope: Scope, form: str = "{}={}", whole: bool = True
) -> Iterator[Finding]:
    notes, edits, draft = translate_arguments(code, arguments, form, whole)
    if draft.fit:
        edits += scope.fit_edits(code, call, ", ".join(f"{name}={write(value)}" for name, value in draft.fit.items()))
    new = draft.new.get("callbacks") or []
    for callback in [each.name for each in new if isinstance(each, NewCallback)] if isinstance(new, list) else []:
        edits += scope.import_edit(code, callback)
    for number, (note, place) in enumerate(notes):
        yield note, place, edits if number == 0 else []


def _keywords(code: Code, call: Call, name: str, scope: Scope) -> Iterator[Finding]:
    """Find keywords that the installed function does not take."""
    known = parameters(name) if name.partition(".")[0] in IMPORTED else None
    function = name.rpartition(".")[2]
    given = {each.name for each in call.arguments}
    for each in call.arguments:
        if each.name in ("", "*", "**") or (known is not None and each.name in known):
            continue
        advice = KEYWORDS.get(f"{function}.{each.name}") if known is not None or scope.plain(name, call.name) else None
        advice = advice or KEYWORDS.get(f"*.{each.name}")
        if advice is None and known is not None and not scope.guarded(call.node, code):
            advice = ["", f"{version(name)}, which is installed here, has no such argument."]
        if advice:
            start = code.span(each.node)[0]
            edit = (
                [(start, start + len(each.name), advice[0])]
                if advice[0].isidentifier() and advice[0] not in given and advice[0] != "nothing"
                else []
            )
            written = each.name.replace("asynC", "async")
            yield Note(f"{function}({written}=...)", advice[0], advice[1]), start, edit


def _dictionaries(code: Code, scope: Scope) -> Iterator[Finding]:
    for node in code.nodes:
        if node.type == "atom" and node.children[0].value == "{" and len(node.children) == 3:
            yield from _dictionary(code, node, scope)
        elif (
            node.type == "expr_stmt"
            and len(node.children) == 3
            and dotted(node.children[0]) == (owner := scope.filled(node))
        ):
            key = node.children[0].children[-1].children[1]
            name = key.value[1:-1] if key.type == "string" else ""
            if name in removed():
                notes, edits, _ = translate_arguments(code, [Argument(name, node, node.children[2])], whole=False)
                yield from (
                    (note, place, [(start, end, f"{owner}.update({text})") for start, end, text in edits])
                    for note, place in notes[:1]
                )


def _dictionary(code: Code, node: Any, scope: Scope) -> Iterator[Finding]:
    inside = node.children[1].children if node.children[1].type == "dictorsetmaker" else []
    pairs = [
        (inside[at - 1], inside[at + 1]) for at, each in enumerate(inside) if getattr(each, "value", "") == ":" and at
    ]
    arguments = [_Pair(key, value) for key, value in pairs]
    names = {each.name for each in arguments}
    if (removed() & names or {"accelerator"} & names) and scope.is_for_trainer(node, names):
        yield from _trainer(
            code, None, [Argument(each.name, each, each.value) for each in arguments], scope, '"{}": {}', whole=False
        )


class _Pair:
    """A key and a value of a dictionary, as one node."""

    def __init__(self, key: Any, value: Any):
        self.name = key.value[1:-1] if key.type == "string" and key.value[:1] in "'\"" else "*"
        self.value, self.start_pos, self.end_pos = value, key.start_pos, value.end_pos


def _methods(code: Code, scope: Scope) -> Iterator[Finding]:
    inside = set()
    for _, bases, methods in code.classes():
        inside |= {id(method) for method in methods}
        names = {method.name.value for method in methods}
        full = [scope.full(base) for base in bases]
        ours = [base for base in full if base in _MODULES or base.endswith(("LightningModule", "LightningDataModule"))]
        theirs = not ours and (
            not scope.lightning or not full or all(base.startswith(("torch.", "lightning.", "object")) for base in full)
        )
        for method in methods if not theirs else []:
            yield from _method(code, method, next((base for base in ours if base in _MODULES), ""), names)
    for node in code.nodes:
        if node.type == "funcdef" and id(node) not in inside and node.name.value in METHODS and scope.is_fragment(node):
            yield from _method(code, node, "", set())
        assigns = node.type == "expr_stmt" and node.children[1].type == "operator" and scope.lightning
        if assigns and node.children[0].get_code().strip() == "self.hparams" and scope.in_module(node):
            new = f"self.save_hyperparameters({code.source(node.children[-1])})"
            start, end = code.span(node)
            yield Note("self.hparams = ...", new, "hparams cannot be assigned today."), start, [(start, end, new)]


def _method(code: Code, method: Any, base: str, names: set[str]) -> Iterator[Finding]:
    name, place = method.name.value, code.span(method.name)[0]
    parameters = [each for each in method.get_params() if not each.star_count]
    if name in METHODS:
        counterpart = re.search(r"def (\w+)", METHODS[name][0])
        if not (counterpart and counterpart[1] in names - {name}):
            yield Note(f"def {name}", METHODS[name][0], METHODS[name][1]), place, []
    elif name in ("training_step", "validation_step") and any(
        each.name.value in ("optimizer_idx", "optimizer_i") for each in parameters
    ):
        yield Note(f"{name}(..., optimizer_idx)", f"{name}(self, batch, batch_idx)", _IDX), place, []
    elif base and (heading := too_many(base, name, len([each for each in parameters if not each.default]))):
        written = f"def {name}({', '.join(each.name.value for each in parameters)})"
        yield Note(written, heading, f"{version(base)} calls it with fewer arguments."), place, []
    if name.endswith("_step") or name in ("validation_epoch_end", "validation_end", "test_end", "training_epoch_end"):
        for string in (
            each for each in _leaves(method) if each.type == "string" and each.value[1:-1] in ("log", "progress_bar")
        ):
            if getattr(string.get_next_sibling(), "value", "") == ":":
                yield Note(f"{string.value}: ...", "self.log_dict(...)", _LOG), code.span(string)[0], []


def _leaves(node: Any) -> Iterator[Any]:
    leaf, last = node.get_first_leaf(), node.get_last_leaf()
    while leaf is not None and leaf is not last:
        yield leaf
        leaf = leaf.get_next_leaf()


def _strings(code: Code, scope: Scope) -> Iterator[Finding]:
    for node in code.nodes:
        if node.type == "string" and not node.value.startswith(('"""', "'''", 'r"""')):
            yield from ((note, code.span(node)[0], []) for note in _in_text(node.value))


def _in_text(text: str) -> list[Note]:
    """Look for outdated wheels, commands and variables in a shell line or a string."""
    return [Note(found[0], new, why) for pattern, new, why in TEXTS if (found := re.search(pattern, text))]


def _in_shell(command: str, scope: Scope) -> list[Note]:
    found = _in_text(command)
    flags = {name: value for name, value in _FLAG.findall(command) if name in removed()}
    if flags and re.match(r".*python|--", command) and (scope.lightning or len(flags) > 1 or "trainer." in command):
        draft = translate({name: _flag(name, value) for name, value in flags.items()})
        new = " ".join(f"--{name} {_as_flag(value)}" for name, value in draft.new.items())
        why = " ".join(dict.fromkeys([*(note.why for note in draft.notes), *(why for _, why in draft.refused)]))
        old = " ".join(f"--{name} {value}".strip() for name, value in flags.items())
        found.append(Note(old, new, f"If the script hands its flags to a Lightning Trainer: {why}"))
    return found


def _flag(name: str, text: str) -> Any:
    try:
        return ast.literal_eval(text[:100]) if text else True
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return (
            text
            if name in ("distributed_backend", "accelerator", "weights_summary") or "," in text
            else Expression(text)
        )


def _as_flag(value: Any) -> str:
    return ",".join(map(str, value)) + "," * (len(value) == 1) if isinstance(value, list | tuple) else str(value)


# Reading a clock, and what waits for a GPU before it is read.
_CLOCKS = {"time.time", "time.perf_counter", "time.monotonic", "datetime.datetime.now", "timeit.default_timer"}
_WAITS = {"synchronize", "item", "tolist", "cpu", "numpy", "sync", "wait_device_ops", "wait_for", "elapsed_time"}
_CLOCK = (
    "torch.cuda.synchronize() before it",
    "A GPU is only handed its work: this clock stops before the work is done.",
)


def _clocks(code: Code, scope: Scope) -> Iterator[Finding]:
    """Find a clock that is read around GPU work with nothing that waits for the GPU."""
    reads = [call for call in code.calls if scope.full(call.name) in _CLOCKS]
    waits = any(call.name.rpartition(".")[2] in _WAITS for call in code.calls)
    strings = (node.value for node in code.nodes if node.type == "string")
    on_gpu = any(call.name.endswith(".cuda") for call in code.calls) or any(text[1:5] == "cuda" for text in strings)
    if len(reads) >= 2 and not waits and on_gpu:
        yield Note(f"{reads[-1].name}()", *_CLOCK), code.span(reads[-1].node.parent)[0], []
