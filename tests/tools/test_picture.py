"""The README's pictures: as wide as its phone's screen, light and dark, with their finding."""

import base64
import io
import re
import sys

import pytest
from PIL import Image, ImageStat
from stand_ins import REPOSITORY

pytest.importorskip("playwright.sync_api")
from tools import picture

pytestmark = pytest.mark.browser


def look(path):
    with Image.open(path) as image:
        return image.convert("L")


def test_the_pictures_of_the_readme_are_taken_for_a_light_and_for_a_dark_screen(
    tmp_path, monkeypatch
):
    page = tmp_path / "page.html"
    page.write_text("<header>head</header><section id=shown><figure>answer</figure></section>")
    monkeypatch.setattr(picture, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["picture.py", str(page)])
    picture.main()
    taken = {path.name: look(path) for path in tmp_path.glob("*.png")}
    assert taken.keys() == {path.name for path in (REPOSITORY / ".github").glob("*.png")}
    for name, image in taken.items():
        committed = look(REPOSITORY / ".github" / name)
        assert image.width == committed.width and image.height <= committed.height
    light, dark = (ImageStat.Stat(taken[name]).mean for name in ("lesson.png", "lesson-dark.png"))
    assert light > [200] and dark < [60]


def test_the_head_of_a_lesson_is_its_title_its_question_and_its_opening_picture():
    shown = picture.lesson_page(picture.LESSON)
    text = re.sub(r"(?s)<style>.*</style>|<[^>]*>", "", shown)
    assert text.startswith("0. Start here: ") and "The question: " in text and "*" not in text
    (image,) = re.findall(r'base64,([^"]+)"', shown)
    with Image.open(io.BytesIO(base64.b64decode(image))) as drawn:
        # its text has the size in points that it has in the lesson, whose picture has 1280
        assert drawn.width < 1050 and picture.STYLE["figure.figsize"] == (12.8, 7.2)


def test_without_a_browser_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(picture.shutil, "which", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["picture.py", "page.html"])
    with pytest.raises(SystemExit, match="apt-get install chromium"):
        picture.main()
