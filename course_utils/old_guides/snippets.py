"""Read the snippets of old guides: which arguments and calls are outdated, and what to write today."""

import ast
import re
import textwrap
import warnings
from dataclasses import replace
from typing import Any

from course_utils.old_guides.old_arguments import RULES
from course_utils.old_guides.old_calls import (
    ALIASES,
    CALLS,
    CLOCK,
    CLOCKS,
    KEYWORDS,
    METHODS,
    NEXT,
    SPAWN,
    TEXTS,
    WAITS,
)
from course_utils.old_guides.old_trainer import CannotTranslate, Note, removed, translate, written

# Lines for a shell, and the prompts and fences that guides put around Python.
_SHELL = re.compile(r"\s*(?:!(?!=)|%%?[a-zA-Z]|\$|-- |--\w|(?:pip3?|conda|sudo|gsutil)\s+\w|python3?\s+\S*[-./])")
_PROMPT = re.compile(r">>> ?|\.\.\. (?=.)|In \[\d*\]: ?")
_FENCE = re.compile(r"\s*(?:```|\.\. code)")
_DOTS = re.compile(r"\s*(?:\.\.\.|…),?\s*")


def explain_snippet(text: str) -> list[Note]:
    """List the outdated arguments and calls of a snippet, each with its line. The snippet is parsed, never run.

    Notebook commands (`!pip ...`), prompts and lines of dots, which guides print in place of code, are understood.

    Args:
        text: as pasted.

    Raises:
        CannotTranslate: it is not Python.
        ModuleNotFoundError: no Lightning is installed.
    """
    if not isinstance(text, str):
        raise CannotTranslate((type(text).__name__, "a snippet is a text."))
    tree, shell = _parse(textwrap.dedent(text))
    found = [note for line, command in shell for note in _in_text(line, command)]
    aliases = {**ALIASES, **_imported(tree)}
    try:
        for node in ast.walk(tree):
            found += _in_node(node, aliases)
        found += _in_clock(tree, aliases)
    except RecursionError:
        raise CannotTranslate(("the snippet", "it is nested too deeply to be read.")) from None
    return sorted(dict.fromkeys(found), key=lambda note: note.line)


def _parse(text: str) -> tuple[ast.Module, list[tuple[int, str]]]:
    """Return the tree and the numbered shell lines. What is Python as it stands has none."""
    lines, shell = _cleaned(text)
    # Guides leave code out by a line of dots, which is Python in some places and not in others.
    for attempt in (text, "\n".join(lines), "\n".join("" if _DOTS.fullmatch(line) else line for line in lines)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of an escape such as "\d" in the snippet
                return ast.parse(attempt), [] if attempt is text else shell
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line, reason = getattr(error, "lineno", None) or 1, getattr(error, "msg", None) or str(error)
    raise CannotTranslate((f"line {line}", f"this is not Python: {reason}."))


def _cleaned(text: str) -> tuple[list[str], list[tuple[int, str]]]:
    """Take off prompts and fences, and shell lines, which come back with their numbers."""
    lines: list[str] = []
    shell: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = _PROMPT.sub("", line.rstrip("\r"), count=1) if _PROMPT.match(line) else line.rstrip("\r")
        if _SHELL.match(line):
            shell.append((number, line.strip()))
            opens = bool(lines) and lines[-1].rstrip().endswith(":")  # a block needs something in it
            line = line[: len(line) - len(line.lstrip())] + "pass" if opens else ""
        lines.append("" if _FENCE.match(line) else line)
    return lines, shell


def _in_text(line: int, text: str) -> list[Note]:
    """Look for outdated wheels, commands and variables in a shell line or a string."""
    return [Note(found[0], new, why, line) for pattern, new, why in TEXTS if (found := re.search(pattern, text))]


def _in_node(node: ast.AST, aliases: dict[str, str]) -> list[Note]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _in_text(node.lineno, node.value)
    if isinstance(node, ast.Attribute | ast.Name):
        return _in_name(node.lineno, ast.unparse(node), _dotted(node, aliases))
    if isinstance(node, ast.Import):
        return [one for alias in node.names for one in _in_name(node.lineno, alias.name, _today(alias.name))]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        return [one for name in names for one in _in_name(node.lineno, name, _today(name))]
    if isinstance(node, ast.FunctionDef) and node.name in METHODS:
        return [Note(f"def {node.name}", *METHODS[node.name], node.lineno)]
    if isinstance(node, ast.Call):
        return _in_call(node, aliases)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        named = {key.value: value for key, value in pairs if isinstance(key, ast.Constant) and type(key.value) is str}
        return _in_arguments(named) if (removed() | {"accelerator"}) & named.keys() else []
    return []


def _in_name(line: int, written: str, dotted: str) -> list[Note]:
    return [Note(written, *CALLS[dotted], line)] if dotted in CALLS else []


def _in_call(node: ast.Call, aliases: dict[str, str]) -> list[Note]:
    called = _dotted(node.func, aliases)
    named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    found = [
        Note(f"{function or ''}({name}=...)", new, why, named[name].lineno)
        for function, name, new, why in KEYWORDS
        if name in named and (not function or called.endswith(f".{function}"))
    ]
    if called.endswith("xla_multiprocessing.spawn") and not _is_one(named.get("nprocs")):
        found.append(Note(f"{ast.unparse(node.func)}(nprocs=...)", *SPAWN, node.lineno))
    if isinstance(node.func, ast.Attribute) and node.func.attr == "next" and not node.args and not named:
        found.append(Note(ast.unparse(node), f"next({ast.unparse(node.func.value)})", NEXT, node.lineno))
    if called.split(".")[-1].endswith("Trainer") or (called == "dict" and removed() & named.keys()):
        found += _in_arguments(named)
    return found


def _in_arguments(named: dict[str, ast.expr]) -> list[Note]:
    """Translate the arguments whose values the snippet spells out, and name the others that are old."""
    values: dict[str, Any] = {}
    found: list[Note] = []
    lines: dict[str, int] = {}
    for name, node in named.items():
        try:
            values[name] = ast.literal_eval(node)
            lines[written(name, values[name])] = node.lineno
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            if name in removed():
                new = f"modernize({{{name!r}: ...}})"
                found.append(Note(f"{name}={ast.unparse(node)}", new, "It depends on the value.", node.lineno))
    first = min((node.lineno for node in named.values()), default=1)
    draft = translate({name: value for name, value in values.items() if name in RULES})
    notes = draft.notes + [Note(old, "nothing that means the same", why) for old, why in draft.refused]
    return found + [replace(note, line=lines.get(note.old, first)) for note in notes]


def _in_clock(tree: ast.Module, aliases: dict[str, str]) -> list[Note]:
    """Find a clock that is read around GPU work with nothing that waits for the GPU."""
    calls = [(node, _dotted(node.func, aliases)) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    reads = [node for node, called in calls if called in CLOCKS]
    waits = any(called.split(".")[-1] in WAITS for _, called in calls)
    strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    on_gpu = any(called.endswith(".cuda") for _, called in calls) or any(text.startswith("cuda") for text in strings)
    if len(reads) < 2 or waits or not on_gpu:
        return []
    last = max(reads, key=lambda node: node.lineno)
    return [Note(ast.unparse(last), *CLOCK, last.lineno)]


def _imported(tree: ast.Module) -> dict[str, str]:
    """Return the full name behind each imported name."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update({alias.asname: alias.name for alias in node.names if alias.asname})
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def _dotted(node: ast.expr, aliases: dict[str, str]) -> str:
    """Return the full name of `a.b.c` as far as it is one, under today's name of Lightning."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(aliases.get(node.id, node.id) if isinstance(node, ast.Name) else "")
    return _today(".".join(reversed(parts)))


def _today(name: str) -> str:
    return re.sub(r"^pytorch_lightning\b", "lightning.pytorch", name)


def _is_one(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value in (1, None))
