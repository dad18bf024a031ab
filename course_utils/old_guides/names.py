"""What to write in place of old calls, names, keywords, methods and commands: the advice of `old_names.json`.

Every entry was tried with torch 2.9, torch_xla 2.9, Lightning 2.6 and Darts 0.48; the tests try each again. What has
gone without an entry here is found by asking the installed packages.
"""

import json
from pathlib import Path

TABLES = json.loads((Path(__file__).parent / "old_names.json").read_text(encoding="utf-8"))
Advice = dict[str, list[str]]  # by what is old: what to write today, and why

ALIASES: dict[str, str] = TABLES["aliases"]  # what guides call their modules without always showing the import
NAMES: Advice = TABLES["names"]  # by full name; one that ends in a dot covers all below it
METHODS: Advice = TABLES["methods"]  # that Lightning once called on a module, a callback or a data module
KEYWORDS: Advice = TABLES["keywords"]  # "function.keyword", with "*" for any function
ATTRIBUTES: Advice = TABLES["attributes"]  # of a Trainer
TEXTS: list[list[str]] = TABLES["texts"]  # in a shell line or in a string: pattern, what to write today, why
