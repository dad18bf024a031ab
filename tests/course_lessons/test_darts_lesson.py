import inspect
import os
import sys
from pathlib import Path

import pytest
import torch
from course_lessons import darts as darts_lesson
from course_lessons.darts import (
    GUIDE,
    QUIET,
    DartsNetwork,
    air_series,
    darts_order,
    darts_problem,
)

from course_utils.data.models import count_parameters
from course_utils.data.series import AIR_PASSENGERS, Scale, air_passengers, make_windows

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


def windows_of_the_course():
    series, _ = air_passengers()
    return make_windows(Scale.fit(series).apply(series), GUIDE["training_length"])


@pytest.fixture(scope="module")
def fitted():
    """The guide's model after two epochs of batches in a known order, with the windows that Darts
    cut.
    """
    import pytorch_lightning
    from darts.dataprocessing.transformers import Scaler
    from darts.models import RNNModel

    from course_utils.lightning import trainer_kwargs

    class Windows(pytorch_lightning.Callback):
        def on_train_end(self, trainer, pl_module):
            self.windows = trainer.train_dataloader.dataset

    seen = Windows()
    kwargs = {**trainer_kwargs("cpu", package=pytorch_lightning), **QUIET, "callbacks": [seen]}
    model = RNNModel(**{**GUIDE, "n_epochs": 2}, pl_trainer_kwargs=kwargs)
    scaled = Scaler().fit_transform(air_series()[0])
    model.fit(scaled, dataloader_kwargs={"generator": torch.Generator().manual_seed(42)})
    return model, seen.windows


@needs_darts
def test_the_series_are_those_of_the_course_with_their_dates():
    train, test = air_series()
    assert [*train.values().flatten(), *test.values().flatten()] == list(AIR_PASSENGERS)
    assert (len(train), len(test)) == (121, 23)
    assert str(train.end_time().date()) == "1959-01-01"
    assert train.dtype == "float32"


@needs_darts
def test_the_network_has_the_parts_and_the_parameters_of_the_one_in_darts(fitted):
    model, _ = fitted
    network = DartsNetwork()
    network.load_state_dict(model.model.state_dict())  # strict: the same names and shapes
    assert (
        count_parameters(network)
        == sum(parameter.numel() for parameter in model.model.parameters())
        == 481
    )


@needs_darts
def test_the_windows_are_those_of_darts_from_the_end_of_the_series(fitted):
    _, windows = fitted
    inputs, targets = windows_of_the_course()
    assert len(windows) == len(inputs) == 101
    for number in range(101):
        sample = windows[number]
        torch.testing.assert_close(inputs[100 - number], torch.from_numpy(sample.past_target))
        torch.testing.assert_close(targets[100 - number], torch.from_numpy(sample.future_target))


@needs_darts
def test_the_plain_loop_makes_the_weights_that_darts_makes(fitted):
    from course_utils.plain_training import train_plain

    model, _ = fitted
    network = DartsNetwork()
    network.load_state_dict(darts_lesson.untrained().model.state_dict())
    before = {name: value.clone() for name, value in network.state_dict().items()}
    inputs, targets = windows_of_the_course()
    train_plain(network, inputs, targets, batches=darts_order(101, 16, seed=42), epochs=2)
    for name, value in model.model.state_dict().items():
        torch.testing.assert_close(network.state_dict()[name], value, rtol=0, atol=1e-5)
        assert not torch.allclose(before[name], value, atol=1e-4)


@needs_darts
def test_an_untrained_model_has_the_weights_that_a_trained_one_started_from():
    one, two = (darts_lesson.untrained().model.state_dict() for _ in range(2))
    other = darts_lesson.untrained(random_state=1).model.state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(one["V.weight"], other["V.weight"])


@needs_darts
def test_weights_that_were_put_back_forecast_in_darts():
    network, model = DartsNetwork(), darts_lesson.untrained()
    model.model.load_state_dict(network.state_dict())
    train, _ = air_series()
    history = train[-14:]
    forecast = model.predict(1, series=history / 500)
    with torch.no_grad():
        expected = network(torch.from_numpy((history / 500).values()).unsqueeze(0))[0, -1, 0]
    assert forecast.values().item() == pytest.approx(expected.item(), abs=1e-6)


@needs_darts
def test_a_large_model_as_a_plain_module_forecasts_what_darts_forecasts():
    from darts.models import NHiTSModel

    shops = darts_lesson.many_series(count=3, days=100)
    assert len({shop.values().tobytes() for shop in shops}) == 3 and shops[0].dtype == "float32"
    off = {**QUIET, "accelerator": "cpu", "limit_train_batches": 0}
    model = NHiTSModel(
        28, 7, n_epochs=1, num_stacks=1, layer_widths=8, random_state=1, pl_trainer_kwargs=off
    )
    model.fit(shops)
    network = darts_lesson.Forecaster(model).eval()
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

    shops = darts_lesson.many_series(count=2, days=60)
    days = [datetime_attribute_timeseries(shop, "dayofweek", dtype=np.float32) for shop in shops]
    size = pd.DataFrame({"size": np.ones(1, np.float32)})
    shops = [
        shop.stack(shop.with_columns_renamed("0", "b")).with_static_covariates(size)
        for shop in shops
    ]
    steps = {"training_length": 21} if name == "RNNModel" else {"output_chunk_length": 7}
    on_cpu = {**QUIET, "accelerator": "cpu", "limit_train_batches": 1}
    model = getattr(darts.models, name)(
        input_chunk_length=14, n_epochs=1, pl_trainer_kwargs=on_cpu, **steps
    )
    model.fit(shops, future_covariates=days)
    window, network = darts_lesson.one_window(model), darts_lesson.Forecaster(model)
    assert window["past_target"].shape[0] == 1 and window["future_covariates"].shape[0] == 1
    forecasts = network(**{part: value.repeat(3, 1, 1) for part, value in window.items()})
    # as many steps as in training, RNN or not
    assert forecasts.shape[:3] == (3, *window["future_target"].shape[1:])
    assert darts_lesson.count_work(network, window, batch=5).batch == 5


def test_the_order_holds_every_window_once_an_epoch_and_changes():
    order = darts_order(101, 16, seed=3)
    first, second = ([int(index) for batch in order for index in batch] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(101))
    assert first != second


def test_a_missing_darts_is_a_sentence_with_the_fix(monkeypatch):
    monkeypatch.setitem(sys.modules, "darts.models", None)
    assert darts_problem().startswith("Darts is not here")
    assert "%run -m course_lessons.setup darts" in darts_problem()


def test_the_lesson_runs_from_top_to_bottom_without_darts(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    (tmp_path / "darts.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'darts'\", name='darts')\n"
    )
    notebook = nbformat.read(ROOT / "notebooks" / "08_darts.ipynb", 4)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
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


def test_the_guides_arguments_are_arguments_of_the_model():
    models = pytest.importorskip("darts.models", reason="Darts is not installed")
    known = inspect.signature(models.RNNModel.__init__).parameters.keys()
    # taken by the base class as **kwargs
    named = {"batch_size", "n_epochs", "optimizer_kwargs", "random_state"}
    assert GUIDE.keys() - named <= known
