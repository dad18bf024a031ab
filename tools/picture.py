"""Take the README's picture of a page in a real browser: `make picture`."""

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).resolve().parent.parent / ".github" / "first-look.png"
SIZE = {"width": 1280, "height": 640}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    """Take the picture and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path, help="an HTML file")
    page = parser.parse_args().page
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise SystemExit("Install Chromium first: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        opened = browser.new_page(viewport=SIZE)
        opened.goto(page.resolve().as_uri())
        opened.wait_for_timeout(3_000)  # fonts
        opened.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
