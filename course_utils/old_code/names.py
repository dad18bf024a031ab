"""What to write in place of old calls, names, keywords, methods and commands: the advice of
`old_names.json`.

Every entry was tried with torch 2.9, torch_xla 2.9, Lightning 2.6 and Darts 0.48; the tests try
each again. What has gone without an entry here is found by asking the installed packages.
"""

import json
import re
from pathlib import Path

from course_utils.old_code.installed import is_gone, new_home, today, version

TABLES = json.loads((Path(__file__).parent / "old_names.json").read_text(encoding="utf-8"))
Advice = tuple[str, str]  # what to write today, and why: a pair, which JSON calls a list

ALIASES: dict[str, str] = TABLES["aliases"]  # what guides use without always showing the import
# by full name; one that ends in a dot covers all below it
NAMES: dict[str, Advice] = TABLES["names"]
# that Lightning once called on a module, a callback or a data module
METHODS: dict[str, Advice] = TABLES["methods"]
KEYWORDS: dict[str, Advice] = TABLES["keywords"]  # "function.keyword", with "*" for any function
ATTRIBUTES: dict[str, Advice] = TABLES["attributes"]  # of a Trainer
EXPRESSIONS: list[list[str]] = TABLES["expressions"]  # as TEXTS, of an expression in code
# in a shell line or in a string: pattern, what to write today, why
TEXTS: list[list[str]] = TABLES["texts"]


def advise(name: str) -> Advice | None:
    """Return what to write in place of a full name and why, or None for one that is there today."""
    if name.partition(".")[0] == "pytorch_lightning":
        found = advise(today(name))
        return found and (found[0].replace("lightning.pytorch", "pytorch_lightning"), found[1])
    whole = [name[: match.start()] for match in re.finditer(r"\.|$", name)]
    if entry := next((NAMES[each] for each in whole if each in NAMES), None):
        return entry
    if below := next((each for each in reversed(whole) if f"{each}." in NAMES), ""):
        new, why = NAMES[f"{below}."]
        # what moved with its module can have gone there
        moved = NAMES.get(new + name.removeprefix(below))
        home = new_home(name) if new.startswith("lightning") and not moved else ""
        return (home, "It has moved.") if home else moved or (new, why)
    if not is_gone(name):
        return None
    home = new_home(name)
    return (
        home,
        "It has moved." if home else f"{version(name)}, which is installed here, has no such name.",
    )


def new_place(name: str, advice: str) -> str:
    """Return the name that can take the place of an old one as it stands, or "" where a person has
    to decide.
    """
    place = re.sub(r'\("cuda".*', "", advice)
    entry = NAMES.get(today(name))
    is_sure = today(advice) == (today(entry[0]) if entry else new_home(name))
    same_package = today(place).partition(".")[0] == today(name).partition(".")[0]
    return place if is_sure and same_package and re.fullmatch(r"\w+(\.\w+)+", place) else ""
