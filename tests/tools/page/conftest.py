"""The page "Is it worth it?" in a browser, as people open it and with its functions in reach."""

from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tools.page import build

BROWSERS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
FLAGS += ("--disable-background-networking", "--disable-component-update", "--disable-sync")
CALLS = """globalThis.page = {
    NAMES, cardIn, advise, answerRows, freeRows, fromAddress, memoryParts, problemOf, readNumber,
    readOwn, known, searchNames, toldApart, say: text => eval(`(${text})`)
};"""


@pytest.fixture(scope="module")
def browser():
    found = next((path for path in BROWSERS if Path(path).exists()), None)
    if found is None:
        pytest.skip("needs chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The page as `make page` writes it."""
    path = tmp_path_factory.mktemp("page") / "worth-it.html"
    path.write_text(build.page(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def inside(browser, file):
    """The same page with its functions within reach, and so without its policy."""
    text = file.read_text(encoding="utf-8").replace(
        "</script>\n</body>", f"{CALLS}</script></body>"
    )
    path = file.with_name("inside.html")
    path.write_text(text.replace("Content-Security-Policy", "X-Without-Policy"), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    yield page
    page.close()


@pytest.fixture
def page(browser, file):
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    errors = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda message: errors.append(message.text))
    opened.goto(file.as_uri())
    yield opened
    opened.close()
    assert not errors
