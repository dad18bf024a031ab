"""Take the README's picture in a real browser: `python tools/picture.py` or `make picture`.

It shows a page of HTML, which is "Is it worth it?" in `make picture`. Without one it shows lesson 0
in JupyterLab, as it is committed.
"""

import argparse
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
LESSON = ROOT / "notebooks" / "00_start_here.ipynb"
PICTURE = ROOT / ".github" / "first-look.png"
SIZE, LAB_SIZE = {"width": 1280, "height": 640}, {"width": 1760, "height": 880}
PATIENCE_S = 60
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def jupyterlab(lesson: Path) -> Iterator[str]:
    """Serve a copy of a lesson by JupyterLab, and give the address that shows it alone."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(lesson, folder)
        settings = Path(folder, "settings", "@jupyterlab", "apputils-extension")
        settings.mkdir(parents=True)
        no_news = '{"fetchNews": "false"}'
        (settings / "notification.jupyterlab-settings").write_text(no_news, encoding="utf-8")
        command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"]
        command += [f"--ServerApp.port={port}", f"--IdentityProvider.token={token}"]
        command += [f"--ServerApp.root_dir={folder}", "--ServerApp.log_level=ERROR"]
        environment = {**os.environ, "JUPYTERLAB_SETTINGS_DIR": str(Path(folder, "settings"))}
        server = subprocess.Popen(command, cwd=folder, env=environment)
        try:
            wait_for(f"http://127.0.0.1:{port}/api")
            yield f"http://127.0.0.1:{port}/doc/tree/{lesson.name}?reset&token={token}"
        finally:
            server.terminate()
            server.wait()


def wait_for(address: str) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            urlopen(address, timeout=1).close()
            return
        except (URLError, OSError):
            time.sleep(0.2)
    raise TimeoutError(f"{address} did not answer within {PATIENCE_S} s.")


def take(address: str, size: dict[str, int], first: str = "") -> bytes:
    """Return a picture of a page, scrolled to the first thing that a selector finds."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise SystemExit("Install Chromium first: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport=size)
        page.goto(address)
        if first:
            page.locator(first).first.wait_for(timeout=PATIENCE_S * 1000)
        page.wait_for_timeout(3_000)  # fonts, and what JupyterLab lays out late
        if first:
            page.locator(first).first.evaluate("part => part.scrollIntoView({block: 'end'})")
        taken = page.screenshot()
        browser.close()
    return taken


def main() -> None:
    """Take the picture and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="?", type=Path, help="an HTML file, in place of the lesson")
    page = parser.parse_args().page
    if page:
        PICTURE.write_bytes(take(page.resolve().as_uri(), SIZE))
        return
    with jupyterlab(LESSON) as address:
        PICTURE.write_bytes(take(address, LAB_SIZE, ".jp-RenderedImage img"))


if __name__ == "__main__":
    main()
