"""Write the doctor as one file: `tools/doctor_file.py doctor.pyz`."""

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = (
    *("course_utils/__init__.py", "course_utils/devices.py", "course_utils/kinds.py"),
    *("course_utils/lazy_names.py", "course_utils/show_result.py", "course_utils/tables.py"),
    *("course_utils/units.py", "course_utils/hardware/*.py"),
    *("course_tools/__init__.py", "course_tools/private.py", "course_tools/doctor/*"),
)
START = """import runpy, sys

if sys.version_info < (3, 11):
    sys.exit("The doctor needs Python 3.11 or later, as PyTorch does today: this is %d.%d."
             % sys.version_info[:2])
runpy.run_module("course_tools.doctor", run_name="__main__", alter_sys=True)
"""


def write(target: Path) -> None:
    """Write the file: a shebang and a zip, which Python runs (its documentation: zipapp)."""
    if target.is_file() and b"course_tools/doctor/" not in target.read_bytes():
        sys.exit(f"{target} holds something else, which would be lost. Choose another place.")
    files = []
    for part in PARTS:
        files += sorted(path for path in ROOT.glob(part) if path.is_file())
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("__main__.py", START)
            for path in files:
                archive.write(path, path.relative_to(ROOT).as_posix())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Name the file to write: tools/doctor_file.py doctor.pyz")
    write(Path(sys.argv[1]))
