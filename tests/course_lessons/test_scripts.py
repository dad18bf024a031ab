"""The training scripts: they train alike, resume alike, and are what the lessons show."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from course_lessons.scripts import FOLDER, show_diff
from course_lessons.setup import use_kernel_python
from start_python import environment, python, torchrun

SCRIPTS = sorted(path.name for path in FOLDER.glob("train_*.py"))
FOR_RANKS = ("train_ddp.py", "train_fsdp.py")
SMALL = ("--images", "600", "--batch", "128")  # four steps an epoch


class Runner:
    """Runs scripts in a folder of its own, each process with one thread, without the network."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.variables = {"OMP_NUM_THREADS": "1", "PJRT_DEVICE": "CPU", "CUDA_VISIBLE_DEVICES": ""}

    def run(self, script: str, *options: str) -> dict[int, float]:
        words = [FOLDER / script, *SMALL, *options]
        how = {"cwd": self.folder, **self.variables}
        with_ranks = script in FOR_RANKS or "ddp" in options
        each = torchrun(2, *words, **how) if with_ranks else [python(*words, **how)]
        assert not any(done.returncode for done in each), [done.stderr for done in each]
        return losses(each[0].stdout)

    def popen(self, command: list) -> subprocess.Popen:
        kept = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        variables = environment(**self.variables)
        return subprocess.Popen(command, cwd=self.folder, env=variables, text=True, **kept)

    def weights(self) -> dict[str, torch.Tensor]:
        return torch.load(self.folder / "checkpoint.pt", map_location="cpu")["network"]


def losses(output: str) -> dict[int, float]:
    """Read the loss of each epoch off the lines that every script prints in the same form."""
    line = re.compile(r"^epoch (\d+)  loss (\d\.\d{4})  accuracy \d+\.\d%  \d+\.\d s$", re.M)
    return {int(epoch): float(loss) for epoch, loss in line.findall(output)}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The losses that train_cpu.py prints for three epochs, and the weights that it ends with."""
    runner = Runner(tmp_path_factory.mktemp("plain"))
    printed = runner.run("train_cpu.py", "--epochs", "3")
    assert list(printed) == [1, 2, 3]
    return printed, runner.weights()


def first(epochs, printed):
    return {epoch: printed[epoch] for epoch in range(1, epochs + 1)}


REHEARSAL = ("-m", "course_tools.rehearsal")


@pytest.mark.slow
@pytest.mark.parametrize("script", ["train_gpu.py", "train_fast.py"])
def test_a_pretended_gpu_computes_the_weights_of_the_cpu(runner, plain, script):
    exact = ("--bits", "32") if script == "train_fast.py" else ()
    words = [*REHEARSAL, FOLDER / script, *SMALL, "--epochs", "3", *exact]
    done = python(*words, cwd=runner.folder, **runner.variables)
    assert not done.returncode, done.stderr
    assert "pretended GPU" in done.stderr and losses(done.stdout) == plain[0]
    for name, weight in runner.weights().items():
        assert torch.equal(weight, plain[1][name]), name


@pytest.mark.slow
def test_on_a_pretended_t4_the_scaled_loss_changes_no_limit_of_the_gradients(runner, plain):
    words = (*REHEARSAL, "--capability", "7.5", FOLDER / "train_fast.py", *SMALL, "--epochs", "2")
    done = python(*words, cwd=runner.folder, **runner.variables)
    assert not done.returncode, done.stderr
    assert losses(done.stdout) == pytest.approx(first(2, plain[0]), rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("script", FOR_RANKS)
def test_two_pretended_gpus_train_as_two_ranks_on_the_cpu(runner, script):
    options = ("--epochs", "1", "--bits", "32")
    on_cpu = runner.run(script, *options, "--device", "cpu")
    weights = runner.weights()
    (runner.folder / "checkpoint.pt").unlink()
    words = (*REHEARSAL, FOLDER / script, *SMALL, *options)
    each = torchrun(2, *words, cwd=runner.folder, **runner.variables)
    assert not any(done.returncode for done in each), [done.stderr for done in each]
    assert losses(each[0].stdout) == on_cpu
    assert all(torch.equal(weight, weights[name]) for name, weight in runner.weights().items())


@pytest.mark.slow
@pytest.mark.parametrize("devices", ["1", "2"])
def test_lightning_on_pretended_gpus_trains_to_the_weights_of_the_cpu(runner, devices):
    def train(kind, *command):
        words = [*command, FOLDER / "train_lightning.py", *SMALL, "--epochs", "1"]
        words += ["--accelerator", kind, "--devices", devices, "--checkpoint", f"{kind}.ckpt"]
        done = python(*words, cwd=runner.folder, **runner.variables)
        assert not done.returncode, done.stderr
        saved = torch.load(runner.folder / f"{kind}.ckpt", map_location="cpu")["state_dict"]
        return losses(done.stdout), saved, done.stderr

    printed, weights, _ = train("cpu")
    found, rehearsed, report = train("gpu", *REHEARSAL, "--gpus", devices)
    assert found == printed and "Nothing ran on the GPU" not in report
    assert all(torch.equal(rehearsed[name], weight) for name, weight in weights.items())


@pytest.mark.slow
@pytest.mark.usefixtures("needs_xla")
def test_a_rehearsal_gives_the_script_for_xla_no_all_clear(runner):
    words = [*REHEARSAL, FOLDER / "train_xla.py", *SMALL, "--epochs", "1"]
    done = python(*words, cwd=runner.folder, **runner.variables)
    assert "Nothing ran on the GPU" in done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("needs_xla")
def test_several_xla_devices_compute_what_the_cpu_does(runner, plain):
    runner.variables |= {"CPU_NUM_DEVICES": "2"}
    script = FOLDER / "train_xla.py"
    done = python(script, *SMALL, "--epochs", "2", cwd=runner.folder, **runner.variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("on xla:0: CPU, devices: 2\n")
    assert losses(done.stdout) == pytest.approx(first(2, plain[0]), abs=2e-3)
    # They save what one continues.
    runner.variables |= {"CPU_NUM_DEVICES": "1"}
    last = runner.run("train_xla.py", "--epochs", "3", "--resume")
    assert last == pytest.approx({3: plain[0][3]}, abs=2e-3)


@pytest.mark.slow
def test_lightning_on_two_ranks_prints_the_losses_of_the_plain_script(runner, plain):
    two = ("--accelerator", "cpu", "--devices", "2", "--strategy", "ddp")
    printed = runner.run("train_lightning.py", "--epochs", "2", *two)
    assert printed == pytest.approx(first(2, plain[0]), abs=2e-4)


@pytest.mark.process
@pytest.mark.parametrize("script", ["train_fast.py", "train_fsdp.py"])
def test_sixteen_bits_end_within_one_percent_of_the_loss(runner, plain, script):
    printed = runner.run(script, "--epochs", "2", "--bits", "16")
    assert printed == pytest.approx(first(2, plain[0]), rel=0.01)


@pytest.mark.slow
def test_two_agents_of_torchrun_that_meet_by_rendezvous_train_like_one_process(runner, plain):
    script = [FOLDER / "train_ddp.py", *SMALL, "--epochs", "2"]
    meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}"]
    agent = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node"]
    agents = []
    for _ in range(2):
        agents.append(runner.popen([*agent, "1", *meeting, "--local-addr", "127.0.0.1", *script]))
    outputs = [each.communicate(timeout=300) for each in agents]
    assert [each.returncode for each in agents] == [0, 0], outputs
    printed = losses(outputs[0][0]) | losses(outputs[1][0])
    assert printed == pytest.approx(first(2, plain[0]), abs=2e-4)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_fits_a_projected_page(name):
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 92


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_has_three_marked_places_for_ones_own_work(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    places = re.findall(r"^# YOUR (\w+).*?, (\d) of 3", text, re.M)
    assert places == [("NETWORK", "1"), ("DATA", "2"), ("LOSS", "3")]


def test_a_script_that_does_not_exist_is_an_error_that_names_those_that_do():
    with pytest.raises(ValueError, match=r"train_tpu\.py.*train_xla\.py"):
        show_diff("train_cpu.py", "train_tpu.py")


@pytest.mark.parametrize(
    ("old", "new"), [("cpu", "gpu"), ("gpu", "fast"), ("fast", "ddp"), ("gpu", "xla")]
)
def test_a_diff_that_a_lesson_shows_holds_every_changed_line_and_fits_a_screen(old, new):
    diff = show_diff(f"train_{old}.py", f"train_{new}.py")
    before, after = [
        (FOLDER / f"train_{each}.py").read_text(encoding="utf-8").splitlines()
        for each in (old, new)
    ]
    for line in diff.lines:
        assert not line or line[2:] in (after if line[0] == "+" else before)
    # The new script is the old one without the lines that go and with those that come.
    kept = len([line for line in before if line.strip()]) - diff.removed
    assert kept + diff.added == len([line for line in after if line.strip()])
    assert diff.removed + diff.added <= 65
    assert "<module>" not in diff._repr_html_()


def test_a_diff_is_escaped_and_has_its_signs_in_text_and_in_colour():
    diff = show_diff("train_ddp.py", "train_fsdp.py")
    assert "&quot;" in diff._repr_html_() or "&#x27;" in diff._repr_html_()
    assert '"""' not in diff._repr_html_()
    assert any(line.startswith("+ ") for line in repr(diff).splitlines())


@pytest.mark.process
def test_the_python_of_a_shell_line_is_that_of_the_kernel(monkeypatch):
    monkeypatch.setenv("PATH", os.defpath)
    use_kernel_python()
    use_kernel_python()
    assert os.environ["PATH"].count(str(Path(sys.executable).parent)) == 1
    assert Path(shutil.which("python")).parent == Path(sys.executable).parent
