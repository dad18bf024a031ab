"""Take the README's pictures in a real browser: `make picture`.

One is the answer of the page "Is it worth it?", one the head of a lesson with its opening picture;
each for a light and for a dark screen.
"""

import argparse
import base64
import html
import json
import re
import shutil
import sys
from pathlib import Path
from unittest.mock import patch

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "notebooks")]
from course_lessons.openings import draw_opening  # noqa: E402

from course_tools.figures import STYLE  # noqa: E402

FOLDER = ROOT / ".github"
LESSON = ROOT / "notebooks" / "00_start_here.ipynb"
WIDTH, HEIGHT = 440, 450  # narrow, so that a phone shows the text nearly as large as here
PIXELS = 832  # of a picture's width
# smaller than for a hall, so that the words in it are larger
ON_A_PHONE = {"figure.figsize": (10.2, 6.8), "axes.titlesize": 20}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ANSWER_ALONE = "#form, header, footer, #close, .scroll, #shown > :not(figure) { display: none }"
LESSON_STYLE = """
body { margin: 16px; font: 17px/1.35 system-ui, sans-serif; background: #fff; color: #1b1b1b }
h1 { font-size: 22px; margin: 0 0 8px } p { margin: 0 0 12px } img { width: 100% }
@media (prefers-color-scheme: dark) {
  body { background: #1a1a1a; color: #eceff2 } img { filter: invert(0.9) hue-rotate(180deg) }
}
"""


def lesson_page(path: Path) -> str:
    """Return the title, the question and the opening picture of a lesson as HTML."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    text = "".join(notebook["cells"][0]["source"])
    title = text.splitlines()[0].removeprefix("# ")
    question = re.search(r"(?m)^\*\*The question:\*\* .*", text)[0].replace("*", "")
    with patch.dict(STYLE, ON_A_PHONE):
        drawn = draw_opening(path.stem.partition("_")[2])
    picture = base64.b64encode(drawn.png).decode()
    shown = f"<h1>{html.escape(title)}</h1><p>{html.escape(question)}</p>"
    return f'<style>{LESSON_STYLE}</style>{shown}<img src="data:image/png;base64,{picture}">'


def take(browser: Browser, page: Path) -> None:
    """Take the four pictures."""
    for scheme, ending in (("light", ""), ("dark", "-dark")):
        screen = {"viewport": {"width": WIDTH, "height": HEIGHT}, "color_scheme": scheme}
        opened = browser.new_page(**screen, device_scale_factor=PIXELS / WIDTH, bypass_csp=True)
        opened.goto(page.resolve().as_uri())
        opened.add_style_tag(content=ANSWER_ALONE)
        opened.screenshot(path=FOLDER / f"first-look{ending}.png", full_page=True)
        opened.set_content(lesson_page(LESSON))
        opened.screenshot(path=FOLDER / f"lesson{ending}.png", full_page=True)
        opened.close()


def main() -> None:
    """Take the pictures and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path, help='the page "Is it worth it?", an HTML file')
    page = parser.parse_args().page
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise SystemExit("Install Chromium first: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        take(browser, page)
        browser.close()


if __name__ == "__main__":
    main()
