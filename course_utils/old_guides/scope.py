"""What the names of a text stand for: imports, variables that hold a Trainer, and how names are changed."""

import re
from functools import cached_property
from typing import Any

from course_utils.old_guides.installed import IMPORTED, READ, TRAINER, find, today
from course_utils.old_guides.names import ALIASES
from course_utils.old_guides.old_arguments import RULES
from course_utils.old_guides.old_trainer import removed
from course_utils.old_guides.syntax import Call, Code, dotted, statement_of

_GUARD = re.compile(
    r"hasattr|getattr|version|VERSION|_AVAILABLE|available|TYPE_CHECKING|GREATER|ImportError", re.IGNORECASE
)
_OTHERS = ("transformers", "accelerate", "ray", "trl", "fairseq", "chainer")  # their Trainers are their own
_AMP = ("torch.amp.autocast", "torch.amp.GradScaler")


class Scope:
    """The names of all stretches of code of one text; cells and blocks share them."""

    def __init__(self, codes: list[Code]):
        self.codes = codes
        self.gone: set[str] = set()  # imported names that were reported already
        self.imported = {
            name.rstrip("."): path if name[-1:] != "." else name[:-1]
            for code in codes
            for _, path, name in code.imports()
            if name
        }
        self.defined = {
            each.name.value for code in codes for each in code.nodes if each.type in ("funcdef", "classdef")
        }
        self.assigned = dict(self._assignments())
        self.names_lightning = any(re.search(r"lightning|\bpl\.", code.text, re.IGNORECASE) for code in codes)
        self.lightning = self.names_lightning or not self.imported  # a fragment can be of Lightning
        known = {*self.imported, *self.defined}
        makers = {TRAINER, f"{TRAINER}.from_argparse_args"}
        self.trainers = {name for name, value in self.assigned.items() if self.full(value.removesuffix("()")) in makers}
        if self.lightning and "trainer" not in self.assigned and "trainer" not in known:
            self.trainers.add("trainer")

    def _assignments(self) -> Any:
        for code in self.codes:
            for node in code.nodes:
                if (
                    node.type == "expr_stmt"
                    and len(node.children) == 3
                    and node.children[0].type in ("name", "atom_expr", "power")
                ):
                    yield code.source(node.children[0]), _called(node.children[2])
                elif node.type == "annassign" and len(node.children) == 4:
                    yield code.source(node.parent.children[0]), _called(node.children[3])

    def full(self, name: str) -> str:
        """Return the full name behind a name of the text, under today's name of Lightning."""
        head, dot, rest = name.partition(".")
        if name.startswith("self.trainer.") and self.lightning:
            return f"{TRAINER}.{name.removeprefix('self.trainer.')}"
        if head in getattr(self, "trainers", ()):
            return f"{TRAINER}{dot}{rest}"
        known = self.imported.get(head) or (ALIASES.get(head) if head not in self.defined else None) or head
        return today(f"{known}{dot}{rest}")

    def plain(self, name: str, written: str) -> bool:
        """Say whether nothing is known of what is called, so that its name alone has to tell."""
        head = written.partition(".")[0]
        return head not in self.defined and (head not in self.imported or name.partition(".")[0] in (*IMPORTED, *READ))

    def is_iterator(self, name: str) -> bool:
        """Say whether a name holds what `iter` returned, is a call of it, or is called as an iterator over data is."""
        by_name = re.search(r"(data|loader)\w*iter|iter\w*(data|loader)", name.lower())
        return name == "iter()" or self.assigned.get(name) == "iter()" or bool(by_name)

    def is_trainer(self, name: str, call: Call) -> bool:
        """Say whether a call makes a Lightning Trainer or a dictionary for one."""
        names = {each.name for each in call.arguments}
        if call.name.partition(".")[0] == "Trainer" and "Trainer" not in self.imported:
            return "Trainer" not in self.defined and (name != TRAINER or bool(names & RULES.keys()))
        if name == "_Trainer":  # the end of a call that was cut off
            return bool(names & removed())
        if name.endswith(".Trainer") and not name.startswith(TRAINER):  # a subclass of a package that is not here
            return name.partition(".")[0] not in _OTHERS and bool(names & removed())
        if name in ("partial", "functools.partial"):
            return bool(call.arguments) and self.full(dotted(call.arguments[0].node)) == TRAINER
        if name == "dict":
            return bool(names & removed()) and self.is_for_trainer(call.node, names)
        return name.startswith(TRAINER)

    def is_for_trainer(self, node: Any, names: set[str]) -> bool:
        """Say whether a dictionary holds Trainer arguments, by its name or by what else is in it."""
        around = node
        while around.parent is not None and around.type not in ("expr_stmt", "argument", "dictorsetmaker"):
            around = around.parent
        target = str(getattr(around.children[0], "value", "")) if around.type != "file_input" else ""
        known = names & {*RULES, *find("lightning.pytorch.Trainer").__init__.__annotations__}
        return (
            "trainer" in target.lower()
            or "pl_" in target
            or target in self.unpacked
            or (len(known) > 1 and self.lightning)
        )

    @cached_property
    def unpacked(self) -> set[str]:
        """The names of what is unpacked into the calls of a Trainer."""
        calls = [call for code in self.codes for call in code.calls if self.full(call.name).startswith(TRAINER)]
        return {dotted(each.value) for call in calls for each in call.arguments if each.name == "**"}

    @cached_property
    def parses_arguments(self) -> bool:
        """Whether Trainer arguments come from the command line."""
        return any("argparse_args" in code.text for code in self.codes)

    def holds_arguments(self, name: str, parser: bool) -> bool:
        """Say whether a variable holds Trainer arguments, or is the parser that reads them."""
        return self.parses_arguments if parser else name in self.unpacked or "trainer" in name.lower()

    def filled(self, node: Any) -> str:
        """Return the dictionary whose item a statement assigns, when it is for a Trainer."""
        target = node.children[0]
        is_item = (
            target.type in ("atom_expr", "power")
            and len(target.children) == 2
            and target.children[1].children[0].value == "["
        )
        name = getattr(target.children[0], "value", "") if is_item else ""
        return name if name and self.holds_arguments(name, parser=False) else "\0"

    def is_fragment(self, function: Any) -> bool:
        """Say whether a function is a method that was cut out of its class."""
        first = function.get_params()[:1]
        return bool(first) and first[0].name.value == "self" and self.lightning

    def in_module(self, node: Any) -> bool:
        """Say whether a statement is in a LightningModule, or was cut out of a class."""
        while node is not None and node.type != "classdef":
            node = node.parent
        bases = node.get_super_arglist() if node is not None else None
        return node is None or (bases is not None and "Module" in self.full(dotted(bases)))

    def guarded(self, node: Any, code: Code) -> bool:
        """Say whether the code itself asks first whether something is there."""
        while node.parent is not None:
            node = node.parent
            if node.type == "try_stmt" and re.search(
                r"except.*(ImportError|ModuleNotFound|AttributeError|Exception)|except\s*:", code.source(node)
            ):
                return True
            if node.type in ("if_stmt", "ternary", "or_test", "and_test") and _GUARD.search(
                code.source(node).partition("\n")[0]
            ):
                return True
        return False

    def fit_edits(self, code: Code, call: Call | None, argument: str) -> list[tuple[int, int, str]]:
        """Give an argument to the first `fit` after a Trainer is made, in the same stretch of code."""
        after = code.span(call.node)[0] if call else 0
        fits = (
            each
            for each in code.calls
            if each.name.endswith(".fit") and each.closing is not None and code.span(each.node)[0] > after
        )
        found = next((each for each in fits if self.full(each.name) == f"{TRAINER}.fit"), None)
        if found is None or found.keyword("ckpt_path"):
            return []
        end = code.span(found.closing)[0]
        return [(end, end, f", {argument}" if found.arguments else argument)]

    def import_edit(self, code: Code, callback: str) -> list[tuple[int, int, str]]:
        """Import a callback after the first import of Lightning, unless the text has it."""
        lightning = (
            each
            for each in code.imports()
            if each[1].startswith(("pytorch_lightning", "lightning.")) and callback not in self.imported
        )
        for node, path, _ in lightning:
            statement = statement_of(node)
            package = "pytorch_lightning" if path.startswith("pytorch_lightning") else "lightning.pytorch"
            end = code.span(statement)[1]
            return [(end, end, f"\n{' ' * statement.start_pos[1]}from {package}.callbacks import {callback}")]
        return []

    def renamed_imports(
        self, code: Code, statement: Any, old: str, moved: dict[str, str]
    ) -> list[tuple[int, int, str]]:
        """Import names of a `from` import from their new places, and change their uses where a name has changed.

        Args:
            code: where the statement is.
            statement: the import.
            old: the full name of one of them.
            moved: by what the text calls each name: what it is today. Later calls for a statement replace earlier ones.
        """
        if statement.type != "import_from" or "#" in code.source(statement):
            return []
        there = {bound: self._package(new, old) for bound, new in moved.items() if bound and self._is_place(new, old)}
        homes: dict[str, list[str]] = {}
        edits = []
        for bound, new in there.items():
            module, _, leaf = new.rpartition(".")
            renamed = self._original(statement, bound) == bound
            homes.setdefault(module, []).append(leaf + f" as {bound}" * (not renamed))
            edits += self._renamed_everywhere(bound, leaf, code, new) if renamed else []
        lines = [f"from {module} import {', '.join(leaves)}" for module, leaves in homes.items()]
        kept = [each for each in statement.get_defined_names() if each.value not in there]
        if kept:
            items = (each.parent if each.parent.type == "import_as_name" else each for each in kept)
            lines.insert(
                0, f"{code.source(statement).partition(' import')[0]} import {', '.join(map(code.source, items))}"
            )
        text = f"\n{' ' * statement.start_pos[1]}".join(lines)
        return [(*code.span(statement), text), *edits] if there else []

    @staticmethod
    def _original(statement: Any, bound: str) -> str:
        name = next(each for each in statement.get_defined_names() if each.value == bound)
        return name.parent.children[0].value if name.parent.type == "import_as_name" else bound

    def _renamed_everywhere(self, bound: str, leaf: str, code: Code, new: str) -> list[tuple[int, int, str]]:
        uses = [each for each in code.nodes if each.type == "name" and each.value == bound and _is_use(each)]
        edits = [(*code.span(each), leaf) for each in uses] if leaf != bound else []
        if new in _AMP:
            edits += [self._with_cuda(code, call) for call in code.calls if call.name == bound]
        return edits

    def renamed_use(
        self, code: Code, chain: list, written: str, last: Any, old: str, new: str
    ) -> list[tuple[int, int, str]]:
        """Change `torch.a.b` to its new place, where the text names it from the package on."""
        if not self._is_place(new, old) or today(written) != old:
            return []
        new = self._package(new, written)
        edits = [(code.span(chain[0][1])[0], code.span(last)[1], new)]
        calls = [call for call in code.calls if call.name == written and call.node.parent is chain[0][1].parent]
        return edits + [self._with_cuda(code, call) for call in calls if new in _AMP]

    @staticmethod
    def _with_cuda(code: Code, call: Call) -> tuple[int, int, str]:
        end = code.span(call.opening)[1]
        return end, end, '"cuda", ' if call.arguments else '"cuda"'

    @staticmethod
    def _is_place(new: str, old: str) -> bool:
        name = re.sub(r'\("cuda".*', "", new)
        return (
            bool(re.fullmatch(r"\w+(\.\w+)+", name)) and today(name).partition(".")[0] == today(old).partition(".")[0]
        )

    @staticmethod
    def _package(new: str, old: str) -> str:
        name = re.sub(r'\("cuda".*', "", new)
        return (
            name.replace("lightning.pytorch", "pytorch_lightning", 1) if old.startswith("pytorch_lightning") else name
        )


def _called(node: Any) -> str:
    """Return the name of the call that an assigned value is, such as "Trainer()"; "" for anything else."""
    name = dotted(node)
    ends = getattr(node, "children", [None])[-1]
    return f"{name}()" if name and getattr(ends, "type", "") == "trailer" and ends.children[0].value == "(" else ""


def _is_use(node: Any) -> bool:
    before = node.get_previous_leaf()
    while node.parent is not None:
        node = node.parent
        if node.type in ("import_from", "import_name"):
            return False
    return getattr(before, "value", "") != "."
