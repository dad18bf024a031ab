"""Lesson 0 in JupyterLab in a real browser: the lesson runs, and a person plays with the panel of
lesson 6.
"""

import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from chromium import CHROMIUM, sync_api
from PIL import Image

from tests.course_tools.compare.test_charts import CPU_BLUE, count
from tools.copies import copy_of

axe_in = pytest.importorskip("axe_playwright_python.sync_playwright")

ROOT = Path(__file__).resolve().parents[2]
LESSON = ROOT / "notebooks" / "00_start_here.ipynb"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
WCAG = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "resultTypes": ["violations"]}
TOKEN = "only-for-this-test"
HOSTILE = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
PANEL = f"""
import time
import torch
from course_lessons.device_speed.panel import SpeedLab
from course_tools.compare.workloads import PRODUCT
from course_utils.devices import Device

def slow(size, device):
    return lambda: time.sleep(0.02) or torch.ones(size)

def failing(size, device):
    raise ZeroDivisionError("<b>no</b>")

SpeedLab([PRODUCT, slow, failing], [Device("cpu", 0, {HOSTILE!r})], max_s=0.3)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the learner's copy of lesson 0, the shortest, with a cell for a panel added."""
    folder = tmp_path_factory.mktemp("lab")
    lesson = nbformat.reads(copy_of(LESSON), as_version=4)
    lesson.cells.append(nbformat.v4.new_code_cell(PANEL, id="panel-of-this-test"))
    nbformat.write(lesson, folder / "lesson.ipynb")
    return folder


@pytest.fixture(scope="module")
def address(folder, tmp_path_factory):
    """JupyterLab on a port of its own, which touches none of the user's files."""
    home = tmp_path_factory.mktemp("home")
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    names += ("IPYTHONDIR", "JUPYTERLAB_WORKSPACES_DIR")
    private = {name: str(home / name.lower()) for name in names}
    private["JUPYTERLAB_SETTINGS_DIR"] = str(home / "settings")
    settings = {
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
        "notebook-extension/tracker": {"windowingMode": "none"},
    }
    for name, values in settings.items():
        file = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}"]
    command += [f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True"]
    packages = os.pathsep.join([str(ROOT), str(ROOT / "notebooks")])
    environment = {**os.environ, **private, "PYTHONPATH": packages}
    with open(home / "server.log", "w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            _wait_until(
                lambda: _answers(f"http://127.0.0.1:{port}/api?token={TOKEN}"),
                90,
                "JupyterLab did not start",
            )
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(30)


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as reply:
        return reply.status == 200
    return False


def _wait_until(condition, seconds: float, otherwise: str):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError(otherwise)


@pytest.fixture(scope="module")
def page(address):
    """The lesson in the browser, all of its cells run."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.dialogs = []
        page.on("dialog", lambda dialog: (page.dialogs.append(dialog.message), dialog.dismiss()))
        page.goto(f"{address}/lab/tree/lesson.ipynb?reset&token={TOKEN}")
        page.wait_for_function(
            "() => window.jupyterapp?.shell?.currentWidget?.context", timeout=120_000
        )
        page.set_default_timeout(60_000)
        page.evaluate(
            """async () => {
                const w = jupyterapp.shell.currentWidget;
                await w.context.ready;
                await w.sessionContext.ready;
                jupyterapp.commands.execute('notebook:run-all-cells')
                    .finally(() => { window.lessonHasRun = true; });
            }"""
        )
        # with a limit, which a promise awaited in the page has not: a cell that never ends would
        # hold CI up
        try:
            page.wait_for_function("() => window.lessonHasRun", timeout=600_000)
        except sync_api.TimeoutError:
            begun = [cell["id"] for cell in cells(page) if cell.get("execution_count")]
            pytest.fail(
                f"the lesson did not end: {len(begun)} cells began, the last of them {begun[-1:]}"
            )
        yield page
        page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        browser.close()


def cells(page) -> list[dict]:
    """Return the notebook's cells as they are in the browser's model."""
    return page.evaluate("() => jupyterapp.shell.currentWidget.content.model.toJSON().cells")


class Panel:
    """The panel of this test: the last one on the page."""

    def __init__(self, page):
        self.page = page
        self.root = page.locator(".speedlab").last
        self.root.scroll_into_view_if_needed()

    def part(self, name: str, tag: str = ""):
        return self.root.locator(f".speedlab-{name} {tag}".strip()).first

    def choose(self, work: str, sizes: list[str]) -> None:
        self.part("workload", "select").select_option(label=work)
        offered = self.part("sizes", "select").locator("option")
        _wait_until(
            lambda: set(sizes) <= set(offered.all_inner_texts()), 30, "the kernel gave no sizes"
        )
        self.page.wait_for_timeout(500)
        self.part("sizes", "select").select_option(label=sizes)
        self.page.wait_for_timeout(500)

    def run(self) -> None:
        button = self.root.locator("button.speedlab-run")
        _wait_until(button.is_enabled, 60, "the panel is still busy")
        button.click()

    def status(self) -> str:
        return self.part("status").inner_text()

    def wait_for_status(self, text: str) -> None:
        _wait_until(
            lambda: text in self.status(), 120, f"no {text!r} in the panel, but {self.status()!r}"
        )

    def bar(self) -> float:
        width = self.part("progress", ".progress-bar").evaluate("bar => bar.style.width")
        return float(width.rstrip("%") or 0)


@pytest.fixture
def panel(page) -> Panel:
    return Panel(page)


def test_the_lesson_runs_in_the_browser(page):
    for cell in cells(page):
        if cell["cell_type"] == "code":
            errors = [out["evalue"] for out in cell["outputs"] if out["output_type"] == "error"]
            assert not errors, f"{cell['id']}: {errors}"
            assert cell["execution_count"], f"{cell['id']} did not run"


def test_a_run_moves_the_bar_and_shows_the_picture(page, panel, tmp_path):
    panel.choose("Matrix product", ["64", "128", "256", "512"])
    panel.run()
    seen = set()
    _wait_until(
        lambda: seen.add(panel.bar()) or "Done" in panel.status(), 120, "the run did not end"
    )
    assert panel.bar() == 100
    assert len(seen - {0, 100}) >= 1, f"the bar was only ever seen at {seen}"
    picture = panel.page.locator(".jp-OutputArea-output img").last
    picture.scroll_into_view_if_needed()
    page.screenshot(path=tmp_path / "panel.png")
    image = Image.open(io.BytesIO(picture.screenshot())).convert("RGB")
    assert count(image, CPU_BLUE) > 200, "no line in the colour of the CPU"
    words = [
        out["data"]["text/plain"]
        for out in cells(page)[-1]["outputs"]
        if "image/png" in out.get("data", {})
    ]
    assert "at 64" in words[0] and "at 512" in words[0]
    assert panel.page.locator(".jp-OutputArea-output table").last.locator("tbody tr").count() >= 4


def test_picture_and_table_stay_in_the_saved_notebook(page, panel, folder):
    page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
    saved = nbformat.read(folder / "lesson.ipynb", as_version=4)
    kinds = [kind for output in saved.cells[-1].outputs for kind in output.get("data", {})]
    assert "image/png" in kinds
    shown = [output.get("data", {}).get("text/html", "") for output in saved.cells[-1].outputs]
    assert any("<table" in text for text in shown)
    assert any("run this cell" in text for text in shown)


DARK = "() => jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})"


def test_in_a_dark_theme_the_picture_is_opaque_and_axe_finds_no_barrier(page, panel):
    page.evaluate(DARK)
    page.wait_for_function("() => document.body.dataset.jpThemeName === 'JupyterLab Dark'")
    picture = panel.page.locator(".jp-OutputArea-output img").last
    picture.scroll_into_view_if_needed()
    seen = Image.open(io.BytesIO(picture.screenshot())).convert("RGB")
    corners = ((2, 2), (seen.width - 3, seen.height - 3))
    assert {seen.getpixel(corner) for corner in corners} == {(255, 255, 255)}
    panel.root.evaluate("root => { root.closest('.jp-OutputArea').id = 'panel-and-results'; }")
    ours = {"include": [["#panel-and-results"]]}
    found = axe_in.Axe().run(page, ours, WCAG).response["violations"]
    # JupyterLab shows a picture without the words that its output has for who cannot see it.
    found = [rule for rule in found if rule["id"] != "image-alt"]
    assert not [(rule["id"], node["target"]) for rule in found for node in rule["nodes"]]


def test_no_script_of_a_hostile_name_has_run(page, panel):
    assert HOSTILE in panel.part("devices", "option").inner_text().replace("\xa0", " ")
    assert page.evaluate("() => window.hacked") is None
    assert page.dialogs == []
