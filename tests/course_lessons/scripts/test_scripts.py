"""The training scripts: as they are, they train alike, and are what the lessons show; and with
another network, data and loss in their marked places.
"""

import ast
import json
import os
import re
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from course_lessons.scripts import FOLDER, show_diff
from course_lessons.setup import use_kernel_python
from start_python import Program, environment, python, torchrun

ALONE = ["train_cpu.py", "train_gpu.py", "train_fast.py"]
UNDER_TORCHRUN = ["train_ddp.py", "train_fsdp.py"]
SCRIPTS = sorted(path.name for path in FOLDER.glob("train_*.py"))
SMALL = ("--images", "600", "--batch", "128")  # four steps an epoch


class Runner:
    """Runs scripts in a folder of its own, each process with one thread, without the network."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.variables = {"OMP_NUM_THREADS": "1", "PJRT_DEVICE": "CPU", "CUDA_VISIBLE_DEVICES": ""}

    def run(self, script: str, *options: str) -> dict[int, float]:
        words = [FOLDER / script, *SMALL, *options]
        how = {"cwd": self.folder, **self.variables}
        with_ranks = script in UNDER_TORCHRUN or "ddp" in options
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
def test_a_simulated_gpu_computes_the_weights_of_the_cpu(runner, plain, script):
    exact = ("--bits", "32") if script == "train_fast.py" else ()
    words = [*REHEARSAL, FOLDER / script, *SMALL, "--epochs", "3", *exact]
    done = python(*words, cwd=runner.folder, **runner.variables)
    assert not done.returncode, done.stderr
    assert "simulated GPU" in done.stderr and losses(done.stdout) == plain[0]
    for name, weight in runner.weights().items():
        assert torch.equal(weight, plain[1][name]), name


@pytest.mark.slow
def test_on_a_simulated_t4_the_scaled_loss_changes_no_limit_of_the_gradients(runner, plain):
    words = (*REHEARSAL, "--capability", "7.5", FOLDER / "train_fast.py", *SMALL, "--epochs", "2")
    done = python(*words, cwd=runner.folder, **runner.variables)
    assert not done.returncode, done.stderr
    assert losses(done.stdout) == pytest.approx(first(2, plain[0]), rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("script", UNDER_TORCHRUN)
def test_two_simulated_gpus_train_as_two_ranks_on_the_cpu(runner, script):
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
def test_lightning_on_simulated_gpus_trains_to_the_weights_of_the_cpu(runner, devices):
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


DIFFER = ("read_arguments", "main")
# what is a script's own: a share of the state, and how XLA saves and moves
OWN = {("train_fsdp.py", "find_checkpoint")}
OWN |= {("train_xla.py", "save_checkpoint"), ("train_xla.py", "move")}


def test_a_function_is_the_same_text_in_every_script_that_has_it():
    texts, own = {}, {}
    for script in SCRIPTS:
        source = (FOLDER / script).read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name not in DIFFER:
                text = ast.get_source_segment(source, node)
                if (script, node.name) in OWN:
                    own[node.name] = text
                else:
                    texts.setdefault(node.name, set()).add(text)
    assert not [name for name, found in texts.items() if len(found) > 1]
    (find,), (save,) = texts["find_checkpoint"], texts["save_checkpoint"]
    assert own["save_checkpoint"] == save.replace("torch.save(", "xm.save(")
    at = find.index("            optimizer = parts")
    assert own["find_checkpoint"] == find[:at] + find[find.index("            return state") :]


@pytest.mark.parametrize("batch", [tuple, list])
def test_every_tensor_of_a_batch_is_moved_and_all_else_stays(batch):
    class Pair(NamedTuple):
        one: torch.Tensor
        other: str

    move = runpy.run_path(str(FOLDER / "train_gpu.py"))["move"]
    ones = torch.ones(2)
    moved = move(batch([{"a": [ones], "b": None}, Pair(ones, "text")]), "meta")
    assert type(moved) is batch and type(moved[1]) is Pair and moved[1].other == "text"
    assert moved[0].keys() == {"a", "b"} and moved[0]["b"] is None
    assert moved[0]["a"][0].is_meta and moved[1].one.is_meta


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


# With another network, data and loss.


EPOCH = re.compile(r"^epoch (\d+)  loss (\S+)  (.*?)  \S+ s$", re.M)

# It has dropout, no attribute `layers`, and a layer in a list of its own.
NETWORK = """class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.ModuleList([nn.Linear(8, 16)])
        self.dropout, self.last = nn.Dropout(0.5), nn.Linear(16, OUTPUTS)

    def forward(self, inputs):
        return self.last(self.dropout(torch.relu(self.first[0](inputs))))
"""
SORTED_BY_CLASS = """    labels = torch.arange(3).repeat_interleave(40)
    inputs = torch.randn(120, 8, generator=torch.Generator().manual_seed(1)) + labels[:, None]
    data = TensorDataset(inputs, labels)
"""
FLOATS = """    inputs = torch.randn(120, 8, generator=torch.Generator().manual_seed(1))
    data = TensorDataset(inputs, inputs.sum(1, keepdim=True))
"""
REGRESSION = """def compute_loss(outputs, targets):
    return F.mse_loss(outputs, targets)


def measure(outputs, targets):
    return F.mse_loss(outputs, targets)


METRIC = "error {:.4f}"
"""
# Sentences of one to nine numbers of a word each, in a dict, with the class of the first word.
SENTENCES = """    draw = torch.Generator().manual_seed(1)
    data = []
    for length in torch.randint(1, 10, (120,), generator=draw).tolist():
        words = torch.randint(0, 30, (length,), generator=draw)
        data.append(({"words": words, "text": "made up"}, words[0] % 3))
"""
PADDED = """def collate(samples):
    words = [sample["words"] for sample, _ in samples]
    lengths = torch.tensor([len(each) for each in words])
    padded = nn.utils.rnn.pad_sequence(words, batch_first=True)
    targets = {"classes": torch.stack([label for _, label in samples])}
    return {"padded": padded, "lengths": lengths, "texts": ["", ""]}, targets
"""
WORDS = """class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.last = nn.Embedding(30, 16), nn.Linear(16, 3)

    def forward(self, batch):
        mask = torch.arange(batch["padded"].shape[1]) < batch["lengths"][:, None]
        embedded = self.embed(batch["padded"]) * mask[:, :, None]
        return {"scores": self.last(embedded.sum(1) / batch["lengths"][:, None])}
"""
CLASSES_IN_DICTS = """def compute_loss(outputs, targets):
    return F.cross_entropy(outputs["scores"], targets["classes"])


def measure(outputs, targets):
    return outputs["scores"].argmax(1) == targets["classes"]  # a number for each sample


METRIC = "accuracy {:.1%}"
"""
# Eight equal layers of 4.2 MB each.
EQUAL_LAYERS = """class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(1024, 1024, bias=False) for _ in range(8)])

    def forward(self, inputs):
        return self.layers(inputs)
"""
WIDE = """    data = TensorDataset(torch.randn(40, 1024), torch.arange(40) % 3)
"""
# Runs scripts one after the other in one process, as a terminal would in several.
DRIVER = """import json, runpy, sys

for name, *arguments in json.loads(sys.argv[1]):
    print("RUN", flush=True)
    sys.argv = [name, *arguments]
    runpy.run_path(name, run_name="__main__")
"""


def with_own_places(script, *, data, outputs, network=NETWORK, collate=None, loss=None):
    """Return the text of a script in whose marked places stands another training."""
    text = (FOLDER / script).read_text(encoding="utf-8")
    network = network.replace("OUTPUTS", str(outputs))
    text = re.sub(r"(?s)class Network\(.*?(?=\n\n# YOUR DATA)", lambda _: network, text)
    text = re.sub(r"(?s)    from course_lessons.*?(?=    held_out)", lambda _: data, text)
    if collate:
        text = re.sub(r"collate = .*\n", lambda _: collate, text)
    if loss:
        text = re.sub(r"(?s)def compute_loss.*?(?=\n\n(def|class) )", lambda _: loss, text)
        end = text.index(loss) + len(loss)
        text = text[:end] + re.sub(r"(?s)\A.*?METRIC = [^\n]*\n", "", text[end:], count=1)
    assert "course_" not in text
    return text


# One thread, no GPU, and nothing of the course on the path.
VARIABLES = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": None}


def run(folder, *words, **variables):
    """Run Python with these words, and return what it printed."""
    done = python(*words, cwd=folder, **VARIABLES, **variables)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


def run_in_one_process(folder, *runs):
    (folder / "driver.py").write_text(DRIVER)
    output = run(folder, "driver.py", json.dumps(runs))
    return output.split("RUN\n")[1:]


def run_ranks(folder, script, *arguments, ranks=2):
    """Run a script as torchrun would, and return what its ranks printed."""
    done = torchrun(ranks, script, *arguments, cwd=folder, **VARIABLES)
    assert [each.returncode for each in done] == [0] * ranks, [each.stderr[-3000:] for each in done]
    return "".join(each.stdout for each in done)


def weights(path):
    state = torch.load(path, weights_only=True)
    return state.get("network") or state["state_dict"]


def assert_same_weights(one, other):
    one, other = weights(one), weights(other)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.process
def test_a_resumed_run_with_dropout_ends_with_the_weights_of_an_unbroken_one(tmp_path):
    runs = []
    alone = {"train_lightning.py": ("--accelerator", "cpu", "--devices", "1")}
    scripts = [*ALONE, *alone]
    for script in scripts:
        text = with_own_places(script, data=SORTED_BY_CLASS, outputs=3)
        (tmp_path / script).write_text(text)
        ending = "ckpt" if script in alone else "pt"
        whole, broken = f"whole_{script}.{ending}", f"broken_{script}.{ending}"
        options = ["--batch", "16", *alone.get(script, ())]
        runs.append([script, *options, "--epochs", "4", "--resume", "--checkpoint", whole])
        for epochs in ("2", "4"):
            runs.append([script, *options, "--epochs", epochs, "--resume", "--checkpoint", broken])
    outputs = run_in_one_process(tmp_path, *runs)
    for number, script in enumerate(scripts):
        whole, before, after = (EPOCH.findall(each) for each in outputs[3 * number :][:3])
        assert len(whole) == 4 and before + after == whole, script
        paths = [next(tmp_path.glob(f"{kind}_{script}.*")) for kind in ("whole", "broken")]
        assert_same_weights(*paths)


@pytest.mark.process
@pytest.mark.parametrize("script", UNDER_TORCHRUN)
def test_a_resumed_run_of_two_ranks_with_dropout_and_workers_is_exact(tmp_path, script):
    own = tmp_path / script
    own.write_text(with_own_places(script, data=SORTED_BY_CLASS, outputs=3))
    options = ["--batch", "16", "--workers", "1", "--resume", "--checkpoint"]
    whole = run_ranks(tmp_path, own, *options, "new/whole.pt", "--epochs", "3")
    before = run_ranks(tmp_path, own, *options, "broken.pt", "--epochs", "1")
    after = run_ranks(tmp_path, own, *options, "broken.pt", "--epochs", "3", "--lr", "9")
    assert "broken.pt: 1 of 3 epochs done, lr 0.001" in after
    assert EPOCH.findall(before) + EPOCH.findall(after) == EPOCH.findall(whole)
    assert_same_weights(tmp_path / "new/whole.pt", tmp_path / "broken.pt")


@pytest.mark.slow
def test_one_command_starts_a_run_and_continues_it_after_a_rank_was_killed(tmp_path):
    text = with_own_places("train_ddp.py", data=SORTED_BY_CLASS, outputs=3)
    dying = """    if sampler.epoch == 2 and rank == 1 and not os.path.exists("died"):
            open("died", "w").close()
            os.kill(os.getpid(), 9)
"""
    at = "        sampler.set_epoch(epoch)\n"
    (tmp_path / "whole.py").write_text(text)
    (tmp_path / "dying.py").write_text(text.replace(at, at + "    " + dying))
    options = ["--batch", "16", "--epochs", "4", "--resume", "--checkpoint"]
    whole = run_ranks(tmp_path, "whole.py", *options, "whole.pt")
    launch = ["-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    launch += ["--max-restarts", "2", "--nproc-per-node", "2", "dying.py"]
    connect = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}  # also after a restart
    printed = run(tmp_path, *launch, *options, "last.pt", **connect)
    assert (tmp_path / "died").exists()
    assert "last.pt: 2 of 4 epochs done" in printed
    assert EPOCH.findall(printed) == EPOCH.findall(whole)
    assert_same_weights(tmp_path / "whole.pt", tmp_path / "last.pt")


@pytest.mark.process
def test_a_regression_needs_only_the_marked_places(tmp_path):
    scripts = [*ALONE, "train_lightning.py"]
    for script in scripts:
        text = with_own_places(script, data=FLOATS, outputs=1, loss=REGRESSION)
        (tmp_path / script).write_text(text.replace("Dropout(0.5)", "Dropout(0.0)"))
    runs = [[script, "--batch", "16", "--lr", "0.01"] for script in scripts]
    runs[-1] += ["--accelerator", "cpu", "--devices", "1"]
    outputs = run_in_one_process(tmp_path, *runs)
    expected = EPOCH.findall(outputs[0])
    losses = [float(loss) for _, loss, _ in expected]
    assert losses[0] > losses[1] > losses[2] > 0
    assert all(EPOCH.findall(each) == expected for each in outputs)
    # 12 samples are held out, in a batch of this size: what F.mse_loss gives is what is printed.
    names = {"__name__": "own"}
    exec((tmp_path / "train_cpu.py").read_text(), names)
    network = names["Network"]().eval()
    network.load_state_dict(weights(tmp_path / "checkpoint.pt"))
    inputs, targets = (torch.stack(each) for each in zip(*names["load_data"](120)[1], strict=True))
    error = torch.nn.functional.mse_loss(network(inputs), targets)
    assert expected[-1][2] == f"error {error:.4f}"


@pytest.mark.process
def test_dicts_with_sentences_of_different_lengths_need_only_the_marked_places(tmp_path):
    places = {"data": SENTENCES, "network": WORDS, "collate": PADDED, "loss": CLASSES_IN_DICTS}
    scripts = [*ALONE, "train_lightning.py"]
    for script in [*scripts, "train_fsdp.py"]:
        (tmp_path / script).write_text(with_own_places(script, outputs=3, **places))
    runs = [[script, "--batch", "16", "--lr", "0.01", "--epochs", "2"] for script in scripts]
    runs[-1] += ["--accelerator", "cpu", "--devices", "1"]
    outputs = [EPOCH.findall(each) for each in run_in_one_process(tmp_path, *runs)]
    assert len(outputs[0]) == 2 and all(each == outputs[0] for each in outputs)
    # One rank of two has seven batches of 8 samples where all together have seven of 16.
    printed = run_ranks(tmp_path, "train_fsdp.py", *runs[0][1:], "--checkpoint", "fsdp.pt")
    for (_, one, _), (_, other, _) in zip(EPOCH.findall(printed), outputs[0], strict=True):
        assert float(one) == pytest.approx(float(other), abs=0.03)


@pytest.mark.process
def test_no_rank_of_fsdp_holds_more_than_its_share_and_a_layer(tmp_path):
    """Counted by a program that knows each piece of memory that an operation returns."""
    text = with_own_places("train_fsdp.py", data=WIDE, outputs=0, network=EQUAL_LAYERS)
    (tmp_path / "own.py").write_text(text)
    layer, share = 1024 * 1024 * 4, 4 * 1024 * 1024 * 4
    little = layer // 4  # all that is not a weight: a batch, its activations
    for epochs, moments in (("1", 0), ("2", 2 * share)):
        counter = Path(__file__).with_name("bytes_alive.py")
        options = ["--batch", "36", "--bits", "16", "--resume", "--epochs", epochs]
        printed = run_ranks(tmp_path, counter, "own.py", *options)
        found = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
        assert len(found) == 2
        for rank in found:
            assert rank["moved"] == 0  # the rank's device never gets the whole network
            assert rank["sent"] <= layer  # nor the whole checkpoint
            assert share <= rank["before"] - moments <= share + little
            assert share <= rank["between"] - moments <= share + layer + little
            assert 2 * share <= rank["after"] - moments <= 2 * share + layer + little


@pytest.mark.process
def test_fsdp_continues_what_ddp_began_and_splits_a_batch_into_parts(tmp_path):
    for script in UNDER_TORCHRUN:
        text = with_own_places(script, data=SORTED_BY_CLASS, outputs=3)
        (tmp_path / script).write_text(text.replace("Dropout(0.5)", "Dropout(0.0)"))
    options = ["--batch", "16", "--resume", "--checkpoint"]
    whole = run_ranks(tmp_path, "train_ddp.py", *options, "whole.pt", "--epochs", "3")
    run_ranks(tmp_path, "train_ddp.py", *options, "begun.pt", "--epochs", "1")
    options += ["begun.pt", "--epochs", "3", "--parts", "4"]
    after = run_ranks(tmp_path, "train_fsdp.py", *options)
    assert "begun.pt: 1 of 3 epochs done" in after
    pairs = zip(EPOCH.findall(after), EPOCH.findall(whole)[1:], strict=True)
    for (_, one, measured), (_, other, also) in pairs:
        assert float(one) == pytest.approx(float(other), abs=2e-4) and measured == also


def test_layers_that_share_weights_and_lists_in_lists_are_sharded_once(monkeypatch):
    """As a language model does, whose first and last layer use the same weights."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = (
                torch.nn.Embedding(9, 4),
                torch.nn.Linear(4, 9),
            )  # its bias is its own
            self.head.weight = self.embed.weight
            self.scale = torch.nn.ParameterList([torch.ones(4)])
            normal = torch.nn.BatchNorm1d(4)
            blocks = [torch.nn.Sequential(torch.nn.Linear(4, 4), normal), torch.nn.Linear(4, 4)]
            self.blocks = torch.nn.ModuleList([torch.nn.ModuleList(blocks)])

    names = runpy.run_path(str(FOLDER / "train_fsdp.py"))
    shard, sharded = names["shard"], {}
    shard.__globals__["fully_shard"] = lambda layer, **how: sharded.update({layer: how})
    model = Model()
    shard(model, None, torch.bfloat16)
    first, second = model.blocks[0]
    assert [*sharded][-1] is model and model.embed not in sharded and model.head not in sharded
    assert {first[0], first, second} <= set(sharded) and model.scale not in sharded
    # The running mean of batch normalization has 32 bits, and so has to have its weight.
    assert sharded[first[1]]["mp_policy"].param_dtype is None
    assert sharded[first[0]]["mp_policy"].param_dtype is torch.bfloat16
    assert not any(isinstance(each, torch.nn.ModuleList) for each in sharded)


@pytest.mark.process
@pytest.mark.parametrize(("images", "batch", "ranks"), [(61, 16, 3), (40, 2, 2)])
def test_odd_batches_and_one_sample_a_rank_give_fsdp_the_loss_of_ddp(
    tmp_path, images, batch, ranks
):
    data = SORTED_BY_CLASS.replace("(inputs,", "(inputs[:limit],").replace(
        " labels)", " labels[:limit])"
    )
    printed = []
    for script in UNDER_TORCHRUN:
        own = tmp_path / script
        own.write_text(with_own_places(script, data=data, outputs=3).replace("(0.5)", "(0.0)"))
        options = ["--images", str(images), "--batch", str(batch), "--epochs", "2"]
        options += ["--checkpoint", f"{script}.pt"]
        printed.append(EPOCH.findall(run_ranks(tmp_path, own, *options, ranks=ranks)))
    for (_, one, measured), (_, other, also) in zip(*printed, strict=True):
        assert float(one) == pytest.approx(float(other), abs=2e-4) and measured == also


@pytest.mark.parametrize("script", [*ALONE, *UNDER_TORCHRUN])
def test_every_class_is_held_out_from_data_that_is_sorted_by_class(script):
    names = {"__name__": "own"}
    exec(with_own_places(script, data=SORTED_BY_CLASS, outputs=3), names)
    train, valid = names["load_data"](120)
    assert {int(label) for _, label in valid} == {int(label) for _, label in train} == {0, 1, 2}


def test_float_targets_of_one_column_are_refused_by_the_loss_for_classes(tmp_path, monkeypatch):
    names = {"__name__": "own"}
    exec(with_own_places("train_cpu.py", data=FLOATS, outputs=1), names)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["own.py"])
    with pytest.raises(TypeError, match="not class numbers"):
        names["main"]()


@pytest.mark.slow
@pytest.mark.parametrize("script", ["train_cpu.py", "train_lightning.py"])
def test_a_kill_within_a_save_leaves_the_checkpoint_before(tmp_path, script):
    """Lightning itself would write into TMPDIR, and copy from there over the old checkpoint."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system for TMPDIR")
    own = with_own_places(script, data=SORTED_BY_CLASS, outputs=3)
    (tmp_path / "own.py").write_text(own.replace("16", "100_000"))  # 14 MB with Adam's moments
    saved = tmp_path / "saved" / "last.ckpt"
    on_cpu = ["--accelerator", "cpu", "--devices", "1"] if script == "train_lightning.py" else []
    command = ["own.py", *on_cpu, "--resume", "--checkpoint", saved, "--epochs"]
    run(tmp_path, *command, "1")
    whole = saved.stat().st_size
    variables = environment(**VARIABLES, TMPDIR=str(memory))
    training = Program([*command, "1000"], cwd=tmp_path, env=variables)
    while not any(0 < size < whole for size in sizes(saved.parent)):
        time.sleep(0.0005)
    os.kill(training.pid, signal.SIGKILL)  # within a save
    assert training.wait().returncode == -signal.SIGKILL
    state = torch.load(saved, weights_only=True)
    done = state["epoch"] + 1 if on_cpu else state["epochs"]
    printed = run(tmp_path, *command, str(done + 1))
    assert [int(epoch) for epoch, *_ in EPOCH.findall(printed)] == [done + 1]


def sizes(folder):
    """Yield the size of each file, unless it has just gone."""
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            yield path.stat().st_size
