"""The progress bar, in a terminal and in a notebook that a real kernel runs."""

import ipywidgets
import pytest
from course_lessons.progress_bars import epoch_bar, open_bar
from one_cell import VIEW, run_cell

IMPORT = "from course_lessons.progress_bars import open_bar\n"


def test_a_terminal_shows_the_bar_as_text(capsys):
    bar = open_bar(4, "step")
    bar.update(4)
    bar.close()
    written = capsys.readouterr()
    assert "4/4" in written.err and not written.out


@pytest.mark.process
def test_a_notebook_shows_a_widget_that_moves_to_its_end_and_saves_words():
    data, widgets = run_cell(IMPORT + "with open_bar(1, 'epoch') as bar:\n    bar.update(1)")
    assert data["text/plain"] == "[progress bar: 1 epoch]"
    assert data.keys() == {VIEW, "text/plain"}
    name = {"model_id": data[VIEW]["model_id"]}
    assert data[VIEW] == ipywidgets.HTML()._repr_mimebundle_()[VIEW] | name
    box = widgets[data[VIEW]["model_id"]]
    _, progress, right = (widgets[name.removeprefix("IPY_MODEL_")] for name in box["children"])
    assert (progress["value"], progress["max"], progress["bar_style"]) == (1, 1, "success")
    assert "1/1" in right["value"]


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


def test_the_bar_ends_with_the_last_epoch_and_its_loss(capsys):
    show = epoch_bar(2)
    show(1, 0.5)
    show(2, 0.25)
    written = capsys.readouterr().err
    assert "2/2" in written and "loss 0.2500" in written and written.endswith("\n")
