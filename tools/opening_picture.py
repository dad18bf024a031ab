"""Show a picture of each lesson right under its question: `python tools/opening_picture.py`.

GitHub, VS Code and nbviewer show a lesson's set-up and imports unfolded, and these stand above
everything that the lesson draws. So the stored picture of the cell with the tag `opening` is also
attached to the first cell. `make notebooks` does this after it has executed the lessons. Run again
it changes nothing.
"""

import json
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from course_utils.whole_file import write_whole  # noqa: E402

NAME = "opening.png"
LINE = re.compile(rf"(?m)^!\[[^\]]*\]\(attachment:{NAME}\)\n+")
QUESTION = re.compile(r"(?m)^\*\*The question:\*\* .*\n\n")


def opening_picture(notebook: dict) -> tuple[str, str]:
    """Return the picture of the cell `opening`, in base 64, and the words that describe it."""
    for cell in notebook["cells"]:
        if "opening" not in cell["metadata"].get("tags", []):
            continue
        for output in cell["outputs"]:
            if "image/png" in output.get("data", {}):
                words = output["metadata"]["image/png"]["alt"]
                short = textwrap.shorten(words, 300, placeholder=" ...")
                return "".join(output["data"]["image/png"]).strip(), short
    raise ValueError("this lesson has no cell with the tag `opening` that has stored a picture")


def without_picture(text: str) -> str:
    """Return the Markdown of a first cell without the line that shows the picture."""
    return LINE.sub("", text)


def stamp_lesson(text: str) -> str:
    """Return a notebook, as the text of its file, with its opening picture under its question."""
    notebook = json.loads(text)
    picture, words = opening_picture(notebook)
    opening = notebook["cells"][0]
    opening["attachments"] = {NAME: {"image/png": picture}}
    question = QUESTION.search(source := without_picture("".join(opening["source"])))
    line = f"![{words}](attachment:{NAME})\n\n"
    source = source[: question.end()] + line + source[question.end() :]
    opening["source"] = source.splitlines(keepends=True)
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main(paths: list[str]) -> None:
    """Stamp the lessons that are named, or all, and say which changed."""
    changed = []
    for path in map(Path, paths or sorted((ROOT / "notebooks").glob("*.ipynb"))):
        old = path.read_text(encoding="utf-8")
        new = stamp_lesson(old)
        if new != old:
            write_whole(path, new)
            changed.append(path.name)
    print("Rewritten:", ", ".join(changed) or "nothing, every lesson shows its picture")


if __name__ == "__main__":
    main(sys.argv[1:])
