"""What to write in place of an old name, keyword, method or attribute: `old_names.json`.

Every entry was tried with torch 2.9, torch_xla 2.9, Lightning 2.6 and Darts 0.48, and the tests try
it again. A name that has gone without an entry is found by asking the installed packages.
"""

import json
import re
from pathlib import Path

from course_utils.old_code.installed import is_gone, new_home, today, version

TABLES = json.loads((Path(__file__).parent / "old_names.json").read_text(encoding="utf-8"))
Advice = tuple[str, str]  # what to write today, and why; JSON has them as a list

# What guides use without always showing its import.
ALIASES: dict[str, str] = TABLES["aliases"]
# By full name; one that ends in a dot covers all below it.
NAMES: dict[str, Advice] = TABLES["names"]
# That Lightning once called on a module, a callback or a data module.
METHODS: dict[str, Advice] = TABLES["methods"]
# "function.keyword", with "*" for any function; "function.1" is the argument in that position.
KEYWORDS: dict[str, Advice] = TABLES["keywords"]
# Of a Trainer.
ATTRIBUTES: dict[str, Advice] = TABLES["attributes"]


def advise(name: str) -> Advice | None:
    """Return what to write in place of a full name and why, or None for one that is there today."""
    if name.partition(".")[0] == "pytorch_lightning":
        found = advise(today(name))
        return found and (found[0].replace("lightning.pytorch", "pytorch_lightning"), found[1])
    beginnings = [name[: match.start()] for match in re.finditer(r"\.|$", name)]
    for beginning in beginnings:
        if beginning in NAMES:
            return NAMES[beginning]
    for beginning in reversed(beginnings):
        if f"{beginning}." in NAMES:
            return _advise_member(name, beginning)
    if not is_gone(name):
        return None
    home = new_home(name)
    if home:
        return home, "It has moved."
    return "", f"{version(name)}, which is installed here, has no such name."


def _advise_member(name: str, module: str) -> Advice:
    """Return the advice for a name of a module that has an entry."""
    new, why = NAMES[f"{module}."]
    renamed = NAMES.get(new + name.removeprefix(module))  # it has changed its name as well
    if renamed:
        return renamed
    home = new_home(name) if new.startswith("lightning") else ""
    return (home, "It has moved.") if home else (new, why)


def replacement(name: str, new: str) -> str:
    """Return the name that takes the place of an old one as it stands, or "" if a person must."""
    entry = NAMES.get(today(name))
    is_sure = today(new) == (today(entry[0]) if entry else new_home(name))
    same_package = today(new).partition(".")[0] == today(name).partition(".")[0]
    return new if is_sure and same_package and re.fullmatch(r"\w+(\.\w+)+", new) else ""
