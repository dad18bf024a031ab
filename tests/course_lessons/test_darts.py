import os
import re
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from course_lessons.darts.pictures import draw_published, draw_steps, gains, times_text
from course_lessons.darts.sales import shop_sales
from course_lessons.needs import no_darts
from start_python import python

from course_tools.estimate import count_work
from course_utils.lightning import QUIET

needs_darts = pytest.mark.skipif(no_darts() is not None, reason=str(no_darts()))
ROOT = Path(__file__).resolve().parents[2]
LESSON = ROOT / "notebooks" / "10_darts.ipynb"
# Enough to make the network of a Darts model: it does not exist before `fit`.
ONE_BATCH = {**QUIET, "accelerator": "cpu", "limit_train_batches": 1}
# Darts hands Lightning an empty list of validation sets, which it remarks upon; pinned memory needs
# a GPU. All models of Darts share the loss that is its default, which a forecast leaves in the mode
# of evaluation.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*across ranks is zero"),
    pytest.mark.filterwarnings("ignore:.*'pin_memory' argument is set"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:Found .* in eval mode at the start of training"),
]


@pytest.fixture(scope="module")
def lesson() -> dict:
    """What the lesson's cells `10-forecaster` and `10-window` define."""
    names = {"torch": torch, "here": None}
    for cell in nbformat.read(LESSON, 4).cells:
        if cell.id in ("10-forecaster", "10-window"):
            functions, _, _ = cell.source.partition("\nwindow = ")
            exec(functions.replace("%%needs Darts", ""), names)
    return names


def test_the_stored_forecast_of_larger_batches_is_the_faster_one_as_the_text_above_it_says():
    (cell,) = (one for one in nbformat.read(LESSON, 4).cells if one.id == "10-batches")
    said = "".join(output.get("text", "") for output in cell.outputs)
    times = {batch: float(s) for batch, s in re.findall(r"batch ([\d,]+): ([\d.]+) s", said)}
    assert times["1,024"] < times["32"]


@needs_darts
def test_the_sales_have_a_week_a_year_and_noise_and_each_shop_another_day():
    shops = shop_sales(count=3, days=7 * 365)
    assert shops[0].freq_str == "D" and len(shop_sales()) == 100 and len(shop_sales()[0]) == 400
    assert np.array_equal(shop_sales(2, 9)[1].values(), shop_sales(2, 9)[1].values())
    waves = np.fft.rfft([shop.values().flatten() for shop in shops], axis=1) / (7 * 365 / 2)
    # a week has 365 waves in 7 years, and a year has 7; both are 1 high
    np.testing.assert_allclose(abs(waves[:, [7, 365]]), 1, atol=0.02)
    rest = np.delete(waves, [7, 365], axis=1)
    noise = np.sqrt((abs(rest) ** 2).sum(axis=1) / 2)
    np.testing.assert_allclose(noise, 0.2, rtol=0.05)
    # shops are spread over the week: the first and the last agree, the middle one is half off
    first, middle, last = np.angle(waves[:, 365])
    assert np.cos(first - last) > 0.99 and np.cos(first - middle) < -0.99


@needs_darts
@pytest.mark.long
def test_the_lessons_plain_module_forecasts_what_darts_forecasts(lesson):
    from darts.models import NHiTSModel

    series = shop_sales(count=3, days=100)
    assert len({shop.values().tobytes() for shop in series}) == 3 and series[0].dtype == "float32"
    small = {"num_stacks": 1, "layer_widths": 8, "n_epochs": 1, "random_state": 1}
    model = NHiTSModel(28, 7, pl_trainer_kwargs=ONE_BATCH, **small).fit(series)
    expected = torch.from_numpy(model.predict(7, series=series[0]).values().flatten())
    past = torch.from_numpy(series[0].values()[-28:]).unsqueeze(0)
    with torch.no_grad():
        found = lesson["Forecaster"](model).eval()(past_target=past).flatten()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@needs_darts
@pytest.mark.long
@pytest.mark.parametrize("name", ["TFTModel", "RNNModel"])
def test_a_model_with_covariates_and_two_values_a_day_is_counted_on_its_own_window(lesson, name):
    import darts.models
    import pandas as pd
    from darts.utils.timeseries_generation import datetime_attribute_timeseries

    series = shop_sales(count=2, days=60)
    days = [datetime_attribute_timeseries(shop, "dayofweek", dtype=np.float32) for shop in series]
    size = pd.DataFrame({"size": np.ones(1, np.float32)})
    series = [
        shop.stack(shop.with_columns_renamed("0", "b")).with_static_covariates(size)
        for shop in series
    ]
    steps = {"training_length": 21} if name == "RNNModel" else {"output_chunk_length": 7}
    model = getattr(darts.models, name)(
        input_chunk_length=14, n_epochs=1, pl_trainer_kwargs=ONE_BATCH, **steps
    )
    model.fit(series, future_covariates=days)
    window, network = lesson["one_window"](model), lesson["Forecaster"](model)
    assert window["past_target"].shape[0] == 1 and window["future_covariates"].shape[0] == 1
    forecasts = network(**{part: value.repeat(3, 1, 1) for part, value in window.items()})
    assert forecasts.shape[:3] == (3, *window["future_target"].shape[1:])
    assert count_work(network, window, batch=5).batch == 5


def test_a_missing_darts_is_a_sentence_with_the_fix(monkeypatch):
    monkeypatch.setitem(sys.modules, "darts.models", None)
    assert no_darts().startswith("Darts is not here")
    assert 'set_up(extra="darts")' in no_darts()


@pytest.mark.slow
def test_the_lesson_runs_from_top_to_bottom_without_darts(tmp_path):
    nbclient = pytest.importorskip("nbclient")
    (tmp_path / "darts.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'darts'\", name='darts')\n"
    )
    notebook = nbformat.read(LESSON, 4)
    path = os.pathsep.join([str(tmp_path), str(ROOT), str(ROOT / "notebooks")])
    env = {**os.environ, "PYTHONPATH": path}
    nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    ).execute(env=env)
    marked = [cell for cell in notebook.cells if cell.source.startswith("%%needs Darts")]
    assert len(marked) > 10
    for cell in marked:
        assert "This cell needs Darts, but Darts is not here" in "".join(
            one.get("text", "") for one in cell.outputs
        )


def test_the_published_picture_divides_the_seconds_of_darts_own_table(drawn):
    said = draw_published().alt
    assert "N-BEATS, batch 1,024: 10 (17 with workers)" in said  # 28.4 / 2.8 and 27.4 / 1.65 s
    assert "TFT, batch 1,024: 0.78 (1.0 with workers)" in said  # 31.9 / 41 and 31.9 / 31 s
    marks = {line.get_fillstyle(): [] for line in drawn[0].lines}
    for line in drawn[0].lines:
        marks[line.get_fillstyle()].append((line.get_xdata()[0], line.get_ydata()[0]))
    best = [(31.9 / 31, 4), (62.6 / 58, 3), (115 / 40.6, 2), (27.4 / 1.65, 1)]
    usual = [(31.9 / 41, 4), (70 / 73, 3), (117 / 41.5, 2), (28.4 / 2.8, 1), (1, 0)]
    np.testing.assert_allclose(marks["none"], best)
    np.testing.assert_allclose(marks["full"], usual)
    names = [label.get_text() for label in drawn[0].get_yticklabels()]
    assert dict(zip(drawn[0].get_yticks(), names, strict=True))[1] == "N-BEATS, batch 1,024"
    low, high = drawn[0].get_xlim()
    assert low < 31.9 / 41 and high > 27.4 / 1.65


def test_what_stays_on_the_cpu_is_in_both_ends_of_the_gain(drawn):
    step = (0.0152, 0.0025, 0.0008, 0.0091)  # whole, around the network, least, most
    assert gains(step) == pytest.approx((15.2 / 11.6, 15.2 / 3.3))
    assert "batch 32: 1.3 to 4.6 times" in draw_steps({"batch 32": step}, "T4").alt
    bars = [(bar.get_y() + 0.4, bar.get_x(), bar.get_width()) for bar in drawn[0].patches]
    around, least, most = (100 * part / 0.0152 for part in step[1:])
    # with the GPU: what stays, the least, and up to the most
    there = [(-1, 0, around), (-1, around, least), (-1, around + least, most - least)]
    here = [(0, 0, around), (0, around, 100 - around)]
    np.testing.assert_allclose(sorted(bars), [*there, *here], atol=1e-9)
    assert [times_text(times) for times in (0.251, 1, 23.4)] == ["0.25", "1.0", "23"]


@needs_darts
def test_what_the_trainer_does_around_the_network_is_counted_apart_from_it():
    import pytorch_lightning as pl
    from darts.models import NLinearModel

    class SlowTrainer(pl.Callback):
        def on_train_batch_start(self, *_):
            time.sleep(0.05)

        def on_before_zero_grad(self, *_):
            time.sleep(0.05)

    names = {"torch": torch, "pl": pl, "np": np, "time": time}
    cells = {cell.id: cell.source for cell in nbformat.read(LESSON, 4).cells}
    exec(cells["10-clock"].replace("%%needs Darts", ""), names)
    clock = names["Clock"]()
    trainer = {**ONE_BATCH, "callbacks": [clock, SlowTrainer()], "limit_train_batches": 5}
    NLinearModel(56, 14, n_epochs=1, pl_trainer_kwargs=trainer).fit(shop_sales(count=3))
    whole, network = np.median(np.diff(clock.steps, axis=0), axis=0)
    assert whole - network >= 0.1 and network > 0


@needs_darts
def test_windows_of_every_stride_in_the_lesson_begin_on_every_weekday():
    from darts.utils.data import SequentialTorchTrainingDataset

    text = "\n".join(cell.source for cell in nbformat.read(LESSON, 4).cells)
    advised = {int(number) for number in re.findall(r"or `stride=(\d+)`", text)}
    assert advised
    (shop,) = shop_sales(count=1)
    weekdays = shop.with_values(shop.time_index.dayofweek.to_numpy(np.float32)[:, None, None])

    def starts(stride: int) -> set[float]:
        windows = SequentialTorchTrainingDataset(
            weekdays, input_chunk_length=56, output_chunk_length=14, stride=stride
        )
        return {float(windows[index].past_target[0, 0]) for index in range(len(windows))}

    assert len(starts(7)) == 1
    assert all(len(starts(stride)) == 7 for stride in advised)


@needs_darts
@pytest.mark.slow
def test_with_ddp_each_process_runs_the_script_and_with_spawn_only_one_ends_it(tmp_path):
    cells = [cell.source for cell in nbformat.read(LESSON, 4).cells]
    (script,) = [text for text in cells if text.startswith("%%writefile train_darts.py")]
    (tmp_path / "train_darts.py").write_text(script.partition("\n")[2])
    for strategy, lines in (("ddp", 2), ("ddp_spawn", 1)):
        command = ["train_darts.py", "--accelerator", "cpu", "--strategy", strategy]
        done = python(*command, cwd=tmp_path, fresh=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("2 processes trained, and this one forecast 14 days") == lines, (
            strategy
        )
