"""Find outdated names, arguments, methods and idioms in code, and old texts beside it."""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from course_tools.old_code import old_names
from course_tools.old_code.names_in_code import Names, bases_of
from course_tools.old_code.note import Note
from course_tools.old_code.old_names import KEYWORDS
from course_tools.old_code.parsed_code import Argument, Call, Code, pairs_of, source
from course_tools.old_code.trainer_arguments import Expression, known, removed, translate

_LONGEST_TEXT = 10_000  # characters of a command, string or message; a longer one is data


def find_imports(code: Code, names: Names) -> Iterator[Note]:
    """Find imported names that have gone or moved."""
    for each in code.imports:
        advice = _advise_called(each.name, each.bound, names)
        if advice and not code.is_guarded(each.node):
            yield code.note(each.node, each.name, *advice)


def find_uses(code: Code, names: Names) -> Iterator[Note]:
    """Find names such as `torch.a.b` and attributes of a Trainer that are outdated."""
    for chain in code.chains:
        node = chain[0][1].parent
        is_assigned = node.parent.type == "expr_stmt" and node is node.parent.children[0]
        found = None if is_assigned else _use(code, chain, names)
        if found and not node.search_ancestor("tfpdef"):  # not in an annotation
            yield found


def _use(code: Code, chain: list[tuple[str, Any]], names: Names) -> Note | None:
    """Return a note on the first part of a name such as `torch.a.b` that is outdated."""
    head, first = chain[0]
    imported = names.imported.get(head, "")
    if imported != head and _advise_called(imported, head, names):
        return None  # the import is reported
    for written, last in chain:
        name = names.full(written)
        if re.fullmatch(r"self\.use_\w+", written):
            is_ours = written not in names.assigned and names.may_be_lightnings(_class_of(last))
            advice = old_names.ATTRIBUTES.get(written.removeprefix("self.")) if is_ours else None
        elif name.startswith(f"{old_names.TRAINER}."):
            is_trainer = head in ("self", *names.trainers)
            attribute = name.removeprefix(f"{old_names.TRAINER}.").partition(".")[0]
            advice = old_names.ATTRIBUTES.get(attribute) if is_trainer else old_names.advise(name)
        else:
            advice = _advise_called(name, written, names)
        if advice and not code.is_guarded(first):
            return code.note(last, written, *advice)
    return None


def _class_of(node: Any) -> Any:
    return node.search_ancestor("classdef")


def _advise_called(name: str, written: str, names: Names) -> old_names.Advice | None:
    """Return the advice for a name, but none for a check of a type that still works."""
    for type_name in old_names.TABLES["fine_in_type_checks"]:
        is_check = name == type_name and written not in names.called
        if is_check or name.startswith(f"{type_name}."):
            return None
    return old_names.advise(name)


def find_trainer_arguments(code: Code, names: Names) -> Iterator[Note]:
    """Find old arguments of a Trainer, wherever they are written."""
    for call in code.calls:
        owner, _, method = names.full(call.name).rpartition(".")
        is_update = method == "update" and names.holds_arguments(owner)
        is_default = method == "set_defaults" and names.reads_command_line
        if is_update or is_default or names.makes_trainer(call):
            yield from _translated(code, call.arguments, names.takes_nothing_else(call))
    for node in code.nodes:
        if node.type == "expr_stmt" and len(node.children) == 3 and node.children[1] == "=":
            yield from _item(code, node, names)


def _item(code: Code, statement: Any, names: Names) -> Iterator[Note]:
    """Find `kwargs["gpus"] = 2` and `args.trainer.gpus = 2`."""
    target, _, value = statement.children
    item = re.fullmatch(r"([^\n]+)(?:\[['\"](\w+)['\"]\]|\.(\w+))", source(target))
    if item is None or names.full(source(target)).startswith(f"{old_names.TRAINER}."):
        return
    owner, name = item[1], item[2] or item[3]
    is_for_trainer = names.holds_arguments(owner)
    if item[3]:
        is_parsed = names.reads_command_line and owner in ("args", "hparams")
        is_for_trainer = is_parsed or (is_for_trainer and names.is_lightning)
    if name in removed() and is_for_trainer:
        yield from _translated(code, [Argument(name, target, value)])


def _translated(code: Code, arguments: Sequence[Argument], is_strict: bool = False) -> list[Note]:
    """Return what became of the arguments of a Trainer.

    Args:
        code: where they are.
        arguments: all of them, in their order.
        is_strict: whether one that no Trainer knows is reported too.
    """
    given = {each.name: each for each in arguments if each.name.isidentifier()}
    given = {name: each for name, each in given.items() if is_strict or name in known()}
    modern = translate({name: _value_of(each.value) for name, each in given.items()})
    notes = {**modern.changes, **modern.refused}
    return [_placed(code, given[old].node, note) for old, note in notes.items()]


def _placed(code: Code, node: Any, note: Note) -> Note:
    return code.note(node, note.old, note.new, note.why)


def _value_of(node: Any) -> Any:
    """Return a literal as its value, and anything else as an expression."""
    text = source(node)
    try:
        return ast.literal_eval(text) if text != "..." else Expression(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return Expression(text)


def find_keywords(code: Code, names: Names) -> Iterator[Note]:
    """Find keywords that a function no longer takes, and arguments that it needs today."""
    for call in code.calls:
        name = names.full(call.name)
        if name == "{}" or name == old_names.TRAINER or names.makes_trainer(call):
            continue
        processes = call.keyword("nprocs") if name.endswith("xla_multiprocessing.spawn") else None
        if processes and processes.type != "name" and source(processes) not in ("1", "None"):
            why = "It takes nprocs=1 or None today. launch has no number: it uses all devices."
            old = f"{call.name}(nprocs=...)"
            yield code.note(call.node, old, "torch_xla.launch(function)", why)
        given = {each.name for each in call.arguments}
        is_open = any(getattr(each.value, "value", "") == "..." for each in call.arguments)
        if not is_open and not given & {"*", "**"} and not code.is_guarded(call.node):
            by_position = sum(not each.name for each in call.arguments)
            for needed in old_names.missing_arguments(name, by_position, given):
                why = f"{old_names.version(name)}, which is installed here, needs this argument."
                yield code.note(call.node, f"{call.name}(...)", needed, why)
        for each in [call, *_nested(call)]:
            yield from _keywords(code, each, names)


def _nested(call: Call) -> Iterator[Call]:
    """Yield a call for `lr_scheduler_kwargs={...}` beside `lr_scheduler_cls=...`, as Darts has."""
    given = {each.name: each for each in call.arguments}
    for name, each in given.items():
        kind = given.get(name.removesuffix("_kwargs") + "_cls")
        if kind and each.value.type == "atom":
            inside = each.value.children[1]
            if inside.type == "dictorsetmaker":
                yield Call(source(kind.value), each.node, pairs_of(inside))


def _keywords(code: Code, call: Call, names: Names) -> Iterator[Note]:
    """Find the keywords that a function no longer takes."""
    name = names.full(call.name)
    function = name.rpartition(".")[2]
    for each in call.arguments:
        takes = old_names.takes(name, each.name)
        if not each.name.isidentifier() or takes:
            continue
        keys = [f"*.{each.name}"]
        if not names.is_from_elsewhere(call.name):
            key = f"{function}.{each.name}"
            keys = [f"{key}={source(each.value)}", key, *keys]
        advice = next((KEYWORDS[key] for key in keys if key in KEYWORDS), None)
        if advice is None and takes is False and not code.is_guarded(call.node):
            why = f"{old_names.version(name)}, which is installed here, has no such argument."
            advice = ("", why)
        if advice:
            yield code.note(each.node, f"{function}({each.name}=...)", *advice)


def find_methods(code: Code, names: Names) -> Iterator[Note]:
    """Find methods that Lightning or autograd no longer calls, and old parameters of others."""
    functions = [node for node in code.nodes if node.type == "funcdef"]
    owners = [node.search_ancestor("classdef", "funcdef") for node in functions]
    defined = {(owner, node.name.value) for owner, node in zip(owners, functions, strict=True)}
    for owner, node in zip(owners, functions, strict=True):
        arguments = [each.name.value for each in node.get_params()]
        name = node.name.value
        if owner and owner.type == "classdef" and arguments[:1] == ["self"]:
            base = names.full(bases_of(owner))
            advice = old_names.METHODS.get(f"{base.removeprefix('torch.autograd.')}.{name}")
            if advice:
                yield code.note(node.name, f"def {name}(self, ...)", *advice)
        is_method = owner.type == "classdef" if owner else arguments[:1] == ["self"]
        is_hook = names.names_lightning or not name.startswith("on_")
        if not is_method or not is_hook or not names.may_be_lightnings(owner):
            continue
        if note := _hook_note(code, node, owner, names):
            yield note
        if name in old_names.METHODS:
            new_name = re.search(r"def (\w+)", old_names.METHODS[name][0])
            if not (new_name and (owner, new_name[1]) in defined):
                yield code.note(node.name, f"def {name}", *old_names.METHODS[name])
        for argument in arguments:
            if name.endswith("_step") and f"{name}.{argument}" in KEYWORDS:
                advice = KEYWORDS[f"{name}.{argument}"]
                yield code.note(node.name, f"{name}(..., {argument})", *advice)


def _hook_note(code: Code, node: Any, owner: Any, names: Names) -> Note | None:
    """Return a note on a method that Lightning calls with other arguments today, if it does."""
    name, (first, *parameters) = node.name.value, node.get_params() or [None]
    bases = names.full(bases_of(owner)) if owner and owner.type == "classdef" else ""
    is_foreign = bases not in names.defined and names.is_from_elsewhere(bases)
    if first is None or is_foreign:
        return None
    is_callback = bool(parameters) and parameters[0].name.value == "trainer"
    kind = "Callback" if "Callback" in bases or is_callback else "LightningModule"
    kind = "LightningDataModule" if "DataModule" in bases else kind
    called = old_names.hook(kind, name)
    if called is None or any(each.star_count == 1 for each in parameters):
        return None
    plain = [each for each in parameters if not each.star_count]
    required = [each.name.value for each in plain if each.default is None]
    why = called.refuses(required, len(plain))
    old = f"def {name}({', '.join(['self', *required])})"
    return code.note(node.name, old, called.today, why) if why else None


def find_results(code: Code, names: Names) -> Iterator[Note]:
    """Find "log" and "progress_bar" among the keys of what a step returns."""
    why = "Today only the loss is read from what a step returns."
    for node, following, last in zip(code.leaves, code.leaves[1:], code.leaves[2:], strict=False):
        if node.type != "string" or node.value[1:-1] not in ("log", "progress_bar"):
            continue
        is_key = following == ":" or (following == "]" and last == "=")
        function = node.search_ancestor("funcdef")
        is_hook = function is not None and function.name.value.endswith(("_step", "_end"))
        is_ours = names.names_lightning and names.may_be_lightnings(_class_of(node))
        if is_key and is_hook and is_ours:
            yield code.note(node, f"{node.value}: ...", "self.log_dict(...)", why)


def find_hparams(code: Code, names: Names) -> Iterator[Note]:
    """Find `self.hparams = ...` in a module of Lightning: it cannot be assigned any more."""
    for node in code.nodes:
        if node.type != "expr_stmt" or source(node.children[0]) != "self.hparams":
            continue
        owner = _class_of(node)
        is_module = owner is None or "Module" in bases_of(owner)
        if node.children[1] == "=" and is_module and names.may_be_lightnings(owner):
            new = f"self.save_hyperparameters({source(node.children[-1])})"
            yield code.note(node, "self.hparams = ...", new, "hparams cannot be assigned today.")


def find_idioms(code: Code, names: Names) -> Iterator[Note]:
    """Find `loss.data[0]`, `device="cuda0"`, `async=True` and the like."""
    expressions = [chain[0][1].parent for chain in code.chains]
    assignments = [node for node in code.nodes if node.type == "expr_stmt"]
    for node in expressions + assignments:
        text = source(node).partition("\n")[0][:200]
        for pattern, new, why in old_names.IDIOMS:
            if match := re.match(pattern, text):
                yield code.note(node, match[match.re.groups], new, why)
    for call in code.calls:
        for each in call.arguments:
            is_place = each.name == "" and call.name.endswith((".device", ".to"))
            text = getattr(each.value, "value", "")
            name = re.fullmatch(r"(['\"])(cuda|xla|mps|xpu)(\d+)\1", text)
            if name and (is_place or each.name in ("device", "map_location")):
                why = "A device's number stands behind a colon; this is an invalid device string."
                yield code.note(each.value, name[0], name.expand(r"\1\2:\3\1"), why)
    for one, following in pairwise(code.leaves):
        if one.value == "async" and following.value == "=":
            why = "`async` is a keyword since Python 3.7; .cuda() and .to() take non_blocking=."
            yield code.note(one, "async=", "non_blocking=", why)


def find_strings(code: Code, names: Names) -> Iterator[Note]:
    """Find old packages and variables in strings, but not in docstrings."""
    for node in code.leaves:
        if node.type == "string" and not node.value.startswith(('"""', "'''", 'r"""')):
            for each in find_in_text(node.value):
                yield code.note(node, each.old, each.new, each.why, below=each.line)


def find_in_text(text: str) -> Iterator[Note]:
    """Find what is outdated in a command or a string: wheels, versions, variables.

    The line of a note is counted from 0, the first line of the text.
    """
    for pattern, new, why in old_names.TEXTS:
        if len(text) < _LONGEST_TEXT and (match := re.search(pattern, text)):
            yield Note(match[0], new, why, text.count("\n", 0, match.start()))


def find_fourier(code: Code, names: Names) -> Iterator[Note]:
    """Find `torch.stft` and `torch.istft` of the time when they had real numbers."""
    stfts = [call for call in code.calls if names.full(call.name) == "torch.stft"]
    old = [call for call in stfts if _gives_real_numbers(call)]
    for call in old:
        if call.keyword("return_complex") is None:
            why = "It raises RuntimeError without return_complex=. torch.view_as_real gives the old"
            why += " form, with a real and an imaginary part."
            yield code.note(call.node, "torch.stft(...)", "return_complex=True", why)
    makes_complex = any("complex" in call.name for call in code.calls)
    for call in code.calls if old and not makes_complex else ():
        if names.full(call.name) == "torch.istft":
            why = "It takes complex numbers only, and raises RuntimeError for real ones."
            new = "torch.istft(torch.view_as_complex(x), ...)"
            yield code.note(call.node, "torch.istft(x, ...)", new, why)


def _gives_real_numbers(call: Call) -> bool:
    """Say whether a call of `torch.stft` does not ask for complex numbers."""
    asks = call.keyword("return_complex")
    if asks is not None:
        return source(asks) == "False"
    by_position = [each for each in call.arguments if not each.name]
    is_open = any(
        each.name in ("*", "**") or source(each.value) == "..." for each in call.arguments
    )
    return not is_open and len(by_position) < 10  # the tenth is return_complex


def find_masks(code: Code, names: Names) -> Iterator[Note]:
    """Find `1 - mask` where the mask is a comparison of tensors."""
    if "torch" not in {each.partition(".")[0] for each in names.imported.values()}:
        return
    masks = {
        source(node.children[0])
        for node in code.nodes
        if node.type == "expr_stmt" and len(node.children) == 3 and _is_mask(node)
    }
    for node in code.nodes:
        if node.type != "arith_expr" or [source(each) for each in node.children[:2]] != ["1", "-"]:
            continue
        text = source(node.children[2])
        is_comparison = re.fullmatch(r"\(.*(torch|mask).*(==|!=|<|>).*\)", text)
        if text in masks or is_comparison or re.fullmatch(_GIVES_BOOL, text):
            why = "Minus is refused for a tensor of truth values since PyTorch 1.2 (RuntimeError)."
            yield code.note(node, f"1 - {text}", f"~{text}", why)


_GIVES_BOOL = r"[^()]*\.(bool\(\)|(eq|ne|gt|lt|ge|le)\([^()]*\))|torch\.is(nan|inf)\([^()]*\)"
_MASK_NAME = re.compile(r"mask|pad|valid|keep", re.IGNORECASE)


def _is_mask(assignment: Any) -> bool:
    """Say whether an assignment makes a tensor of truth values, as far as can be read."""
    target, _, value = assignment.children
    text = source(value)
    if re.fullmatch(_GIVES_BOOL, text):
        return True
    return value.type == "comparison" and (
        "torch." in text or bool(_MASK_NAME.search(source(target)))
    )


def find_in_message(message: str) -> Iterator[Note]:
    """Find what is outdated in the code that the message of an error is about."""
    message = message[:_LONGEST_TEXT]
    if hook := re.search(_REFUSED_CALL, message):
        kinds = [old_names.hook(kind, hook[1]) for kind in old_names.HOOK_KINDS]
        forms = [f"{each.today} in a {each.kind}" for each in kinds if each]
        if forms:
            why = f"{old_names.version(old_names.TRAINER)}, which is installed here, calls it so."
            yield Note(hook[0], "; ".join(forms), why)
            return
    for pattern, form in old_names.TABLES["messages"]:
        if match := re.search(pattern, message):
            text = match.expand(form)
            code = Code(text)
            found = find_in_code(code, Names([code], text))
            notes = {(note.new, note.why): note for note in found}.values()
            yield from (_of_a_file(note) if text.startswith("import ") else note for note in notes)
            break
    for pattern, new, why in old_names.TABLES["other_messages"]:
        if re.search(pattern, message):
            yield Note(message[:80], new, why)


_REFUSED_CALL = (
    r"(\w+)\(\) (?:missing \d+ required positional argument"
    r"|takes (?:from )?\d+ .*positional argument"
    r"|got an unexpected keyword argument).*"
)


def _of_a_file(note: Note) -> Note:
    """Return a note on a missing module, which a file may name that is being loaded."""
    if note.new:
        return note
    why = "If no line of yours imports it, a file does that an older version saved: load it with"
    why += " that version, or make it again with today's."
    return replace(note, why=f"{note.why} {why}")


def find_in_code(code: Code, names: Names) -> Iterator[Note]:
    """Find everything in a stretch of code that is outdated."""
    for find in _FINDERS:
        yield from find(code, names)


_FINDERS: tuple[Callable[[Code, Names], Iterator[Note]], ...] = (
    find_imports,
    find_uses,
    find_trainer_arguments,
    find_keywords,
    find_methods,
    find_results,
    find_hparams,
    find_idioms,
    find_fourier,
    find_masks,
    find_strings,
)
