"""The progress bar, in a terminal and in a notebook that a real kernel runs."""

import pytest
from course_lessons.progress_bars import epoch_bar, open_bar
from one_cell import VIEW, run_cell

IMPORT = "from course_lessons.progress_bars import open_bar\n"


CELL = """
from ipywidgets import IntSlider
from course_lessons.progress_bars import display_widget
display_widget(IntSlider(7), "[a slider <b>of seven</b>]")
"""


def test_a_terminal_shows_the_bar_as_text(capsys):
    bar = open_bar(4, "step")
    bar.update(4)
    bar.close()
    written = capsys.readouterr()
    assert "4/4" in written.err and not written.out


@pytest.mark.process
def test_a_notebook_shows_a_widget_that_moves_to_its_end():
    data, widgets = run_cell(IMPORT + "bar = open_bar(3, 'epoch')\nbar.update(3)\nbar.close()")
    box = widgets[data[VIEW]["model_id"]]
    _, progress, right = (widgets[name.removeprefix("IPY_MODEL_")] for name in box["children"])
    assert (progress["value"], progress["max"], progress["bar_style"]) == (3, 3, "success")
    assert "3/3" in right["value"]


@pytest.mark.process
def test_a_saved_notebook_does_not_say_that_a_finished_bar_stands_at_zero():
    data, _ = run_cell(IMPORT + "with open_bar(1, 'epoch') as bar:\n    bar.update(1)")
    assert data["text/plain"] == "[progress bar: 1 epoch]"


@pytest.mark.process
def test_a_bar_of_unknown_length_is_named_by_its_description():
    data, widgets = run_cell(
        IMPORT + "bar = open_bar(None, 'B', unit_scale=True, desc='download')\n"
        "bar.update(5_000_000)\nbar.refresh()\nbar.close()"
    )
    assert data["text/plain"] == "[progress bar: download]"
    assert any("5.00M/?" in str(state.get("value")) for state in widgets.values())


@pytest.mark.process
def test_a_bar_that_stops_before_its_end_is_marked_as_failed():
    _, widgets = run_cell(IMPORT + "bar = open_bar(3, 'step')\nbar.update(1)\nbar.close()")
    styles = [state["bar_style"] for state in widgets.values() if "bar_style" in state]
    assert styles == ["danger"]


@pytest.mark.process
def test_the_widget_is_shown_and_the_words_are_saved():
    data, widgets = run_cell(CELL)
    assert widgets[data[VIEW]["model_id"]]["value"] == 7
    assert data["text/plain"] == "[a slider <b>of seven</b>]"
    assert data.keys() == {VIEW, "text/plain"}


def test_the_bar_ends_with_the_last_epoch_and_its_loss(capsys):
    show = epoch_bar(2)
    show(1, 0.5)
    show(2, 0.25)
    written = capsys.readouterr().err
    assert "2/2" in written and "loss 0.2500" in written and written.endswith("\n")
