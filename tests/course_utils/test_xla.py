import os
import platform
import re
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
import torch_xla_stand_ins as stand_ins
from course_lessons.data.models import AirRNN
from course_lessons.data.series import Scale, ShuffledBatches, air_passengers, make_windows
from course_lessons.fast_adam import fast_adam
from start_python import python

from course_utils import Device, to_device, transfers, wait_for, xla
from course_utils.hardware import libpython
from course_utils.hardware.machine import tpu_chips
from course_utils.lightning import QUIET, trainer_kwargs
from course_utils.xla import (
    XLACounters,
    _fix,
    run_recorded,
    start_xla,
    started_xla,
    variable_default,
    xla_counters,
    xla_problem,
)

SERIES = air_passengers()[0]
WINDOWS, TARGETS = make_windows(Scale.fit(SERIES).apply(SERIES), 6)


def start(code: str, fresh: bool = False, **variables: str) -> subprocess.CompletedProcess:
    """Run code where no device of XLA was chosen, and the course's own warnings are errors."""
    strict = "import warnings; warnings.filterwarnings('error', '', UserWarning, 'course_utils')\n"
    return python("-c", strict + code, fresh=fresh, **{"PJRT_DEVICE": None, **variables})


# Importing


@pytest.mark.process
def test_importing_the_course_never_imports_torch_xla():
    names = ("course_utils.xla", "course_utils.timing", "course_utils.lightning")
    modules = ", ".join(("course_utils", *names, "course_lessons.tpu.exercises"))
    look = "course_lessons.tpu.pictures; print('torch_xla' in sys.modules)"
    done = start(f"import sys, {modules}, {look}")
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.slow
def test_importing_and_starting_xla_leaves_no_message_no_handler_and_no_choice_of_device(in_xla):
    code = """
import logging, os
from course_utils.xla import import_torch_xla, start_xla
import_torch_xla()
start_xla()
names = sorted(name for name in os.environ if name.startswith(("PJRT_DEV", "PJRT_SEL", "XLA_USE")))
print(names, logging.root.handlers)
"""
    done = start(code, fresh=True)
    assert (done.stdout.strip(), done.stderr) == ("[] []", "")


@pytest.mark.parametrize("lightning_imports_it", [False, True])
def test_a_trainer_leaves_pytorchs_own_layers_and_functions(in_xla, lightning_imports_it):
    code = """
import torch
from torch import nn
from course_utils.lightning import trainer_kwargs
from lightning.pytorch import Trainer
if LIGHTNING_IMPORTS_IT:
    Trainer(barebones=True, accelerator="cpu")
    assert nn.GRU.__module__.startswith("torch_xla"), "torch_xla replaces it no longer"
Trainer(**trainer_kwargs("cpu"), barebones=True)
places = (torch, nn, nn.functional, nn.init, nn.utils, nn.utils.rnn, torch.optim)
taken = [name for place in places for name, each in vars(place).items()
         if str(getattr(each, "__module__", "")).startswith("torch_xla")]
layer, rows = nn.GRU(4, 8, batch_first=True), torch.rand(2, 5, 4)
print(taken, "torch_xla" in __import__("sys").modules, list(layer(rows)[0].shape))
""".replace("LIGHTNING_IMPORTS_IT", str(lightning_imports_it))
    done = start(code, fresh=True)
    assert done.stdout.splitlines()[-1:] == ["[] True [2, 5, 8]"], done.stderr


def test_whether_xla_was_started_is_known_without_starting_it(in_xla):
    assert started_xla() is None
    assert in_xla(started_xla) == in_xla(start_xla) == torch.device("xla", 0)


@pytest.mark.skipif(
    torch.accelerator.is_available(),
    reason="an accelerator makes PyTorch prepare for a device anyway",
)
def test_starting_xla_after_a_backward_pass_says_what_to_do(in_xla):
    done = start(
        "import torch; torch.ones(1, requires_grad=True).sum().backward()\n"
        "from course_utils.xla import start_xla; start_xla()"
    )
    assert "RuntimeError: XLA was started too late" in done.stderr
    assert "Restart the kernel and call course_utils.start_xla() in the first cell." in done.stderr
    assert "Until then, name another device" in done.stderr


def test_a_default_of_a_variable_ends_with_its_block_and_a_given_value_stays(monkeypatch):
    monkeypatch.setenv("COURSE_TEST", "given")
    with variable_default("COURSE_TEST", "inside"):
        assert os.environ["COURSE_TEST"] == "given"
    assert os.environ["COURSE_TEST"] == "given"
    monkeypatch.delenv("COURSE_TEST")
    with pytest.raises(ZeroDivisionError), variable_default("COURSE_TEST", "inside"):
        assert os.environ["COURSE_TEST"] == "inside"
        raise ZeroDivisionError
    assert "COURSE_TEST" not in os.environ


# The pair of torch and torch_xla


PROBLEM = "from course_utils.xla import xla_problem; print(xla_problem())"


@pytest.mark.process
def test_a_torch_xla_with_an_undefined_symbol_is_one_sentence_with_the_fix(tmp_path):
    done = stand_ins.run(stand_ins.with_another_torch_xla(tmp_path / "site"), PROBLEM)
    assert re.fullmatch(
        rf"torch_xla 2\.8\.0 does not load with torch {re.escape(torch.__version__)} "
        rf"\(_XLAC\.[\w.-]+: undefined symbol: _ZN5torch\w*\): "
        rf"{re.escape(stand_ins.remedy())}.*\n",
        done.stdout,
    ), done.stdout + done.stderr


LACKS_LIBRARY = f"{libpython.NAME}: cannot open shared object file: No such file or directory"
INSTALL_LIBRARY = f"on Debian and Ubuntu: `sudo apt install {libpython.PACKAGE}`"


@pytest.mark.parametrize(
    ("release", "error", "has_library", "problem", "fix"),
    [
        (None, None, True, "is not installed here: ", "install"),
        (None, None, False, f"is not installed here: it needs {libpython.NAME}, so ", "install"),
        ("2.9.0", LACKS_LIBRARY, False, "2.9.0 does not load with torch ", None),
        ("2.7.1", None, True, f"2.7.1 was not built for torch {torch.__version__}: ", "replace"),
    ],
)
def test_what_is_wrong_with_torch_xla_is_one_sentence_with_the_fix(
    monkeypatch, release, error, has_library, problem, fix
):
    monkeypatch.setattr(xla.importlib.util, "find_spec", lambda name: release)
    monkeypatch.setattr(xla, "import_torch_xla", Mock(side_effect=error and ImportError(error)))
    monkeypatch.setattr(xla, "version_of", lambda package: release)
    monkeypatch.setattr(xla, "xla_matches_torch", lambda: release == "2.9.0")
    monkeypatch.setattr(xla, "load_libpython", lambda: has_library or None)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    said = xla_problem()
    assert said.startswith(f"torch_xla {problem}") and (INSTALL_LIBRARY in said) != has_library
    assert said.endswith(f"{_fix(fix)}." if fix else f"({INSTALL_LIBRARY}), and restart.")


@pytest.mark.slow
@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_a_trainer_for_the_cpu_trains_beside_a_torch_xla_that_does_not_load(tmp_path, package):
    code = (
        f"import {package} as pl; from course_utils.lightning import trainer_kwargs\n"
        "from lightning.pytorch.demos.boring_classes import BoringModel\n"
        "from pytorch_lightning.demos.boring_classes import BoringModel as Older\n"
        "trainer = pl.Trainer(**trainer_kwargs('cpu', package=pl), barebones=True, max_steps=1)\n"
        "trainer.fit(BoringModel() if pl.__name__ == 'lightning.pytorch' else Older())\n"
        "print(trainer.global_step)"
    )
    done = stand_ins.run(stand_ins.with_another_torch_xla(tmp_path / "site"), code)
    assert done.stdout.endswith("1\n"), done.stderr


@pytest.mark.parametrize(
    ("version", "system", "python", "advice"),
    [
        ("2.8.1+cpu", "Linux", (3, 13), "install it with `pip install torch_xla==2.8.0`, which"),
        ("2.11.0+cu128", "Linux", (3, 12), "no torch_xla was made for torch 2.11, so leave this"),
        ("2.9.0", "Darwin", (3, 12), "it has builds for Linux on x86-64 only"),
        ("2.9.0", "Linux", (3, 14), "it has builds for Python 3.11 to 3.13 only"),
    ],
)
def test_the_fix_never_touches_torch(monkeypatch, version, system, python, advice):
    monkeypatch.setattr(torch, "__version__", version)
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(sys, "version_info", python)
    assert _fix("install").startswith(advice)


@pytest.mark.parametrize("asked", ["TPU", "cpu"])
def test_a_pjrt_device_that_is_not_here_is_one_sentence_and_nothing_is_started(in_xla, asked):
    if asked == "TPU" and tpu_chips():
        pytest.skip("there is a TPU")
    sentence = f"PJRT_DEVICE is {asked!r}, but no such device was found: unset it, and restart."
    done = start(
        f"{PROBLEM}; from course_utils.xla import start_xla; start_xla()", PJRT_DEVICE=asked
    )
    assert done.stdout == f"{sentence}\n"
    assert done.stderr.endswith(f"RuntimeError: XLA cannot start: {sentence}\n")


@pytest.mark.parametrize(
    ("asked", "library", "rehearses", "tpus", "fine"),
    [
        ("CPU", "", True, 0, True),
        ("TPU", "", False, 4, True),
        ("TPU", "TPU_LIBRARY_PATH", False, 0, True),  # libtpu may see what we do not
        ("TPU", "PTXLA_TPU_LIBRARY_PATH", False, 0, True),
        ("TPU", "", False, 0, False),
        ("GPU", "TPU_LIBRARY_PATH", False, 0, False),
    ],
)
def test_a_device_of_pjrt_is_what_rehearses_or_a_tpu_that_somebody_sees(
    monkeypatch, asked, library, rehearses, tpus, fine
):
    for name in ("TPU_LIBRARY_PATH", "PTXLA_TPU_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PJRT_DEVICE", asked)
    if library:
        monkeypatch.setenv(library, "/usr/lib/libtpu.so")
    monkeypatch.setattr(xla, "can_rehearse", lambda: rehearses)
    monkeypatch.setattr(xla, "xla_tpus", lambda: ["TPU v5e"] * tpus)
    problem = xla._pjrt_problem()
    assert problem is None if fine else f"PJRT_DEVICE is {asked!r}" in problem


@pytest.mark.parametrize("chips", [["TPU v5e"], []])
def test_only_a_machine_with_a_tpu_has_it_named_for_whatever_comes_later(monkeypatch, chips):
    monkeypatch.setitem(sys.modules, "torch_xla", sys)
    monkeypatch.setattr(xla, "tpu_chips", lambda: chips)
    monkeypatch.setattr(xla, "load_libpython", lambda: None)
    monkeypatch.setenv("PJRT_DEVICE", "")  # what it is now comes back after the test
    monkeypatch.delenv("PJRT_DEVICE")
    assert xla.import_torch_xla.__wrapped__() is sys
    assert os.environ.get("PJRT_DEVICE") == ("TPU" if chips else None)


def test_the_counters_are_those_of_torch_xla_once_the_device_is_done(monkeypatch):
    """Its metrics are (how many, their sum) with times in nanoseconds; some have not begun."""
    ended = []
    metrics = {"CompileTime": (2, 3e9, ()), "ExecuteTime": (5, 1e9, ())}
    metrics |= {"ExecuteReplicatedTime": (7, 1e9, ()), "TransferToDeviceTime": (11, 1.0, ())}
    read = {"aten::_local_scalar_dense": 100, "aten::nonzero": 3, "aten::median": 4}
    debug = SimpleNamespace(
        metric_data=lambda name: metrics.get(name) if ended else None,
        executed_fallback_ops=lambda: list(read),
        counter_value=read.get,
    )
    core = SimpleNamespace(wait_device_ops=lambda: ended.append(True))
    for name in ("torch_xla", "torch_xla.core", "torch_xla.debug"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(xla_model=core, metrics=debug))
    monkeypatch.setattr(xla, "import_torch_xla", lambda: None)
    found = xla.xla_counters()
    assert found == xla.XLACounters(2, 3.0, 12, 11, 0, 7)
    assert (found - found).executions == 0


def test_waiting_for_xla_runs_what_was_recorded_and_a_copy_starts_it(monkeypatch):
    done, device = [], torch.device("xla", 0)
    core = SimpleNamespace(wait_device_ops=lambda: done.append("waited"))
    package = SimpleNamespace(sync=lambda: done.append("ran"), xla_model=core)
    for name in ("torch_xla", "torch_xla.core"):
        monkeypatch.setitem(sys.modules, name, package)
    wait_for(Device("xla", 0, "a TPU"))
    assert done == ["ran", "waited"]
    monkeypatch.setattr(transfers, "start_xla", lambda: done.append("started"))
    monkeypatch.setattr(transfers, "as_torch_device", lambda asked: device)
    assert to_device({"names": ["a"]}, "xla") == {"names": ["a"]}
    assert done[2:] == ["started"]


def test_the_pair_that_the_course_installs_has_no_problem(in_xla):
    assert in_xla(xla_problem) is None


# Counters


def count_a_program_three_times() -> list[XLACounters]:
    counts, device, start = [], torch.device("xla", 0), time.perf_counter()
    values = [torch.full((2, 3), float(n)).to(device) for n in range(2)] + [
        torch.ones(5, 7).to(device)
    ]
    for value in values:
        before = xla_counters()
        result = (value + value).tanh().sum()
        recorded = xla_counters() - before
        run_recorded(device)
        counts += [recorded, xla_counters() - before]
        del result
    assert 0 < sum(each.compile_s for each in counts) < time.perf_counter() - start  # its unit
    return counts


def test_a_program_is_counted_when_it_runs_and_compiled_once_for_each_shape(in_xla):
    counts = in_xla(count_a_program_three_times)
    assert [count.compilations for count in counts] == [0, 1, 0, 0, 0, 1]
    assert [count.executions for count in counts] == [0, 1, 0, 1, 0, 1]
    assert counts[1].compile_s > 0 and counts[3].compile_s == 0


def count_reading_and_falling_back() -> tuple[XLACounters, XLACounters]:
    value = torch.arange(9.0).to("xla:0")
    start = xla_counters()
    assert value.sum().item() == 36
    read = xla_counters()
    result = value.median() + torch.nn.functional.huber_loss(value, value) + 1
    run_recorded(value.device)
    fallen = xla_counters()
    assert result.item() == 5
    return read - start, fallen - read


def test_reading_a_value_is_a_transfer_and_an_unknown_operation_is_a_fallback(in_xla):
    read, fallen = in_xla(count_reading_and_falling_back)
    assert (read.from_device, read.fallbacks) == (1, 0)
    assert (fallen.from_device, fallen.fallbacks) == (2, 2) and fallen.to_device >= 1


# Training


def train_on(place: str, epochs: int) -> tuple[list[float], list[torch.Tensor], int]:
    torch.manual_seed(42)
    # five batches of 23 windows
    model, batches = AirRNN().to(place), ShuffledBatches(len(WINDOWS), 23)
    windows, targets = WINDOWS.to(place), TARGETS.to(place)
    optimizer, losses = fast_adam(model.parameters(), windows.device), []
    before = xla_counters()
    for _ in range(epochs):
        for index in batches:
            loss = torch.nn.functional.mse_loss(model(windows[index]), targets[index])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            run_recorded(windows.device)
        losses.append(loss.item())
    return (
        losses,
        [weight.detach().cpu() for weight in model.parameters()],
        (xla_counters() - before).compilations,
    )


def test_a_loop_with_fast_adam_computes_the_same_on_xla_and_stops_compiling(in_xla):
    cpu_losses, cpu_weights, _ = in_xla(train_on, "cpu", 12)
    losses, weights, first_time = in_xla(train_on, "xla:0", 12)
    assert len(losses) == 12 and losses == pytest.approx(cpu_losses, abs=1e-6)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(weights, cpu_weights, strict=True))
    assert first_time <= 3  # zeros, the first step, all other steps
    assert in_xla(train_on, "xla:0", 3)[2] == 0


def fit_on(kind: str, package_name: str, **options) -> tuple[str, float, list[str]]:
    import importlib
    import logging
    import warnings

    from torch.utils.data import DataLoader, TensorDataset

    warnings.simplefilter("ignore")
    logging.disable()
    package = importlib.import_module(package_name)
    torch.manual_seed(42)
    before = dict(os.environ)
    trainer = package.Trainer(
        **trainer_kwargs(kind, package=package), max_epochs=2, **QUIET, **options
    )
    loader = DataLoader(
        TensorDataset(WINDOWS, TARGETS), sampler=ShuffledBatches(len(WINDOWS), 23), batch_size=None
    )
    module = regression_of(package)
    trainer.fit(module, loader)
    changed = [name for name in os.environ if os.environ[name] != before.get(name)]
    return str(trainer.strategy.root_device), module.last_loss, changed


def regression_of(package):
    class Plain(package.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = AirRNN()

        def training_step(self, batch, index):
            self.loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
            return self.loss

        def on_train_end(self):
            self.last_loss = self.loss.item()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-3)

    return Plain()


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_a_trainer_of_either_package_trains_on_the_rehearsal_and_the_next_one_on_the_cpu(
    in_xla, package
):
    on_xla = in_xla(fit_on, "xla", package)
    on_cpu = in_xla(fit_on, "cpu", package)
    assert (on_xla[0], on_cpu[0]) == ("xla:0", "cpu")
    assert on_xla[1] == pytest.approx(on_cpu[1], abs=1e-6)
    assert on_xla[2] == on_cpu[2] == []


def test_a_precision_leaves_no_variable_behind(in_xla):
    how = partial(fit_on, "xla", "lightning.pytorch", precision="bf16-true")
    assert in_xla(how)[2] == []


def kwargs_of_a_tpu() -> dict:
    return trainer_kwargs(Device("xla", 0, "TPU v5e"))


def test_a_real_tpu_gets_lightnings_own_accelerator(in_xla):
    kwargs = in_xla(kwargs_of_a_tpu)
    assert (kwargs["accelerator"], kwargs["devices"]) == ("tpu", [0])
