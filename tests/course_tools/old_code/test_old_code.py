import importlib
import inspect
import json
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from start_python import python

from course_tools.old_code import installed
from course_tools.old_code.__main__ import main
from course_tools.old_code.explanation import Explanation, all_clear, explain
from course_tools.old_code.hooks import Hook
from course_tools.old_code.installed import PACKAGES
from course_tools.old_code.old_names import (
    ATTRIBUTES,
    KEYWORDS,
    KNOWN,
    NAMES,
    TABLES,
    TEXTS,
)
from course_tools.old_code.read_text import LONGEST, Unreadable, whole_text
from course_tools.old_code.trainer_arguments import removed_arguments

# Old code with the beginning of its first advice, messages with theirs, and code of today.
CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))


def summary(text):
    return [(note.line, note.old, note.new) for note in explain(text).findings]


# The forms that guides have, written anew.
DARTS_GUIDE = """\
On Colab, install these first:

```
!pip install cloud-tpu-client==0.10 https://example.org/torch_xla-1.9-cp37-cp37m-linux_x86_64.whl
!pip install torch==1.9.0+cu111
```

then give the model a TPU:

```python
model = RNNModel(
    model="LSTM",
    ...
    pl_trainer_kwargs={
        "accelerator": "tpu",
        "tpu_cores": [4],
    },
)
```

With several GPUs it is

`pl_trainer_kwargs = {"accelerator": "gpu", "auto_select_gpus": True}`
"""

NOTEBOOK_AS_TEXT = """\
## Devices
Invalid names are refused.

In [3]:
first = torch.device('cuda0')

RuntimeError: Invalid device string: 'cuda0'

In [4]:
net.to('cuda1')
"""

GUIDES = [
    (
        DARTS_GUIDE,
        [
            (4, "torch_xla-1.9-cp37", ""),
            (4, "cloud-tpu-client==0.10", ""),
            (5, "torch==1.9.0+cu111", ""),
            (16, "tpu_cores=[4]", "accelerator='tpu', devices=[3]"),
            (23, "auto_select_gpus=True", ""),
        ],
    ),
    (NOTEBOOK_AS_TEXT, [(5, "'cuda0'", "'cuda:0'"), (10, "'cuda1'", "'cuda:1'")]),
]


@pytest.mark.parametrize(("guide", "found"), [*GUIDES, *CASES["exact"]])
def test_old_code_and_guides_with_dots_and_commands_are_read_line_by_line(guide, found):
    expected = [tuple(each) for each in found]
    assert summary(guide) == expected
    assert summary(guide.lstrip("\n").replace("\n", "\r\n")) == expected  # as Windows writes it


@pytest.mark.parametrize(("message", "new"), CASES["messages"])
def test_the_message_of_an_error_alone_says_what_is_outdated(message, new):
    (note,) = explain(message).findings
    assert note.new == new and note.place == "line 1"  # and no cell's
    assert len(note.old) <= 100
    # a module that has gone without a successor may be what a saved file names
    assert ("an older version saved" in note.why) == (new == "")


def test_the_message_of_another_class_says_nothing():
    message = "TypeError: __init__() got an unexpected keyword argument 'colour'"
    assert not explain(message).findings


@pytest.mark.parametrize(("text", "new"), CASES["advice"])
def test_old_code_is_named_with_advice(text, new):
    assert explain(text).findings[0].new.startswith(new)


@pytest.mark.parametrize("text", CASES["current"])
def test_current_code_is_left_alone(text):
    assert summary(text) == []


def test_prose_without_a_block_of_code_is_not_read_as_python(tmp_path):
    path = tmp_path / "readme.md"
    path.write_text("See `Trainer(gpus=2)` and\nhttps://pytorch-lightning.readthedocs.io\n")
    assert not explain(path).findings


@pytest.mark.parametrize(("fence", "other"), [("```", "~~~"), ("~~~", "```")])
def test_a_block_ends_at_its_own_fence(fence, other):
    code = f"text = '''\n{other}\n'''\nTrainer(gpus=1)"
    text = f"Words.\n\n{fence}python\n{code}\n{fence}\n\nMore words\n"
    assert [note[:2] for note in summary(text)] == [(7, "gpus=1")]


@pytest.mark.parametrize("before", ["# a\n", "x = 1\n\n  \n", "a b\x0c\n", "a b\r\n"])
def test_a_line_is_counted_as_an_editor_counts_it(before):
    line = before.count("\n") + 1
    assert [note.line for note in explain(f"{before}Trainer(gpus=2)").findings] == [line]
    assert [note.line for note in explain(f"{before}!pip install torch==1.9.0").findings] == [line]


def test_what_stands_twice_on_a_line_is_said_once():
    text = "import torch\nx = torch.nothing_of_the_kind(1) + torch.nothing_of_the_kind(2)"
    (note,) = explain(text).findings
    assert " -> nothing. " in str(note)


def test_a_notebook_is_read_cell_by_cell_and_stays_a_notebook(tmp_path):
    cells = [
        nbformat.v4.new_markdown_cell("gpus=2"),
        nbformat.v4.new_code_cell("!pip install torch==1.9.0\nimport pytorch_lightning as pl"),
        nbformat.v4.new_code_cell("pl.Trainer(gpus=2)"),
    ]
    path = tmp_path / "old.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    found = explain(path)
    assert [(note.cell, note.line) for note in found.findings] == [(2, 1), (3, 1)]
    assert explain(path.read_text()).findings == found.findings  # pasted, without a name
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())  # as some editors of Windows begin a file
    assert explain(path).findings == found.findings
    assert str(found.findings[1]).startswith("cell 3, line 1: gpus=2 -> ")


def test_the_command_says_by_its_status_what_it_found_and_changes_no_file(tmp_path, capsys):
    path = tmp_path / "Train.PY"
    old = b"\xef\xbb\xbfTrainer(gpus=2)\r\n"
    path.write_bytes(old)
    assert main([str(path)]) == 1
    assert capsys.readouterr().out.startswith("line 1: gpus=2 -> accelerator='gpu', devices=2")
    assert path.read_bytes() == old
    assert main([str(path), str(tmp_path / "missing.py")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    path.write_text("x = 1")
    assert main([str(path)]) == 0


def test_the_message_of_an_error_can_be_pasted_in_the_place_of_a_file(capsys):
    assert main(["__init__() got an unexpected keyword argument 'gpus'"]) == 1
    assert "accelerator='gpu'" in capsys.readouterr().out
    assert main(["no such file.py"]) == 2


@pytest.mark.parametrize(
    "name", ["my train (old).py", "données, v2.IPYNB", "notes + more.markdown"]
)
def test_a_file_that_is_not_there_is_never_clear(name, capsys):
    assert main([name]) == 2 and "There is no file" in capsys.readouterr().err


def test_a_missing_parso_is_one_line(monkeypatch, capsys):
    for name in [each for each in sys.modules if each.startswith("course_tools.old_code.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "parso", None)
    assert main(["train.py"]) == 2
    shown = capsys.readouterr().err
    assert "parso" in shown and 'pip install "parso' in shown
    assert shown.count("\n") == 1


def test_the_all_clear_names_the_packages_that_were_asked_and_those_that_are_absent(monkeypatch):
    assert "installed torch, Lightning, Darts, NumPy lack" in all_clear()
    monkeypatch.setattr("course_tools.old_code.explanation.is_installed", {"torch"}.__contains__)
    clear = all_clear()
    assert "installed torch lack" in clear and "not asked: Lightning, Darts, NumPy" in clear


def test_the_all_clear_says_what_was_looked_for_and_that_nothing_was_run(tmp_path):
    clear = all_clear()
    assert "not run" in clear and "checkpoint" in clear
    counts = {name: int(count) for count, name in re.findall(r"(\d+) of (\w+)", clear)}
    assert counts.keys() >= {"Lightning", "torch_xla", "Darts", "torch"}
    rows = {name: sum(1 for rows in KNOWN[name].values() for _ in rows) for name in KNOWN}
    rows = {name.split()[0]: count for name, count in rows.items()}
    rows["Lightning"] += len(removed_arguments())
    assert counts == rows and counts["Lightning"] > len(removed_arguments()) + len(ATTRIBUTES)
    assert clear in Explanation(())._repr_html_()
    assert clear.split() == str(explain("x = 1")).split()


# Code that took minutes, or ended in a traceback, and what it is read as.
HOSTILE = {
    "terms": "x = " + " + ".join(["1"] * 20_000),
    "backticks": "`" * 200_000,
    "fences": "```\n" * 10_000,
    "chain": "torch" + ".a" * 20_000,
    "brackets": "Trainer(gpus=" + "(" * 300 + "1" + ")" * 300 + ")",
    "hooks": "class A(pl.LightningModule):\n" + "    def test_end(self, o): ...\n" * 1_000,
    "half a character": 'x = "\ud800"',
    "zero byte": "a\0b",
    "list": '{"cell_type"' + "[" * 200_000,
    "cells": '{"cells": [{"cell_type": "code"}]}',
    "numbers": '{"cells": [{"cell_type": "code", "source": [1]}]}',
    "signs": "-" * 5_000 + "1",
    "long": "x = 1\n" * LONGEST,
}


@pytest.mark.long
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_code_is_read_or_refused_in_a_sentence(text):
    try:
        explain(text)
    except Unreadable as refusal:
        assert str(refusal).endswith(".")


def test_the_work_grows_with_the_length_of_the_code_and_not_with_its_square(monkeypatch):
    def visits(copies):
        seen = 0

        def count(frame, event, argument):
            nonlocal seen
            seen += event == "call"

        text = "def f(a):\n    return g(h(a), loss=[a, 'b'], c={'d': 1})\n" * copies
        sys.setprofile(count)
        try:
            explain(text)
        finally:
            sys.setprofile(None)
        return seen

    visits(1)
    assert visits(400) < 5 * visits(100)


def test_more_code_than_it_reads_is_refused_with_the_limit():
    with pytest.raises(
        Unreadable, match=r"1,000,001 characters\. This tool reads up to 1,000,000: "
    ):
        explain("#" * 1_000_001)
    assert not explain("#" * 1_000_000).findings


@pytest.mark.parametrize(
    ("suffix", "most", "told"), [(".py", 4_000_000, "4 MB"), (".ipynb", 64 * 2**20, "67 MB")]
)
def test_no_more_of_a_file_is_read_than_is_answered(suffix, most, told):
    class File:
        def read(self, count):
            assert count == most + 1
            return self.content[:count]

    file = File()
    file.content = b"x" * most
    assert len(whole_text(file, "a file", suffix)) == most
    file.content += b"x"
    with pytest.raises(Unreadable, match=f"larger than {told}"):
        whole_text(file, "a file", suffix)


@pytest.mark.parametrize(
    ("pieces", "length", "found"),
    [
        ("!pip install torch==1.9.0 #{}", 9_970, True),
        ("!pip install torch==1.9.0 #{}", 10_001, False),
        ("{}: __init__() got an unexpected keyword argument 'gpus'", 9_000, True),
        ("{}: __init__() got an unexpected keyword argument 'gpus'", 10_001, False),
    ],
)
def test_a_longer_line_than_anybody_writes_is_data(pieces, length, found):
    assert bool(explain(pieces.format("x" * length)).findings) == found


@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "large", "large notebook"])
def test_what_is_no_file_or_too_large_is_refused_before_it_is_read(kind, tmp_path):
    path = tmp_path / ("train.ipynb" if kind == "large notebook" else "train.py")
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(2**33)  # of holes, which take no place on the disk
    with pytest.raises(Unreadable, match=r"ordinary file|larger than"):
        explain(path)
    with pytest.raises(Unreadable):
        explain(str(path))


def test_a_kind_of_file_it_does_not_read_is_refused_and_the_others_are_read(tmp_path, capsys):
    (tmp_path / "run.sh").write_text("python train.py --gpus 2")
    (tmp_path / "train.py").write_text("Trainer(gpus=2)")
    assert main([str(tmp_path / "run.sh"), str(tmp_path / "train.py")]) == 2
    shown = capsys.readouterr()
    assert "a .sh file" in shown.err and "train.py:" in shown.out


def test_a_card_shows_each_finding_with_its_text_escaped():
    html = explain("Trainer(gpus=2, weights_summary='<b>')")._repr_html_()
    assert len(explain(f"Trainer(gpus='{'1,' * 500}')").findings[0].old) < 100
    assert ">1</td>" in html and "gpus=2" in html and "&lt;b&gt;" in html and "<b>'" not in html


def test_code_is_never_run(tmp_path):
    target = tmp_path / "made"
    explain(f"open({str(target)!r}, 'w')\nTrainer(gpus=exit())\nimport this")
    assert not target.exists() and "this" not in sys.modules


@pytest.mark.process
def test_files_named_as_packages_are_read_and_never_imported(tmp_path):
    names = [f"{name}.py" for name in (*PACKAGES, "pandas")]
    code = "import darts, lightning, numpy, torch\ntorch.no_such_name(numpy.float)\nprint('RAN')"
    for name in names:
        (tmp_path / name).write_text(code)
    done = python("-m", "course_tools.old_code", *names, fresh=True, cwd=tmp_path)
    assert done.returncode == 1 and "no_such_name ->" in done.stdout
    assert "RAN" not in done.stdout + done.stderr


ALPHABET = "Trainer(gpus=2)\n !%$.,:{}[]'\"pl_kwargs=dict>>>...\\xmspawn@#\t\x0c\r0"


@pytest.mark.long
@settings(max_examples=40)
@given(st.text() | st.text(ALPHABET))
def test_any_text_is_explained_or_refused(text):
    try:
        found = explain(text)
    except Unreadable as refusal:
        assert str(refusal)
        return
    lines = [note.line for note in found.findings]
    assert lines == sorted(lines)


def test_no_file_of_the_working_folder_stands_for_a_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = sys.path[:]
    monkeypatch.setattr(installed, "_resolved", lambda name: sys.path[:])
    assert set(before) - set(installed.resolve.__wrapped__("torch.nn")) == {str(tmp_path)}
    assert sys.path == before


PACKAGE = """
import enum
class Plain: here = 1
class Color(enum.Enum): RED = 1
value = Plain()
"""


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("their_package.Plain.here", 1),
        ("their_package.nothing", installed.GONE),
        ("their_package.Plain.nothing", installed.GONE),
        ("their_package.Color.BLUE", installed.UNKNOWN),  # an enumeration answers as it likes
        ("their_package.value.nothing", installed.UNKNOWN),  # and so does an object
        ("their_package.needs_more", installed.UNKNOWN),
        ("their_file.nothing", installed.UNKNOWN),  # no installer left its record
        ("no_such_package.nothing", installed.UNKNOWN),
    ],
)
def test_a_name_has_gone_only_where_its_package_can_say_so(name, answer, tmp_path, monkeypatch):
    folder = tmp_path / "their_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "needs_more.py").write_text("import no_such_package")
    (tmp_path / "their_package-1.0.dist-info").mkdir()
    (tmp_path / "their_file.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert installed._resolved(name) is answer


@pytest.mark.parametrize(
    ("passed", "is_open", "required", "accepted", "refused"),
    [
        (("batch", "index"), False, ["a", "b"], 2, False),
        (("batch", "index"), False, ["a"], 2, False),
        (("batch", "index"), False, ["a", "b", "c"], 3, True),
        (("batch", "index"), False, ["a"], 1, True),
        ((), False, ["outputs"], 1, True),
        (("batch", "index"), True, ["a"], 1, False),
        (("batch", "index"), True, ["batch", "optimizer_idx"], 2, True),
        (("batch", "optimizer_idx"), True, ["batch", "optimizer_idx"], 2, False),
    ],
)
def test_a_call_fails_as_pythons_own_rule_says(passed, is_open, required, accepted, refused):
    called = Hook("Callback", "on_it", passed, "def on_it(self)", is_open)
    assert bool(called.refuses(required, accepted)) == refused


# The tables, against the installed packages.


def is_there(dotted):
    """Say whether a full name can be imported; `resolve` of the tool asks in another way."""
    first, *parts = dotted.rstrip(".").split(".")
    thing = importlib.import_module(first)
    for part in parts:
        if not hasattr(thing, part):
            try:
                importlib.import_module(f"{thing.__name__}.{part}")
            except (ImportError, AttributeError):
                return False
        thing = getattr(thing, part)
    return True


def gone_names():
    """Return the names that must be gone: not those of which the advice says they still work."""
    still = ("still works", "raises RuntimeError", "the private name", "public one", "It still")
    ours = [
        name
        for name in NAMES
        if name not in TABLES["others"]["names"] and not name.startswith("torch_xla")
    ]
    ours = [name for name in ours if not any(words in NAMES[name][1] for words in still)]
    return [name for name in ours if name != "lightning.pytorch.logging."]  # Python's own


@pytest.mark.filterwarnings("ignore:In the future .np:FutureWarning")  # as NumPy says of np.str
def test_an_outdated_name_is_really_gone_and_what_replaces_it_is_there():
    assert len(gone_names()) > 50 and not [name for name in gone_names() if is_there(name)]
    rows = [re.match(r"(torch|torchmetrics|lightning)(\.\w+)+", new) for new, _ in NAMES.values()]
    places = {row[0] for row in rows if row and not row[0].startswith("torch_xla")}
    assert len(places) > 30 and not [name for name in places if not is_there(name)]


def test_methods_keywords_and_attributes_are_gone_and_the_new_ones_are_there():
    import lightning.pytorch as pl

    homes = (pl.LightningModule, pl.Callback, pl.LightningDataModule)
    for method, (new, _) in TABLES["lightning"]["methods"].items():
        assert not any(hasattr(home, method) for home in homes), method
        named = re.search(r"^def (\w+)", new)
        assert not named or any(hasattr(home, named[1]) for home in homes), new
    assert not [name for name in ATTRIBUTES if hasattr(pl.Trainer, name)]
    for key, (new, _) in KEYWORDS.items():
        function, _, old = key.partition(".")
        is_checkpoint = function == "ModelCheckpoint"
        thing = (
            pl.callbacks.ModelCheckpoint if is_checkpoint else getattr(pl.Trainer, function, None)
        )
        if thing is not None:
            names = inspect.signature(thing).parameters
            assert old not in names
            assert not new.isidentifier() or new in names or not new


def test_a_hook_is_held_against_the_signature_of_the_class_that_is_installed():
    """Each of these raises TypeError with Lightning 2.6 (ControlNet 84; Lightning 9787, 9816)."""
    import lightning.pytorch as pl

    text = Path(__file__).with_name("old_hooks.py.txt").read_text()
    lines = text.splitlines()
    failing = [number for number, line in enumerate(lines, 1) if line.endswith("# fails")]
    notes = explain(text).findings
    assert [note.line for note in notes] == failing
    of_several = [number + 1 for number, line in enumerate(lines, 1) if "several loaders" in line]
    said = [note.line for note in notes if "only where there are several loaders" in note.why]
    assert said == of_several
    # Lightning's own callbacks are right by definition.
    for callback in (pl.callbacks.EarlyStopping, pl.callbacks.ModelCheckpoint, pl.callbacks.Timer):
        notes = explain(Path(inspect.getfile(callback))).findings
        assert not [note for note in notes if note.old.startswith("def ")]


def test_torch_refuses_real_numbers_in_istft_and_truth_values_in_a_difference():
    sound, window, mask = torch.rand(4000), torch.hann_window(400), torch.rand(3) > 0.5
    calls = [
        lambda: torch.stft(sound, 400, window=window),
        lambda: torch.istft(torch.rand(201, 26, 2), 400, window=window),
        lambda: 1 - mask,
    ]
    for call in calls:
        with pytest.raises(RuntimeError) as caught:
            call()
        assert explain(f"RuntimeError: {caught.value}").findings


def test_torch_refuses_the_device_names_and_the_pickled_model_that_are_reported(tmp_path):
    with pytest.raises(RuntimeError, match="Invalid device string"):
        torch.device("cuda0")
    torch.save(torch.nn.Linear(2, 1), tmp_path / "model")
    with pytest.raises(Exception, match="Weights only load failed"):
        torch.load(tmp_path / "model")
    (tmp_path / "pointer").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(Exception, match="Unsupported operand") as caught:
        torch.load(tmp_path / "pointer")
    assert "Git LFS" in explain(str(caught.value).replace("\n", " ")).findings[0].why


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_the_messages_of_todays_packages_are_read():
    import lightning.pytorch as pl

    class Legacy(torch.autograd.Function):
        def forward(self, x):
            return x

    class Net(pl.LightningModule):
        def __init__(self, hparams):
            super().__init__()
            self.hparams = hparams

    calls = [
        lambda: torch.ones(()).data[0],
        lambda: Legacy()(torch.ones(1)),
        lambda: Net({}),
        lambda: pl.LightningModule().use_ddp,
        lambda: pl.Trainer(accelerator="ddp"),
        lambda: pl.Trainer(strategy="dp"),
        lambda: pl.Trainer(tpus=[0]),
    ]
    for call in calls:
        with pytest.raises(Exception) as caught:
            call()
        assert explain(f"{caught.type.__name__}: {caught.value}").findings, caught.value


def test_darts_has_the_new_methods_and_not_the_old_ones():
    series = pytest.importorskip("darts").TimeSeries
    assert not hasattr(series, "pd_dataframe") and not hasattr(series, "pd_series")
    assert hasattr(series, "to_dataframe") and hasattr(series, "to_series")


def test_arguments_inside_a_dictionary_are_held_against_the_class_beside_it():
    text = "import torch\nRNNModel(lr_scheduler_cls=torch.optim.lr_scheduler.ReduceLROnPlateau, "
    found = summary(text + "lr_scheduler_kwargs={'patience': 3, 'verbose': True})")
    assert [old for _, old, _ in found] == ["ReduceLROnPlateau(verbose=...)"]
    assert "verbose" not in inspect.signature(torch.optim.lr_scheduler.ReduceLROnPlateau).parameters


def test_every_pattern_of_a_command_matches_what_a_guide_printed():
    printed = """
        torch_xla-{}-cp36-cp36m-linux_x86_64.whl cloud-tpu-client==0.10 xrt==1.15.0 XLA_USE_BF16
        torch==1.9.0+cu111 python -m torch_xla.distributed.xla_dist pytorch-xla-env-setup.py
        pytorch-lightning==1.3.4 python -m torch.distributed.launch torch_xla[tpu]~=2.1.0
        conda install pytorch torchvision cudatoolkit=10.2 -c pytorch PJRT_DEVICE=CUDA
        gcloud compute tpus create a --version=pytorch-1.9 parser.add_argument('--local_rank')
        pip install u8darts[torch]
    """
    assert all(re.search(pattern, printed) for pattern, _, _ in TEXTS)
