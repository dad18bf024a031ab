"""Python's own shared library, which torch_xla needs and many Pythons do not load by themselves."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import sysconfig

NAME = f"libpython{sys.version_info[0]}.{sys.version_info[1]}.so.1.0"
SYSTEM = ("/lib", "/usr/lib", "/usr/local/lib", "/lib64", "/usr/lib64")  # the loader's own folders
MACHINE = f"{platform.machine()}-linux-gnu"  # a folder in these, on Debian and Ubuntu
PACKAGE = NAME.partition(".so")[0]  # as Debian and Ubuntu call it


def find_libpython() -> str | None:
    """Return the path of Python's shared library without loading it, or None where there is none.

    The Pythons of Debian, Ubuntu, uv and conda are linked statically. uv and conda bring the
    library all the same, in a folder that the loader does not search
    (https://github.com/pytorch/xla/issues/8948).
    """
    searched = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    own = [sysconfig.get_config_var("LIBDIR") or "", os.path.join(sys.base_prefix, "lib")]
    folders = [*searched, *own, *SYSTEM, *(os.path.join(each, MACHINE) for each in SYSTEM)]
    paths = [os.path.join(folder, NAME) for folder in folders if folder]
    return next(filter(os.path.exists, paths), None)


def load_libpython() -> str | None:
    """Load Python's shared library, and return its path, or None where it cannot be loaded."""
    path = find_libpython() or NAME  # the loader may know more folders
    try:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return None
    return path


def how_to_install() -> str:
    """Return the words that say how to get the library."""
    return f"install {NAME} (on Debian and Ubuntu: `sudo apt install {PACKAGE}`)"
