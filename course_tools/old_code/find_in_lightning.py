"""Find methods and results of old Lightning modules, callbacks and data modules."""

import re
from collections.abc import Iterator
from typing import Any

from course_tools.old_code.hooks import hook
from course_tools.old_code.names_in_code import Names, bases_of, class_of
from course_tools.old_code.note import Note
from course_tools.old_code.old_names import KEYWORDS, METHODS, Advice
from course_tools.old_code.parsed_code import Code, source


def find_methods(code: Code, names: Names) -> Iterator[Note]:
    """Find methods that Lightning or autograd no longer calls, and old parameters of others."""
    functions = [node for node in code.nodes if node.type == "funcdef"]
    owners = [node.search_ancestor("classdef", "funcdef") for node in functions]
    defined = {(owner, node.name.value) for owner, node in zip(owners, functions, strict=True)}
    for owner, node in zip(owners, functions, strict=True):
        name = node.name.value
        if advice := _advise_autograd(node, owner, names):
            yield code.note(node.name, f"def {name}(self, ...)", *advice)
        if not _may_be_called_by_lightning(node, owner, names):
            continue
        if note := _hook_note(code, node, owner, names):
            yield note
        if name in METHODS:
            new_name = re.search(r"def (\w+)", METHODS[name][0])
            if not (new_name and (owner, new_name[1]) in defined):
                yield code.note(node.name, f"def {name}", *METHODS[name])
        for argument in _parameters_of(node) if name.endswith("_step") else ():
            if advice := KEYWORDS.get(f"{name}.{argument}"):
                yield code.note(node.name, f"{name}(..., {argument})", *advice)


def _parameters_of(function: Any) -> list[str]:
    return [each.name.value for each in function.get_params()]


def _advise_autograd(function: Any, owner: Any, names: Names) -> Advice | None:
    """Return the advice for a method with `self` of a Function of autograd, which has none."""
    if not owner or owner.type != "classdef" or _parameters_of(function)[:1] != ["self"]:
        return None
    base = names.full_name(bases_of(owner)).removeprefix("torch.autograd.")
    return METHODS.get(f"{base}.{function.name.value}")


def _may_be_called_by_lightning(function: Any, owner: Any, names: Names) -> bool:
    """Say whether a function may be a method of a module, callback or data module."""
    has_self = _parameters_of(function)[:1] == ["self"]  # what counts where no class is in sight
    is_method = owner.type == "classdef" if owner else has_self
    is_hook = names.names_lightning or not function.name.value.startswith("on_")
    return is_method and is_hook and names.may_be_lightnings(owner)


def _hook_note(code: Code, node: Any, owner: Any, names: Names) -> Note | None:
    """Return a note on a method that Lightning calls with other arguments today, if it does."""
    bases = names.full_name(bases_of(owner)) if owner and owner.type == "classdef" else ""
    if bases not in names.defined and names.is_from_elsewhere(bases):
        return None
    parameters = node.get_params()
    if not parameters:
        return None
    del parameters[0]  # self
    called = hook(_owner_kind(bases, parameters), node.name.value)
    if called is None or any(each.star_count == 1 for each in parameters):
        return None
    plain = [each for each in parameters if not each.star_count]
    required = [each.name.value for each in plain if each.default is None]
    why = called.refuses(required, len(plain))
    old = f"def {node.name.value}({', '.join(['self', *required])})"
    return code.note(node.name, old, called.today, why) if why else None


def _owner_kind(bases: str, parameters: list[Any]) -> str:
    """Return the class of Lightning whose method this is, by its bases and what follows self."""
    if "DataModule" in bases:
        return "LightningDataModule"
    is_given_trainer = bool(parameters) and parameters[0].name.value == "trainer"
    return "Callback" if "Callback" in bases or is_given_trainer else "LightningModule"


def find_results(code: Code, names: Names) -> Iterator[Note]:
    """Find "log" and "progress_bar" among the keys of what a step returns."""
    why = "Today only the loss is read from what a step returns."
    for node, following, last in zip(code.leaves, code.leaves[1:], code.leaves[2:], strict=False):
        if node.type != "string" or node.value[1:-1] not in ("log", "progress_bar"):
            continue
        is_key = following == ":" or (following == "]" and last == "=")
        function = node.search_ancestor("funcdef")
        is_hook = function is not None and function.name.value.endswith(("_step", "_end"))
        is_ours = names.names_lightning and names.may_be_lightnings(class_of(node))
        if is_key and is_hook and is_ours:
            yield code.note(node, f"{node.value}: ...", "self.log_dict(...)", why)


def find_hparams(code: Code, names: Names) -> Iterator[Note]:
    """Find `self.hparams = ...` in a module of Lightning: it cannot be assigned any more."""
    for node in code.nodes:
        if node.type != "expr_stmt" or source(node.children[0]) != "self.hparams":
            continue
        owner = class_of(node)
        is_module = owner is None or "Module" in bases_of(owner)
        if node.children[1] == "=" and is_module and names.may_be_lightnings(owner):
            new = f"self.save_hyperparameters({source(node.children[-1])})"
            yield code.note(node, "self.hparams = ...", new, "hparams cannot be assigned today.")
