"""The panel without a browser: what its controls do. tests/browser looks at it in a real one."""

import asyncio
import threading

import pytest
import torch
from course_lessons.device_speed import panel as dashboard
from course_lessons.device_speed.image_step import SUITE
from course_lessons.device_speed.panel import USUAL_SIZES, SpeedLab
from one_cell import VIEW, run_cell

from course_tools.compare.workloads import PRODUCT
from course_utils.devices import Device

CPU = Device("cpu", 0, "a cpu")


@pytest.fixture
def shown(monkeypatch):
    """What the panel shows, in order."""
    seen = []

    class Handle:
        def display(self, what, **more):
            seen.append(what)

        update = display

    monkeypatch.setattr(dashboard, "DisplayHandle", Handle)
    return seen


def counting(size, device):
    return lambda: torch.arange(size, device=device)


def failing(size, device):
    raise ZeroDivisionError(f"<b>{size}</b> is a bad size")


def lab(*works) -> SpeedLab:
    return SpeedLab(works or [counting], [CPU], max_s=0.01)  # three sizes are chosen


def click_run(panel):
    """Click Run, wait for the end, and return the panel."""

    async def scenario():
        panel.run_button.click()
        panel.run_button.click()  # again before it is locked on the screen: it runs once
        await panel._task
        return panel

    return asyncio.run(scenario())


@pytest.mark.parametrize("control", ["sizes", "devices"])
def test_a_click_with_nothing_chosen_says_so(shown, control):
    panel = lab()
    getattr(panel, control).value = ()
    assert "Choose at least one" in click_run(panel).status.value


def test_a_click_moves_the_bar_to_its_end(shown):
    panel = click_run(lab())
    assert (panel.progress.value, panel.progress.max) == (3, 3) and "Done." in panel.status.value
    assert (panel.run_button.disabled, panel.stop_button.disabled) == (False, True)
    sizes = [one.size for one in panel.result.measurements]
    assert sorted(sizes) == sorted(panel.sizes.value * len(panel_threads()))


def test_the_controls_are_locked_while_it_runs_and_stop_answers_while_an_answer_is_checked(shown):
    checked = threading.Event()

    def slow(size, device):
        return lambda: checked.wait(30) and torch.zeros(1)

    async def scenario():
        panel = lab(slow)
        panel.run_button.click()
        await asyncio.sleep(0.1)
        locked = [
            control.disabled
            for control in (panel.workload, panel.devices, panel.sizes, panel.precision)
        ]
        panel.stop_button.click()
        said = panel.status.value
        checked.set()
        await panel._task
        return locked, said, panel

    locked, said, panel = asyncio.run(scenario())
    assert all(locked)
    assert "Stopping after the size in progress" in said
    assert "Stopped after 1 of 3" in panel.status.value
    assert not panel.workload.disabled


def panel_threads():
    return {1, torch.get_num_threads()}


def test_a_click_updates_the_outputs_of_the_panel(shown):
    async def scenario():
        panel = lab()
        panel._ipython_display_()
        placeholders = len(shown)
        panel.run_button.click()
        await panel._task
        return shown[placeholders:]

    updates = asyncio.run(scenario())
    assert len(updates) == 2 + 2 * 3  # a picture and a table after each size
    assert "counting (fp32)" in updates[-2]["text/plain"]
    assert updates[-1].data.count("<tr") == 1 + 3 * len(panel_threads())


def test_an_error_is_shown_in_the_panel_as_text(shown):
    panel = lab(failing)
    panel._ipython_display_()
    click_run(panel)
    assert "appear here" in shown[-2].data  # the picture before it is gone
    assert "ZeroDivisionError: &lt;b&gt;10&lt;/b&gt; is a bad size" in panel.status.value
    assert not panel.run_button.disabled


def test_choosing_work_offers_its_sizes_and_precisions():
    panel = SpeedLab(devices=["cpu"])
    panel.workload.value = PRODUCT
    assert panel.sizes.value == (64, 128, 256, 512, 1024)
    assert tuple(panel.precision.options) == PRODUCT.precisions
    assert set(USUAL_SIZES) == {work.size_name for work in SUITE} | {"size"}


@pytest.mark.parametrize("nothing", ["workloads", "devices"])
def test_a_panel_with_nothing_to_choose_is_refused(nothing):
    with pytest.raises(ValueError, match="at least one workload and one device"):
        SpeedLab(**{nothing: []})


@pytest.mark.process
def test_the_panel_is_a_widget_and_is_saved_as_words():
    data, widgets = run_cell("from course_lessons.device_speed.panel import SpeedLab\nSpeedLab()")
    assert "speedlab" in widgets[data[VIEW]["model_id"]]["_dom_classes"]
    assert data["text/plain"].startswith("[The panel:")
