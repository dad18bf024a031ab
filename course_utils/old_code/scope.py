"""What the names of a text stand for: imports, variables that hold a Trainer or its arguments, and
what is guarded.
"""

import re
from collections.abc import Iterator
from typing import Any

from course_utils.old_code.installed import TRAINER, today
from course_utils.old_code.names import ALIASES, advise
from course_utils.old_code.old_arguments import RULES
from course_utils.old_code.old_trainer import known, removed
from course_utils.old_code.reading import Part
from course_utils.old_code.syntax import Call, dotted, source, steps

_EXCEPT = re.compile(
    r"except\b(\s*|[^:\n]*(ImportError|ModuleNotFound|AttributeError|Exception)[^:\n]*):(?!\s*raise)"
)
_GUARD = re.compile(
    r"hasattr|getattr|version|_?has_|available|TYPE_CHECKING|GREATER|ImportError", re.IGNORECASE
)
# their Trainers are their own
_OTHERS = ("transformers", "accelerate", "ray", "trl", "fairseq", "chainer")
_LIGHTNING = re.compile(r"lightning|\bpl\.", re.IGNORECASE)
_HOOKS = re.compile(
    r"pl_module|\b(training|validation|test)_(step|epoch_end|end)\b|configure_optimizers|self\.log\w*\("
)
_MAKERS = (TRAINER, f"{TRAINER}.from_argparse_args")
_OURS = ("LightningModule", "LightningDataModule", "lightning.pytorch.Callback")
_CALLBACKS = "lightning.pytorch.callbacks."


class Scope:
    """The names of all stretches of code of one text; cells and blocks share them."""

    def __init__(self, parts: list[Part]):
        self.codes = codes = [code for part in parts for code in part.codes]
        self.gone: set[str] = set()  # imported names that were reported already
        names = [name for code in codes for _, found in code.imports for name in found]
        self.imported = {  # the full name behind each imported name
            bound.rstrip("."): bound[:-1] if bound.endswith(".") else path
            for _, path, bound in names
            if bound
        }
        nodes = [node for code in codes for node in code.nodes]
        self.defined = {node.name.value for node in nodes if node.type in ("funcdef", "classdef")}
        # Imported names that are parameters elsewhere in the text.
        self.hidden = {
            node.name.value for node in nodes if node.type == "param"
        } & self.imported.keys()
        self.assigned = dict(_assignments(nodes))
        self.text = text = "\n".join(part.text for part in parts)
        self.names_lightning = bool(_LIGHTNING.search(text))  # the code, or the page that it is on
        # a fragment without imports can be for Lightning
        self.lightning = self.names_lightning or not self.imported
        # it is known to be for Lightning
        self.has_hooks = self.names_lightning or bool(_HOOKS.search(text))
        self.trainers: set[str] = set()  # the variables that hold a Trainer
        self.trainers = {
            name for name, value in self.assigned.items() if self.full(value[:-2]) in _MAKERS
        }
        if self.lightning and "trainer" not in {*self.assigned, *self.imported, *self.defined}:
            self.trainers.add("trainer")
        calls = [
            call
            for code in codes
            for call in code.calls
            if self.full(call.name).startswith(TRAINER)
        ]
        self._unpacked = {
            dotted(each.value) for call in calls for each in call.arguments if each.name == "**"
        }
        # to a model of Darts
        given = (call.keyword("pl_trainer_kwargs") for code in codes for call in code.calls)
        self._unpacked |= {dotted(value) for value in given if value}

    def full(self, name: str) -> str:
        """Return the full name behind a name of the text, under today's name of Lightning."""
        head, dot, rest = name.partition(".")
        if name.startswith("self.trainer.") and self.lightning:
            return f"{TRAINER}.{name.removeprefix('self.trainer.')}"
        if head in self.trainers:
            return f"{TRAINER}{dot}{rest}"
        is_own = head in self.defined or head in self.assigned
        return today(
            f"{self.imported.get(head) or (not is_own and ALIASES.get(head)) or head}{dot}{rest}"
        )

    def is_trainer(self, name: str, call: Call) -> bool:
        """Say whether a call makes a Lightning Trainer or a dictionary for one."""
        names = {each.name for each in call.arguments}
        is_old = bool(names & removed())
        if call.name == "Trainer" and "Trainer" not in self.imported:
            return "Trainer" not in self.defined and bool(names & RULES.keys())
        if name == "dict":
            return is_old and self.is_for_trainer(call.node, names)
        if name == "_Trainer":  # the end of a call that was cut off
            return is_old
        if name.endswith("instantiate"):  # Hydra makes what a configuration names
            return is_old and any("trainer" in dotted(each.value) for each in call.arguments[:1])
        # a subclass that is not here, if it takes several of them
        if name.endswith("Trainer") and name != TRAINER:
            is_other = name.partition(".")[0] in _OTHERS
            return (
                is_old
                and not is_other
                and (name.endswith(".Trainer") or len(names & RULES.keys()) > 1)
            )
        return name in _MAKERS

    def is_for_trainer(self, node: Any, names: set[str]) -> bool:
        """Say whether a dictionary holds Trainer arguments, by its name or by what else is in
        it.
        """
        around = node.search_ancestor("expr_stmt", "argument", "dictorsetmaker")
        target = str(getattr(around.children[0], "value", "")) if around else ""
        return (
            "pl_" in target
            or self.holds_arguments(target)
            or (len(names & known()) > 1 and self.lightning)
        )

    def holds_arguments(self, name: str) -> bool:
        """Say whether a variable holds Trainer arguments: it is called so, or unpacked into the
        call of a Trainer.
        """
        return "trainer" in name.lower() or name in self._unpacked

    def bases(self, owner: Any) -> list[str]:
        """Return the full names of the bases of a class."""
        bases = owner.get_super_arglist()
        nodes = [] if bases is None else bases.children if bases.type == "arglist" else [bases]
        names = [self.full(dotted(each)) for each in nodes]
        return [(advise(name) or [name])[0] for name in names]  # where it is today

    def lightning_base(self, owner: Any) -> str | None:
        """Return the base of a class that is Lightning's, "" where it can be, and None where it is
        not.

        A class that is not in sight (None) can be Lightning's, and so can one whose base is not
        known.
        """
        bases = self.bases(owner) if owner else ["unknown"]
        ours = next(
            (base for base in bases if base.endswith(_OURS) or base.startswith(_CALLBACKS)), None
        )
        theirs = all(base.startswith(("torch.", "lightning.", "object")) for base in bases)
        return ours if ours or theirs or not self.lightning else ""


def guarded(node: Any) -> bool:
    """Say whether the code itself asks first whether something is there, or which version is."""
    while parent := node.parent:
        if parent.type == "try_stmt" and _EXCEPT.search(source(parent)):
            return True
        before = [
            each
            for each in parent.children
            if each.type == "if_stmt" and each.end_pos <= node.start_pos
        ]
        asking = [each for each in before if "return" in source(each)]
        if parent.type in ("if_stmt", "or_test", "and_test"):
            asking.append(parent)
        if any(_GUARD.search(source(each).partition("\n")[0]) for each in asking):
            return True
        node = parent
    return False


def _assignments(nodes: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield what is assigned a value, with the call that the value is, such as "Trainer()", "()"
    without a name.
    """
    for node in nodes:
        if node.type == "expr_stmt":
            target, *_, value = node.children
            value = value.children[-1] if value.type == "annassign" else value
            name = steps(value)[-1][0]
            yield source(target), name if name.endswith("()") else ""
