"""Write the page "Is it worth it?" as one HTML file: `python tools/page/build.py worth-it.html`.

The page holds the package's own data (`page_data`) and plain modules of JavaScript, joined into one
script. A browser opens the file from a folder; it asks no server for anything, and its policy
allows no script but this one.
"""

import argparse
import base64
import hashlib
import html
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))
from course_utils.atomic_write import refuse_foreign, write_atomically  # noqa: E402
from tools.page.page_data import page_data  # noqa: E402

TITLE = "<title>Is it worth it?"  # our pages are known by it
MODULES = (
    "numbers",
    "search",
    "question",
    "pasted",
    "language",
    "model",
    "python",
    "answer",
    "picture",
    "offers",
    "main",
)  # each after what it imports


def joined_modules() -> str:
    """Return the modules as one script: names are unique among them, so imports can go."""
    parts = []
    for name in MODULES:
        text = (HERE / f"{name}.js").read_text(encoding="utf-8")
        text = re.sub(r"^import [^;]*;\n", "", text, flags=re.MULTILINE)
        text = re.sub(r"^export (?=function|const|async)", "", text, flags=re.MULTILINE)
        parts.append(without_comments(text))
    return "\n".join(parts)


def without_comments(text: str) -> str:
    """Return a module without comments, which stand on lines of their own, and indentation."""
    text = re.sub(r"^\s*/\*\*.*?\*/\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^\s*//.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^\s+", "", text, flags=re.MULTILINE)  # no text goes on in another line


def style_sheet() -> str:
    """Return the page's style without comments and the spaces that mean nothing."""
    text = (HERE / "page.css").read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"^\s+|(?<=[:;,{}]) | (?=[{}])", "", text, flags=re.MULTILINE)


def sha256(text: str) -> str:
    """Return the hash of an inline script or style, as a Content-Security-Policy writes it."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def page(lessons_address: str = "") -> str:
    """Return the page; with an address of the lessons, it links to what measured its error."""
    script, style = joined_modules(), style_sheet()
    data = json.dumps(page_data(), separators=(",", ":")).replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src {sha256(script)}; style-src {sha256(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    words = "Estimated by the course on CPU, GPU and TPU for PyTorch; the lesson “Is it worth it?”"
    if lessons_address:
        address = html.escape(f"{lessons_address}/08_worth_it.html", quote=True)
        footer = f'{words} shows how its error was measured: <a href="{address}">read it</a>.'
    else:
        footer = f"{words} (08_worth_it.ipynb) shows how its error was measured."
    text = (HERE / "page.html").read_text(encoding="utf-8")
    text = re.sub(r"^ +", "", text, flags=re.MULTILINE)
    parts = {
        "POLICY": policy,
        "STYLE": style,
        "DATA": data,
        "SCRIPT": script,
        "FOOTER": footer,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument(
        "--lessons", default="", help="address of the book's lessons, if it has one"
    )
    options = parser.parse_args()
    try:
        options.target.parent.mkdir(parents=True, exist_ok=True)
        refuse_foreign(options.target, TITLE)
        write_atomically(options.target, page(options.lessons))
    except OSError as error:
        parser.error(f"the page cannot be written: {error}. Choose another place.")
    size_kb = options.target.stat().st_size / 1000
    print(f"Open it in a browser: {options.target} ({size_kb:.0f} kB)")
