"""The meaning of the names in a text: imports, Trainers, and dictionaries for a Trainer."""

import re
from typing import Any

from course_tools.old_code.installed import TRAINER, canonical
from course_tools.old_code.old_names import ALIASES
from course_tools.old_code.parsed_code import Call, Code, source, steps
from course_tools.old_code.trainer_arguments import known_arguments

_LIGHTNING = re.compile(r"lightning|\bpl\.", re.IGNORECASE)
_MAKERS = (TRAINER, f"{TRAINER}.from_argparse_args")
# Bases of classes that are neither a module nor a callback nor a data module of Lightning.
_OTHER_BASES = re.compile(
    r"|object|ABC|(torch\.)?nn\.Module|[\w.]*(Logger|Strategy|Plugin|Dataset|Function)"
)


class Names:
    """The names in the parts of a text, which share them.

    Attributes:
        imported: the full name behind each imported name that no parameter hides.
        defined: functions and classes of the text itself.
        assigned: the variables.
        trainers: those that hold a Trainer.
        called: the names that are called.
        is_lightning: whether the code may be for Lightning: it names it, or imports nothing.
        names_lightning: whether it names it.
        reads_command_line: whether a Trainer is made from the arguments of the command line.
    """

    def __init__(self, codes: list[Code], text: str):
        nodes = [node for code in codes for node in code.nodes]
        calls = [call for code in codes for call in code.calls]
        imports = [each for code in codes for each in code.imports if each.bound]
        hidden = {each.name.value for each in nodes if each.type == "param"}
        self.imported = {each.bound: each.target for each in imports if each.bound not in hidden}
        self.defined = {each.name.value for each in nodes if each.type in ("funcdef", "classdef")}
        self.called = {call.name for call in calls}
        self.names_lightning = bool(_LIGHTNING.search(text))
        self.is_lightning = self.names_lightning or not imports
        self.reads_command_line = "argparse_args" in text
        self.assigned: set[str] = set()
        self.trainers: set[str] = set()
        for node in nodes:
            if node.type == "expr_stmt":
                self._assign(node)
        if self.is_lightning and "trainer" not in self.assigned | {*self.imported} | self.defined:
            self.trainers.add("trainer")

    def _assign(self, statement: Any) -> None:
        target, value = source(statement.children[0]), statement.children[-1]
        if value.type == "annassign":
            value = value.children[-1]
        self.assigned.add(target)
        made_by = steps(value)[-1][0]
        if made_by.endswith("()") and self.full_name(made_by[:-2]) in _MAKERS:
            self.trainers.add(target)

    def full_name(self, name: str) -> str:
        """Return the full name behind a name of the text, under today's name of Lightning."""
        head, dot, rest = name.partition(".")
        if name.startswith("self.trainer.") and self.is_lightning:
            return f"{TRAINER}.{name.removeprefix('self.trainer.')}"
        if head in self.trainers:
            return f"{TRAINER}{dot}{rest}"
        if head in self.imported:
            head = self.imported[head]
        elif head not in self.defined and head not in self.assigned:
            head = ALIASES.get(head, head)
        return canonical(f"{head}{dot}{rest}")

    def is_from_elsewhere(self, name: str) -> bool:
        """Say whether a name is the text's own, or of a package that this tool does not know."""
        head = name.partition(".")[0]
        root = self.full_name(name).partition(".")[0]
        ours = ("torch", "lightning", "torchmetrics", "torch_xla", "darts")
        return head in self.defined or (head in self.imported and root not in ours)

    def makes_trainer(self, call: Call) -> bool:
        """Say whether a call makes a Lightning Trainer, or a dictionary for one."""
        name = self.full_name(call.name)
        names = {each.name for each in call.arguments}
        if call.name in ("dict", "{}"):
            return self.is_for_darts(call) or self._is_for_trainer(call.node, names)
        if call.name == "Trainer" and "Trainer" not in self.imported:
            return "Trainer" not in self.defined and bool(names & known_arguments())
        if name.endswith("Trainer") and name != TRAINER:  # a subclass, or a Trainer of others
            return self.names_lightning and len(names & known_arguments()) > 1
        return name in _MAKERS

    def takes_nothing_else(self, call: Call) -> bool:
        """Say whether only arguments of a Lightning Trainer can stand in a call."""
        is_imported = call.name.partition(".")[0] in {*self.imported, "pl"}
        return self.is_for_darts(call) or (is_imported and self.full_name(call.name) == TRAINER)

    def is_for_darts(self, call: Call) -> bool:
        """Say whether a dictionary is the `pl_trainer_kwargs` of a model."""
        if call.name not in ("dict", "{}"):
            return False
        around = call.node.parent.parent
        is_named = around and around.type in ("argument", "expr_stmt")
        return is_named and getattr(around.children[0], "value", "") == "pl_trainer_kwargs"

    def _is_for_trainer(self, node: Any, names: set[str]) -> bool:
        """Say whether a dictionary is for a Trainer: by its own name or by the names in it."""
        around = node.search_ancestor("expr_stmt", "argument", "dictorsetmaker")
        target = str(getattr(around.children[0], "value", "")) if around else ""
        has_several = len(names & known_arguments()) > 1 and self.is_lightning
        return "pl_" in target or self.holds_arguments(target) or has_several

    def holds_arguments(self, variable: str) -> bool:
        """Say whether a variable holds Trainer arguments."""
        return "trainer" in variable.lower()

    def may_be_lightnings(self, owner: Any) -> bool:
        """Say whether a class can be a module or callback of Lightning; None is not in sight."""
        is_other = owner and _OTHER_BASES.fullmatch(bases_of(owner))
        return self.is_lightning and not is_other


def bases_of(owner: Any) -> str:
    """Return the bases of a class as they are written."""
    bases = owner.get_super_arglist()
    return source(bases) if bases else ""


def class_of(node: Any) -> Any:
    """Return the class around a node, or None."""
    return node.search_ancestor("classdef")
