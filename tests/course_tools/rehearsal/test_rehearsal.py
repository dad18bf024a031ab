"""Training loops of other packages on a simulated GPU: they end with the weights of the CPU."""

import contextlib

import numpy as np
import pytest
import torch
from torch import nn

from course_tools.rehearsal import rehearse

# Of Lightning and Darts: workers, empty lists of validation sets, and pinned memory on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")
QUIET = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


def on(kind):
    return rehearse("cuda") if kind == "gpu" else contextlib.nullcontext()


def weights_of(network):
    return {name: each.detach().cpu().clone() for name, each in network.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def with_lightning(kind, folder, precision):
    pl = pytest.importorskip("lightning.pytorch")

    class Training(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
            self.seen = []

        def training_step(self, batch, _):
            rows, targets = batch
            self.seen.append((rows.device.type, torch.is_autocast_enabled("cuda")))
            return nn.functional.mse_loss(self.network(rows), targets)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)

    with on(kind):
        torch.manual_seed(0)
        training = Training()
        data = torch.utils.data.TensorDataset(torch.rand(24, 4), torch.rand(24, 1))
        trainer = pl.Trainer(
            accelerator=kind,
            devices=1,
            precision=precision,
            max_epochs=2,
            gradient_clip_val=1.0,
            default_root_dir=folder,
            **QUIET,
        )
        trainer.fit(training, torch.utils.data.DataLoader(data, batch_size=8))
        return weights_of(training), training.seen, trainer


@pytest.mark.slow
def test_lightning_trains_to_the_cpus_weights_and_in_sixteen_bits_close_to_them(tmp_path):
    plain, _, _ = with_lightning("cpu", tmp_path, "32-true")
    found, seen, _ = with_lightning("gpu", tmp_path, "32-true")
    assert same(found, plain) and set(seen) == {("cuda", False)}
    mixed, seen, trainer = with_lightning("gpu", tmp_path, "16-mixed")
    assert set(seen) == {("cuda", True)} and trainer.scaler.get_scale() > 1
    assert all(torch.allclose(mixed[name], plain[name], atol=0.02) for name in plain)
    assert not same(mixed, plain)


@pytest.mark.slow
def test_darts_trains_to_the_cpus_weights_and_forecasts(tmp_path):
    pytest.importorskip("darts")
    from darts import TimeSeries
    from darts.models import NBEATSModel

    values = np.sin(np.arange(48) / 5).astype(np.float32)
    series = TimeSeries.from_values(values)

    def fit(kind):
        with on(kind):
            model = NBEATSModel(
                input_chunk_length=12,
                output_chunk_length=4,
                num_stacks=1,
                num_blocks=1,
                layer_widths=8,
                n_epochs=1,
                batch_size=8,
                random_state=1,
                work_dir=str(tmp_path),
                pl_trainer_kwargs={"accelerator": kind, "devices": 1, **QUIET},
            )
            forecast = model.fit(series).predict(4).values()
            return next(model.model.parameters()).device, weights_of(model.model), forecast

    plain, found = fit("cpu"), fit("gpu")
    assert same(found[1], plain[1]) and np.array_equal(found[2], plain[2])


@pytest.mark.slow
def test_the_trainer_of_transformers_trains_to_the_cpus_weights(
    tmp_path, monkeypatch, transformers
):
    monkeypatch.setenv("USE_TORCH_XLA", "0")  # Accelerate prefers it to the CPU
    pytest.importorskip("accelerate")
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    draw = torch.Generator().manual_seed(0)
    rows = [
        {
            "input_ids": torch.randint(0, 50, (8,), generator=draw),
            "attention_mask": torch.ones(8, dtype=torch.long),
            "labels": torch.tensor(index % 2),
        }
        for index in range(16)
    ]

    def train(kind, **options):
        with on(kind):
            torch.manual_seed(0)
            network = transformers.BertForSequenceClassification(config)
            arguments = transformers.TrainingArguments(
                str(tmp_path / kind),
                per_device_train_batch_size=4,
                max_steps=3,
                report_to=[],
                save_strategy="no",
                disable_tqdm=True,
                use_cpu=kind == "cpu",
                **options,
            )
            trainer = transformers.Trainer(network, arguments, train_dataset=rows)
            trainer.train()
            assert next(network.parameters()).device.type == ("cuda" if kind == "gpu" else "cpu")
            return weights_of(network)

    plain = train("cpu")
    assert same(train("gpu"), plain)
    assert same(train("gpu", gradient_checkpointing=True), plain)
