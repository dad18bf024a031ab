"""The panel without a browser: what its controls do. tests/browser looks at it in a real one."""

import asyncio
import threading

import pytest
import torch

from course_utils.compare import panel as dashboard
from course_utils.compare.measurement import Measurement
from course_utils.compare.panel import USUAL_SIZES, SpeedLab, read_sizes
from course_utils.compare.results import Result
from course_utils.compare.workloads import SUITE
from course_utils.devices import Device

pytestmark = pytest.mark.process


CPU = Device("cpu", 0, "a cpu")


@pytest.fixture
def shown(monkeypatch):
    """What the panel shows, in order."""
    seen = []

    class Handle:
        def display(self, what):
            seen.append(what)

        update = display

    monkeypatch.setattr(dashboard, "DisplayHandle", Handle)
    monkeypatch.setattr(dashboard, "display", lambda *what: seen.extend(what))
    return seen


def counting(size, device):
    return lambda: torch.arange(size, device=device)


def failing(size, device):
    raise ZeroDivisionError(f"<b>{size}</b> is a bad size")


def lab(*works) -> SpeedLab:
    panel = SpeedLab(works or [counting], [CPU], recordings=[], max_s=0.01)
    panel.sizes.value = "4 8 16"
    return panel


def click_run(panel):
    """Click Run, wait for the end, and return the panel."""

    async def scenario():
        panel.run_button.click()
        await panel._task
        return panel

    return asyncio.run(scenario())


def test_run_shows_a_picture_and_a_table_and_leaves_the_panel_above_as_it_is(shown):
    panel = lab()
    panel._ipython_display_()
    before = (panel.progress.value, panel.status.value)
    result = panel.run()
    assert result.sizes == (4, 8, 16)
    assert "counting (fp32)" in shown[-2].picture.alt
    assert "<table" in shown[-1].data
    assert before == (panel.progress.value, panel.status.value)


def test_a_click_moves_the_bar_to_its_end(shown):
    panel = click_run(lab())
    assert (panel.progress.value, panel.progress.max) == (3, 3) and "Done." in panel.status.value
    assert (panel.run_button.disabled, panel.stop_button.disabled) == (False, True)


def test_stop_says_nothing_when_nothing_runs(shown):
    panel = lab()
    panel.stop()
    assert panel.status.value == "Choose, then press Run."


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
    assert (
        all(locked)
        and "Stopping after the size in progress" in said
        and "Stopped after 1 of 3" in panel.status.value
    )
    assert not panel.workload.disabled


def test_a_click_updates_the_outputs_of_the_panel(shown):
    async def scenario():
        panel = lab()
        panel._ipython_display_()
        placeholders = len(shown)
        panel.run_button.click()
        await panel._task
        return shown[placeholders:]

    updates = asyncio.run(scenario())
    assert len(updates) == 2 * 3  # a picture and a table after each size
    assert "counting (fp32)" in updates[-2].picture.alt
    assert "<table" in updates[-1].data


def test_a_stop_between_two_sizes_keeps_what_is_there(shown):
    async def scenario():
        panel = lab()
        panel.run_button.click()
        while not panel.comparison or len(panel.comparison.sizes) < 1:
            await asyncio.sleep(0.01)
        panel.stop_button.click()
        await panel._task
        return panel

    panel = asyncio.run(scenario())
    assert len(panel.comparison.sizes) < 3
    assert "Stopped after" in panel.status.value
    assert not panel.run_button.disabled


def test_an_error_is_shown_in_the_panel_as_text(shown):
    panel = lab(failing)
    panel._ipython_display_()
    click_run(panel)
    assert ["appears here" in what.data for what in shown[-2:]] == [True, True], (
        "the picture before it is gone"
    )
    assert "ZeroDivisionError: &lt;b&gt;4&lt;/b&gt; is a bad size" in panel.status.value
    assert not panel.run_button.disabled


def test_the_bar_of_the_last_run_does_not_stand_beside_an_error(shown):
    panel = click_run(lab())
    panel.sizes.value = "many"
    click_run(panel)
    assert "&#x27;many&#x27; is not one" in panel.status.value
    assert panel.progress.value == 0


def test_an_interrupt_of_the_kernel_stops_it(shown):
    def interrupted(size, device):
        raise KeyboardInterrupt

    assert lab(interrupted).run() is None


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory\nframe #0")]
)
def test_a_lack_of_memory_is_one_plain_sentence(shown, error):
    def hungry(size, device):
        raise error

    status = click_run(lab(hungry)).status.value
    assert (
        "There is not enough memory for this size. Choose a smaller one." in status
        and "alloc" not in status
    )


@pytest.mark.parametrize(
    ("work", "size"), [("Matrix product", "1000000"), ("Matrix product", f"{10**21}")]
)
def test_a_size_that_cannot_fit_is_refused_beforehand(shown, work, size):
    panel = lab(SUITE[work])
    panel.sizes.value = f"64 {size}"
    status = click_run(panel).status.value
    assert "of memory. Choose a smaller one." in status and panel.comparison is None


def test_a_second_click_on_run_changes_nothing(shown):
    async def scenario():
        panel = lab()
        panel.run_button.click()
        await asyncio.sleep(0.01)
        first = panel._task
        panel._start()
        assert panel._task is first
        await first

    asyncio.run(scenario())


def test_the_table_escapes_every_name(shown):
    panel = lab()
    name = "<script>alert(1)</script>"
    row = Measurement(
        workload="w",
        precision="fp32",
        size=4,
        size_name="size",
        unit="calls",
        items=1.0,
        label=name,
        kind="cpu",
        device=name,
        rounds_s=(1.0, 1.0),
    )
    panel.comparison = Result((row,))
    panel._update()
    assert "<script>" not in shown[-1].data
    assert "&lt;script&gt;" in shown[-1].data


def test_choosing_work_offers_its_sizes_and_precisions():
    panel = SpeedLab(devices=[CPU], recordings=[])
    panel.workload.value = SUITE["Matrix product"]
    assert panel.sizes.value == "64 128 256 512 1024"
    assert tuple(panel.precision.options) == SUITE["Matrix product"].precisions
    assert set(USUAL_SIZES) == {work.size_name for work in SUITE.values()}


def test_every_control_has_its_class():
    panel = lab()
    for name in ("workload", "devices", "sizes", "precision", "progress", "status"):
        assert f"speedlab-{name}" in getattr(panel, name)._dom_classes
    assert "speedlab-run" in panel.run_button._dom_classes
    assert "speedlab-stop" in panel.stop_button._dom_classes


@pytest.mark.parametrize(
    ("text", "sizes"), [("16", [16]), ("16, 64,256", [16, 64, 256]), (" 2  1 2", [1, 2])]
)
def test_sizes_are_read(text, sizes):
    assert read_sizes(text, "batch") == sizes


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ("", "''"),
        ("16 many", "'many'"),
        ("0", "'0'"),
        ("-1", "'-1'"),
        ("1.5", "'1.5'"),
        ("1,024", "'024'"),
    ],
)
def test_odd_sizes_are_refused(text, odd):
    with pytest.raises(
        ValueError, match=f"sizes are positive integers, such as 16 64 256, but {odd} is not one"
    ):
        read_sizes(text, "batch")


def test_a_device_may_be_given_by_its_name(shown):
    panel = SpeedLab([counting], ["cpu"], recordings=[], max_s=0.01)
    panel.sizes.value = "4"
    assert panel.run().sizes == (4,)


def test_a_long_text_that_is_no_size_is_not_repeated_in_full():
    with pytest.raises(ValueError, match="is not one") as refused:
        read_sizes("9" * 400, "batch")
    assert len(str(refused.value)) < 200
