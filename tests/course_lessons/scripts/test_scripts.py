"""The training scripts with another network, data and loss in their marked places, and refusals."""

import gc
import itertools
import json
import os
import re
import runpy
import signal
import sys
import time
import zipfile
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from course_lessons.scripts import FOLDER
from start_python import Program, environment, python, torchrun
from torch.nn.parallel import DistributedDataParallel

ALONE = ["train_cpu.py", "train_gpu.py", "train_fast.py"]
UNDER_TORCHRUN = ["train_ddp.py", "train_fsdp.py"]
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


MEASURE = "error {:.4f}"
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


MEASURE = "accuracy {:.1%}"
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
        text = text[:end] + re.sub(r"(?s)\A.*?MEASURE = [^\n]*\n", "", text[end:], count=1)
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


def start(monkeypatch, script, *arguments, rank=None):
    """Run a script's main in this process, as one rank of one if a rank is given."""
    if rank is not None:
        alone = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1"}
        for name, value in (alone | {"MASTER_PORT": 0}).items():
            monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
    runpy.run_path(str(FOLDER / script), run_name="__main__")


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


def test_what_is_no_mean_and_no_number_for_each_sample_is_refused():
    names = {"__name__": "own"}
    exec((FOLDER / "train_cpu.py").read_text(), names)
    scores, labels = torch.eye(10), torch.arange(10)
    assert names["validate"](scores, labels, 10)[1] == 10  # all ten are right
    names["measure"] = lambda scores, labels: scores  # ten by ten
    with pytest.raises(ValueError, match=r"shape \[10, 10\], not a mean"):
        names["validate"](scores, labels, 10)


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
            self.embed, self.head = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 9, bias=False)
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


BAD = [
    ["--lr", "nan"],
    ["--lr", "inf"],
    ["--lr", "-1"],
    ["--epochs", "-1"],
    ["--epochs", "0"],
    ["--batch", "0"],
    ["--images", "-5"],
    ["--images", "1"],
    ["--epochs", "three"],
    ["--checkpoint", "."],
]
BAD += [["--checkpoint", each] for each in ("", "folder/", "/dev/null")]
MISSING = [["--device", "cuda"], ["--device", "gpu"], ["--device", "mps"]]  # the CPU is always here


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        *itertools.product(["train_cpu.py", "train_fast.py", "train_lightning.py"], BAD),
        *itertools.product(["train_gpu.py", "train_fast.py"], MISSING),
    ],
)
@pytest.mark.usefixtures("no_gpu")
def test_a_bad_argument_is_one_sentence(script, arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        start(monkeypatch, script, *arguments)
    *usage, sentence = capsys.readouterr().err.splitlines()
    assert usage[0].startswith("usage: ") and all(line[:1] == " " for line in usage[1:])
    assert arguments[0] in sentence
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [*BAD, *MISSING], ids=" ".join)
@pytest.mark.parametrize("script", UNDER_TORCHRUN)
@pytest.mark.usefixtures("no_gpu")
def test_one_rank_says_what_all_refuse(script, arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as first:
        start(monkeypatch, script, *arguments, rank=0)
    with pytest.raises(SystemExit) as second:
        start(monkeypatch, script, *arguments, rank=1)
    assert arguments[0] in first.value.code and "\n" not in first.value.code
    assert second.value.code == 0 and capsys.readouterr() == ("", "")


@pytest.mark.parametrize("script", UNDER_TORCHRUN)
def test_a_script_for_several_ranks_says_how_it_is_started(script, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(SystemExit, match=f"torchrun --standalone --nproc-per-node 2 {script}"):
        start(monkeypatch, script)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The arguments of a run of two steps, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    yield ["--images", 40, "--batch", 18]
    if dist.is_initialized():  # a run that failed
        dist.destroy_process_group()


@pytest.mark.parametrize("script", [*ALONE, *UNDER_TORCHRUN])
def test_a_save_that_fails_leaves_the_checkpoint_before(script, small, monkeypatch):
    rank = 0 if script in UNDER_TORCHRUN else None
    start(monkeypatch, script, *small, "--epochs", 1, rank=rank)
    saved = Path("checkpoint.pt").read_bytes()

    save = torch.save

    def fill_the_disk(state, path, **options):
        if not isinstance(path, str):  # what is sent to another rank
            return save(state, path, **options)
        Path(path).write_bytes(saved[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", fill_the_disk)
    with pytest.raises(OSError, match="No space left"):
        start(monkeypatch, script, *small, "--epochs", 2, "--resume", rank=rank)
    assert Path("checkpoint.pt").read_bytes() == saved
    assert os.listdir() == ["checkpoint.pt"]


WITH_CODE = {"epochs": 1, "network": {}, "optimizer": print}


@pytest.mark.parametrize("script", [*ALONE, *UNDER_TORCHRUN])
@pytest.mark.parametrize("foreign", [None, WITH_CODE, {"state_dict": {}}, []])
def test_a_torn_or_foreign_checkpoint_is_one_sentence(script, foreign, small, monkeypatch):
    torch.save(foreign, "checkpoint.pt")
    if foreign is None:
        Path("checkpoint.pt").write_bytes(Path("checkpoint.pt").read_bytes()[:-100])
    with pytest.raises(SystemExit, match=r"^checkpoint\.pt is not a whole checkpoint"):
        start(monkeypatch, script, *small, "--resume", rank=0 if script in UNDER_TORCHRUN else None)


def test_lightnings_checkpoint_is_replaced_whole_and_read_without_its_code(tmp_path, monkeypatch):
    names = runpy.run_path(str(FOLDER / "train_lightning.py"))
    path = str(tmp_path / "last.ckpt")
    checkpoints = names["Checkpoints"]()
    saved = {"epoch": 1, "pytorch-lightning_version": "2.6.0"}
    checkpoints.save_checkpoint(saved, path)

    def fill_the_disk(state, path):
        Path(path).write_bytes(b"")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full, pytest.raises(OSError, match="No space left"):
        full.setattr(torch, "save", fill_the_disk)
        checkpoints.save_checkpoint({"epoch": 2}, path)
    assert checkpoints.load_checkpoint(path) == saved
    assert os.listdir(tmp_path) == ["last.ckpt"]
    for foreign in ({**saved, "code": print}, {"epochs": 1}):
        torch.save(foreign, path)
        with pytest.raises(SystemExit, match=r"last\.ckpt is not a whole checkpoint of Lightning"):
            checkpoints.load_checkpoint(path)


@pytest.mark.slow
def test_a_kill_while_lightning_saves_leaves_the_checkpoint_before(tmp_path):
    """Lightning itself would write into TMPDIR, and copy from there over the old checkpoint."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system for TMPDIR")
    own = with_own_places("train_lightning.py", data=SORTED_BY_CLASS, outputs=3)
    (tmp_path / "own.py").write_text(own.replace("16", "100_000"))  # 14 MB with Adam's moments
    folder = tmp_path / "saved"
    command = ["own.py", "--accelerator", "cpu", "--devices", "1", "--resume"]
    command += ["--checkpoint", "saved/last.ckpt", "--epochs"]
    variables = environment(**VARIABLES, TMPDIR=str(memory))
    run(tmp_path, *command, "1")
    whole = (folder / "last.ckpt").stat().st_size
    training = Program([*command, "1000"], cwd=tmp_path, env=variables)
    while not any(part.stat().st_size < whole for part in folder.iterdir()):
        time.sleep(0.0005)
    os.kill(training.pid, signal.SIGKILL)  # within a save
    assert training.wait().returncode == -signal.SIGKILL
    assert (folder / "last.ckpt").stat().st_size >= whole
    done = torch.load(folder / "last.ckpt", weights_only=True)["epoch"] + 1
    printed = run(tmp_path, *command, str(done + 1))
    assert [int(epoch) for epoch, *_ in EPOCH.findall(printed)] == [done + 1]


@pytest.mark.parametrize("script", [*ALONE, *UNDER_TORCHRUN])
def test_a_start_without_resume_keeps_every_earlier_checkpoint(script, small, monkeypatch, capsys):
    rank = 0 if script in UNDER_TORCHRUN else None
    saved = []
    for number in range(3):
        start(monkeypatch, script, *small, "--epochs", 1, "--lr", 0.1**number / 100, rank=rank)
        saved.append(Path("checkpoint.pt").read_bytes())
        os.utime("checkpoint.pt", (1, 1))  # all of the same second
    assert sorted(os.listdir()) == ["checkpoint.pt", "checkpoint.pt.1", "checkpoint.pt.2"]
    assert [Path(f"checkpoint.pt.{number}").read_bytes() for number in (1, 2)] == saved[:2]
    assert "the last checkpoint is now checkpoint.pt.2" in capsys.readouterr().out


@pytest.mark.parametrize("script", [*ALONE, *UNDER_TORCHRUN, "train_lightning.py"])
@pytest.mark.parametrize("where", ["/proc/x", "file/x", "nul\0", "x" * 300])
def test_a_place_that_cannot_be_written_is_found_before_the_first_epoch(
    script, where, small, monkeypatch, capsys
):
    Path("file").touch()
    where += ".ckpt"
    with pytest.raises(SystemExit, match=r"^--checkpoint .* cannot be written: .") as refused:
        start(
            monkeypatch,
            script,
            *small,
            "--checkpoint",
            where,
            rank=0 if script in UNDER_TORCHRUN else None,
        )
    assert "\n" not in refused.value.code and "epoch" not in capsys.readouterr().out
    assert os.listdir() == ["file"]


@pytest.mark.parametrize("script", [*ALONE, "train_lightning.py"])
def test_a_checkpoint_that_would_unpack_to_more_than_its_size_is_not_read(
    script, small, monkeypatch
):
    torch.save({"zeros": torch.zeros(1_000_000)}, "plain.pt")
    with zipfile.ZipFile("plain.pt") as plain, zipfile.ZipFile("checkpoint.pt", "w", 8) as packed:
        for part in plain.namelist():
            packed.writestr(part, plain.read(part))
    assert Path("checkpoint.pt").stat().st_size < 10_000
    names = runpy.run_path(str(FOLDER / script))
    monkeypatch.setattr(torch, "load", None)  # is not asked
    with pytest.raises(SystemExit, match=r"is not a whole checkpoint .*compressed.*omit --resume"):
        if script == "train_lightning.py":
            names["Checkpoints"]().load_checkpoint("checkpoint.pt")
        else:
            start(monkeypatch, script, *small, "--resume")


@pytest.mark.parametrize("script", [*ALONE, *UNDER_TORCHRUN])
def test_resume_says_what_is_done_and_which_learning_rate_holds(script, small, monkeypatch, capsys):
    rank = 0 if script in UNDER_TORCHRUN else None
    start(monkeypatch, script, *small, "--epochs", 1, "--resume", "--lr", 0.5, rank=rank)
    assert "checkpoint.pt: 0 of 1 epochs done, lr 0.5" in capsys.readouterr().out
    saved = Path("checkpoint.pt").read_bytes()
    start(monkeypatch, script, *small, "--epochs", 1, "--resume", "--lr", 0.1, rank=rank)
    printed = capsys.readouterr().out
    assert "checkpoint.pt: 1 of 1 epochs done, lr 0.5" in printed and not EPOCH.search(printed)
    assert Path("checkpoint.pt").read_bytes() == saved


@pytest.mark.parametrize("script", ALONE)
def test_the_checkpoint_has_the_best_weights_and_the_lower_learning_rate(
    script, small, monkeypatch, capsys
):
    start(monkeypatch, script, *small, "--epochs", 1)
    state = torch.load("checkpoint.pt")
    assert all(torch.equal(state["best"][name], each) for name, each in state["network"].items())
    state["scheduler"]["best"] = 0.0  # no later epoch is better
    best = state["best"] = {name: each + 1 for name, each in state["network"].items()}
    torch.save(state, "checkpoint.pt")
    start(monkeypatch, script, *small, "--epochs", 4, "--resume")
    state = torch.load("checkpoint.pt")
    assert state["optimizer"]["param_groups"][0]["lr"] == pytest.approx(1e-4)
    assert all(torch.equal(state["best"][name], each) for name, each in best.items())
    start(monkeypatch, script, *small, "--epochs", 4, "--resume")
    assert "4 of 4 epochs done, lr 0.0001" in capsys.readouterr().out.splitlines()[-1]


def test_the_second_gpu_can_be_named_and_a_third_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    asked = []

    def first_use(device):
        asked.append(str(device))
        raise RuntimeError("there is no GPU here")

    monkeypatch.setattr(torch.cuda, "get_device_name", first_use)
    for script in ("train_gpu.py", "train_fast.py"):
        with pytest.raises(RuntimeError, match="no GPU here"):
            start(monkeypatch, script, "--device", "cuda:1")
        with pytest.raises(SystemExit):
            start(monkeypatch, script, "--device", "cuda:2")
        assert "choose from" in capsys.readouterr().err
    assert asked == ["cuda:1", "cuda:1"]


@pytest.mark.parametrize("script", UNDER_TORCHRUN)
def test_the_help_of_a_script_for_ranks_can_be_read_without_ranks(script, monkeypatch, capsys):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(SystemExit) as ended:
        start(monkeypatch, script, "--help")
    assert ended.value.code == 0 and "--checkpoint" in capsys.readouterr().out


def test_the_reducer_of_ddp_goes_before_its_process_group(small, monkeypatch):
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
    start(monkeypatch, "train_ddp.py", *small, "--epochs", 1, rank=0)
    assert not dist.is_initialized() and alive == []


def test_a_script_says_in_its_first_line_on_which_device_it_runs(small, monkeypatch, capsys):
    for script in ("train_gpu.py", "train_fast.py"):
        start(monkeypatch, script, *small, "--epochs", 1, "--device", "cpu")
        assert capsys.readouterr().out.startswith("on cpu")
