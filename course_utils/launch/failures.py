"""What is shown of an error in a rank: its cause, and the calls in the training's own code."""

import os
import pickle
import re
from pathlib import Path
from typing import Any


def without_library_frames(text: str) -> str:
    """Return a traceback without the calls inside torch, Lightning and the launcher.

    They are most of it. If there is no other call, the traceback stays whole.
    """
    here = re.escape(str(Path(__file__).resolve().parents[1]))
    library = re.compile(
        rf'  File "(.*-packages/(torch|lightning|pytorch_lightning)/|{here}/|<frozen |'
        r".*/multiprocessing/)"
    )
    kept, inside, calls = [], False, 0
    for line in text.strip().splitlines():
        if line.startswith("  File "):
            inside = bool(library.match(line))
            calls += not inside
        elif not line.startswith("    "):
            inside = False
        if not inside:
            kept.append(line)
    if calls == 0:
        return text.strip()
    return "\n".join([*kept, "(The calls inside torch, Lightning and the launcher are left out.)"])


def cause_of(text: str) -> str:
    """Return the type and the first line of the error that a traceback ends with.

    A first line that ends with a colon, such as that of a state_dict that does not fit, is
    followed by the next one.
    """
    lines = text.strip().splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith("Traceback (most recent")]
    after = lines[starts[-1] + 1 :] if starts else lines
    while len(after) > 1 and after[0].startswith("  "):  # the calls
        after.pop(0)
    first, *rest = after
    if first.endswith(":") and rest:
        first = f"{first} {rest[0].strip()}"
    if "closed by peer" in first or "reset by peer" in first:
        first += " (Another rank had ended before: it called exit(), or has an error of its own.)"
    if "DataLoader worker" in first:
        first += (
            " (Often memory has run out: take fewer workers, none, or a smaller batch; in a "
            "container, give /dev/shm more: docker run --shm-size=8g.)"
        )
    return first


def find_unpicklable(thing: Any, name: str) -> str | None:
    """Return the name of the part of `thing` that cannot be sent to another process, if any."""
    return _find_unpicklable(thing, name, set())


def _find_unpicklable(thing: Any, name: str, seen: set[int]) -> str | None:
    if id(thing) in seen:
        return None
    seen.add(id(thing))
    try:
        with open(os.devnull, "wb") as nowhere:
            pickle.dump(thing, nowhere)
        return None
    except Exception:
        state = thing.__getstate__() if hasattr(thing, "__dict__") else None
    if isinstance(state, dict):
        parts = {**state, **state.get("_modules", {})}
        parts.pop("_modules", None)
        for key, part in parts.items():
            if found := _find_unpicklable(part, f"{name}.{key}", seen):
                return found
    return name
