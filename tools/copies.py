"""Make the notebooks that people open: `python tools/copies.py my-lessons`, which `make lab` does.

A committed lesson holds the outputs of another machine and cells that check it. A learner's copy
holds neither, its set-up is folded, and it asks Colab and Kaggle for the accelerator that it is
about. A teacher's copy has the solutions filled in as well. `--publish FOLDER` writes both kinds to
FOLDER/notebooks and FOLDER/solutions: the release workflow puts them on the branch to which the
launch links lead.
"""

import argparse
import copy
import hashlib
import json
import sys
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbconvert.preprocessors import ClearOutputPreprocessor, Preprocessor, TagRemovePreprocessor
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tools.assignment import CHECK, IMPORT, exercises_of  # noqa: E402

from tools.badges import NO_ADDRESS  # noqa: E402

LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
GIVEN = ".given.json"  # the checksum of each copy as the learner got it
# lesson: what Colab and what Kaggle read in a notebook that wants an accelerator
ACCELERATORS = {
    "02_gpu": (
        {"accelerator": "GPU", "colab": {"gpuType": "T4", "provenance": []}},
        {"accelerator": "nvidiaTeslaT4", "isGpuEnabled": True},
    ),
    "04_tpu": (
        {"accelerator": "TPU", "colab": {"gpuType": "V5E1", "provenance": []}},
        {"accelerator": "tpuV5e8", "isGpuEnabled": False},
    ),
}
NO_ACCELERATOR = ({"colab": {"provenance": []}}, {"accelerator": "none", "isGpuEnabled": False})
KAGGLE = {
    "dataSources": [],
    "isInternetEnabled": True,
    "language": "python",
    "sourceType": "notebook",
}
# JupyterLab, Colab and Kaggle each have a word of their own for a cell whose code is folded.
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form", "_kg_hide-input": True}


class ForPeople(Preprocessor):
    """Fold the set-up cell, name the accelerator for hosted notebooks, and leave out what is for
    the course's owner.
    """

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Return the notebook with the metadata that hosts and front ends read."""
        colab, kaggle = ACCELERATORS.get(resources["metadata"]["name"], NO_ACCELERATOR)
        nb.metadata.update(nbformat.from_dict({**colab, "kaggle": KAGGLE | kaggle}))
        nb.cells[0].source = nb.cells[0].source.replace(f"Launch: {NO_ADDRESS}\n\n", "")
        for cell in nb.cells:
            if cell.id.endswith("-setup"):
                cell.metadata.update(nbformat.from_dict(FOLDED))
        return nb, resources


def solved(lesson: NotebookNode) -> NotebookNode:
    """Return a lesson with the solution of each exercise in the place of its dots."""
    made = copy.deepcopy(lesson)
    exercises = exercises_of(lesson)
    for cell in made.cells:
        if cell.cell_type == "code" and (check := CHECK.search(cell.source)):
            imported = IMPORT.search(cell.source)
            solution = str(getattr(exercises, check[1]).solution())
            cell.source = "\n".join([*([imported[0], ""] if imported else []), solution, check[0]])
    return made


def copy_of(lesson: Path, *, with_solutions: bool = False) -> str:
    """Return the text of the notebook file that a learner, or else a teacher, opens."""
    exporter = NotebookExporter()
    for each in (
        ClearOutputPreprocessor(),
        TagRemovePreprocessor(remove_cell_tags={"check"}),
        ForPeople(),
    ):
        exporter.register_preprocessor(each, enabled=True)
    notebook = nbformat.read(lesson, as_version=4)
    text, _ = exporter.from_notebook_node(
        solved(notebook) if with_solutions else notebook, {"metadata": {"name": lesson.stem}}
    )
    return text.rstrip("\n") + "\n"


def checksum(data: bytes) -> str:
    """Return what tells whether two files are the same."""
    return hashlib.sha256(data).hexdigest()


def read_record(record: Path) -> dict[str, str]:
    """Return the checksums of a folder's copies as they were given; none where the record is
    missing or torn.
    """
    try:
        return dict(json.loads(record.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return {}


def hand_out(copies: dict[str, str], folder: Path) -> list[str]:
    """Put the copies into a learner's folder, never over one that they changed, and return what
    there is to say.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / GIVEN
    given = read_record(record)
    said = []
    for name, text in copies.items():
        target, new = folder / name, text.encode()
        there = checksum(target.read_bytes()) if target.exists() else None
        if there in (None, given.get(name), checksum(new)):
            if there not in (None, checksum(new)):
                said.append(f"{name}: replaced by its newer version; you had not changed it.")
            target.write_bytes(new)
            given[name] = checksum(new)
        elif given.get(name) != checksum(new):
            said.append(
                f"{name}: there is a newer version. Yours has changes and stays; rename it to get the new one."
            )
    record.write_text(json.dumps(given, indent=1) + "\n", encoding="utf-8")
    return said


def publish(folder: Path) -> None:
    """Write all copies for learners and for teachers, over whatever is there."""
    made = {
        folder / kind / lesson.name: copy_of(lesson, with_solutions=kind == "solutions")
        for kind in ("notebooks", "solutions")
        for lesson in LESSONS
    }
    for target, text in made.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())


def main() -> None:
    """Hand the lessons out to a learner, or publish them."""
    parser = argparse.ArgumentParser(
        prog="python tools/copies.py", description=__doc__.splitlines()[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--publish", action="store_true", help="for a release: notebooks and solutions, over all"
    )
    asked = parser.parse_args()
    if asked.publish:
        return publish(asked.folder)
    for line in hand_out({lesson.name: copy_of(lesson) for lesson in LESSONS}, asked.folder):
        print(line)


if __name__ == "__main__":
    main()
