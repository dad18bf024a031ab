"""The command: a subcommand for each question, each with its own options."""

import inspect
import json
import re
import shlex
import sys

import pytest
from estimate_questions import one_line

from course_tools.estimate import estimate_finetuning, estimate_serving
from course_tools.estimate.__main__ import _parser, main
from course_tools.estimate.job import Job
from course_tools.estimate.known_networks import counted_names


def test_a_name_without_a_command_is_a_network(capsys):
    assert main(["resnet50d", "--devices", "T4", "--batch", "8"]) == 0
    answer = capsys.readouterr().out
    assert main(["network", "resnet50d", "--devices", "T4", "--batch", "8"]) == 0
    assert capsys.readouterr().out == answer and len(counted_names()) > 1000
    assert max(map(len, answer.splitlines())) < 130


def test_a_language_model_is_answered_as_its_function_answers(capsys, tmp_path):
    tuned = ["finetune", "llama-3.1-8b", "--devices", "T4", "L4", "--samples", "1000", "--json"]
    assert main([*tuned, "--price", "L4=1", "--length", "512", "--method", "4-bit"]) == 0
    asked = {"samples": 1000, "prices": {"L4": 1}, "length": 512}
    found = estimate_finetuning("Llama 3.1 8B", "4-bit", devices=["T4", "L4"], **asked)
    assert json.loads(capsys.readouterr().out) == json.loads(found.to_json())
    served = ["serve", "Qwen/Qwen2.5-7B-Instruct", "--runtime", "llama.cpp", "--bits", "4"]
    assert main([*served, "--prompt", "100", "--generated", "50", "--devices", "T4", "--json"]) == 0
    asked = {"runtime": "llama.cpp", "bits": 4, "prompt": 100, "generated": 50, "devices": ["T4"]}
    found = estimate_serving("Qwen2.5 7B", **asked)
    assert json.loads(capsys.readouterr().out) == json.loads(found.to_json())
    shape = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
    (tmp_path / "config.json").write_text(json.dumps(shape | {"vocab_size": 50257}))
    assert main(["finetune", str(tmp_path), "--devices", "T4"]) == 0


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        ("resnet-50 --devices T4,L4", "resnet50 --devices T4 L4"),
        ("resnet50 --devices T4x2 --precision Half", "resnet50 --devices 2_x_T4 --precision fp16"),
        ("resnet50 --devices T4 --optimizer AdamW", "resnet50 --devices Tesla_T4"),
        ("finetune llama2:7b --method QLoRA --devices T4", "finetune llama2:7b --method 4-bit"),
        ("serve mistral:7b --runtime Ollama --devices T4", "serve mistral:7b --runtime llama.cpp"),
        ("train resnet50", "resnet50"),
        ("inference resnet50", "resnet50 --inference"),
        ("fine-tuning llama2:7b", "finetune llama2:7b"),
        ("serving mistral:7b", "serve mistral:7b"),
    ],
)
def test_what_people_type_is_answered_as_what_is_meant(typed, plain, capsys):
    said = []
    for line in (typed, plain):
        words = [word.replace("_", " ") for word in line.split()]
        assert main([*words, *([] if "--devices" in words else ["--devices", "T4"]), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        said.append([found["rows"], found["memory"]])
    assert said[0] == said[1]


@pytest.mark.parametrize("command", ["network", "finetune", "serve"])
def test_each_command_has_an_example_that_runs(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    _, example = re.split(r"^Examples?:\n", capsys.readouterr().out, flags=re.MULTILINE)
    example = example.partition("\n\n")[0]
    assert main(shlex.split(example)[3:]) == 0


@pytest.mark.parametrize(
    ("command", "function"),
    [("network", Job), ("finetune", estimate_finetuning), ("serve", estimate_serving)],
)
def test_the_help_names_the_default_that_is_taken(command, function):
    taken = inspect.signature(function).parameters
    named = 0
    for option in _parser()[1][command].options:
        default = option.default
        if default is None and option.dest in taken:
            default = taken[option.dest].default
        said = re.search(r"\(([^()]*)\)$", option.help or "")
        if said and default is not None:
            values = default if isinstance(default, list | tuple) else [default]
            assert said[1].replace(",", "") == " ".join(map(str, values)), option.dest
            named += 1
    assert named >= 6


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["resnet51"], "the nearest are resnet51q, resnet50"),
        (["stabilityai/sdxl-turbo"], "is known. Pass a name of pytorch-image-models, or your own"),
        (["meta-llama/Llama-3.1-8B"], "ask `finetune 'Llama 3.1 8B'` or `serve"),
        (["finetune", "Llama 4"], "the nearest are Llama 2 7B, Llama"),
        (["finetune", "t5-small"], "unknown model 't5-small'. `python"),
        (["finetune", "microsoft/resnet-50"], "ask `network resnet50`"),
        (["bert-base-uncased"], "ask `finetune 'BERT base'`."),
        (["resnet50d", "--precision", "fp32"], "16 bits"),
        (["resnet50d", "--tokens"], "a network for images, so --tokens is not"),
        (["no_such_module:net"], "no_such_module"),
        (["torch.nn:Linear"], "missing a required argument: 'in_features'"),
    ],
    ids=str,
)
def test_what_has_no_answer_ends_in_a_sentence_and_status_2(words, hint, capsys):
    assert main(words) == 2
    said = one_line(capsys.readouterr().err)
    assert hint in said and "torchvision" not in said


@pytest.mark.parametrize(
    "words",
    [
        ["finetune", "Llama 3.1 8B", "--bits", "4"],
        ["serve", "Llama 3.1 8B", "--method", "full"],
        ["resnet50", "--batch", "0"],
        ["resnet50", "--deadline", "-1"],
        ["resnet50", "--this-machine", "0"],
        ["resnet50", "--price", "=0.35"],
        ["resnet50", "--price", ""],
    ],
    ids=str,
)
def test_an_option_that_would_change_nothing_is_refused(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    said = capsys.readouterr().err
    assert ended.value.code == 2 and words[-2] in said and "usage" not in said


MINE = ["resnet50d", "--chip", "My card", "100", "900", "24"]


@pytest.mark.parametrize(
    ("words", "status", "advised"),
    [
        (["finetune", "GPT-2", "--samples", "10", "--length", "64"], 0, "measure a step on it."),
        (["finetune", "Llama 3.1 8B", "--devices", "2 x A100"], 2, "a network (--shards)"),
        (["resnet50", "--devices", "DGX Spark", "--count", "2"], 2, "--link 'Ethernet 10G'"),
        (["resnet50", "--devices", "DGX Spark", "--count", "2", "--link", "Ethernet 10G"], 0, ""),
        (["torch.nn:Identity", "--input", "8"], 2, "Pass --inference."),
        (["resnet50d", "--devices", "RTX 9999"], 2, "of memory), in a terminal behind --chip."),
        (["resnet50d", "--chip", "Mine", "x", "900", "24"], 2, "x is not a number"),
        (["resnet50d", "--devices", ""], 2, "`python -m course_tools.estimate --help` lists all."),
        (["resnet50d", "--link", "token ring"], 2, "course_tools.estimate --help` lists all"),
        (["finetune", "Qwen2.5 7B", "--method", "full"], 0, "--in-backward, --chunks 8"),
        (["serve", "openai/gpt-oss-20b"], 0, "The job: gpt-oss 20B, --bits 4,"),  # its README
        (["serve", "gpt-oss-20b", "--bits", "16"], 0, "published in 4 bits: --bits 4 asks"),
        (["serve", "bert-base"], 2, "is a question about a network, with --inference"),
        ([*MINE, "--devices", "T4", "--price", "My card=0.4"], 0, "My card $0.40 (your price)"),
        (["resnet50d", "--devices", "T4", "L4", "--price", "T4=0.35,L4=0.7"], 0, "your price"),
    ],
    ids=str,
)
def test_what_the_command_advises_are_options_that_it_has(words, status, advised, capsys):
    assert main([*words, "--details"]) == status
    shown = capsys.readouterr()
    said = one_line(shown.out + shown.err)
    assert advised in said and not re.search(r"\b[a-z_]+=|`\w+\.?\w*\(|\b[a-z]+_[a-z]+ ", said)
    with pytest.raises(SystemExit):
        main([words[0] if words[0] in ("finetune", "serve") else "network", "--help"])
    known = capsys.readouterr().out
    known += " --shards --inference" * ("network" in said)  # which has these
    assert all(option in known for option in re.findall(r"--[a-z-]+", said))


FACTORIES = """
import sys
from torch import nn

class Wrong(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        return self.layer(x) + None

def ends(): sys.exit(3)
def raises(): raise TypeError("mine")
def text(): return "text"
"""


def test_the_command_line_takes_a_model_from_a_file_that_imports_its_neighbour(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "width_of_mine.py").write_text("WIDTH = 8")
    text = "from torch.nn import Linear\nfrom width_of_mine import WIDTH\n"
    text += "def make():\n    return Linear(WIDTH, WIDTH)"
    (tmp_path / "model_of_mine.py").write_text(text)
    asked = f"{tmp_path / 'model_of_mine.py'}:make", "--input", "8", "--devices", "T4"
    assert main(asked) == 0 and "T4" in capsys.readouterr().out
    assert main([f"{tmp_path / 'absent.py'}:make"]) == 2
    assert "there is no file" in one_line(capsys.readouterr().err)


def test_a_network_is_answered_in_text_and_json_with_the_words_of_the_command(capsys):
    asked = ["torch.nn:Identity", "--input", "8", "--inference"]
    priced = ["--devices", "T4", "--price", "T4=0.35"]
    assert main([*asked, *priced, "--compiled", "--optimizer", "sgd"]) == 0
    short = capsys.readouterr().out
    assert main([*asked, *priced, "--compiled", "--optimizer", "sgd", "--details"]) == 0
    said = capsys.readouterr().out
    assert len(short.splitlines()) < 20 and "--details" in short and "Host of" not in short
    assert "Host of" in said and "--this-machine" in said and "loss=" not in said
    assert main([*asked, *priced, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["device"] == "T4"
    assert main([*asked, "--precision", "bf16"]) == 0
    assert "the T4, which has no bf16" in one_line(capsys.readouterr().out)
    with pytest.raises(SystemExit):
        main(["--help"])
    said = one_line(capsys.readouterr().out)
    assert "RTX PRO 6000 Max-Q" in said and "Ethernet 10G" in said
    assert said.index("Examples:") < said.index("NVIDIA: A2, A10,") < said.index("AMD: MI100,")


def test_an_error_of_ones_own_model_is_not_taken_for_a_wrong_question(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(FACTORIES)
    for name, hint in (("ends", "status 3"), ("text", "made str"), ("Wrong", "cannot be counted")):
        assert main([f"{file}:{name}", "--input", "4"]) == 2
        assert hint in one_line(capsys.readouterr().err)
    with pytest.raises(TypeError, match="mine"):  # with its traceback
        main([f"{file}:raises", "--input", "4"])
