"""The slides of the lessons in a real browser that has no network."""

import functools
import io
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from chromium import CHROMIUM, sync_api
from PIL import Image

from tests.course_tools.compare.test_charts import CPU_BLUE, count

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SIZE = {"width": 1280, "height": 720}
# The contrast of each piece of text with what lies behind it, by WCAG 2; 24 pixels and more count
# as large.
TOO_FAINT = """() => {
    const rgb = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
        .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
    const ground = part => {
        const own = rgb(getComputedStyle(part).backgroundColor);
        if (own.length === 3 || own[3] === 1) return own;
        return part.parentElement ? ground(part.parentElement) : [255, 255, 255];
    };
    const faint = new Set();
    for (const part of document.querySelectorAll(".slides *, .slide-number")) {
        if (![...part.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
        if (["SCRIPT", "STYLE"].includes(part.tagName) || part.closest("aside")) continue;
        const style = getComputedStyle(part);
        const two = [light(rgb(style.color)), light(ground(part))].sort((a, b) => b - a);
        const contrast = (two[0] + 0.05) / (two[1] + 0.05);
        const needed = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
        const name = part.className || part.tagName;
        if (contrast < needed) faint.add(`${name} ${style.color} ${contrast.toFixed(2)}`);
    }
    return [...faint];
}"""
OVERFLOWS = """() => Reveal.getSlides().filter(slide => {
    Reveal.slide(...Object.values(Reveal.getIndices(slide)).slice(0, 2), 99);
    const inside = [slide, ...slide.querySelectorAll("div, pre, table")].filter(
        part => part === slide || getComputedStyle(part).overflowX !== "visible");
    return inside.some(part =>
        part.scrollHeight > part.clientHeight + 2 || part.scrollWidth > part.clientWidth + 2);
}).map(slide => slide.innerText.slice(0, 80))"""

EMPTY_AT_FIRST = """() => Reveal.getSlides().filter(slide => {
    const later = [...slide.querySelectorAll(".fragment:not(.fade-out)")];
    const shown = [...slide.querySelectorAll("*")].filter(part => !part.children.length);
    return shown.every(part => later.some(one => one.contains(part)));
}).map(slide => slide.textContent.trim().slice(0, 80))"""

# The cells that settle a prediction and show it when the question, or their code, is first seen.
SETTLED_AT_ONCE = """ids => ids.filter(id => {
    const shown = part => part?.checkVisibility({opacityProperty: true, visibilityProperty: true});
    return [...document.querySelectorAll(`[id="cell-id=${id}"]`)].some(cell => {
        const slide = cell.closest(".slides > section > section");
        Reveal.slide(...Object.values(Reveal.getIndices(slide)).slice(0, 2), -1);
        const asked = [...slide.querySelectorAll("blockquote")].some(shown);
        const coded = shown(cell.querySelector(".jp-Cell-inputWrapper"));
        return (asked || coded) && shown(cell.querySelector(".jp-Cell-outputWrapper"));
    });
})"""
# The slides whose last line touches the edge.
AT_THE_EDGE = """() => Reveal.getSlides().filter(slide => {
    Reveal.slide(...Object.values(Reveal.getIndices(slide)).slice(0, 2), 99);
    const shown = [...slide.querySelectorAll("p, li, pre, td, img")].filter(
        part => part.checkVisibility());
    const ends = shown.map(part => part.getBoundingClientRect().bottom);
    return Math.max(...ends, 0) > 712;
}).map(slide => slide.innerText.slice(0, 80))"""
# The answers that no key has opened; what an estimate has to say beyond its table is no answer.
FOLDED = """() => [...document.querySelectorAll(".slides details:not([open])")].filter(
    part => !part.matches(".course-card ~ *")).map(part => part.textContent.trim().slice(0, 80))"""
ALONE = """() => Reveal.getSlides().filter(slide =>
    !slide.querySelector(".jp-CodeCell, .course-diff, img, pre, table, details, blockquote")
    && slide.textContent.trim().length < 150).map(slide => slide.textContent.trim())"""


@pytest.fixture(scope="module")
def slides(tmp_path_factory):
    """Return a function that makes the slides of a lesson once, as `make slides` makes them."""
    folder = tmp_path_factory.mktemp("slides")

    @functools.cache
    def make(stem) -> Path:
        command = [sys.executable, "-m", "jupyter", "nbconvert", "--config"]
        command += ["tools/slides/config.py", "--output-dir", folder, f"notebooks/{stem}.ipynb"]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
        return folder / f"{stem}.slides.html"

    return make


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def show(slides, browser):
    """Open slides without a network; page.asked holds what they ask for, page.said their
    complaints.
    """
    context = browser.new_context(viewport=SIZE)
    context.set_offline(True)
    page = context.new_page()
    page.asked, page.said = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on(
        "console",
        lambda message: (
            page.said.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    page.on("pageerror", lambda error: page.said.append(str(error)))

    def _show(stem):
        page.goto(slides(stem).as_uri())
        page.wait_for_function("() => window.Reveal?.isReady()", timeout=10_000)
        return page

    yield _show
    context.close()


def without_network(asked: list[str]) -> bool:
    own = [url for url in asked if url.startswith("file://")]
    return len(own) == 1 and all(url.startswith("data:") for url in asked if url not in own)


@pytest.mark.parametrize("stem, at_least", [("00_start_here", 18), ("01_cpu", 25)])
def test_the_arrow_key_leads_through_a_lesson_and_nothing_is_asked_of_a_network(
    show, stem, at_least
):
    page = show(stem)
    total, seen = page.evaluate("Reveal.getTotalSlides()"), set()
    for _ in range(4 * total):
        seen.add(page.evaluate("Reveal.getSlidePastCount()"))
        if page.evaluate("Reveal.isLastSlide() && !Reveal.availableFragments().next"):
            break
        page.keyboard.press("ArrowRight")
    assert page.locator(
        "section.present section.present h2, section.present.present h2"
    ).last.is_visible()
    assert "What to take with you" in page.locator("section.present section.present").inner_text()
    assert len(seen) == total >= at_least
    assert without_network(page.asked), page.asked
    assert not page.said


def has_code(cell) -> bool:
    """Tell whether the slides are to show a cell's code: not where a picture or a diff is alone."""
    alone = ("image/png", "course-diff", "application/vnd.jupyter.widget-view")
    return (
        cell.cell_type == "code"
        and cell.metadata.get("slideshow", {}).get("slide_type") != "skip"
        and not cell.id.endswith("-setup")
        and not cell.source.strip().endswith("progress()")
        and not any(word in str(cell.outputs) for word in alone)
    )


def settling(cells) -> list[str]:
    """Return the ids of the cells of code with an output that stand right after a prediction."""
    found, asked = [], False
    for cell in cells:
        if cell.cell_type == "markdown":
            asked = "**Predict.**" in cell.source
        elif asked and cell.outputs:
            found.append(cell.id)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("stem", [lesson.stem for lesson in LESSONS])
def test_every_lesson_opens_can_be_read_fits_its_slides_and_shows_its_pictures(show, stem):
    page = show(stem)
    sizes = page.eval_on_selector_all(
        "img", "all => all.map(one => [one.naturalWidth, one.alt.split(' ').length])"
    )
    assert all(width > 0 and words >= 4 for width, words in sizes)
    lesson = nbformat.read(ROOT / "notebooks" / f"{stem}.ipynb", as_version=4)
    formulas = [
        line for cell in lesson.cells for line in cell.source.splitlines() if line.startswith("$$")
    ]
    assert page.locator(".slides math").count() == len(formulas)
    assert not page.locator("p", has_text="$$").count()
    assert not page.locator(".slides a[href$='.ipynb']").count()
    assert not page.evaluate(TOO_FAINT)
    assert not page.get_by_text("not solved yet").count()
    too_long = page.evaluate(OVERFLOWS)
    assert not too_long and not page.evaluate(EMPTY_AT_FIRST)
    assert not page.evaluate(AT_THE_EDGE)
    settle = settling(lesson.cells)
    assert settle and not page.evaluate(SETTLED_AT_ONCE, settle)
    assert not page.evaluate(ALONE) and not page.evaluate(FOLDED)
    guide = (ROOT / "notebooks" / "TEACHING.md").read_text(encoding="utf-8")
    minutes = int(re.search(rf"(?m)^\| {int(stem[:2])} \| (\d+) \|", guide)[1])
    # "estimated, at a minute and a half per slide", in fives; a font may make a slide more
    assert abs(1.5 * page.evaluate("Reveal.getTotalSlides()") - minutes) <= 5
    shown = page.locator(".slides").text_content()
    absent = [cell.id for cell in lesson.cells if has_code(cell) and cell.source[:20] not in shown]
    assert not absent
    assert without_network(page.asked) and not page.said


def test_a_long_report_is_cut_to_what_is_said_of_it_and_a_table_stands_below_its_code(show):
    page = show("02_gpu")
    report = page.locator("pre", has_text="more lines in the lesson").text_content()
    lines = [line.strip() for line in report.splitlines()]
    # the sentence after it: the host waits for all 20 copies of a batch, from pageable memory
    assert [line for line in lines if line.startswith("20 x to the GPU, from pageable memory")]
    assert any(line.startswith("Waits of the host for the GPU: ") for line in lines)
    assert "operations" not in report and len(lines) < 12
    slide = page.locator(".slides > section > section", has_text="smallest normal").last
    assert slide.locator(".again").count() == slide.locator("table").count() == 1


def test_a_picture_is_there_at_once_alone_and_large(show):
    page = show("01_cpu")
    page.evaluate("""() => { const slide = document.querySelector('img').closest('section');
        Reveal.slide(...Object.values(Reveal.getIndices(slide)).slice(0, 2), -1); }""")
    shown = page.locator("section.present section.present")
    assert not shown.locator(".jp-InputArea").count()
    assert shown.locator("img").last.bounding_box()["height"] >= 540
    assert blue_dots(page) > 1000


def blue_dots(page) -> int:
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    # the bar beside a cell of code is blue as well
    right = image.crop((100, 0, image.width, image.height))
    return count(right, CPU_BLUE, slack=12)


def test_the_prediction_is_seen_before_its_answer(show):
    page = show("00_start_here")
    page.evaluate("Reveal.slide(5, 0, -1)")
    answer = page.locator("section.present .fragment").first
    assert page.locator("section.present").get_by_text("Where is it stored?").is_visible()
    assert answer.evaluate("part => getComputedStyle(part).opacity") == "0"
    page.keyboard.press("ArrowRight")
    assert answer.evaluate("part => getComputedStyle(part).opacity") == "1"
