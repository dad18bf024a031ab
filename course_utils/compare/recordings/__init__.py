"""Measured results of named machines: JSON files with device, versions, date and the command that made them."""

import json
from importlib.resources import files


def load_recording(name: str) -> dict:
    """Return the recording called `name`, without its ending.

    Raises:
        FileNotFoundError: there is no such recording; the message lists those there are.
    """
    folder = files(__name__)
    there = sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))
    if name not in there:
        raise FileNotFoundError(f"recording {name!r} was requested, but there are: {', '.join(there) or 'none'}.")
    return json.loads((folder / f"{name}.json").read_text())
