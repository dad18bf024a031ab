"""The environment variables with which a training is launched."""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from course_utils.hardware.machine import user_name
from course_utils.launch.request import LaunchError

# What torchrun or SLURM may have left in this shell: Lightning would wait for their ranks.
FOREIGN = re.compile(
    r"((LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE)|NODE_RANK|ROLE_NAME|MASTER_(ADDR|PORT)"
    r"|TORCHELASTIC_[A-Z_]+|SLURM_(NTASKS(_PER_NODE)?|PROCID|LOCALID|NODEID))"
)
# When a process is killed, multiprocessing removes its semaphores, and warns that it does. torch
# 2.8 and 2.9 make Python 3.13 warn ten times in each process. Python 3.12 warns of a fork beside
# the threads of NumPy's library, which that library expects.
IGNORED = ("resource_tracker", "functools.partial will be a method descriptor", "This process")
# The name of a socket has at most 103 bytes (macOS) or 107 (Linux), and Python and torch add up to
# 34 to that of the temporary folder.
LONGEST_FOLDER = 69


def clean_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a training: without another launcher's, and with calm output."""
    clean = {name: value for name, value in variables.items() if not FOREIGN.fullmatch(name)}
    clean["PYTHONUNBUFFERED"] = "1"
    clean["PYTHONIOENCODING"] = "utf-8:backslashreplace"
    clean.setdefault("USER", user_name())  # PyTorch asks for it, in a container in vain
    if os.path.expanduser("~") == "~":  # without a home folder matplotlib cannot be imported
        clean["HOME"] = tempfile.gettempdir()
    warnings = [clean.get("PYTHONWARNINGS", ""), *(f"ignore:{message}" for message in IGNORED)]
    clean["PYTHONWARNINGS"] = ",".join(warnings).removeprefix(",")
    return clean


@contextmanager
def short_temporary_folder() -> Iterator[dict[str, str]]:
    """Yield the variable that gives the temporary folder a short name, if its own is too long.

    Raises:
        LaunchError: there is no temporary folder, or none with a short name.
    """
    try:
        folder = tempfile.gettempdir()
        fits = len(os.fsencode(folder)) <= LONGEST_FOLDER
        short = None if fits else TemporaryDirectory(prefix="launch-", dir="/tmp")
    except OSError as error:
        raise LaunchError(f"set TMPDIR to the short name of a writable folder: {error}.") from None
    if short is None:
        yield {}
        return
    with short as place:
        link = os.path.join(place, "tmp")
        os.symlink(folder, link)
        yield {"TMPDIR": link}
