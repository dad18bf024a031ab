"""Python's own shared library, which torch_xla needs and many Pythons do not load by themselves."""

from __future__ import annotations

import ctypes
import os
import sys
import sysconfig

NAME = f"libpython{sys.version_info[0]}.{sys.version_info[1]}.so.1.0"
PACKAGE = NAME.partition(".so")[0]  # as Debian and Ubuntu call it


def load_libpython() -> str | None:
    """Load Python's shared library, and return its path, or None where there is none.

    The Pythons of Debian, Ubuntu, uv and conda are linked statically. uv and conda bring the
    library all the same, in a folder that the loader does not search
    (https://github.com/pytorch/xla/issues/8948).
    """
    # "": wherever the loader looks by itself
    beside = os.path.join(sys.base_prefix, "lib")
    for folder in ("", sysconfig.get_config_var("LIBDIR") or "", beside):
        path = os.path.join(folder, NAME)
        try:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
        return path
    return None


def how_to_install() -> str:
    """Return the words that say how to get the library."""
    return f"install {NAME} (on Debian and Ubuntu: `sudo apt install {PACKAGE}`)"
