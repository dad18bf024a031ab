"""The decisions of a training: its devices, and what a training has to return."""

import json
import os
import signal
import sys
from types import SimpleNamespace

import pytest
import torch

from course_utils.launch import child
from course_utils.launch.request import LaunchError, Request
from tests.course_utils.test_devices import torch_answers as let_torch_answer

TRAINING = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from course_utils.lightning import pl

module = pl.LightningModule()
loader = DataLoader(TensorDataset(torch.zeros(8, 1)), batch_size=4)

def make():
    return {}
"""


@pytest.fixture(autouse=True)
def _what_a_training_sets_is_put_back():
    """Later tests would look where its ranks met, and would not find torch_xla."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    if sys.modules.get("torch_xla", "") is None:
        del sys.modules["torch_xla"]


def request_for(**arguments):
    return Request("json:loads", **arguments)


@pytest.fixture
def torch_answers(monkeypatch):
    """Let torch answer as on a machine with so many GPUs of AMD, or with another kind of GPU."""

    def answer(cuda=0, other=None):
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_: None)
        if cuda or other:
            of_amd = {"cuda": None, "hip": "6.3"} if cuda else {}
            let_torch_answer(monkeypatch, "cuda" if cuda else other, cuda or 1, **of_amd)

    monkeypatch.delenv("COURSE_DEVICE", raising=False)
    monkeypatch.setattr(
        child, "usable_cores", lambda: 2
    )  # fewer than the four that are allowed everywhere
    return answer


@pytest.mark.parametrize(
    ("gpus", "accelerator", "count", "chosen"),
    [
        (0, "auto", None, ("cpu", 1)),
        (0, "cpu", 2, ("cpu", 2)),
        (2, "auto", None, ("gpu", 2)),
        (2, "gpu", 1, ("gpu", 1)),
        (2, "cpu", 4, ("cpu", 4)),
    ],
)
def test_the_devices_come_from_the_machine(torch_answers, gpus, accelerator, count, chosen):
    torch_answers(cuda=gpus)
    assert child.choose_accelerator(request_for(accelerator=accelerator, count=count)) == chosen


@pytest.mark.parametrize("kind", ["mps", "xpu"])
def test_where_ddp_cannot_use_the_gpu_auto_trains_on_the_cpu_and_says_so(
    torch_answers, kind, capsys
):
    torch_answers(other=kind)
    assert child.choose_accelerator(request_for(count=2)) == ("cpu", 2)
    said = capsys.readouterr().out
    assert kind in said and "CPU" in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("machine", "forced"), [({"other": "mps"}, "mps"), ({"cuda": 2}, "cuda:1")]
)
def test_a_device_that_was_forced_is_not_replaced(torch_answers, monkeypatch, machine, forced):
    torch_answers(**machine)
    monkeypatch.setenv("COURSE_DEVICE", forced)
    with pytest.raises(LaunchError, match=f"{forced}.* unset it"):
        child.choose_accelerator(request_for())


@pytest.mark.parametrize(
    ("gpus", "accelerator", "count", "words"),
    [
        (0, "gpu", None, "'cuda' was requested"),
        (2, "gpu", 3, "3 GPUs were requested, but this machine allows 2"),
        (0, "cpu", 5, "5 CPU processes were requested, but this machine allows 4"),
    ],
)
def test_what_is_asked_for_and_missing_is_refused(torch_answers, gpus, accelerator, count, words):
    torch_answers(cuda=gpus)
    with pytest.raises(LaunchError, match=words):
        child.choose_accelerator(request_for(accelerator=accelerator, count=count))


def training(tmp_path, returned):
    path = tmp_path / f"training {len(returned)}.py"
    path.write_text(TRAINING.format(returned))
    return f"{path}:make"


def test_a_module_and_its_loader_are_returned(tmp_path):
    _, loader = child.load_training(training(tmp_path, "module, loader"))
    assert loader.batch_size == 4


@pytest.mark.parametrize("returned", ["module", "loader, module", "module, loader.dataset"])
def test_anything_else_is_refused_with_what_was_returned(tmp_path, returned):
    with pytest.raises(LaunchError, match="not a LightningModule and its DataLoader"):
        child.load_training(training(tmp_path, returned))


def test_a_function_that_is_missing_is_refused(tmp_path):
    with pytest.raises(LaunchError, match="no function 'other'"):
        child.load_training(training(tmp_path, "0").replace(":make", ":other"))


OWN_SEED = """
import torch

def make():
    raise RuntimeError(torch.initial_seed())
"""


@pytest.mark.parametrize(("count", "shared"), [(1, False), (2, True)])
def test_what_a_training_sets_itself_counts_and_several_ranks_share_its_samples(
    monkeypatch, count, shared
):
    given, reported = {}, []

    def make():
        child.torch.manual_seed(2**40 + 3_000_000_000)
        return None, None

    monkeypatch.setattr(child, "load_training", lambda name: make())
    monkeypatch.setattr(child, "EpochReport", lambda request, kind, seed: reported.append(seed))
    fitted = SimpleNamespace(fit=lambda *_, **__: None)
    monkeypatch.setattr(child.pl, "Trainer", lambda **how: given.update(how) or fitted)
    monkeypatch.delitem(sys.modules, "torch_xla", raising=False)
    child.fit(request_for(), "cpu", count)
    assert reported == [3_000_000_000]  # NumPy takes 32 bits of it
    assert given["devices"] == count and given["use_distributed_sampler"] is shared
    assert sys.modules["torch_xla"] is None  # Lightning would start it, which takes seconds


@pytest.mark.parametrize(("asked", "seeded"), [(7, 7), (0, 0), (None, 42)])
def test_a_training_without_a_seed_has_always_the_same_one(tmp_path, asked, seeded):
    path = tmp_path / f"seeded_{asked}.py"
    path.write_text(OWN_SEED)
    with pytest.raises(RuntimeError, match=f"^{seeded}$"):
        child.fit(Request(f"{path}:make", seed=asked), "cpu", 1)


@pytest.mark.parametrize("code", ["import sys; sys.exit(2)", "exit()"])
def test_a_training_that_exits_has_failed_and_was_not_refused(tmp_path, monkeypatch, code):
    path = tmp_path / f"exits {len(code)}.py"
    path.write_text(f"def make():\n    {code}\n")
    monkeypatch.setattr(child, "choose_accelerator", lambda _: ("cpu", 1))
    request = Request(f"{path}:make", out=str(tmp_path))
    why, refused = child.try_to_train(request)
    assert "called sys.exit" in why and not refused


@pytest.mark.parametrize("earlier", [True, False])
def test_a_training_that_leaves_no_result_made_no_step(tmp_path, monkeypatch, earlier):
    if earlier:
        (tmp_path / "result.json").write_text("of another run")
    monkeypatch.setattr(child, "train", lambda request: None)
    why, refused = child.try_to_train(request_for(out=str(tmp_path)))
    assert "made no step: its loader has no batch" in why and not refused


@pytest.mark.parametrize("error", ["ValueError", "ImportError", "KeyError"])
def test_an_error_of_the_users_file_is_not_a_refusal_of_its_name(tmp_path, error):
    path = tmp_path / f"raises_{error}.py"
    path.write_text(f"raise {error}('the data are missing')")
    with pytest.raises(Exception, match="the data are missing") as raised:
        child.load_training(f"{path}:make")
    assert type(raised.value).__name__ == error


EDITED = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from course_lessons.lightning_training import Regression

class Edited(Regression):
    def configure_optimizers(self):
        return torch.optim.{optimizer}(self.parameters(), 0.1)

def make():
    data = TensorDataset(torch.zeros(8, 2), torch.zeros(8, {outputs}))
    return Edited(torch.nn.Linear(2, {outputs})), DataLoader(data, batch_size=4)
"""


@pytest.mark.filterwarnings("ignore:.*does not have many workers")
def test_a_resumed_training_with_an_edited_network_or_optimizer_is_refused(tmp_path, monkeypatch):
    # as the only rank of one, in this process
    monkeypatch.setattr(child, "start_processes", lambda fit, asked, **_: child.fit(*asked))
    whole = {"optimizer": "Adam", "outputs": 1}
    for number, change in enumerate(({}, {"optimizer": "SGD"}, {"outputs": 2})):
        path = tmp_path / f"edited_{number}.py"
        path.write_text(EDITED.format(**whole | change))
        asked = {"epochs": 2 if change else 1, "resume": bool(change), "strategy": "ddp"}
        request = Request(f"{path}:make", count=1, accelerator="cpu", out=str(tmp_path), **asked)
        why, refused = child.try_to_train(request)
        assert refused == ("another network or optimizer" in why) == bool(change), why


@pytest.mark.parametrize("resume", [True, False])
def test_a_training_that_is_refused_changes_no_file(tmp_path, monkeypatch, capsys, resume):
    if not resume:
        (tmp_path / "last.ckpt").touch()
    monkeypatch.setattr(child, "check_checkpoint", lambda _: None)
    request = Request("json:nothing", accelerator="cpu", out=str(tmp_path), resume=resume)
    assert child.try_to_train(request) == ("json defines no function 'nothing'.", True)
    assert os.listdir(tmp_path) == ["last.ckpt"][resume:]
    assert resume == (f"no checkpoint in {tmp_path}, so" in capsys.readouterr().out)


def test_the_end_of_the_launcher_is_the_end_of_the_whole_group(monkeypatch):
    ended = []
    monkeypatch.setattr(child.os, "read", lambda *_: b"")  # the launcher has gone
    monkeypatch.setattr(child, "end_group", ended.append)
    child.end_with_the_launcher()
    assert ended == [os.getpgrp()]


def test_a_rank_of_ddp_knows_its_number_and_forks_the_workers_of_its_loader(monkeypatch):
    done = []
    monkeypatch.setattr(
        child.multiprocessing, "set_start_method", lambda *how, **_: done.append(how)
    )
    monkeypatch.setattr(child, "fit", lambda *given: done.append(os.environ["LOCAL_RANK"]))
    child.fit_as_rank(3, request_for(), "cpu", 4)
    forks = [("fork",)] if sys.platform == "linux" else []
    assert done == [*forks, "3"]


def test_a_signal_to_the_starter_is_reported_once_and_ends_the_group(monkeypatch):
    ended, (read, write) = [], os.pipe()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    monkeypatch.setattr(child, "end_group", ended.append)
    try:
        child.end_when_asked(signal.SIGTERM, write)
        for number in handlers:
            os.kill(os.getpid(), number)  # as `end_group` does to this process too
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(write)
    with open(read, "rb") as report:
        said = json.load(report)
    assert "was ended by SIGTERM" in said["why"] and said["refused"] is False
    assert ended == [os.getpgrp()]


def test_a_report_is_short_enough_for_the_launcher_to_read_it_at_once():
    read, write = os.pipe()
    child.send(write, "\N{SNOWMAN}" * 100_000, True)
    os.close(write)
    with open(read, "rb", buffering=0) as report:
        said = json.loads(report.read(2**16))
    assert said == {"why": "\N{SNOWMAN}" * 2000, "refused": True}
