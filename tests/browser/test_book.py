"""The book in a real browser that has no network."""

import html
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from chromium import CHROMIUM, sync_api

from tools.book import build
from tools.copies import LESSONS
from tools.standalone import build_wheel, standalone

axe_in = pytest.importorskip("axe_playwright_python.sync_playwright")

ROOT = Path(__file__).resolve().parents[2]
CONTRAST = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
WCAG = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
BUT_CONTRAST = {**WCAG, "rules": {"color-contrast": {"enabled": False}}}
# Sentences and code have the same colours in every lesson, and each costs axe a millisecond: one
# lesson has both read.
READ_WHOLE = "10_darts.html"
# the outputs of lesson 7 that a prediction is about, read off the lesson
PREDICTED = ("07-minute-run", "07-workers", "07-rehearsed", "07-gains")
OUTPUTS = {"include": [[".cell_output"]]}
# In the others the words of the code stand without their colours: axe looks at each of these
# thousands of elements.
UNCOLOURED = (
    "document.querySelectorAll('.cell_input pre').forEach(pre => pre.textContent = pre.textContent)"
)


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    """The folder with the pages, made as `make book` makes them."""
    out = tmp_path_factory.mktemp("book") / "html"
    command = [sys.executable, ROOT / "tools" / "book" / "build.py", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def names(book) -> list[str]:
    pages = sorted(
        path.relative_to(book).as_posix()
        for path in book.rglob("*.html")
        if "_static" not in path.parts
    )
    others = ("genindex.html", "py-modindex.html", "worth-it.html")  # the last has its own tests
    return [name for name in pages if name not in others]


@pytest.fixture(scope="module")
def page():
    """A page of a browser without a network; page.asked holds what it asks of one."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context()
        context.set_offline(True)
        page = context.new_page()
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        yield page
        browser.close()


CUT_TABLES = """() => [...document.querySelectorAll(".bd-article table")]
    .filter(table => table.parentElement.scrollWidth > table.parentElement.clientWidth + 2)
    .map(table => table.innerText.slice(0, 50))"""


# How many indented lines of code go on in a second row, and how many of these rows begin further to
# the right than the line itself.
HANGING = """() => {
    const spot = (node, place) => {
        const range = document.createRange();
        range.setStart(node, place);
        range.setEnd(node, place + 1);
        return range.getBoundingClientRect();
    };
    const found = [];
    for (const line of document.querySelectorAll(".highlight pre .line")) {
        if (!/^ +\\S/.test(line.textContent)) continue;
        const words = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
        const spots = [];
        for (let node = words.nextNode(); node; node = words.nextNode())
            for (let place = 0; place < node.data.length; place++)
                if (/\\S/.test(node.data[place])) spots.push(spot(node, place));
        const next = spots.find(each => each.top > spots[0].bottom - 2);
        if (next) found.push(next.left > spots[0].left);
    }
    return [found.length, found.filter(Boolean).length];
}"""


@pytest.fixture(scope="module")
def seen(page, book, names):
    """What was seen of each page: in light and dark mode, and as wide as a telephone. To load one
    takes a second.
    """
    return {
        name: look(page, book, name, with_axe=name in made_differently(names)) for name in names
    }


def look(page, book, name: str, *, with_axe: bool) -> dict:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    page.goto((book / name).as_uri())
    found = {"cut": page.evaluate(CUT_TABLES)}
    if with_axe:
        where = OUTPUTS if re.match(r"\d", name) and name != READ_WHOLE else None
        if where:
            page.evaluate(UNCOLOURED)
        found["barriers"] = problems(page, BUT_CONTRAST)
        found["faint"] = problems(page, CONTRAST, where)
        page.emulate_media(color_scheme="dark")
        page.wait_for_function("document.documentElement.dataset.theme == 'dark'")
        found["faint"] += problems(page, CONTRAST, where)
    page.set_viewport_size({"width": 400, "height": 900})
    return {**found, "telephone_px": page.evaluate("document.documentElement.scrollWidth")}


def problems(page, rules: dict, where: dict | None = None) -> list[str]:
    """Return what axe finds, as the rule and the places where it is broken."""
    found = (
        axe_in.Axe()
        .run(page, where, {**rules, "resultTypes": ["violations"]})
        .response["violations"]
    )
    return [f"{rule['id']}: {[node['target'] for node in rule['nodes']][:5]}" for rule in found]


def test_it_has_every_lesson_the_glossary_the_guide_and_the_reference(names):
    wanted = {f"{lesson.stem}.html" for lesson in LESSONS} | {
        "index.html",
        "search.html",
        "glossary.html",
    }
    wanted |= {"teaching.html", "reference/helpers.html", "reference/doctor.html"}
    assert wanted <= set(names)


def made_differently(names: list[str]) -> list[str]:
    """Leave out the pages of the reference but one: all are made in the same way, and axe takes
    seconds for a page.
    """
    return [
        name
        for name in names
        if not name.startswith("reference/") or name == "reference/launch.html"
    ]


def test_axe_finds_no_barrier_and_no_page_asks_a_network(seen, page):
    assert not {name: one["barriers"] for name, one in seen.items() if one.get("barriers")}
    assert page.asked and not [url for url in page.asked if not url.startswith(("file:", "data:"))]


def test_everything_reads_in_light_and_in_dark_mode(seen):
    assert not {name: one["faint"] for name, one in seen.items() if one.get("faint")}
    assert sum("faint" in one for one in seen.values()) > len(LESSONS)


def test_no_table_is_cut_on_a_laptop_and_no_page_scrolls_sideways_on_a_telephone(seen):
    assert not {name: one["cut"] for name, one in seen.items() if one["cut"]}
    assert not {
        name: one["telephone_px"] for name, one in seen.items() if one["telephone_px"] > 400
    }


def test_search_finds_the_page_that_explains_a_word(page, book):
    for word, page_of_it in (
        ("checkpointing", "glossary.html"),
        ("pick_device", "reference/helpers.html"),
    ):
        page.goto((book / "search.html").as_uri() + f"?q={word}")
        page.wait_for_selector("#search-results li a", timeout=30_000)
        page.wait_for_function(
            "() => /found|matching/.test(document.querySelector('#search-results').innerText)"
        )
        found = page.eval_on_selector_all(
            "#search-results li a", "all => all.map(one => one.getAttribute('href'))"
        )
        assert any(urldefrag(link)[0].split("?")[0] == page_of_it for link in found), found


def test_the_search_of_a_book_on_a_disk_fails_in_nothing(page, book):
    said = []
    page.on("console", lambda message: said.append(message))  # playwright marks what it is given
    page.goto((book / "search.html").as_uri() + "?q=checkpointing")
    page.wait_for_selector("#search-results li a", timeout=30_000)
    assert not [message.text for message in said if message.type == "error"]
    assert not page.locator("#search-results .context").count()


def test_an_output_waits_for_its_prediction_and_all_is_open_on_paper(page, book):
    page.goto((book / "07_waiting.html").as_uri())
    folded = page.locator("details.below-input")
    assert folded.count() == len(PREDICTED) and not page.locator("details[open]").count()
    shown = "part => getComputedStyle(part, '::details-content').contentVisibility"
    assert folded.first.evaluate(shown) == "hidden"
    page.emulate_media(media="print")
    assert folded.first.evaluate(shown) == "visible"
    page.emulate_media(media="screen")


@pytest.mark.parametrize(("width", "at_least"), [(390, 6), (1280, 1)])
def test_code_can_be_read_without_scrolling(page, book, width, at_least):
    page.set_viewport_size({"width": width, "height": 844})
    page.goto((book / "08_worth_it.html").as_uri())
    assert not page.evaluate("""() => [...document.querySelectorAll(".highlight pre")]
        .filter(code => code.scrollWidth > code.clientWidth + 2).length""")
    indented, hanging = page.evaluate(HANGING)
    assert indented >= at_least and hanging == indented
    page.set_viewport_size({"width": 1280, "height": 900})


def test_what_the_search_shows_of_a_page_is_its_sentences_and_no_code(page, book):
    page.goto((book / "search.html").as_uri())
    lesson = (book / "09_memory.html").read_text(encoding="utf-8")
    text = page.evaluate("html => Search.htmlToText(html)", lesson)
    code = "import pandas as pd"
    assert code in re.sub(r"<[^>]+>", "", lesson) and code not in text
    assert "out of memory" in text.lower()


def test_no_link_within_the_book_is_dead(book, names):
    ids = {}
    for name in [*names, "genindex.html", "py-modindex.html"]:
        text = (book / name).read_text(encoding="utf-8")
        ids[name] = set(re.findall(r'\bid="([^"]+)"', text))
    for name in names:
        for link in re.findall(
            r'<a\b[^>]*?href="([^"]+)"', (book / name).read_text(encoding="utf-8")
        ):
            if re.match(r"[a-z]+:", link):
                continue
            path, anchor = urldefrag(urljoin(name, link.replace("&amp;", "&")))
            assert (book / unquote(path)).exists(), f"{name} -> {link}"
            assert not anchor or path not in ids or unquote(anchor) in ids[path], (
                f"{name} -> {link}"
            )


def test_a_word_of_the_glossary_is_linked_where_a_lesson_first_uses_it(book):
    linked = set()
    for lesson in LESSONS:
        text = (book / f"{lesson.stem}.html").read_text(encoding="utf-8")
        links = re.findall(r'href="glossary\.html#(term-[^"]+)"', text)
        assert len(links) == len(set(links)) >= 5, lesson.stem
        linked |= set(links)
    page = (book / "glossary.html").read_text(encoding="utf-8")
    ids = {
        html.unescape(word): name
        for name, word in re.findall(r'<dt id="(term-[^"]+)">([^<]+)<', page)
    }
    terms = set(
        build.words((build.HERE / "pages" / "glossary.md").read_text(encoding="utf-8")).values()
    )
    assert len(terms) >= 60 and {ids[term] for term in terms} == linked


def test_what_is_said_of_a_field_is_not_taken_for_its_type(book):
    """Sphinx takes what stands before a colon in a comment on a field for the type of the field."""
    pages = sorted((book / "reference").glob("*.html"))
    assert pages
    assert not [
        page.name for page in pages if 'Type<span class="colon">' in page.read_text("utf-8")
    ]


def test_the_lesson_that_a_page_offers_carries_the_course(book):
    files = build_wheel()
    for lesson in LESSONS:
        page = (book / f"{lesson.stem}.html").read_text(encoding="utf-8")
        link = re.search(r'href="(_downloads/[^"]+\.ipynb)"', page)[1]
        assert (book / link).read_bytes().decode() == standalone(lesson, files)
