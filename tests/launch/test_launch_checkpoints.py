"""Checkpoints that are whole or not there, and that run no code."""

import errno
import os
import pickle
import sys
from functools import partial

import pytest
import torch

from course_utils.launch.checkpoints import WholeFiles, read_checkpoint
from course_utils.launch.messages import LaunchError

PLACE = {"epoch": 1, "global_step": 8, "optimizer_states": [{}]}


@pytest.fixture
def model():
    return torch.nn.Linear(3, 2)


@pytest.fixture
def good(model, tmp_path):
    path = tmp_path / "checkpoints" / "last.ckpt"
    WholeFiles().save_checkpoint({"state_dict": model.state_dict(), **PLACE}, path)
    return path


class Trap:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return exec, (f"open({self.path!r}, 'w').close()",)


def test_a_saved_checkpoint_reads_back(good, model):
    state = read_checkpoint(good, model)
    assert state["global_step"] == 8
    assert all(
        torch.equal(value, model.state_dict()[name]) for name, value in state["state_dict"].items()
    )
    assert torch.equal(WholeFiles().load_checkpoint(good)["state_dict"]["bias"], model.bias)


def test_a_system_that_refuses_a_limit_of_memory_reads_it_all_the_same_as_macos_does(
    good, model, monkeypatch
):
    def refuse(*_):
        # Python's words for the system's EINVAL
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr("resource.setrlimit", refuse)
    assert read_checkpoint(good, model)["global_step"] == 8


def test_epochs_without_a_loss_are_part_of_a_checkpoint(good, model):
    WholeFiles().save_checkpoint(
        {
            "state_dict": model.state_dict(),
            **PLACE,
            "callbacks": {"RankReport": {"losses": [None, 0.5]}},
        },
        good,
    )
    assert read_checkpoint(good, model)["callbacks"]["RankReport"]["losses"] == [None, 0.5]


def test_nothing_is_left_beside_a_saved_checkpoint(good):
    assert [path.name for path in good.parent.iterdir()] == ["last.ckpt"]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.999])
def test_a_torn_checkpoint_is_refused_wherever_it_is_torn(good, model, share):
    good.write_bytes(good.read_bytes()[: int(good.stat().st_size * share)])
    with pytest.raises(LaunchError, match="is incomplete or not a checkpoint at all"):
        read_checkpoint(good, model)


@pytest.mark.parametrize("write", ["zip", "old"])
def test_a_hostile_checkpoint_is_refused_and_runs_nothing(tmp_path, model, write):
    ran, path = tmp_path / "ran", tmp_path / "evil.ckpt"
    if write == "zip":
        torch.save({"state_dict": Trap(ran)}, path)
    else:
        path.write_bytes(pickle.dumps(Trap(ran), protocol=2))
    with pytest.raises(
        LaunchError, match=r"was refused: it holds a pickled call .* None of it ran"
    ):
        read_checkpoint(path, model)
    with pytest.raises(pickle.UnpicklingError):
        WholeFiles().load_checkpoint(path, weights_only=False)
    assert not ran.exists()


@pytest.mark.parametrize("content", [{"epoch": 1}, [1, 2], torch.zeros(3)])
def test_a_file_of_tensors_that_is_no_training_is_refused(tmp_path, model, content):
    torch.save(content, tmp_path / "x.ckpt")
    with pytest.raises(LaunchError, match="is not a checkpoint of a Lightning training"):
        read_checkpoint(tmp_path / "x.ckpt", model)


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": 10**9},
        {"epoch": -1},
        {"epoch": "1"},
        {"global_step": [8]},
        {"state_dict": [1]},
        {"state_dict": {1: torch.zeros(1)}},
        {"state_dict": {"weight": 5, "bias": 5}},
        {"optimizer_states": 3},
        {"optimizer_states": None},
        {"callbacks": {"RankReport": {}}},
        {"callbacks": {"RankReport": {"losses": "text"}}},
        {"callbacks": {"RankReport": {"losses": ["text"]}}},
        {"callbacks": 3},
        {"callbacks": {"RankReport": 3}},
        {"callbacks": {"RankReport": {"losses": []}, "another": [1]}},
        {"lr_schedulers": 3},
        {"lr_schedulers": [3]},
        {"pytorch-lightning_version": []},
        {"pytorch-lightning_version": ""},
    ],
)
def test_a_checkpoint_with_a_part_of_the_wrong_kind_is_refused(tmp_path, model, change):
    torch.save({"state_dict": model.state_dict(), **PLACE, **change}, tmp_path / "x.ckpt")
    with pytest.raises(LaunchError, match="is not a checkpoint of a Lightning training"):
        read_checkpoint(tmp_path / "x.ckpt", model)


class Trained(torch.nn.Linear):
    def __init__(self, make):
        super().__init__(3, 2)
        self.make = make

    def configure_optimizers(self):
        return self.make(self.parameters())


SGD, ADAM = (partial(kind, lr=0.1) for kind in (torch.optim.SGD, torch.optim.Adam))
BOTH = {
    "with its schedule": lambda parameters: {"optimizer": SGD(parameters)},
    "in lists": lambda p: ([SGD(p)], []),
}


@pytest.mark.parametrize(
    ("there", "here", "why"), [(ADAM, SGD, "'momentum'"), (SGD, ADAM, "'betas'")]
)
def test_the_checkpoint_of_another_optimizer_is_refused(tmp_path, there, here, why):
    state = there(Trained(there).parameters()).state_dict()
    module = Trained(here)
    content = {"state_dict": module.state_dict(), **PLACE, "optimizer_states": [state]}
    torch.save(content, tmp_path / "x.ckpt")
    with pytest.raises(LaunchError, match=f"was written with another optimizer: .*{why}"):
        read_checkpoint(tmp_path / "x.ckpt", module)
    torch.save({**content, "optimizer_states": []}, tmp_path / "x.ckpt")
    with pytest.raises(LaunchError, match="IndexError"):
        read_checkpoint(tmp_path / "x.ckpt", module)


@pytest.mark.parametrize(
    ("there", "good"),
    [
        ({"total": {"ready": 2}, "is_last": False}, True),
        ({"total": {"ready": 2}, "is_last": None}, True),
        ({"total": {"ready": -(10**12)}, "is_last": False}, False),
        ({"total": {"ready": "2"}, "is_last": False}, False),
        ({"total": {"ready": [2]}, "is_last": False}, False),
        ({"total": {"ready": float("nan")}, "is_last": False}, False),
        ({"total": 2, "is_last": False}, False),
        ({"total": {}, "is_last": False}, False),
        ({"is_last": False}, False),
        ([], False),
    ],
)
def test_the_place_in_the_training_is_compared_with_what_a_trainer_keeps(
    tmp_path, model, there, good
):
    torch.save(
        {"state_dict": model.state_dict(), **PLACE, "loops": {"fit_loop": there}},
        tmp_path / "x.ckpt",
    )
    template = {"total": {"ready": 0}, "is_last": True}
    if good:
        assert read_checkpoint(tmp_path / "x.ckpt", model, template)["loops"]["fit_loop"] == there
    else:
        with pytest.raises(LaunchError, match="is not a checkpoint of a Lightning training"):
            read_checkpoint(tmp_path / "x.ckpt", model, template)


def after_a_step(make):
    """Return a module, and what its optimizer keeps after a step."""
    module = Trained(make)
    optimizer = make(module.parameters())
    module(torch.ones(1, 3)).sum().backward()
    optimizer.step(lambda: module(torch.ones(1, 3)).sum())
    return module, {
        "state_dict": module.state_dict(),
        **PLACE,
        "optimizer_states": [optimizer.state_dict()],
    }


@pytest.mark.parametrize("other", [torch.zeros(2), torch.zeros(1), "text"])
def test_a_fused_optimizers_state_of_another_shape_is_refused(tmp_path, other):
    """It would read past its end."""
    module, content = after_a_step(partial(ADAM, fused=True))
    torch.save(content, tmp_path / "x.ckpt")
    assert read_checkpoint(tmp_path / "x.ckpt", module)["global_step"] == 8
    content["optimizer_states"][0]["state"][0]["exp_avg"] = other
    torch.save(content, tmp_path / "x.ckpt")
    with pytest.raises(
        LaunchError, match=r"'exp_avg' has shape .* for weights of \(2, 3\)|'str' object"
    ):
        read_checkpoint(tmp_path / "x.ckpt", module)


@pytest.mark.parametrize("make", [torch.optim.Adafactor, torch.optim.LBFGS])
def test_an_optimizer_that_keeps_other_shapes_than_its_weights_goes_on(tmp_path, make):
    module, content = after_a_step(make)
    torch.save(content, tmp_path / "x.ckpt")
    assert read_checkpoint(tmp_path / "x.ckpt", module)["global_step"] == 8


@pytest.mark.parametrize("make", [SGD, *BOTH.values()])
def test_the_same_optimizer_goes_on_in_whichever_form_a_lesson_returns_it(tmp_path, make):
    module = Trained(make)
    states = [SGD(module.parameters()).state_dict()]
    torch.save(
        {"state_dict": module.state_dict(), **PLACE, "optimizer_states": states},
        tmp_path / "x.ckpt",
    )
    assert read_checkpoint(tmp_path / "x.ckpt", module)["global_step"] == 8


def test_weights_that_are_not_finite_are_refused(tmp_path, model):
    model.bias.data[1] = float("nan")
    torch.save({"state_dict": model.state_dict(), **PLACE}, tmp_path / "x.ckpt")
    with pytest.raises(LaunchError, match="weights that are not finite numbers: 'bias'"):
        read_checkpoint(tmp_path / "x.ckpt", model)


def test_a_pipe_in_place_of_a_checkpoint_is_refused_at_once(tmp_path, model):
    os.mkfifo(tmp_path / "x.ckpt")
    with pytest.raises(LaunchError, match="is not an ordinary file"):
        read_checkpoint(tmp_path / "x.ckpt", model)


class Unfolds:
    def __reduce__(self):
        return bytearray, (6 * 10**9,)


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux limits the address space"
)
def test_a_small_file_that_asks_for_much_memory_is_refused(tmp_path, model):
    torch.save({"state_dict": Unfolds(), **PLACE}, tmp_path / "x.ckpt")
    with pytest.raises(
        LaunchError, match=r"is incomplete or not a checkpoint at all .*MemoryError"
    ):
        read_checkpoint(tmp_path / "x.ckpt", model)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (torch.nn.Linear(3, 5), r"'bias' has shape \(2,\) there and \(5,\) here"),
        (torch.nn.Linear(3, 2, bias=False), r"'bias' has shape \(2,\) there and none here"),
        (
            torch.nn.Sequential(torch.nn.Linear(3, 2)),
            r"'0.bias' has shape none there and \(2,\) here",
        ),
    ],
)
def test_the_checkpoint_of_another_model_is_refused_with_the_difference(good, other, message):
    with pytest.raises(LaunchError, match=message):
        read_checkpoint(good, other)


def test_a_full_disk_names_the_folder_and_the_space_and_keeps_the_previous_one(
    good, model, monkeypatch
):
    before = good.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        OSError, match=r"no space for the checkpoint: it takes .* kB, and the disk of"
    ) as error:
        WholeFiles().save_checkpoint({"state_dict": {}, "epoch": 2, "global_step": 16}, good)
    assert str(good.parent) in str(error.value) and "MB free" in str(error.value)
    assert "The previous checkpoint is still whole" in str(error.value)
    assert good.read_bytes() == before and len(list(good.parent.iterdir())) == 1


def test_another_error_of_the_disk_is_passed_on_as_it_is(tmp_path, monkeypatch):
    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output error"):
        WholeFiles().save_checkpoint({}, tmp_path / "a.ckpt")
    assert list(tmp_path.iterdir()) == []


def test_infinity_that_a_buffer_holds_from_the_start_is_no_fault_and_that_of_a_weight_is(
    tmp_path, model
):
    """Such as a mask of attention, or the best loss so far."""
    model.register_buffer("mask", torch.tensor([0.0, -torch.inf]))
    state = {
        "state_dict": {name: value.clone() for name, value in model.state_dict().items()},
        **PLACE,
    }
    torch.save(state, tmp_path / "x.ckpt")
    assert read_checkpoint(tmp_path / "x.ckpt", model)["global_step"] == 8
    state["state_dict"]["bias"][0] = torch.inf
    torch.save(state, tmp_path / "x.ckpt")
    with pytest.raises(LaunchError, match="weights that are not finite numbers: 'bias'"):
        read_checkpoint(tmp_path / "x.ckpt", model)


def test_a_training_with_fewer_optimizer_steps_than_epochs_goes_on(tmp_path, model):
    torch.save(
        {"state_dict": model.state_dict(), **PLACE, "epoch": 3, "global_step": 1},
        tmp_path / "x.ckpt",
    )
    assert read_checkpoint(tmp_path / "x.ckpt", model)["epoch"] == 3


def test_what_a_resumed_run_will_refuse_is_said_when_it_is_saved(tmp_path, model):
    held = {
        "state_dict": model.state_dict(),
        **PLACE,
        "hyper_parameters": {"trap": Trap(tmp_path / "trap")},
    }
    with pytest.warns(
        UserWarning,
        match=r"--resume will refuse this checkpoint, since it holds .*exec.* Keep them out",
    ):
        WholeFiles().save_checkpoint(held, tmp_path / "x.ckpt")
    with pytest.raises(LaunchError, match="was refused"):
        read_checkpoint(tmp_path / "x.ckpt", model)


class Counts(torch.nn.Linear):
    def get_extra_state(self):
        return {"seen": 5}

    def set_extra_state(self, state):
        self.seen = state["seen"]


def test_what_a_module_keeps_beside_its_tensors_is_part_of_a_checkpoint(tmp_path):
    path, module = tmp_path / "last.ckpt", Counts(1, 1)
    torch.save({**PLACE, "state_dict": module.state_dict()}, path)
    module.load_state_dict(read_checkpoint(path, module)["state_dict"])
    assert module.seen == 5
