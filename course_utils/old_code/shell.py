"""What is outdated in lines for a shell and in strings: commands, wheels, variables, and a script's
flags.
"""

import re
from collections.abc import Iterator
from typing import Any

from course_utils.old_code.arguments import Finding
from course_utils.old_code.names import TEXTS
from course_utils.old_code.old_arguments import RULES
from course_utils.old_code.old_trainer import Note, removed, translate
from course_utils.old_code.scope import Scope
from course_utils.old_code.values import Expression, literal

_FLAG = re.compile(r"(?<!\S)(?:--|\+{0,2}(?:trainer|pl_trainer)\.)(\w+)(?:[= ]+(-?[^\s-]\S*))?")
# of a configuration, as Hydra's scripts read it
_OVERRIDE = re.compile(r"\+{0,2}(?:pl_)?trainer\.\w+=")
# Flags of other scripts too.
_COMMON = {"gpus", "num_processes", "use_amp", "accelerator", "devices", "profiler", "max_steps"}
_WORDS = ("distributed_backend", "accelerator", "strategy", "weights_summary")


def in_commands(lines: list[tuple[int, str]], scope: Scope) -> Iterator[Finding]:
    """Yield what is outdated in lines for a shell, given with their places."""
    flags = {
        (name, value) for _, line in lines for name, value in _FLAG.findall(line) if name in RULES
    }
    is_known = scope.names_lightning or any(
        name not in _COMMON or re.match(".*,|d?dp", value) for name, value in flags
    )
    for place, line in lines:
        is_for_trainer = (is_known or _OVERRIDE.search(line)) and re.match(r".*python|--", line)
        yield from (
            (note, place, []) for note in in_text(line) + (_flags(line) if is_for_trainer else [])
        )


def in_text(text: str) -> list[Note]:
    """Return what is outdated in a line for a shell, or in a string: wheels, commands, variables,
    overrides.
    """
    found = [
        Note(match[0], new, why)
        for pattern, new, why in TEXTS
        if (match := re.search(pattern, text))
    ]
    inside = re.sub(r"^\w{0,2}['\"]\s*|['\"]$", "", text)
    return found + (_flags(inside) if _OVERRIDE.match(inside) else [])


def _flags(text: str) -> list[Note]:
    flags = {
        name: value
        for name, value in _FLAG.findall(text)
        if name in {*removed(), "accelerator", "strategy"}
    }
    modern = (
        translate({name: _value(name, value) for name, value in flags.items()}) if flags else None
    )
    if modern is None or not (modern.notes or modern.refused):
        return []
    form = "trainer.{}={}" if _OVERRIDE.search(text) else "--{} {}"
    new = " ".join(form.format(name, _as_flag(value)) for name, value in modern.kwargs.items())
    whys = dict.fromkeys([*(note.why for note in modern.notes), *modern.refused.values()])
    old = " ".join(form.format(name, value).strip() for name, value in flags.items())
    return [
        Note(old, new, f"If the script hands its flags to a Lightning Trainer: {' '.join(whys)}")
    ]


def _value(name: str, text: str) -> Any:
    value = literal(text or "True")
    return text if isinstance(value, Expression) and (name in _WORDS or "," in text) else value


def _as_flag(value: Any) -> str:
    return (
        ",".join(map(str, value)) + "," * (len(value) == 1)
        if isinstance(value, list | tuple)
        else str(value)
    )
