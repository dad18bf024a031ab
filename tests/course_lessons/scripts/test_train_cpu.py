"""What train_cpu.py, and each other script alike, refuses, says, and does to files."""

import gc
import io
import multiprocessing
import os
import re
import runpy
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from types import ModuleType, SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from course_lessons.scripts import FOLDER
from torch.nn.parallel import DistributedDataParallel

resource = pytest.importorskip("resource")  # Linux and macOS

SCRIPTS = sorted(path.name for path in FOLDER.glob("train_*.py"))
ALONE = ["train_cpu.py", "train_gpu.py", "train_fast.py"]
UNDER_TORCHRUN = ["train_ddp.py", "train_fsdp.py"]
SMALL = ["--images", 40, "--batch", 18, "--checkpoint", "last.ckpt"]  # two steps an epoch
KEPT = re.compile(
    r"the previous run's checkpoint is now .*?(last\.ckpt\.\d{4}-\d\d-\d\d-\d{6}-\d+)\n"
)
OPTIONS = {"train_lightning.py": ["--accelerator", "cpu", "--devices", 1]}


def run_here(folder, script, *arguments, rank=0, most_bytes=None):
    """Run a script in this process, as rank 0 of one if it has ranks, and return what it printed.

    A file may get `most_bytes`, as on a disk that is full after them.
    """
    name = os.path.basename(script)
    variables = {"PJRT_DEVICE": "CPU"}
    if name in UNDER_TORCHRUN:
        variables |= {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 1}
        variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 0}
    words = [script, *SMALL, *OPTIONS.get(name, ()), *arguments]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with ExitStack() as until_the_end:
        enter = until_the_end.enter_context
        patch = enter(pytest.MonkeyPatch.context())
        patch.chdir(folder)
        patch.setattr(sys, "argv", [str(word) for word in words])
        for variable, value in variables.items():
            patch.setenv(variable, str(value))
        enter(warnings.catch_warnings(action="ignore"))  # those of Lightning
        printed, errors = enter(redirect_stdout(io.StringIO())), io.StringIO()
        enter(redirect_stderr(errors))
        until_the_end.callback(resource.setrlimit, resource.RLIMIT_FSIZE, before)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes or before[0], before[1]))
        try:
            runpy.run_path(str(FOLDER / script), run_name="__main__")
        except SystemExit as end:
            if end.code == 2:  # argparse has written the sentence
                raise SystemExit(errors.getvalue()) from None
            raise
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()
    return printed.getvalue()


@pytest.fixture(scope="module")
def xla_process(needs_xla):
    """A process of its own: what a script of XLA sets holds until the end."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as process:
        yield process


# A start of XLA, and its compiler, take longer than all the others.
WITH_XLA = pytest.param("train_xla.py", marks=pytest.mark.slow)
EACH = [WITH_XLA if name == WITH_XLA.values[0] else name for name in SCRIPTS]


@pytest.fixture(params=EACH)
def train(request, tmp_path):
    """Run one of the scripts in a folder of its own, return what it printed or raise its error."""

    def run(*arguments, **how):
        work = (run_here, tmp_path, request.param, *arguments)
        if request.param != "train_xla.py":
            return work[0](*work[1:], **how)
        process = request.getfixturevalue("xla_process")
        return process.submit(*work, **how).result(timeout=300)

    return run


def test_fewer_images_than_a_batch_are_one_batch(train):
    assert "epoch 1 " in train("--epochs", 1, "--batch", 100)


@pytest.mark.parametrize("script", [*ALONE, *UNDER_TORCHRUN])
def test_the_gradients_of_each_step_are_clipped_to_a_norm_of_one(tmp_path, monkeypatch, script):
    norms, clip = [], torch.nn.utils.clip_grad_norm_

    def clip_and_note(parameters, norm):
        norms.append(norm)
        return clip(parameters, norm)

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", clip_and_note)
    run_here(tmp_path, script, "--epochs", 1)
    assert norms == [1.0, 1.0]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_full_disk_is_one_sentence_and_every_file_keeps_its_bytes(train, tmp_path):
    others = ["last.ckpt.1", "last.ckpt.new", "last.ckpt.1.new", "last.ckpt.previous"]
    for name in ("last.ckpt", "last-best.ckpt", *others):
        (tmp_path / name).write_text(name)
    theirs = contents(tmp_path)
    kept = KEPT.search(train("--epochs", 1))[1]
    theirs[kept] = theirs.pop("last.ckpt")
    saved = contents(tmp_path)
    assert saved.items() > theirs.items() and "last.ckpt" in saved

    for how in ([], ["--resume"]):  # a new run too fails before it takes the name
        with pytest.raises(SystemExit, match=r"last\.ckpt cannot be saved; is the disk full\?"):
            train("--epochs", 2, *how, most_bytes=100_000)
        assert contents(tmp_path) == saved
    assert "epoch 2 " in train("--epochs", 2, "--resume")
    assert contents(tmp_path).items() > theirs.items()


@pytest.mark.parametrize("script", [*ALONE, "train_lightning.py"])
def test_two_new_runs_at_once_in_one_folder_lose_no_checkpoint(tmp_path, monkeypatch, script):
    (tmp_path / "last.ckpt").write_text("of the night")
    save, printed = torch.save, []

    def save_while_another_run_saves(state, path):
        save(state, path)
        monkeypatch.setattr(torch, "save", save)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "getpid", lambda: 4)
            printed.append(run_here(tmp_path, script, "--epochs", 1))

    monkeypatch.setattr(torch, "save", save_while_another_run_saves)
    printed.append(run_here(tmp_path, script, "--epochs", 1))
    first, second = (KEPT.search(each)[1] for each in printed)
    left = {name for name in contents(tmp_path) if "-best" not in name}  # Lightning's best
    assert left == {first, second, "last.ckpt"}
    assert (tmp_path / first).read_text() == "of the night"
    for name in (second, "last.ckpt"):
        torch.load(tmp_path / name, weights_only=True)  # is whole


def test_each_held_out_sample_counts_alike_also_in_a_short_last_batch(train, tmp_path):
    train("--images", 200, "--epochs", 1)  # 18 and 2 samples are held out
    saved = torch.load(tmp_path / "last.ckpt", map_location="cpu", weights_only=True)
    named = saved.get("network") or saved["state_dict"]
    script = runpy.run_path(str(FOLDER / "train_cpu.py"))
    network = script["Network"]()
    network.load_state_dict({name.removeprefix("network."): each for name, each in named.items()})
    pixels, labels = torch.utils.data.default_collate([*script["load_data"](200)[1]])
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(network.eval()(pixels), labels)
    (scheduler,) = saved.get("lr_schedulers") or [saved["scheduler"]]
    assert len(labels) == 20 and scheduler["best"] == pytest.approx(loss.item(), rel=1e-4)


@pytest.mark.parametrize("where", ["/proc/x", "file/x"])
def test_a_place_that_cannot_be_written_is_found_before_the_first_epoch(train, tmp_path, where):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=r"^--checkpoint .* cannot be written: .") as refused:
        train("--checkpoint", f"{where}.ckpt")
    assert "\n" not in refused.value.code and os.listdir(tmp_path) == ["file"]


class WithCode:
    def __reduce__(self):
        return (pytest.fail, ("the code of a checkpoint was run",))


def foreign_files():
    """Yield the bytes of files that are not a whole checkpoint of a script."""
    file = io.BytesIO()
    torch.save({"zeros": torch.zeros(1_000_000)}, file)
    yield file.getvalue()[:-100]  # torn
    for state in ({"epochs": 1, "network": WithCode()}, {"epochs": 1}, []):
        file = io.BytesIO()
        torch.save(state, file)
        yield file.getvalue()
    yield b"my notes"


def test_a_checkpoint_that_is_foreign_or_torn_is_one_sentence_and_stays(train, tmp_path):
    for content in foreign_files():
        (tmp_path / "last.ckpt").write_bytes(content)
        with pytest.raises(SystemExit, match=r"last\.ckpt is not a whole check") as refused:
            train("--resume")
        sentence = refused.value.code
        assert sentence.endswith(": omit --resume") and "\n" not in sentence
        assert contents(tmp_path) == {"last.ckpt": content}


def test_a_checkpoint_without_a_part_or_of_another_network_is_one_sentence(train, tmp_path):
    train("--epochs", 1)
    state = torch.load(tmp_path / "last.ckpt", weights_only=True)
    for part in state.keys() & {"epochs", "network", "best", "optimizer", "scheduler"}:
        less = {name: value for name, value in state.items() if name != part}
        torch.save(less, tmp_path / "last.ckpt")
        with pytest.raises(SystemExit, match=r"not a whole checkpoint.*a part is missing"):
            train("--epochs", 2, "--resume")
    (state.get("network") or state["state_dict"]).popitem()  # as if the network had a layer more
    torch.save(state, tmp_path / "last.ckpt")
    saved = contents(tmp_path)
    with pytest.raises(SystemExit, match=r"^last\.ckpt .* omit --resume$|^/.* --resume$"):
        train("--epochs", 2, "--resume")
    assert contents(tmp_path) == saved


@pytest.mark.parametrize("script", [*ALONE, *UNDER_TORCHRUN, "train_lightning.py"])
def test_a_checkpoint_of_another_optimizer_is_one_sentence(script, tmp_path):
    run_here(tmp_path, script, "--epochs", 1)
    saved = contents(tmp_path)
    text = (FOLDER / script).read_text()
    edited = re.sub(
        r"optim\.AdamW\((.*), weight_decay=0.01\)", r"optim.SGD(\1, momentum=0.9)", text
    )
    assert edited != text
    own = tmp_path / "own" / script
    own.parent.mkdir()
    own.write_text(edited)
    with pytest.raises(
        SystemExit, match=r"^(/.*/)?last\.ckpt is .*other optimizer.*omit --resume$"
    ):
        run_here(tmp_path, own, "--epochs", 2, "--resume")
    assert contents(tmp_path) == saved


@pytest.mark.parametrize("script", [*ALONE, *UNDER_TORCHRUN, "train_lightning.py"])
def test_what_is_no_mean_and_no_number_for_each_sample_is_refused(script, tmp_path):
    text, mean = (FOLDER / script).read_text(), "(scores.argmax(1) == labels).float().mean()"
    assert mean in text
    (tmp_path / script).write_text(text.replace(mean, "scores"))
    with pytest.raises(ValueError, match=r"shape \[4, 10\], not a mean"):
        run_here(tmp_path, tmp_path / script)


BAD = [("--lr", each) for each in ("nan", "inf", "-1")]
BAD += [("--epochs", each) for each in ("-1", "0", "three")]
BAD += [("--batch", "0"), ("--images", "-5"), ("--images", "1")]
BAD += [("--checkpoint", each) for each in (".", "", "folder.ckpt/", "folder.ckpt")]
DEVICES = [("--device", each) for each in ("cuda", "gpu", "mps")]  # the CPU is always here


def refused_by(run, arguments, folder):
    (folder / "folder.ckpt").mkdir()
    with pytest.raises(SystemExit) as refused:
        run(*arguments)
    assert sorted(os.listdir(folder)) == ["folder.ckpt"]
    return refused.value.code


@pytest.mark.parametrize("arguments", BAD, ids="=".join)
def test_a_bad_argument_is_one_sentence(train, arguments, tmp_path):
    *usage, sentence = refused_by(train, arguments, tmp_path).splitlines()
    assert arguments[0] in sentence
    assert all(line.startswith(("usage: ", " ")) for line in usage)


@pytest.mark.parametrize("arguments", DEVICES, ids="=".join)
@pytest.mark.parametrize("script", ["train_gpu.py", "train_fast.py", *UNDER_TORCHRUN])
def test_a_missing_device_is_one_sentence(script, arguments, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    said = refused_by(lambda *words: run_here(tmp_path, script, *words), arguments, tmp_path)
    assert "--device" in said.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--accelerator", "cuda"),
        ("--accelerator", "abacus"),
        ("--devices", "none"),
        ("--strategy", "none"),
        ("--precision", "3-bits"),
    ],
    ids="=".join,
)
def test_what_lightning_refuses_is_one_sentence(arguments, tmp_path, monkeypatch):
    script = "train_lightning.py"
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    said = refused_by(lambda *on: run_here(tmp_path, script, *on), arguments, tmp_path)
    assert "Lightning refuses" in said and " ".join(arguments) in said.splitlines()[-1]


@pytest.mark.parametrize("script", UNDER_TORCHRUN)
def test_one_rank_says_what_all_refuse(script, tmp_path, capfd):
    with pytest.raises(SystemExit) as second:
        run_here(tmp_path, script, "--epochs", "0", rank=1)
    assert second.value.code == 0 and capfd.readouterr() == ("", "")


@pytest.mark.parametrize("script", UNDER_TORCHRUN)
def test_a_script_for_several_ranks_says_how_it_is_started(script, monkeypatch, capsys):
    monkeypatch.delenv("RANK", raising=False)
    for options, end in (([], f"torchrun --standalone --nproc-per-node 2 {script}"), (["-h"], "0")):
        monkeypatch.setattr(sys, "argv", [script, *options])
        with pytest.raises(SystemExit) as refused:
            runpy.run_path(str(FOLDER / script), run_name="__main__")
        assert str(refused.value.code).endswith(end)
    assert "--checkpoint" in capsys.readouterr().out


@pytest.mark.parametrize("train", [*ALONE, *UNDER_TORCHRUN, WITH_XLA], indirect=True)
def test_resume_says_what_is_done_and_which_learning_rate_holds(train, tmp_path):
    assert "last.ckpt: 0 of 1 epochs done, lr 0.5\n" in train(
        "--epochs", 1, "--resume", "--lr", 0.5
    )
    saved = contents(tmp_path)
    printed = train("--epochs", 1, "--resume", "--lr", 0.1)
    assert printed.endswith("last.ckpt: 1 of 1 epochs done, lr 0.5\n")
    assert contents(tmp_path) == saved


@pytest.mark.parametrize("script", ALONE)
def test_the_checkpoint_has_the_best_weights_and_the_lower_learning_rate(script, tmp_path):
    path = tmp_path / "last.ckpt"
    run_here(tmp_path, script, "--epochs", 1)
    state = torch.load(path)
    assert all(torch.equal(state["best"][name], each) for name, each in state["network"].items())
    state["scheduler"]["best"] = 0.0  # no later epoch is better
    best = state["best"] = {name: each + 1 for name, each in state["network"].items()}
    torch.save(state, path)
    run_here(tmp_path, script, "--epochs", 4, "--resume")
    state = torch.load(path)
    assert state["optimizer"]["param_groups"][0]["lr"] == pytest.approx(1e-4)
    assert all(torch.equal(state["best"][name], each) for name, each in best.items())
    printed = run_here(tmp_path, script, "--epochs", 4, "--resume")
    assert "4 of 4 epochs done, lr 0.0001" in printed.splitlines()[-1]


@pytest.mark.parametrize("script", ["train_gpu.py", "train_fast.py"])
def test_the_device_can_be_named_and_is_said_first(script, tmp_path, monkeypatch):
    assert run_here(tmp_path, script, "--epochs", 1, "--device", "cpu").startswith("on cpu")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    asked = []
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: asked.append(device) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_here(tmp_path, script, "--device", "cuda:1")
    assert asked == [torch.device("cuda:1")]
    with pytest.raises(SystemExit, match="choose from"):
        run_here(tmp_path, script, "--device", "cuda:2")


@pytest.mark.parametrize(("devices", "batch"), [(1, 18), (4, 16), (5, 15)])
def test_on_xla_each_batch_is_shared_out_and_one_program(tmp_path, monkeypatch, devices, batch):
    """With the CPU, and notes of what XLA is asked for, in the place of XLA."""
    asked, shares = [], []

    def note(name, answer=None):
        return lambda *_: asked.append(name) or answer

    mesh = SimpleNamespace(size=lambda: devices)
    names = {
        "torch_xla": {"device": lambda: torch.device("cpu"), "sync": note("sync")},
        "torch_xla.core": {},
        "torch_xla.core.xla_model": {"save": torch.save},
        "torch_xla.runtime": {
            "device_type": lambda: "TPU",
            "use_spmd": note("spmd"),
            "initialize_cache": note("cache"),
            "global_runtime_device_count": note("count", devices),
        },
        "torch_xla.distributed": {},
        "torch_xla.distributed.spmd": {
            "get_1d_mesh": lambda name: asked.append(name) or mesh,
            "mark_sharding": lambda batch, _, axes: shares.append((tuple(batch.shape), axes)),
        },
    }
    names["torch_xla"]["manual_seed"] = note("seed")
    for name, content in names.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
        if "." in name:
            setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)

    def epochs(printed):
        return re.sub(r" \d+\.\d s", "", printed[printed.index("epoch 1 ") :])

    printed = run_here(tmp_path, "train_xla.py", "--epochs", 2, "--bits", 32)
    plain = run_here(tmp_path, "train_cpu.py", "--epochs", 2, "--batch", batch)
    assert epochs(printed) == epochs(plain).partition("the previous")[0]
    assert asked[:4] == ["cache", "spmd", "count", "data"]
    assert asked[4:] == ["seed", "sync", "sync", "sync"] * 2  # two steps and one to validate
    image, label = ("data", None, None, None), ("data",)
    wanted = [((batch, 3, 32, 32), image), ((batch,), label)] * 2
    wanted += [((4, 3, 32, 32), image), ((4,), label)] if 4 % devices == 0 else []
    assert shares == wanted * 2
    assert epochs(run_here(tmp_path, "train_xla.py", "--epochs", 2, "--bits", 16))


def test_the_reducer_of_ddp_goes_before_its_process_group(tmp_path, monkeypatch):
    """The Reducer's end holds the GIL, for which the threads of gloo may wait: a deadlock."""

    def wrapped():
        return [each for each in gc.get_objects() if type(each) is DistributedDataParallel]

    before = wrapped()  # what other tests of this process have left to be collected
    alive = []
    destroy = dist.destroy_process_group

    def look_and_destroy():
        alive.extend(each for each in wrapped() if each not in before)
        destroy()

    monkeypatch.setattr(dist, "destroy_process_group", look_and_destroy)
    run_here(tmp_path, "train_ddp.py", "--epochs", 1)
    assert not dist.is_initialized() and alive == []
