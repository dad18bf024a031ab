"""A widget and the words that stand in its place in a saved notebook."""

import pytest
from one_cell import VIEW, run_cell

pytestmark = pytest.mark.process


CELL = """
from ipywidgets import IntSlider
from course_lessons.progress_bars import display_widget
display_widget(IntSlider(7), "[a slider <b>of seven</b>]")
"""


def test_the_widget_is_shown_and_the_words_are_saved():
    data, widgets = run_cell(CELL)
    assert widgets[data[VIEW]["model_id"]]["value"] == 7
    assert data["text/plain"] == "[a slider <b>of seven</b>]"
    assert data.keys() == {VIEW, "text/plain"}


def test_the_panel_of_lesson_5_is_shown_so():
    data, widgets = run_cell("from course_lessons.device_speed.panel import SpeedLab\nSpeedLab()")
    assert "speedlab" in widgets[data[VIEW]["model_id"]]["_dom_classes"]
    assert data["text/plain"].startswith("[The panel:")
