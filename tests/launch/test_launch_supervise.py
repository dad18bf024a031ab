"""What a run hands to its processes, and what it says of its checkpoint, as decisions."""

import io
import json

import pytest

from course_utils.launch.clusters import Cluster
from course_utils.launch.link import REQUEST, Lines
from course_utils.launch.messages import LaunchError, RunError
from course_utils.launch.options import Options
from course_utils.launch.processes import only_one
from course_utils.launch.supervise import BEFORE, Run, launch
from course_utils.launch.view import View

BEAT = ("rank 0", {"step": 9, "where": ""})
HELLO = ("rank 0", {"hello": 1})


def run(out, *heard, resume=False, accelerator="cpu", cluster=None) -> Run:
    arguments = {"devices": 1, "num_nodes": 1, "strategy": "auto", "accelerator": accelerator}
    one = Run(
        Options("air_rnn", out=str(out), resume=resume), arguments, cluster or Cluster(), quiet()
    )
    for who, event in heard:
        one._take(who, event)
    return one


def quiet() -> View:
    return View(io.StringIO(), bar=False)


@pytest.fixture
def with_checkpoint(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "last.ckpt").touch()
    return tmp_path


def test_the_checkpoint_of_an_earlier_run_is_not_offered_to_one_that_did_not_begin_with_it(
    with_checkpoint,
):
    assert run(with_checkpoint).hint() == ""
    assert (
        "--resume continues from it"
        in run(with_checkpoint, ("rank 0", {"epoch": 1, "loss": 0.5})).hint()
    )


def test_without_a_checkpoint_there_is_no_hint(tmp_path):
    assert run(tmp_path, ("rank 0", {"epoch": 1, "loss": 0.5})).hint() == ""


def test_a_checkpoint_with_which_no_step_was_made_is_not_called_whole(with_checkpoint):
    resumed = ("main", {"resumed": 8})
    said = run(with_checkpoint, HELLO, resumed, resume=True).hint()
    # by a person, and no fault of it
    stopped = run(with_checkpoint, HELLO, resumed, resume=True).hint(stopped=True)
    assert "--resume continues from it" in stopped and "damaged" not in stopped
    assert "It had made no step since it read" in said and "without --resume" in said
    assert (
        "--resume continues from it"
        in run(with_checkpoint, HELLO, resumed, BEAT, resume=True).hint()
    )


def test_a_run_whose_loss_is_nan_ends_well_and_says_what_to_do(tmp_path):
    done = {"losses": [0.5, float("nan")], "steps": 8}
    one = run(tmp_path, HELLO, ("rank 0", {"done": done}), ("rank 0", {"finished": True}))
    assert one.finish().steps == 8
    said = one.view._stream.getvalue()
    assert said.startswith(
        "[launch] the loss has been nan since epoch 2: lower the learning rate, or look for NaN"
    )


def test_an_interrupt_while_pytorch_loads_is_no_fault_of_pytorch(tmp_path):
    for last, kind, said in (
        (
            "KeyboardInterrupt",
            RunError,
            "the first process ended with exit status 1 .* or it was interrupted",
        ),
        (
            "ImportError: no libcudart",
            LaunchError,
            "PyTorch or Lightning does not load: ImportError: no libcudart",
        ),
    ):
        one = run(tmp_path, (BEFORE, last))
        one._status = 1
        with pytest.raises(kind, match=said):
            one.finish()


def test_each_rank_may_say_that_it_continues_and_it_is_shown_once(with_checkpoint):
    resumed = ("main", {"resumed": 8})
    one = run(with_checkpoint, resumed, resumed, resume=True)
    assert one.view._stream.getvalue().count("continuing after step 8") == 1


def test_what_another_shell_has_left_stays_out_and_what_a_cluster_has_set_stays_in(
    tmp_path, monkeypatch
):
    for name, value in {"RANK": "3", "MASTER_PORT": "29500", "MINE": "kept"}.items():
        monkeypatch.setenv(name, value)
    alone = run(tmp_path)._environment("folder")
    assert (
        alone["MINE"] == "kept"
        and alone["TMPDIR"] == "folder"
        and not {"RANK", "MASTER_PORT"} & alone.keys()
    )
    together = run(tmp_path, cluster=Cluster("torchrun", 2, 1, 1))._environment("folder")
    assert together["RANK"] == "3" and together["MASTER_PORT"] == "29500"


def test_a_training_on_the_cpu_sees_no_gpu_whose_driver_could_hang(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert run(tmp_path)._environment("folder")["CUDA_VISIBLE_DEVICES"] == ""
    assert run(tmp_path, accelerator="cuda")._environment("folder")["CUDA_VISIBLE_DEVICES"] == "0"


def test_a_folder_in_use_is_refused_with_one_reason(tmp_path):
    with only_one(tmp_path), pytest.raises(LaunchError, match="is in use by") as error:
        launch(Options("air_rnn", accelerator="cpu", devices=1, out=str(tmp_path)), quiet())
    assert "cannot be used" not in str(error.value)


def test_a_lesson_may_leave_the_working_folder_and_have_arguments_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = Run(
        Options("mine.py:make", out="runs/x"),
        {"accelerator": "cpu", "devices": 1, "num_nodes": 1},
        Cluster(),
        quiet(),
    )
    options, arguments, folder = json.loads(one._environment("folder")[REQUEST])
    assert (options["lesson"], options["out"]) == (f"{tmp_path}/mine.py:make", f"{tmp_path}/runs/x")
    assert arguments["default_root_dir"] == options["out"]
    assert (
        folder == "folder"
        and json.loads(run("x")._environment("folder")[REQUEST])[0]["lesson"] == "air_rnn"
    )


def test_a_lesson_that_ends_the_training_early_is_said_to(tmp_path):
    assert (
        "[launch] after epoch 3"
        in run(tmp_path, ("rank 0", {"note": "after epoch 3"})).view._stream.getvalue()
    )


def test_an_interrupt_closes_the_bar_before_what_is_left_is_shown(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    one, order, close = run(tmp_path), [], Lines.close
    monkeypatch.setattr("course_utils.launch.supervise.process_group", interrupted)
    monkeypatch.setattr(Lines, "close", lambda lines: [*close(lines), ("rank 0", "bye")])
    monkeypatch.setattr(one.view, "close", lambda: order.append("closed"))
    monkeypatch.setattr(one, "_take", lambda who, message: order.append(message))
    with pytest.raises(KeyboardInterrupt):
        one.watch()
    assert order[:2] == ["closed", "bye"]


def test_of_the_calls_where_a_silent_rank_stands_those_inside_of_torch_are_left_out_but_the_innermost(
    tmp_path,
):
    inside = '  File "/x/site-packages/torch/{}.py", line 1 in {}'
    stack = [
        "Stack (most recent call first):",
        inside.format("a", "wait"),
        inside.format("b", "call"),
    ]
    stack += [
        '  File "lesson.py", line 7 in training_step',
        inside.format("c", "step"),
        inside.format("d", "fit"),
    ]
    silent = run(tmp_path)
    silent._silence = "rank 0 has been silent"
    for line in stack:
        silent._take("rank 0", line)
    with pytest.raises(RunError):
        silent.finish()
    shown = silent.view._stream.getvalue()
    assert "in wait" in shown and "line 7 in training_step" in shown
    assert "in call" not in shown and "in fit" not in shown


def test_a_result_names_the_file_with_what_the_lesson_logged(tmp_path):
    done = {"done": {"steps": 1, "losses": [0.5]}}
    assert run(tmp_path, HELLO, ("rank 0", done), ("rank 0", {"finished": True})).finish().log == ""
    (tmp_path / "metrics.csv").write_text("step")
    result = run(tmp_path, HELLO, ("rank 0", done), ("rank 0", {"finished": True})).finish()
    assert result.log == str(tmp_path / "metrics.csv") and result.log in repr(result)
