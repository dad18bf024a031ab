"""Make the notebooks that people open: `python tools/copies.py my-lessons`, which `make lab` does.

A committed lesson holds the outputs of another machine and cells that check it. A learner's copy
holds neither, and it asks Colab and Kaggle for the accelerator that it is about. A teacher's copy
has the solutions filled in as well. `--publish FOLDER` writes both kinds to FOLDER/notebooks and
FOLDER/solutions: the release workflow puts them on the branch to which the launch links lead.
"""

import argparse
import copy
import hashlib
import importlib
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbconvert.preprocessors import ClearOutputPreprocessor, Preprocessor, TagRemovePreprocessor
from nbformat import NotebookNode
from nbformat.sign import NotebookNotary

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "notebooks")]
from course_utils.atomic_write import write_atomically  # noqa: E402

EXERCISES = re.compile(r"^from (course_lessons\.\w+) import exercises as ex$", re.MULTILINE)
CHECK = re.compile(r"^ex\.(\w+)\.check\(.+\)$", re.MULTILINE)
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
GIVEN = ".given.json"  # the checksum of each copy as the learner got it
# lesson: what Colab and what Kaggle read in a notebook that wants an accelerator
ACCELERATORS = {
    "02_gpu": (
        {"accelerator": "GPU", "colab": {"gpuType": "T4", "provenance": []}},
        {"accelerator": "nvidiaTeslaT4", "isGpuEnabled": True},
    ),
    "03_multi_gpu": (  # Colab has no machine with two GPUs
        {"accelerator": "GPU", "colab": {"gpuType": "T4", "provenance": []}},
        {"accelerator": "nvidiaTeslaT4", "isGpuEnabled": True},
    ),
    "04_beyond_the_notebook": (
        {"accelerator": "GPU", "colab": {"gpuType": "T4", "provenance": []}},
        {"accelerator": "nvidiaTeslaT4", "isGpuEnabled": True},
    ),
    "05_tpu": (
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


# Without it, JupyterLab sets the text after a folded answer right below it.
GAP = '<details style="margin-bottom: 1em">'


class ForPeople(Preprocessor):
    """Name the accelerator for hosts, fold what Jupyter folds, and set answers off."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Return the notebook with the metadata that hosts read."""
        colab, kaggle = ACCELERATORS.get(resources["metadata"]["name"], NO_ACCELERATOR)
        nb.metadata.update(nbformat.from_dict({**colab, "kaggle": KAGGLE | kaggle}))
        for cell in nb.cells:
            if cell.cell_type == "markdown":
                cell.source = cell.source.replace("<details>", GAP)
            if cell.metadata.get("jupyter", {}).get("source_hidden"):
                cell.metadata.update({"cellView": "form", "_kg_hide-input": True})
        return nb, resources


def solved(lesson: NotebookNode) -> NotebookNode:
    """Return a lesson with the solution of each exercise in the place of its dots."""
    made = copy.deepcopy(lesson)
    imported = EXERCISES.search("\n".join(cell.source for cell in lesson.cells))
    if imported is None:
        return made
    exercises = importlib.import_module(f"{imported[1]}.exercises")
    for cell in made.cells:
        check = CHECK.search(cell.source)
        if cell.cell_type == "code" and check:
            parts = [str(getattr(exercises, check[1]).solution()), check[0]]
            if EXERCISES.search(cell.source):
                parts = [imported[0], "", *parts]
            cell.source = "\n".join(parts)
    return made


def copy_of(lesson: Path, *, with_solutions: bool = False) -> str:
    """Return the text of the notebook that a learner, or else a teacher, opens."""
    exporter = NotebookExporter()
    exporter.register_preprocessor(ClearOutputPreprocessor(), enabled=True)
    exporter.register_preprocessor(TagRemovePreprocessor(remove_cell_tags={"check"}), enabled=True)
    exporter.register_preprocessor(ForPeople(), enabled=True)
    notebook = nbformat.read(lesson, as_version=4)
    if with_solutions:
        notebook = solved(notebook)
    text, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": lesson.stem}})
    return text.rstrip("\n") + "\n"


def checksum(data: bytes) -> str:
    """Return what tells whether two files are the same."""
    return hashlib.sha256(data).hexdigest()


def read_record(record: Path) -> dict[str, str]:
    """Return the checksums of a folder's copies as they were given, if the record can be read."""
    try:
        return dict(json.loads(record.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return {}


def hand_out(copies: dict[str, str], folder: Path) -> list[str]:
    """Put the copies into a learner's folder, never over a changed one; return what to say."""
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
            if there != checksum(new):
                write_atomically(target, new)
            given[name] = checksum(new)
        elif given.get(name) != checksum(new):
            said.append(
                f"{name}: there is a newer version. Yours has changes and stays; rename it to get "
                "the new one."
            )
    for name in given.keys() - copies.keys():
        said += put_aside(folder / name, given.pop(name), copies)
    if given != read_record(record):
        write_atomically(record, json.dumps(given, indent=1) + "\n")
    return said


def put_aside(old: Path, given: str, copies: dict[str, str]) -> list[str]:
    """Remove a copy whose lesson has another number today, unless it was changed; say so."""
    if not old.exists():
        return []
    same = [name for name in copies if name[2:] == old.name[2:]]
    today = (
        f"the lesson is now {same[0]}" if same else "this lesson is no longer part of the course"
    )
    if checksum(old.read_bytes()) == given:
        old.unlink()
        return [f"{old.name}: removed, because {today}; you had not changed it."]
    return [f"{old.name}: {today}. Yours has changes and stays."]


def trust(copies: Iterable[str]) -> None:
    """Sign copies as `jupyter trust` does: else Jupyter warns that they are not trusted."""
    notary = NotebookNotary()
    for text in copies:
        notary.sign(nbformat.reads(text, as_version=4))


def publish(folder: Path) -> None:
    """Write all copies for learners and for teachers, over whatever is there."""
    for kind in ("notebooks", "solutions"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for lesson in LESSONS:
            text = copy_of(lesson, with_solutions=kind == "solutions")
            (folder / kind / lesson.name).write_bytes(text.encode())


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
    try:
        copies = {lesson.name: copy_of(lesson) for lesson in LESSONS}
        for line in hand_out(copies, asked.folder):
            print(line)
        trust(copies.values())
    except OSError as error:
        parser.exit(
            1,
            f"{error.filename}: {error.strerror}. Put your copies into a folder of your own: "
            "make lab LESSONS=$HOME/my-lessons\n",
        )


if __name__ == "__main__":
    main()
