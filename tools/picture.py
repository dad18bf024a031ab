"""Take the picture of the README out of lesson 6: `python tools/picture.py`, which `make notebooks`
does.
"""

import base64
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
LESSON, CELL = ROOT / "notebooks" / "06_worth_it.ipynb", "06-52"
PICTURE = ROOT / ".github" / "worth-it.png"


def picture() -> bytes:
    """Return the picture that the cell on hours and money drew when the lesson was last
    executed.
    """
    cells = {cell.id: cell for cell in nbformat.read(LESSON, as_version=4).cells}
    images = [
        each.data["image/png"]
        for each in cells[CELL].outputs
        if "image/png" in each.get("data", {})
    ]
    return base64.b64decode(images[0])


if __name__ == "__main__":
    PICTURE.write_bytes(picture())
