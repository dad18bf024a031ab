"""Look up what replaces an old name: in `old_names.json`, and in the installed packages.

Every entry was tried with torch 2.9, torch_xla 2.9, Lightning 2.6 and Darts 0.48, and the tests try
it again. A name that has gone without an entry is found by asking the installed packages.
"""

import json
import re
from pathlib import Path

from course_tools.old_code.installed import GONE, UNKNOWN, canonical, is_gone, resolve, version

TABLES = json.loads(Path(__file__).with_name("old_names.json").read_text(encoding="utf-8"))
Advice = tuple[str, str]  # what to write today, and why; JSON has them as a list

# The tables of each package, by the name that a reader knows it by.
KNOWN = {
    "Lightning": TABLES["lightning"],
    "torch_xla": TABLES["torch_xla"],
    "Darts": TABLES["darts"],
    "torch": TABLES["torch"],
    "NumPy": TABLES["numpy"],
    "packages that have gone": TABLES["others"],
}


def _of_all(table: str) -> dict[str, Advice]:
    """Return the rows of a table of all packages."""
    tables = [package.get(table, {}) for package in KNOWN.values()]
    return {name: advice for each in tables for name, advice in each.items()}


# By full name; one that ends in a dot covers all below it.
NAMES = _of_all("names")
# Called on a module, a callback, a data module or a Function of autograd ("Function.forward").
METHODS = _of_all("methods")
# "function.keyword", with "*" for any function.
KEYWORDS = _of_all("keywords")
# Of a Trainer; those that begin with use_ were of a LightningModule too.
ATTRIBUTES = _of_all("attributes")
# Regular expressions for the beginning of an expression or an assignment.
IDIOMS = [row for package in KNOWN.values() for row in package.get("idioms", ())]
# Regular expressions for commands and strings.
TEXTS = [row for package in KNOWN.values() for row in package.get("texts", ())]
# What guides use without always showing its import.
ALIASES: dict[str, str] = TABLES["aliases"]


def advise(name: str) -> Advice | None:
    """Return what to write in place of a full name and why, or None for one that is there today."""
    if name.startswith("pytorch_lightning."):
        found = advise(canonical(name))
        return found and (found[0].replace("lightning.pytorch", "pytorch_lightning"), found[1])
    if advice := _listed(name):
        return advice
    if is_gone(name):
        return ("", f"{version(name)}, which is installed here, has no such name.")
    return None


def _listed(name: str) -> Advice | None:
    """Return the entry for a name, or else that for all below a name, which may have moved."""
    beginnings = [name[: match.start()] for match in re.finditer(r"\.|$", name)]
    for beginning in beginnings:
        if beginning in NAMES:
            return NAMES[beginning]
    for beginning in reversed(beginnings):
        if f"{beginning}." in NAMES:
            new, why = NAMES[f"{beginning}."]
            moved = new + name.removeprefix(beginning)
            if resolve(moved) is not GONE and resolve(moved) is not UNKNOWN:
                return (moved, why)
            return _listed(moved) or (new, why)
    return None
