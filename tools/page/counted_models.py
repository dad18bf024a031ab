"""Counted language models by name, for the page "Is it worth it?"; no torch is needed."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

LANGUAGE = Path(__file__).parent / "counted_language.json"


@cache
def counted_language() -> Mapping[str, dict[str, Any]]:
    """Return the counted steps of language models; tools/count_language_models.py writes them."""
    return dict(json.loads(LANGUAGE.read_text(encoding="utf-8")))
