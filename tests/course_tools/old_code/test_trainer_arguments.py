import inspect
import itertools
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

from course_tools.old_code import installed
from course_tools.old_code.explanation import explain
from course_tools.old_code.trainer_arguments import (
    ROWS,
    CannotTranslate,
    known_arguments,
    modernize,
    removed_arguments,
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

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))
# What an old Trainer meant, read in the sources named in old_trainers.json, and today's words for
# it; JSON has no tuples, and no keys but texts.
TRANSLATIONS = [
    *CASES["translations"],
    ({"gpus": (0, 2)}, {"accelerator": "gpu", "devices": (0, 2)}),
]
REFUSALS = [
    *CASES["refusals"],
    ({"accumulate_grad_batches": {0: 1, 5: 2}}, r"GradientAccumulationScheduler\(scheduling="),
    ({"callbacks": object(), "checkpoint_callback": KEPT}, "Another argument asks for callbacks="),
    ({3: 1}, "has this argument"),
]


def build(kwargs, package=pl):
    return package.Trainer(**{**QUIET, **kwargs})


def test_a_translation_shows_the_call_of_today_and_each_change_without_a_line():
    first, second = repr(modernize({"gpus": 2})).splitlines()
    assert first == "Trainer(accelerator='gpu', devices=2)"
    assert second.startswith("  gpus=2 -> accelerator='gpu', devices=2. ")


@pytest.mark.parametrize("version", TRAINERS)
def test_the_defaults_of_every_release_build_a_trainer(version):
    modern = modernize(TRAINERS[version])
    assert build(modern.kwargs).num_devices == 1
    assert modern.changes.keys() >= TRAINERS[version].keys() - TODAY.keys()


def test_an_argument_of_today_passes_untouched_and_an_old_one_is_refused_by_todays_trainer():
    for name, value in TODAY.items():
        modern = modernize({name: value})
        assert modern.kwargs == {name: value} and not modern.changes
    for name in OLD:
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
    monkeypatch.setattr(installed, "parameters", lambda name: {})
    for cached in (known_arguments, removed_arguments):
        cached.cache_clear()
    try:
        assert removed_arguments() >= OLD
        assert not removed_arguments() & TODAY.keys()
        assert modernize({"gpus": 2, "max_epochs": 3}).kwargs["devices"] == 2
        assert modernize({"never_heard_of": 2}).kwargs == {"never_heard_of": 2}
    finally:
        for cached in (known_arguments, removed_arguments):
            cached.cache_clear()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:GPU available but not used")
def test_no_translation_keeps_a_value_that_todays_trainer_refuses(eight_gpus):
    names = sorted(removed_arguments() - {"default_save_path"})  # a text
    for name, value in itertools.product(names, (-1, 0, 1, 2, None)):
        try:
            today = modernize({name: value}).kwargs
        except CannotTranslate:
            continue
        if today.get("accelerator") != "tpu":  # built by a test of their own
            build({key: each for key, each in today.items() if key != "callbacks"})


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


@pytest.mark.long
@settings(max_examples=40)
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
