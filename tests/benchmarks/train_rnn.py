"""Steps a second of one training: the course's plain loop, bare PyTorch, Lightning, Darts, and
torch.compile.

    python tests/benchmarks/train_rnn.py [--threads 1] [--repeats 5] [--json FILE]

Every way trains the 481-parameter RNN on the same 101 windows of AirPassengers in batches of 16,
with the same number of threads, in turn, several times over; the medians are compared. Each figure
is the steady state: start-up and compilation come before the clock starts, and compilation is
reported apart.
"""

import argparse
import concurrent.futures
import contextlib
import datetime
import io
import json
import logging
import multiprocessing
import os
import platform
import statistics
import tempfile
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import torch
from course_lessons.data.models import AirRNN
from course_lessons.data.series import Scale, ShuffledBatches, air_passengers, make_windows
from course_lessons.lightning_training import EpochBar, Regression
from course_lessons.plain_training import train_plain
from torch.utils.data import DataLoader, TensorDataset

from course_utils.hardware.machine import cpu_name
from course_utils.lightning import pl, trainer_kwargs

EPOCHS = 60
BATCH = 16
mse = torch.nn.functional.mse_loss

SERIES = air_passengers()[0]
INPUTS, TARGETS = make_windows(Scale.fit(SERIES).apply(SERIES), 20)
STEPS = EPOCHS * len(ShuffledBatches(len(INPUTS), BATCH))


def seeded_model() -> AirRNN:
    torch.manual_seed(42)
    return AirRNN()


def clock(work) -> float:
    """Return steps a second of `work()`, which trains for EPOCHS epochs."""
    start = time.perf_counter()
    work()
    return STEPS / (time.perf_counter() - start)


def plain_loop() -> float:
    model, batches = seeded_model(), ShuffledBatches(len(INPUTS), BATCH)
    return clock(lambda: train_plain(model, INPUTS, TARGETS, batches=batches, epochs=EPOCHS))


def loop_over(batches_of_epoch, model, optimizer, loss_of=None, step=None) -> float:
    loss_of = loss_of or (lambda x, y: mse(model(x), y))
    step = step or optimizer.step

    def work():
        for _ in range(EPOCHS):
            for x, y in batches_of_epoch():
                loss_of(x, y).backward()
                step()
                optimizer.zero_grad()

    return clock(work)


def prebatched() -> list:
    return [(INPUTS[i], TARGETS[i]) for i in torch.randperm(len(INPUTS)).split(BATCH)]


def bare_loop(fused: bool) -> float:
    model, batches = seeded_model(), prebatched()
    return loop_over(
        lambda: batches, model, torch.optim.Adam(model.parameters(), lr=1e-3, fused=fused)
    )


def dataloader_loop() -> float:
    model = seeded_model()
    loader = DataLoader(TensorDataset(INPUTS, TARGETS), batch_size=BATCH, shuffle=True)
    return loop_over(lambda: loader, model, torch.optim.Adam(model.parameters(), lr=1e-3))


class Compiled:
    """Loss and optimizer step under torch.compile, compiled once; the RNN is unrolled by the
    compiler.

    The compiler's cache is a new folder: code that it kept from a run with another thread count
    runs slowly here.
    """

    def __init__(self, folder: str):
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        torch._dynamo.config.allow_rnn = True
        torch._dynamo.reset()
        self.model = seeded_model()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)
        self.loss_of = torch.compile(lambda x, y: mse(self.model(x), y), dynamic=False)
        self.step = torch.compile(self.optimizer.step)
        self.batches = prebatched()
        start = time.perf_counter()
        for x, y in self.batches * 2:  # two shapes: full batches and the short one
            self.loss_of(x, y).backward()
            self.step()
            self.optimizer.zero_grad()
        self.compile_s = time.perf_counter() - start

    def __call__(self) -> float:
        return loop_over(lambda: self.batches, self.model, self.optimizer, self.loss_of, self.step)


def compile_seconds(folder: str, threads: int) -> float:
    """Return how long a process that starts now waits for its compiled step."""
    torch.set_num_threads(threads)
    return Compiled(folder).compile_s


def in_new_process(work, folder: str) -> float:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(work, folder, torch.get_num_threads()).result()


class StepLogged(pl.LightningModule):
    """What most people write: a loss logged in every step, and the default Adam."""

    def __init__(self):
        super().__init__()
        self.model = seeded_model()

    def training_step(self, batch, batch_index):
        loss = mse(self.model(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=False, on_epoch=True, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Silent(StepLogged):
    """The same without logging."""

    def training_step(self, batch, batch_index):
        return mse(self.model(batch[0]), batch[1])


class FirstStepClock(pl.Callback):
    """Leaves the Trainer's start-up out of the clock, as the other ways leave theirs out."""

    def on_train_start(self, *_):
        self.start = time.perf_counter()

    def on_train_end(self, *_):
        self.rate = STEPS / (time.perf_counter() - self.start)


def fit(module, loader, **kwargs) -> float:
    watch = FirstStepClock()
    callbacks = [watch, *kwargs.pop("callbacks", [])]
    trainer = pl.Trainer(**trainer_kwargs("cpu"), max_epochs=EPOCHS, callbacks=callbacks, **kwargs)
    trainer.fit(module, loader)
    return watch.rate


def lightning_default(folder: str) -> float:
    loader = DataLoader(TensorDataset(INPUTS, TARGETS), batch_size=BATCH, shuffle=True)
    return fit(StepLogged(), loader, default_root_dir=folder)


def course_loader() -> DataLoader:
    return DataLoader(
        TensorDataset(INPUTS, TARGETS), sampler=ShuffledBatches(len(INPUTS), BATCH), batch_size=None
    )


def lightning_lesson(folder: str) -> float:
    quiet = {"enable_progress_bar": False, "enable_checkpointing": False, "callbacks": [EpochBar()]}
    logger = pl.loggers.TensorBoardLogger(folder)
    return fit(Regression(seeded_model()), course_loader(), logger=logger, **quiet)


def lightning_bare(folder: str) -> float:
    off = {
        "enable_progress_bar": False,
        "enable_checkpointing": False,
        "logger": False,
        "enable_model_summary": False,
    }
    return fit(
        Silent(), DataLoader(TensorDataset(INPUTS, TARGETS), batch_size=BATCH, shuffle=True), **off
    )


def darts_default(folder: str) -> float:
    import pandas as pd
    import pytorch_lightning
    from darts import TimeSeries
    from darts.models import RNNModel

    class Watch(pytorch_lightning.Callback):
        on_train_start, on_train_end = FirstStepClock.on_train_start, FirstStepClock.on_train_end

    watch = Watch()
    months = pd.date_range("1949-01", periods=len(SERIES), freq="MS")
    scaled = Scale.fit(SERIES).apply(SERIES).numpy()
    model = RNNModel(
        model="RNN",
        hidden_dim=20,
        batch_size=BATCH,
        n_epochs=EPOCHS,
        optimizer_kwargs={"lr": 1e-3},
        random_state=42,
        training_length=20,
        input_chunk_length=14,
        work_dir=folder,
        pl_trainer_kwargs={"accelerator": "cpu", "callbacks": [watch]},
    )
    model.fit(TimeSeries.from_times_and_values(months, scaled))
    assert model.trainer.global_step == STEPS, (
        f"Darts took {model.trainer.global_step} steps, the others {STEPS}"
    )
    return watch.rate


def ways(folder: str) -> dict:
    """Return each way of training by name, slowest first; Darts only where it is installed."""
    found = {
        "Lightning, defaults": lambda: lightning_default(folder),
        "Lightning, bare": lambda: lightning_bare(folder),
        "Lightning, as in lesson 1": lambda: lightning_lesson(folder),
        "plain loop, DataLoader": dataloader_loop,
        "pre-batched": lambda: bare_loop(False),
        "pre-batched, fused Adam": lambda: bare_loop(True),
        "plain loop of lesson 1": plain_loop,
    }
    try:
        version("darts")
    except ModuleNotFoundError:
        return found
    return {"Darts": lambda: darts_default(folder), **found}


def measure(repeats: int, folder: str) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return steps a second of every repeat of every way, taken in turn, and the seconds of
    compilation.
    """
    compile_s = {start: in_new_process(compile_seconds, folder) for start in ("cold", "from_cache")}
    compiled = Compiled(folder)
    each = {**ways(folder), "loss and step under torch.compile": compiled}
    rates: dict[str, list[float]] = {name: [] for name in each}
    for name in each:
        each[name]()  # warm: imports, allocators, caches
    for turn in range(repeats):
        for name in list(each)[:: 1 if turn % 2 == 0 else -1]:
            rates[name].append(each[name]())
    return rates, compile_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--threads", type=int, default=1, help="CPU threads for every way (default: 1)"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", help="write the result here")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    for name in ("lightning.pytorch", "pytorch_lightning", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        rates, compile_s = measure(options.repeats, folder)

    medians = {name: statistics.median(values) for name, values in rates.items()}
    base_name = "Darts" if "Darts" in rates else "Lightning, defaults"
    print(
        f"{cpu_name()}, {options.threads} threads, {options.repeats} alternating repeats of "
        f"{STEPS} steps"
    )
    print(f"{'':36}{'steps/s':>8}  (min - max)      times {base_name}")
    for name, values in rates.items():
        # Paired: each repeat against the base of the same turn, so that a slow minute does not
        # decide.
        ratio = statistics.median(
            mine / base for mine, base in zip(values, rates[base_name], strict=True)
        )
        print(
            f"{name:36}{medians[name]:8.0f}  ({min(values):.0f} - {max(values):.0f})  {ratio:10.2f}"
        )
    pairs = zip(rates["plain loop of lesson 1"], rates["pre-batched, fused Adam"], strict=True)
    print(
        "plain loop of lesson 1 / bare loop, pre-batched, fused Adam: "
        f"{statistics.median(a / b for a, b in pairs):.3f}"
    )
    fast, plain = medians["loss and step under torch.compile"], medians["plain loop of lesson 1"]
    for start, seconds in compile_s.items():
        print(
            f"compiling {start}: {seconds:.0f} s, which pays after "
            f"{seconds / (1 / plain - 1 / fast):.0f} steps"
        )

    if options.json:
        record = {
            "what": "steps a second of the 481-parameter RNN on AirPassengers, batch 16",
            "command": f"python tests/benchmarks/train_rnn.py --threads {options.threads} "
            "--repeats {options.repeats}",
            "device": cpu_name(),
            "threads": options.threads,
            "date": datetime.date.today().isoformat(),
            "versions": {"python": platform.python_version()}
            | {
                name: version(name)
                for name in ("torch", "lightning", "darts")
                if name != "darts" or "Darts" in rates
            },
            "steps_per_s": rates,
            "compile_s": compile_s,
        }
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
