"""The command that rehearses a script."""

import sys
from pathlib import Path

import pytest
from other_networks import NETWORKS
from start_python import python

from course_tools.rehearsal.__main__ import main, options
from course_tools.rehearsal.setting import setting_of

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import sys, torch
model = torch.nn.Linear(2, 1).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
forgotten = torch.ones(3, 2)
for step in range(9):
    rows = forgotten if "--forget" in sys.argv else forgotten.cuda()
    model(rows).sum().backward()
    optimizer.step()
print("trained on", rows.device)
"""


def rehearsed(folder, *words):
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    return python("-m", "course_tools.rehearsal", "--hide-real", *words, cwd=folder, PATH="")


@pytest.mark.process
def test_a_script_runs_unchanged_and_the_report_follows(tmp_path):
    done = rehearsed(tmp_path, "train.py")
    assert done.returncode == 0 and done.stdout == "trained on cuda:0\n"
    assert "9 steps" in done.stderr and "Not looked at" in done.stderr


@pytest.mark.process
def test_a_module_that_starts_itself_again_is_rehearsed_there_too(tmp_path):
    (tmp_path / "twice.py").write_text(
        "import __main__, subprocess, sys, torch\n"
        "print(__main__.__file__, torch.cuda.device_count(), flush=True)\n"
        "if len(sys.argv) == 1: subprocess.run([sys.executable, '-m', 'twice', 'again'])\n"
        "else: torch.ones(1, device='cuda')"
    )
    done = rehearsed(tmp_path, "--gpus", "2", "-m", "twice")
    assert done.stdout == f"{tmp_path / 'twice.py'} 2\n" * 2 and done.returncode == 0


def test_a_module_is_named_before_a_script_and_what_follows_either_is_its_own(tmp_path, capsys):
    script = tmp_path / "train"  # console scripts have no ending
    script.touch()
    asked = options(["--gpus", "2", str(script), "-m", "resnet18", "--gpus", "1"])
    assert (asked.script, asked.gpus, asked.module) == (str(script), 2, [])
    assert asked.arguments == ["-m", "resnet18", "--gpus", "1"]
    asked = options(["--memory", "1GB", "-m", "pack.train", "-m", "resnet18", "data.py"])
    assert (asked.module, asked.memory, asked.script) == ("pack.train", "1GB", None)
    assert asked.arguments == ["-m", "resnet18", "data.py"]
    for nothing in (["--gpus", "2"], ["-m"]):
        with pytest.raises(SystemExit) as end:
            options(nothing)
        assert end.value.code == 2 and "name the script that trains" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "gpus", "memory", "capability"),
    [("cuda", 2, "500 MB", (7, 5)), ("cuda", 1, None, (9, 0)), ("mps", 1, "8GiB", (8, 0))],
)
def test_another_process_is_told_of_the_same_cards(tmp_path, kind, gpus, memory, capability):
    setting = setting_of(kind, gpus, memory, capability)
    (tmp_path / "train.py").touch()
    asked = options([*setting.options(), str(tmp_path / "train.py")])
    assert setting_of(asked.device, asked.gpus, asked.memory, asked.capability) == setting
    assert asked.hide_real


@pytest.mark.process
def test_an_error_stops_on_the_scripts_line_and_names_the_tensor(tmp_path):
    done = rehearsed(tmp_path, "train.py", "--forget")
    assert done.returncode == 1 and not done.stdout
    assert "model(rows).sum().backward()" in done.stderr and "`forgotten`" in done.stderr
    assert "train.py:5: forgotten = torch.ones(3, 2)" in done.stderr
    assert "course_tools/rehearsal/" not in done.stderr
    lines = done.stderr.splitlines()
    error = next(line for line in lines if line.startswith("RuntimeError: "))
    # the head, the error and its cure, and nothing that would make these scroll away
    assert "Rehearsed on 1 simulated GPU (cuda): 0 steps" in done.stderr
    assert "Copies: " not in done.stderr and "--details" in done.stderr
    assert "`forgotten`" in "\n".join(lines[lines.index(error) :])
    done = rehearsed(tmp_path, "--details", "train.py", "--forget")
    assert (
        done.stderr.index("\nCopies: ") < done.stderr.index("\nTraceback") and done.returncode == 1
    )


@pytest.mark.parametrize(
    ("ending", "status"),
    # a shell's 128 + SIGINT; what sys.exit is given; an error
    [("KeyboardInterrupt", 130), ("SystemExit(3)", 3), ("SystemExit('no')", 1), ("OSError", 1)],
)
def test_the_status_is_that_of_the_script(tmp_path, monkeypatch, capsys, ending, status):
    (tmp_path / "train.py").write_text(f"raise {ending}", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["", "--hide-real", str(tmp_path / "train.py")])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("RANK", "3")  # as torchrun says which of its processes this is,
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")  # and how many share the machine
    assert main() == status
    said = capsys.readouterr().err
    assert "rehearsal, rank 3: 4 simulated cuda; " in said and "Nothing ran on the GPU" in said
    assert ("Not looked at" in said) == (status == 130)  # an error is not to scroll away


@pytest.mark.process
def test_a_script_of_the_cpu_gets_no_all_clear(tmp_path):
    script = ROOT / "notebooks" / "course_lessons" / "scripts" / "train_cpu.py"
    done = rehearsed(tmp_path, "--steps", "1", str(script))
    assert done.returncode == 3
    assert "rehearsal: Nothing ran on the GPU" in done.stderr and '.to("cuda")' in done.stderr
    assert ": none" not in done.stderr and "1 step, " in done.stderr


@pytest.mark.process
@pytest.mark.parametrize(
    "asks, on, status",
    [
        ("subprocess.run([sys.executable, __file__, 'again'], check=True)", "cpu", 3),
        ("ask('spawn')", "cuda", 0),
        ("ask('fork')", "cuda", 0),
    ],
)
def test_the_status_says_whether_any_process_used_the_gpu(tmp_path, asks, on, status):
    (tmp_path / "starts.py").write_text(
        "import multiprocessing, subprocess, sys, torch\n"
        f"def work(): torch.ones(2, device='{on}')\n"
        "def ask(how):\n"
        "    process = multiprocessing.get_context(how).Process(target=work)\n"
        "    process.start(); process.join(); assert process.exitcode == 0\n"
        "if __name__ == '__main__':\n"
        f"    work() if sys.argv[1:] else {asks}\n"
    )
    assert rehearsed(tmp_path, "starts.py").returncode == status


@pytest.mark.process
def test_steps_end_the_script(tmp_path):
    done = rehearsed(tmp_path, "--steps", "2", "train.py")
    assert done.returncode == 0 and not done.stdout and "2 steps" in done.stderr


@pytest.mark.parametrize(
    "words, told",
    [
        (["none.py"], "there is no file none.py"),
        (["--capability", "seven", "train.py"], "two numbers with a point"),
        (["--memory", "much", "train.py"], "not a size"),
        (["--steps", "0", "train.py"], "at least 1"),
    ],
)
def test_what_cannot_be_run_is_a_sentence(tmp_path, words, told, monkeypatch, capsys):
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rehearsal", "--hide-real", *words])
    with pytest.raises(SystemExit) as ended:
        sys.exit(main())
    assert ended.value.code == 2 and told in capsys.readouterr().err


LANGUAGE_MODEL = """
import sys
sys.path.append(sys.argv[1])
import torch
from transformers import GPT2Config, GPT2LMHeadModel
torch.manual_seed(0)
config = GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0)
model = GPT2LMHeadModel(config).to(sys.argv[2]).eval()
tokens = torch.arange(24).reshape(2, 12).to(sys.argv[2])
model(tokens, labels=tokens).loss.backward()
written = model.generate(tokens[:, :5], max_new_tokens=4, do_sample=False, pad_token_id=0)
print(written.tolist(), round(model.transformer.wte.weight.grad.norm().item(), 4))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("transformers")
def test_a_language_model_of_transformers_learns_and_writes_as_on_the_cpu(tmp_path):
    (tmp_path / "write.py").write_text(LANGUAGE_MODEL, encoding="utf-8")
    plain = python("write.py", NETWORKS, "cpu", cwd=tmp_path)
    words = ("-m", "course_tools.rehearsal", "--hide-real", "write.py", NETWORKS, "cuda")
    done = python(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain.stdout != ""
