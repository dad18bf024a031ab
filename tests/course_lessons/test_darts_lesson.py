import inspect
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from course_lessons.darts import forecasters
from course_lessons.darts.forecasters import GUIDE, ONE_BATCH, air_series, darts_problem
from course_lessons.darts.pictures import Gain, draw_gains, times_text
from course_lessons.data.series import AIR_PASSENGERS

from course_tools.estimate import count_work, find_chip

needs_darts = pytest.mark.skipif(darts_problem() is not None, reason=str(darts_problem()))
ROOT = Path(__file__).resolve().parents[2]
# Darts hands Lightning an empty list of validation sets, which it remarks upon; pinned memory needs
# a GPU. All models of Darts share the loss that is its default, which a forecast leaves in the mode
# of evaluation.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*across ranks is zero"),
    pytest.mark.filterwarnings("ignore:.*'pin_memory' argument is set"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:Found .* in eval mode at the start of training"),
]


@needs_darts
def test_the_series_are_those_of_the_course_with_their_dates():
    train, test = air_series()
    assert [*train.values().flatten(), *test.values().flatten()] == list(AIR_PASSENGERS)
    assert (len(train), len(test)) == (121, 23)
    assert str(train.end_time().date()) == "1959-01-01"
    assert train.dtype == "float32"


@needs_darts
def test_a_large_model_as_a_plain_module_forecasts_what_darts_forecasts():
    from darts.models import NHiTSModel

    shops = forecasters.many_series(count=3, days=100)
    assert len({shop.values().tobytes() for shop in shops}) == 3 and shops[0].dtype == "float32"
    model = NHiTSModel(
        28, 7, n_epochs=1, num_stacks=1, layer_widths=8, random_state=1, pl_trainer_kwargs=ONE_BATCH
    )
    model.fit(shops)
    network = forecasters.Forecaster(model).eval()
    expected = model.predict(7, series=shops[0]).values().flatten()
    with torch.no_grad():
        found = network(
            past_target=torch.from_numpy(shops[0].values()[-28:]).unsqueeze(0)
        ).flatten()
    torch.testing.assert_close(found, torch.from_numpy(expected), rtol=0, atol=1e-5)


@needs_darts
@pytest.mark.parametrize("name", ["TFTModel", "RNNModel"])
def test_a_model_with_covariates_and_two_values_a_day_is_run_and_counted_on_its_own_windows(name):
    import darts.models
    import numpy as np
    import pandas as pd
    from darts.utils.timeseries_generation import datetime_attribute_timeseries

    shops = forecasters.many_series(count=2, days=60)
    days = [datetime_attribute_timeseries(shop, "dayofweek", dtype=np.float32) for shop in shops]
    size = pd.DataFrame({"size": np.ones(1, np.float32)})
    shops = [
        shop.stack(shop.with_columns_renamed("0", "b")).with_static_covariates(size)
        for shop in shops
    ]
    steps = {"training_length": 21} if name == "RNNModel" else {"output_chunk_length": 7}
    model = getattr(darts.models, name)(
        input_chunk_length=14, n_epochs=1, pl_trainer_kwargs=ONE_BATCH, **steps
    )
    model.fit(shops, future_covariates=days)
    window, network = forecasters.one_window(model), forecasters.Forecaster(model)
    assert window["past_target"].shape[0] == 1 and window["future_covariates"].shape[0] == 1
    forecasts = network(**{part: value.repeat(3, 1, 1) for part, value in window.items()})
    # as many steps as in training, RNN or not
    assert forecasts.shape[:3] == (3, *window["future_target"].shape[1:])
    assert count_work(network, window, batch=5).batch == 5


def test_a_missing_darts_is_a_sentence_with_the_fix(monkeypatch):
    monkeypatch.setitem(sys.modules, "darts.models", None)
    assert darts_problem().startswith("Darts is not here")
    assert 'set_up("darts")' in darts_problem()


@pytest.mark.process
def test_the_lesson_runs_from_top_to_bottom_without_darts(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    (tmp_path / "darts.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'darts'\", name='darts')\n"
    )
    notebook = nbformat.read(ROOT / "notebooks" / "10_darts.ipynb", 4)
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


@needs_darts
def test_the_tft_has_the_shape_of_the_published_one():
    model = forecasters.nvidia_tft()
    window = forecasters.one_window(model)
    assert window["past_target"].shape == (1, 168, 1)
    assert window["future_covariates"].shape == (1, 24, 3)
    with torch.no_grad():
        forecast = forecasters.Forecaster(model)(**window)
    assert forecast.shape == (1, 24, 1, 3)  # three quantiles


@needs_darts
def test_the_estimates_of_the_tft_are_within_a_factor_of_two_of_the_published_rates():
    model = forecasters.nvidia_tft()
    for rate in forecasters.PUBLISHED_TFT:
        if rate.gpus == 1:
            chip = find_chip(rate.device)
            step = forecasters.estimated(model, 1024, chip, rate.precision)
            assert 0.5 < 1024 / step.total_s / rate.windows_per_s < 2, rate


@needs_darts
def test_a_training_step_changes_the_weights_of_the_model():
    model = forecasters.guide_rnn()
    assert sum(parameter.numel() for parameter in model.model.parameters()) == 481
    before = {name: value.clone() for name, value in model.model.state_dict().items()}
    forecasters.training_step(model, batch=3)()
    assert any(not before[name].equal(value) for name, value in model.model.state_dict().items())


def test_the_picture_names_each_forecaster_with_its_factor():
    gains = [Gain("small", 1000, 250), Gain("large", 10, 4800, published=True)]
    said = draw_gains(gains, "A100").alt
    assert "small: 0.25 times" in said and "large: 480 times" in said


@pytest.mark.parametrize(
    ("times", "text"), [(0.251, "0.25"), (1, "1.0"), (23.4, "23"), (4812, "4,810")]
)
def test_a_factor_is_written_with_two_or_three_digits(times, text):
    assert times_text(times) == f"{text} times"


def script_of_the_lesson() -> str:
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(ROOT / "notebooks" / "10_darts.ipynb", 4)
    written = [cell.source for cell in notebook.cells if cell.source.startswith("%%writefile")]
    return written[0].partition("\n")[2]


@needs_darts
@pytest.mark.process
def test_with_ddp_each_process_runs_the_script_and_with_spawn_only_one_ends_it(tmp_path):
    (tmp_path / "train_darts.py").write_text(script_of_the_lesson())
    for strategy, lines in (("ddp", 2), ("ddp_spawn", 1)):
        command = [sys.executable, "train_darts.py", "--accelerator", "cpu", "--strategy", strategy]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("2 processes trained, one forecast 23 months") == lines, strategy


def test_the_guides_arguments_are_arguments_of_the_model():
    models = pytest.importorskip("darts.models", reason="Darts is not installed")
    known = inspect.signature(models.RNNModel.__init__).parameters.keys()
    # taken by the base class as **kwargs
    named = {"batch_size", "n_epochs", "optimizer_kwargs", "random_state"}
    assert GUIDE.keys() - named <= known


def test_a_step_is_timed_with_one_thread_and_with_all_and_the_faster_counts(monkeypatch):
    # a stand-in for the timer: 3 s with one thread, 2 s with all four
    taken = {1: 3.0, 4: 2.0}
    monkeypatch.setattr(forecasters, "ALL_THREADS", 4)
    monkeypatch.setattr(forecasters, "training_step", lambda model, batch: None)
    monkeypatch.setattr(
        forecasters,
        "time_call",
        lambda step, device, threads, max_s: SimpleNamespace(median_s=taken[threads]),
    )
    assert forecasters.measured_s(None, batch=32) == 2.0
    taken[1] = 1.0
    assert forecasters.measured_s(None, batch=32) == 1.0
