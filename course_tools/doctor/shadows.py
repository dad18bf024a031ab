"""Files of the working folder that Python takes for modules of its own standard library.

A student's `random.py` or `select.py` stops nearly every program that starts in its folder, this
one too. So only modules that are built into Python are imported here.
"""

import sys

if "posix" in sys.builtin_module_names:
    import posix as system
else:
    import nt as system  # type: ignore[no-redef]


def working_folder() -> str:
    """Return the working folder, or "" where it has been deleted."""
    try:
        return system.getcwd()
    except OSError:
        return ""


def find_shadows() -> list[str]:
    """Return the files and packages of the working folder that have a standard module's name."""
    folder = working_folder()
    entries = _entries(folder) if folder else []
    if "os.py" in entries and "abc.py" in entries:  # the standard library itself
        return []
    found = []
    for entry in sorted(entries):
        name, _, ending = entry.partition(".")
        is_module = ending == "py" or (
            not ending and "__init__.py" in _entries(f"{folder}/{entry}")
        )
        if is_module and name in sys.stdlib_module_names - {*sys.builtin_module_names}:
            found.append(f"{folder}/{entry}")
    return found


def leave_folder() -> None:
    """Take the working folder from Python's path if one of its files would stand in the way."""
    if find_shadows() and sys.path[0] in ("", working_folder()):
        del sys.path[0]


def _entries(folder: str) -> list[str]:
    try:
        return system.listdir(folder)
    except OSError:
        return []
