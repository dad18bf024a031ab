"""What the names in a text stand for: imports, Trainers, and dictionaries for a Trainer."""

import re
from typing import Any

from course_utils.old_code.installed import TRAINER, today
from course_utils.old_code.old_names import ALIASES, advise
from course_utils.old_code.parsed_code import Call, dotted, source, steps
from course_utils.old_code.read_code import Part
from course_utils.old_code.trainer_arguments import RULES, known, removed

_LIGHTNING = re.compile(r"lightning|\bpl\.", re.IGNORECASE)
_HOOKS = re.compile(
    r"pl_module|\b(training|validation|test)_(step|epoch_end|end)\b"
    r"|configure_optimizers|self\.log\w*\("
)
_GUARD = re.compile(
    r"hasattr|getattr|version|_?has_|available|TYPE_CHECKING|GREATER|ImportError", re.IGNORECASE
)
_EXCEPT = re.compile(
    r"except\b(\s*|[^:\n]*(ImportError|ModuleNotFound|AttributeError|Exception)[^:\n]*):(?!\s*raise)"
)
_MAKERS = (TRAINER, f"{TRAINER}.from_argparse_args")
# Packages with a Trainer of their own.
_OTHERS = ("transformers", "accelerate", "ray", "trl", "fairseq", "chainer")
_BASES = ("LightningModule", "LightningDataModule", "lightning.pytorch.Callback")


class Names:
    """The names in the parts of a text, which share them.

    Attributes:
        imported: the full name behind each imported name.
        defined: functions and classes of the text itself.
        shadowed: imported names that are parameters elsewhere.
        assigned: each variable, with the call that its value is, such as "Trainer()", or "".
        trainers: variables that hold a Trainer.
        reported: imported names that are outdated, and are reported once.
        reads_command_line: whether a Trainer is made from the arguments of the command line.
        names_lightning: whether Lightning is named; `is_lightning` is true of code that may be for
            Lightning since it imports nothing, and `has_hooks` of code with a hook of Lightning.
    """

    def __init__(self, parts: list[Part]):
        self.codes = [code for part in parts for code in part.codes]
        nodes = [node for code in self.codes for node in code.nodes]
        self.calls = [call for code in self.codes for call in code.calls]
        self.reported: set[str] = set()
        self.imported = {}
        for code in self.codes:
            for _, names in code.imports:
                for each in names:
                    bound = each.bound.rstrip(".")
                    self.imported[bound] = bound if each.bound.endswith(".") else each.name
        self.imported.pop("", None)  # of a star
        self.defined = {each.name.value for each in nodes if each.type in ("funcdef", "classdef")}
        parameters = {each.name.value for each in nodes if each.type == "param"}
        self.shadowed = parameters & self.imported.keys()
        self.assigned = dict(_assignment(node) for node in nodes if node.type == "expr_stmt")
        text = "\n".join(part.text for part in parts)
        self.names_lightning = bool(_LIGHTNING.search(text))
        self.is_lightning = self.names_lightning or not self.imported
        self.has_hooks = self.names_lightning or bool(_HOOKS.search(text))
        self.trainers: set[str] = set()
        calls = {name: self.full(call[:-2]) for name, call in self.assigned.items()}
        self.trainers = {name for name, call in calls.items() if call in _MAKERS}
        known_names = {*self.assigned, *self.imported, *self.defined}
        if self.is_lightning and "trainer" not in known_names:
            self.trainers.add("trainer")
        self.reads_command_line = "argparse_args" in text
        self._unpacked = self._unpacked_for_trainer()

    def _unpacked_for_trainer(self) -> set[str]:
        """Return the variables that are unpacked into a Trainer or handed to a model of Darts."""
        found = set()
        for call in self.calls:
            if self.full(call.name).startswith(TRAINER):
                unpacked = [each.value for each in call.arguments if each.name == "**"]
                found |= {dotted(each) for each in unpacked}
            if given := call.keyword("pl_trainer_kwargs"):
                found.add(dotted(given))
        return found

    def full(self, name: str) -> str:
        """Return the full name behind a name of the text, under today's name of Lightning."""
        head, dot, rest = name.partition(".")
        if name.startswith("self.trainer.") and self.is_lightning:
            return f"{TRAINER}.{name.removeprefix('self.trainer.')}"
        if head in self.trainers:
            return f"{TRAINER}{dot}{rest}"
        whole = self.imported.get(head, head)
        if whole == head and head not in self.defined and head not in self.assigned:
            whole = ALIASES.get(head, head)
        return today(f"{whole}{dot}{rest}")

    def is_from_elsewhere(self, name: str) -> bool:
        """Say whether a name is the text's own, or of a package that this tool does not know."""
        head = name.partition(".")[0]
        if head in self.defined:
            return True
        root = self.full(name).partition(".")[0]
        ours = ("torch", "lightning", "torchmetrics", "torch_xla", "darts")
        return head in self.imported and root not in ours

    def makes_trainer(self, call: Call) -> bool:
        """Say whether a call makes a Lightning Trainer, or a dictionary for one."""
        name = self.full(call.name)
        names = {each.name for each in call.arguments}
        is_old = bool(names & removed())
        if call.name == "Trainer" and "Trainer" not in self.imported:
            return "Trainer" not in self.defined and bool(names & RULES.keys())
        if name == "dict":
            return is_old and self.is_for_trainer(call.node, names)
        if name.endswith("Trainer") and name != TRAINER:  # a subclass that is not here
            is_other = name.partition(".")[0] in _OTHERS
            is_likely = name.endswith(".Trainer") or len(names & RULES.keys()) > 1
            return is_old and is_likely and not is_other
        return name in _MAKERS

    def is_for_trainer(self, node: Any, names: set[str]) -> bool:
        """Say whether a dictionary is for a Trainer: by its own name or by the names in it."""
        around = node.search_ancestor("expr_stmt", "argument", "dictorsetmaker")
        target = str(getattr(around.children[0], "value", "")) if around else ""
        has_several = len(names & known()) > 1 and self.is_lightning
        return "pl_" in target or self.holds_arguments(target) or has_several

    def holds_arguments(self, variable: str) -> bool:
        """Say whether a variable holds Trainer arguments."""
        return "trainer" in variable.lower() or variable in self._unpacked

    def may_be_lightnings(self, owner: Any) -> bool:
        """Say whether a class can be a module or callback of Lightning; None is not in sight."""
        if owner is None:
            return self.is_lightning
        bases = owner.get_super_arglist()
        nodes = getattr(bases, "children", [bases]) if bases is not None else []
        if bases is not None and bases.type != "arglist":
            nodes = [bases]
        names = [self.full(dotted(node)) for node in nodes if node != ","]
        names = [(advise(name) or [name])[0] for name in names]  # where it is today
        if any(name.endswith(_BASES) or ".callbacks." in name for name in names):
            return True
        known_others = all(name.startswith(("torch.", "lightning.", "object")) for name in names)
        return self.is_lightning and not known_others


def is_guarded(node: Any) -> bool:
    """Say whether the code itself asks first whether something is there, or which version is."""
    while parent := node.parent:
        if parent.type == "try_stmt" and _EXCEPT.search(source(parent)):
            return True
        tests = [parent] if parent.type in ("if_stmt", "or_test", "and_test") else []
        for each in parent.children:
            is_before = each.type == "if_stmt" and each.end_pos <= node.start_pos
            if is_before and "return" in source(each):
                tests.append(each)
        if any(_GUARD.search(source(test).partition("\n")[0]) for test in tests):
            return True
        node = parent
    return False


def _assignment(node: Any) -> tuple[str, str]:
    target, value = node.children[0], node.children[-1]
    if value.type == "annassign":
        value = value.children[-1]
    name = steps(value)[-1][0]
    return source(target), name if name.endswith("()") else ""
