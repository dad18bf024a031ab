"""Write every lesson as one file that carries the course: `make standalone` makes standalone/.

What the lesson uses of the course stands as text in the folded set-up cell. The cell checks its
hash, unpacks it into a temporary folder for this kernel alone, and adds the packages that are
missing; nothing that is there is changed.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import lzma
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "notebooks")]
from course_lessons.openings import OPENINGS  # noqa: E402

from tools.copies import LESSONS, copy_of, hand_out  # noqa: E402
from tools.setup_cell import read_address, without_links_to_files  # noqa: E402

# These name all lessons or tools, so they do not say what one lesson uses.
NAME_ALL = ("course_lessons/openings.py", "course_tools/__init__.py", "course_tools/__main__.py")
# Tables of which a lesson gets some rows: its own pattern, or the one for all others.
USUAL = r"^(resnet|resnext|vit_|efficientnet|mobilenet|convnext)"
KNOWN = {
    "worth_it": rf"{USUAL}|^[^,]*,[^,]*,0,",  # all networks, the rare ones without training
    "waiting": "^$",  # it estimates nothing
    "others": USUAL,
}
TABLES = {
    "course_lessons/evidence/published.csv.gz": {
        "start_here": ",resnet50,",
        "multi_gpu": ",resnet50,",
        "device_speed": ",(resnet50|efficientnet_b0),",
        "waiting": r",RTX [45]090,.*,fp16,[01],0,2\.9\.1,",
        "worth_it": ",RTX 5090,",
        "others": "^$",
    },
    "course_tools/estimate/counted_networks.csv.gz": KNOWN,
    "course_tools/estimate/counted_memory.csv.gz": KNOWN,
}
LINE = 1000  # characters of text in a line
CELL = """
# @title Set-up: run this first
# This file carries the course that it needs, as text at the end of this cell. Nothing of it is
# installed: it is unpacked for this kernel alone. Packages that are missing are added, and none is
# changed.
import base64
import hashlib
import io
import lzma
import os
import sys
import tempfile
import zipfile

SHA256 = "{sha256}"


class NotReady(Exception):
    def _render_traceback_(self):  # one line in place of a traceback
        return [str(self)]


def unpack(text):
    try:
        packed = base64.b85decode(text)
    except ValueError:
        packed = b""
    if hashlib.sha256(packed).hexdigest() != SHA256:
        raise NotReady("The course in this file is damaged, and was not run. Get the file again.")
    folder = tempfile.TemporaryDirectory(prefix="accelerator-course-")
    zipfile.ZipFile(io.BytesIO(lzma.decompress(packed))).extractall(folder.name)
    sys.path.insert(0, folder.name)
    others = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([folder.name, others] if others else [folder.name])
    return folder


if "course_utils" not in sys.modules:
    course_folder = unpack(
{text}
    )
from course_lessons.setup import set_up

set_up({lesson})
"""


def build_wheel() -> dict[str, bytes]:
    """Build the course's wheel and return its files."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder]
        subprocess.run([*command, ROOT], check=True, stdout=subprocess.DEVNULL)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/RECORD")]
            return {name: archive.read(name) for name in names}  # nothing is installed from it


def unit_of(name: str) -> str:
    """Return the folder of a package that a file is in, or nothing; every lesson has the others."""
    package, *folders = name.split("/")[:-1]
    return folders[0] if folders and package.startswith("course_") else ""


def used_by(lesson: Path, files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files that a lesson uses: tools and folders that it names, and what these name."""
    texts: dict[str, str] = {}
    for name, data in files.items():
        if name.endswith(".py") and name not in NAME_ALL:
            texts[unit_of(name)] = texts.get(unit_of(name), "") + data.decode()
    homes = dict(re.findall(r'"(\w+)": "(\w+)\.', texts[""]))  # of names that a package hands on
    text = lesson.read_text(encoding="utf-8") + OPENINGS[lesson.stem[3:]][0] + texts[""]
    used: set[str] = set()
    while True:
        named = set(re.findall(r"course_(?:utils|tools|lessons)[./](\w+)", text))
        for line in re.findall(r"from course_(?:utils|tools) import ([\w, ]+)", text):
            named |= {homes[each] for each in line.split(", ") if each in homes}
        new = (named & texts.keys()) - used
        if not new:
            break
        used |= new
        text = "".join(texts[unit] for unit in new)
    kept = {name: data for name, data in files.items() if unit_of(name) in {"", *used}}
    for name in TABLES.keys() & kept.keys():
        pattern = TABLES[name].get(lesson.stem[3:], TABLES[name]["others"])
        kept[name] = rows_of(kept[name], pattern)
    return kept


def rows_of(table: bytes, pattern: str) -> bytes:
    """Return a table with its first two lines, which say what it is, and the rows of a pattern."""
    source, header, *rows = gzip.decompress(table).decode().splitlines(keepends=True)
    shown = [row for row in rows if re.search(pattern, row)]
    return gzip.compress("".join([source, header, *shown]).encode(), mtime=0)


def pack(files: dict[str, bytes]) -> bytes:
    """Return files as a zip archive that is compressed as a whole, the same bytes for the same."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as writer:
        for name in sorted(files, key=lambda name: (Path(name).suffix, name)):
            data = files[name]
            if name.endswith(".gz"):  # stored inside, because lzma compresses it better
                data = gzip.compress(gzip.decompress(data), compresslevel=0, mtime=0)
            writer.writestr(zipfile.ZipInfo(name), data)
    return lzma.compress(archive.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def setup_cell(packed: bytes, lesson: str = "") -> str:
    """Return the set-up cell of a lesson that carries the course."""
    text = base64.b85encode(packed).decode()
    lines = [f'        "{text[start : start + LINE]}"' for start in range(0, len(text), LINE)]
    cell = CELL.strip().replace("{sha256}", hashlib.sha256(packed).hexdigest())
    cell = cell.replace("{lesson}", f'"{lesson}"' if lesson else "")
    return cell.replace("{text}", "\n".join(lines))


def standalone(lesson: Path, files: dict[str, bytes]) -> str:
    """Return the text of a learner's copy of a lesson that carries what it uses of the course."""
    packed = pack(used_by(lesson, files))
    notebook = json.loads(copy_of(lesson))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = without_links_to_files("".join(cell["source"]), read_address())
            cell["source"] = text.splitlines(keepends=True)
    cell = next(cell for cell in notebook["cells"] if cell["id"].endswith("-setup"))
    cell["source"] = setup_cell(packed, lesson.stem[3:]).splitlines(keepends=True)
    folded = {"jupyter": {"source_hidden": True}, "cellView": "form", "_kg_hide-input": True}
    cell["metadata"] |= folded
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> None:
    """Write the files and say how large they are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "standalone")
    out = parser.parse_args().out
    files = build_wheel()
    texts = {lesson.name: standalone(lesson, files) for lesson in LESSONS}
    try:
        said = hand_out(texts, out)
    except OSError as error:
        parser.error(f"{error}. Name another folder: --out")
    for line in said:
        print(line)
    for name, text in texts.items():
        print(f"{out / name}: {len(text) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
