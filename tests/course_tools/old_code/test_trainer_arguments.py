import inspect
import json
import re
from pathlib import Path

import lightning.pytorch as pl
import pytest
import pytorch_lightning
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from start_python import python

from course_tools.old_code import old_names
from course_tools.old_code.explain import explain
from course_tools.old_code.trainer_arguments import (
    ROWS,
    CannotTranslate,
    known,
    modernize,
    removed,
)

# the arguments of three old releases, with their defaults
TRAINERS = json.loads(Path(__file__).with_name("old_trainers.json").read_text(encoding="utf-8"))
TRAINERS.pop("about")
TODAY = {name: each.default for name, each in inspect.signature(pl.Trainer).parameters.items()}
OLD = {name for version in TRAINERS.values() for name in version} - TODAY.keys()
QUIET = {
    "logger": False,
    "enable_model_summary": False,
    "enable_progress_bar": False,
    "enable_checkpointing": False,
}

KEPT = pl.callbacks.LearningRateMonitor()

# What an old Trainer meant, read in the sources named in old_trainers.json, and today's words for
# it.
TRANSLATIONS = [
    ({"gpus": [0]}, {"accelerator": "gpu", "devices": [0]}),
    ({"accelerator": "cuda", "gpus": [0]}, {"accelerator": "cuda", "devices": [0]}),
    ({"gpus": (0, 2)}, {"accelerator": "gpu", "devices": (0, 2)}),
    ({"gpus": 2}, {"accelerator": "gpu", "devices": 2}),
    ({"gpus": -1}, {"accelerator": "gpu", "devices": -1}),
    ({"gpus": 0}, {"accelerator": "cpu"}),
    ({"gpus": None}, {}),
    ({"gpus": []}, {"accelerator": "cpu"}),
    ({"gpus": -1, "auto_select_gpus": True}, {"accelerator": "gpu", "devices": -1}),
    ({"gpus": 2, "auto_select_gpus": True}, {"accelerator": "gpu", "devices": 2}),
    (
        {"accelerator": "gpu", "devices": -1, "auto_select_gpus": True},
        {"accelerator": "gpu", "devices": -1},
    ),
    ({"accelerator": "gpu", "gpus": [0]}, {"accelerator": "gpu", "devices": [0]}),
    ({"accelerator": None, "devices": None, "gpus": 1}, {"accelerator": "gpu", "devices": 1}),
    ({"accelerator": None, "num_processes": 2}, {"accelerator": "cpu", "devices": 2}),
    ({"tpu_cores": [4]}, {"accelerator": "tpu", "devices": [3]}),
    ({"tpu_cores": [1]}, {"accelerator": "tpu", "devices": [0]}),
    ({"tpu_cores": 8}, {"accelerator": "tpu", "devices": 8}),
    ({"tpu_cores": 1}, {"accelerator": "tpu", "devices": 1}),
    ({"accelerator": "tpu", "tpu_cores": [4]}, {"accelerator": "tpu", "devices": [3]}),
    (
        {"num_tpu_cores": 8, "precision": 16},
        {"accelerator": "tpu", "devices": 8, "precision": "bf16-true"},
    ),
    (
        {"accelerator": "tpu", "devices": 8, "precision": "bf16"},
        {"accelerator": "tpu", "devices": 8, "precision": "bf16-true"},
    ),
    ({"tpu_cores": None, "ipus": None}, {}),
    ({"gpus": 2, "precision": 16}, {"accelerator": "gpu", "devices": 2, "precision": "16-mixed"}),
    (
        {"distributed_backend": "ddp", "gpus": 2},
        {"accelerator": "gpu", "devices": 2, "strategy": "ddp"},
    ),
    (
        {"accelerator": "ddp_spawn", "gpus": 2},
        {"accelerator": "gpu", "devices": 2, "strategy": "ddp_spawn"},
    ),
    ({"accelerator": "ddp"}, {"strategy": "ddp"}),
    (
        {"accelerator": "ddp_cpu", "num_processes": 2},
        {"accelerator": "cpu", "devices": 2, "strategy": "ddp_spawn"},
    ),
    ({"distributed_backend": "ddp_cpu"}, {"accelerator": "cpu", "strategy": "ddp_spawn"}),
    (
        {"strategy": "fsdp_native", "gpus": 2},
        {"accelerator": "gpu", "devices": 2, "strategy": "fsdp"},
    ),
    ({"strategy": None}, {}),
    ({"num_processes": 2}, {"accelerator": "cpu", "devices": 2}),
    ({"accelerator": "cpu", "num_processes": 2}, {"accelerator": "cpu", "devices": 2}),
    ({"gpus": 1, "num_processes": 1}, {"accelerator": "gpu", "devices": 1}),
    ({"replace_sampler_ddp": False}, {"use_distributed_sampler": False}),
    ({"checkpoint_callback": False}, {"enable_checkpointing": False}),
    ({"progress_bar_refresh_rate": 0}, {"enable_progress_bar": False}),
    ({"progress_bar_refresh_rate": 1}, {}),
    ({"progress_bar_refresh_rate": 20}, {}),
    ({"weights_summary": None}, {"enable_model_summary": False}),
    ({"weights_summary": "top"}, {}),
    ({"weights_summary": "full"}, {}),
    ({"reload_dataloaders_every_epoch": True}, {"reload_dataloaders_every_n_epochs": 1}),
    ({"accumulate_grad_batches": None}, {}),
    ({"max_steps": None}, {}),
    ({"profiler": True}, {"profiler": "simple"}),
    ({"profiler": False}, {}),
    ({"amp_level": "O2"}, {}),
    ({"amp_backend": "native"}, {}),
    ({"resume_from_checkpoint": None}, {}),
    ({"row_log_interval": 5}, {"log_every_n_steps": 5}),
    ({"max_nb_epochs": 3}, {"max_epochs": 3}),
    ({"use_amp": True, "gpus": 1}, {"accelerator": "gpu", "devices": 1, "precision": "16-mixed"}),
    ({"precision": "bf16"}, {"precision": "bf16-mixed"}),
    ({"precision": "16", "accelerator": "gpu"}, {"accelerator": "gpu", "precision": "16-mixed"}),
    ({"enable_pl_optimizer": True}, {}),
]

REFUSALS = [
    ({"ipus": 8}, "dropped Graphcore's IPU"),
    ({"accelerator": "hpu"}, "lightning-habana"),
    ({"gpus": "2"}, r"devices=2, devices=\[2\] or devices=\[0, 1\]"),
    ({"gpus": True}, "a number of GPUs"),
    ({"gpus": -2}, "a number of GPUs"),
    ({"num_processes": 0}, "1 or more"),
    ({"tpus": [0]}, "No Lightning ever had it"),
    ({"gpus": 0, "accelerator": "gpu"}, "Another argument asks for accelerator='gpu'"),
    ({"gpus": 2, "devices": 1}, "Another argument asks for devices=1"),
    ({"gpus": 2, "tpu_cores": 8}, "Another argument asks for accelerator='gpu'"),
    ({"tpu_cores": "8"}, "1, 8, or a list of one core number"),
    ({"tpu_cores": [0]}, "from 1 to 8"),
    ({"num_processes": True}, "1 or more"),
    ({"distributed_backend": "dp", "gpus": 2}, "divide the batch size by the number of GPUs"),
    ({"strategy": "ddp2"}, "is gone"),
    ({"accelerator": "horovod"}, "dropped Horovod"),
    ({"strategy": "ddp_sharded"}, "FairScale"),
    ({"strategy": "bagua"}, "has dropped it"),
    ({"distributed_backend": "mpi"}, "No old Lightning knew this; it knew ddp, ddp_spawn"),
    (
        {"distributed_backend": "ddp", "strategy": "fsdp"},
        "Another argument asks for strategy='fsdp'",
    ),
    ({"amp_backend": "apex"}, "Apex"),
    ({"auto_lr_find": True}, r"0\.7 it acted in fit, .* Tuner\(trainer\)\.lr_find\(model\)"),
    (
        {"auto_scale_batch_size": "binsearch"},
        r"0\.7 it acted in fit, .* Tuner\(trainer\)\.scale_batch_size\(model\)",
    ),
    ({"automatic_optimization": False}, "in the LightningModule"),
    ({"flush_logs_every_n_steps": 10}, "CSVLogger"),
    ({"log_gpu_memory": "all"}, "DeviceStatsMonitor"),
    ({"move_metrics_to_cpu": True}, "self.log"),
    ({"multiple_trainloader_mode": "min_size"}, "CombinedLoader"),
    ({"prepare_data_per_node": False}, "LightningDataModule"),
    ({"stochastic_weight_avg": True}, "swa_lrs"),
    ({"terminate_on_nan": True}, "check_finite"),
    ({"track_grad_norm": 2}, "grad_norm"),
    ({"truncated_bptt_steps": 5}, "training_step"),
    ({"weights_save_path": "runs"}, "dirpath"),
    ({"early_stop_callback": True}, "EarlyStopping"),
    ({"progress_bar_refresh_rate": -1}, "0 or more"),
    ({"process_position": 2}, r"TQDMProgressBar\(process_position=...\)"),
    ({"weights_summary": "all"}, "'top', 'full' or None"),
    ({"reload_dataloaders_every_epoch": 2}, "True or False"),
    ({"use_amp": 2}, "True or False"),
    ({"accumulate_grad_batches": {0: 1, 5: 2}}, r"GradientAccumulationScheduler\(scheduling="),
    ({"plugins": ["ddp_sharded"]}, "FairScale"),
    ({"plugins": "deepspeed"}, "no longer named by a string"),
    ({"train_percent_check": 0.1}, "limit_train_batches with a float"),
    ({"overfit_pct": 1}, "today an int is a number of batches"),
    ({"callbacks": object(), "checkpoint_callback": KEPT}, "Another argument asks for callbacks="),
    (
        {"replace_sampler_ddp": True, "use_distributed_sampler": False},
        "asks for use_distributed_sampler=False",
    ),
    ({"gpu": 1}, "has this argument"),
    ({3: 1}, "has this argument"),
]


def build(kwargs, package=pl):
    return package.Trainer(**{**QUIET, **kwargs})


@pytest.mark.parametrize("version", TRAINERS)
def test_the_defaults_of_every_release_build_a_trainer(version):
    modern = modernize(TRAINERS[version])
    assert build(modern.kwargs).num_devices == 1
    assert modern.changes.keys() >= TRAINERS[version].keys() - TODAY.keys()


@pytest.mark.parametrize("name", TODAY)
def test_an_argument_of_today_passes_untouched(name):
    modern = modernize({name: TODAY[name]})
    assert modern.kwargs == {name: TODAY[name]}
    assert not modern.changes


@pytest.mark.parametrize("name", sorted(OLD))
def test_todays_trainer_takes_no_old_argument(name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        pl.Trainer(**{name: None})


def test_every_old_argument_has_a_rule_and_a_value_that_is_not_its_default():
    tried = {name for kwargs, _ in TRANSLATIONS + REFUSALS for name in kwargs}
    tried |= {"resume_from_checkpoint"}  # below: it moves to another function
    assert ROWS.keys() >= OLD
    assert tried >= OLD


def short_name(value: object) -> str:
    """The value as a test's name, which may not say where an object lies in memory."""
    return re.sub(r" at 0x[0-9a-f]+|[{}' ]", "", str(value))


@pytest.mark.parametrize(("old", "today"), TRANSLATIONS, ids=short_name)
def test_an_old_argument_becomes_what_it_meant(old, today, request):
    before = dict(old)
    modern = modernize(old)
    assert modern.kwargs == today
    assert old == before
    assert modern.changes
    if today.get("accelerator") == "tpu":
        return  # those are built by a test of their own
    on_gpus = today.get("accelerator") in ("gpu", "cuda")
    if on_gpus:
        request.getfixturevalue("eight_gpus")
    assert type(build(today).accelerator).__name__ == (
        "CUDAAccelerator" if on_gpus else "CPUAccelerator"
    )


@pytest.mark.parametrize(("old", "reason"), REFUSALS, ids=short_name)
def test_what_has_no_faithful_translation_is_refused_with_the_reason(old, reason):
    with pytest.raises(CannotTranslate, match=reason):
        modernize(old)


def test_a_refusal_names_every_argument_that_was_refused():
    with pytest.raises(CannotTranslate) as caught:
        modernize({"ipus": 8, "max_epochs": 3, "auto_lr_find": True})
    assert [line.partition(": ")[0] for line in str(caught.value).splitlines()] == [
        "ipus=8",
        "auto_lr_find=True",
    ]


@pytest.fixture
def eight_gpus(monkeypatch):
    # Lightning counts GPUs with this, and builds a Trainer without touching one.
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)


_BUILD_ON_A_TPU = """
import json, sys
import torch_xla._internal.tpu as tpu
tpu.num_available_devices = lambda: 8  # what Lightning asks; XLA's CPU has eight devices below it
import lightning.pytorch as pl
for kwargs in json.loads(sys.argv[1]):
    trainer = pl.Trainer(**kwargs, logger=False, enable_checkpointing=False)
    parts = trainer.accelerator, trainer.precision_plugin
    accelerator, precision = [type(part).__name__ for part in parts]
    print(json.dumps([accelerator, trainer.device_ids, precision]))
"""


@pytest.mark.process
def test_the_tpu_translations_build_trainers_where_there_are_eight_xla_devices():
    pytest.importorskip("torch_xla", reason="torch_xla is not installed")
    rows = [today for _, today in TRANSLATIONS if today.get("accelerator") == "tpu"]
    assert len(rows) >= 7
    variables = {"PJRT_DEVICE": "CPU", "CPU_NUM_DEVICES": "8"}
    run = python("-c", _BUILD_ON_A_TPU, json.dumps(rows), **variables)
    assert run.returncode == 0, run.stderr
    built = [json.loads(line) for line in run.stdout.splitlines() if line.startswith('["')]
    for row, (accelerator, devices, precision) in zip(rows, built, strict=True):
        assert accelerator == "XLAAccelerator"
        assert precision == "XLAPrecision"
        assert devices == (
            row["devices"] if isinstance(row["devices"], list) else list(range(row["devices"]))
        )


@pytest.mark.parametrize("old", [{"progress_bar_refresh_rate": 20}, {"weights_summary": "full"}])
def test_the_callback_that_took_the_place_of_an_argument_is_named_and_can_be_made(old):
    (note,) = modernize(old).changes.values()
    named = re.search(r"callbacks=\[(\w+)\((\w+)=(-?\d+)\)\]", note.why)
    assert getattr(pl.callbacks, named[1])(**{named[2]: int(named[3])})


@pytest.mark.parametrize("package", [pl, pytorch_lightning], ids=lambda package: package.__name__)
def test_a_checkpoint_callback_joins_the_others(package):
    kept, saver = package.callbacks.LearningRateMonitor(), package.callbacks.ModelCheckpoint()
    stopper = package.callbacks.EarlyStopping("loss")
    old = {"callbacks": [kept], "checkpoint_callback": saver, "early_stop_callback": stopper}
    modern = modernize(old)
    assert modern.kwargs == {"callbacks": [kept, saver, stopper]}
    assert {kept, saver, stopper} <= set(package.Trainer(**modern.kwargs).callbacks)


def test_a_checkpoint_to_resume_from_moves_to_fit():
    modern = modernize({"resume_from_checkpoint": "last.ckpt", "max_epochs": 3})
    assert modern.kwargs == {"max_epochs": 3}
    assert modern.fit_kwargs == {"ckpt_path": "last.ckpt"}
    assert "ckpt_path" in inspect.signature(pl.Trainer.fit).parameters
    assert str(modern).splitlines()[:2] == [
        "Trainer(max_epochs=3)",
        "trainer.fit(model, ckpt_path='last.ckpt')",
    ]


def test_without_lightning_the_table_of_old_arguments_answers(monkeypatch):
    monkeypatch.setattr(old_names, "parameters", lambda name: {})
    for cached in (known, removed):
        cached.cache_clear()
    try:
        assert removed() >= OLD
        assert not removed() & TODAY.keys()
        assert modernize({"gpus": 2, "max_epochs": 3}).kwargs["devices"] == 2
        assert modernize({"never_heard_of": 2}).kwargs == {"never_heard_of": 2}
    finally:
        for cached in (known, removed):
            cached.cache_clear()


@pytest.mark.filterwarnings("ignore:GPU available but not used")
@pytest.mark.parametrize("value", [-1, 0, 1, 2, None])
@pytest.mark.parametrize("name", sorted(removed() - {"default_save_path"}))  # a text
def test_no_translation_keeps_a_value_that_todays_trainer_refuses(name, value, eight_gpus):
    try:
        today = modernize({name: value}).kwargs
    except CannotTranslate:
        return
    if today.get("accelerator") != "tpu":  # built by a test of their own
        today = {key: each for key, each in today.items() if key != "callbacks"}
        build(today)


def test_a_period_that_would_be_refused_or_save_nothing_today_is_left_out():
    checkpoint = pl.callbacks.ModelCheckpoint
    for value in (-1, 0):
        (note,) = explain(f"ModelCheckpoint(period={value})").findings
        assert note.new == "" and "leave it out" in note.why.lower()
    (note,) = explain("ModelCheckpoint(period=2)").findings
    assert note.new == "every_n_epochs" and checkpoint(every_n_epochs=2)
    with pytest.raises(Exception, match="every_n_epochs=-1"):
        checkpoint(every_n_epochs=-1)


NAMES = st.sampled_from(sorted(ROWS.keys() | TODAY.keys())) | st.text(max_size=8) | st.integers()
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.floats()
    | st.text(max_size=6)
    | st.binary(max_size=3)
)
WORDS = st.sampled_from(
    ["ddp", "DDP_CPU", "dp", "tpu", "gpu", "-1", "0,1", "8", "full", "bf16", ",", "²", "auto"]
)
VALUES = st.recursive(
    PLAIN | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.integers(0, 3), inner, max_size=2)
    ),
)


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_anything_is_translated_or_refused(kwargs):
    try:
        modern = modernize(kwargs)
    except CannotTranslate as refusal:
        assert str(refusal)
        return
    assert modern.kwargs.keys() <= TODAY.keys()
    assert modernize(modern.kwargs).kwargs.keys() == modern.kwargs.keys()
    assert str(modern)
