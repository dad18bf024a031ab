"""Training runs whose largest batch was published, and steps measured in RAM."""

import json
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "memory.json"


@cache
def memory_evidence() -> dict[str, Any]:
    """Return memory.json: what the estimate of memory was fitted on and compared with."""
    return dict(json.loads(FILE.read_text(encoding="utf-8")))
