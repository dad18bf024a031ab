import ast
import importlib
import inspect
import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.old_guides import CannotTranslate, explain_snippet
from course_utils.old_guides.old_calls import CALLS, KEYWORDS, METHODS, TEXTS


def summary(snippet):
    return [(finding.line, finding.old, finding.new) for finding in explain_snippet(snippet)]


DARTS_TPU = """\
!pip install cloud-tpu-client==0.10 https://example.org/tpu-pytorch/wheels/torch_xla-1.9-cp37-cp37m-linux_x86_64.whl
!pip install torch==1.9.0+cu111 -f https://example.org/torch_stable.html
my_model = RNNModel(
    model="RNN",
    ...
    force_reset=True,
    pl_trainer_kwargs={
      "accelerator": "tpu",
      "tpu_cores": [4]
    },
)
"""


def test_the_tpu_part_of_the_darts_guide_is_read_although_it_is_not_python():
    with pytest.raises(SyntaxError):
        ast.parse(DARTS_TPU)
    assert summary(DARTS_TPU) == [
        (1, "torch_xla-1.9-cp37", ""),
        (1, "cloud-tpu-client==0.10", ""),
        (2, "torch==1.9.0+cu111", ""),
        (9, "tpu_cores=[4]", "accelerator='tpu', devices=[3]"),
    ]


def test_the_sampler_of_lightnings_tpu_page_is_read_inside_a_method():
    snippet = """
        import torch_xla.core.xla_model as xm

        def train_dataloader(self):
            return DistributedSampler(data, num_replicas=xm.xrt_world_size(), rank=xm.get_ordinal())
    """
    assert summary(snippet) == [
        (5, "xm.xrt_world_size", "torch_xla.runtime.world_size"),
        (5, "xm.get_ordinal", "torch_xla.runtime.global_ordinal"),
    ]


def test_a_shell_command_of_several_lines_is_no_python():
    snippet = """$ python -m torch_xla.distributed.xla_dist
    --tpu=$TPU_POD_NAME
    --conda-env=torch-xla-nightly
    -- python train.py --fake_data
    """
    assert summary(snippet) == [(1, "torch_xla.distributed.xla_dist", "torchrun")]


def test_commands_in_a_block_leave_the_block_whole():
    assert summary("if colab:\n    !pip install torch==1.9.0\nTrainer(tpu_cores=8)") == [
        (2, "torch==1.9.0", ""),
        (3, "tpu_cores=8", "accelerator='tpu', devices=8"),
    ]


@pytest.mark.parametrize(
    "snippet",
    [
        "pl.Trainer(gpus=2)",
        "import pytorch_lightning\npytorch_lightning.Trainer(\n  gpus=2)",
        "args = dict(gpus=2, max_epochs=3)",
        "trainer_kwargs = {'gpus': 2, 'max_epochs': n}",
        ">>> for x in y:\n...     Trainer(gpus=2)",
        "```python\nTrainer(gpus=2)\n```",
        "Trainer(gpus=2)\r\n",
        "In [3]: Trainer(gpus=2)",
        "x = a \\\n  % (b)\nTrainer(gpus=2)",
        "x = (a\n  != b)\nTrainer(gpus=2)",
        "def f(): ...\nTrainer(gpus=2)",
    ],
)
def test_an_old_argument_is_found_however_it_was_pasted(snippet):
    line = 1 + next(n for n, text in enumerate(snippet.split("\n")) if "gpus" in text)
    assert (line, "gpus=2", "accelerator='gpu', devices=2") in summary(snippet)


def test_a_value_that_is_not_spelled_out_is_named_and_left_open():
    found = explain_snippet("Trainer(gpus=args.gpus, max_epochs=args.epochs)")
    assert [str(one) for one in found] == [
        "line 1: gpus=args.gpus -> modernize({'gpus': ...}). It depends on the value."
    ]


def test_what_cannot_be_translated_is_listed_with_the_reason():
    (found,) = explain_snippet("Trainer(gpus=2, strategy='dp')")[1:]
    assert found.new == "nothing that means the same"
    assert "divide the batch size" in found.why


@pytest.mark.parametrize(
    "snippet",
    [
        "Trainer(accelerator='gpu', devices=[0], max_epochs=3)",
        "RNNModel(pl_trainer_kwargs={'accelerator': 'cpu'})",
        "trainer.train(resume_from_checkpoint=True)",
        "torch_xla.sync(); torch_xla.runtime.world_size()",
        "import torch_xla.core.xla_model as xm\nxm.optimizer_step(optimizer)",
        "mp.spawn(f, nprocs=8)",
        "xmp.spawn(f, nprocs=1)",
        "parser.next(2)",
        "",
        "# gpus=2",
        "!ls",
    ],
)
def test_what_is_current_is_left_in_peace(snippet):
    assert explain_snippet(snippet) == []


TIMED = """
from time import time
start = time()
net.cuda()
loss = net(x.to("cuda")).sum()
loss.backward()
{}print(time() - start)
"""


def test_a_clock_that_does_not_wait_for_the_gpu_is_found_where_it_stops():
    ((line, old, new),) = summary(TIMED.format(""))
    assert (line, old, new) == (7, "time()", "torch.cuda.synchronize() before it")


@pytest.mark.parametrize("wait", ["torch.cuda.synchronize()\n", "total += loss.item()\n"])
def test_a_clock_that_waits_is_left_in_peace(wait):
    assert summary(TIMED.format(wait)) == []


def test_a_clock_around_cpu_work_is_left_in_peace():
    assert summary("import time\nt = time.time()\nf(x)\nprint(time.time() - t)") == []


@pytest.mark.parametrize(
    ("snippet", "new"),
    [
        ("xmp.spawn(f, nprocs=8)", "torch_xla.launch(function)"),
        ("next_batch = iter(loader).next()", "next(iter(loader))"),
        ("torch.multiprocessing.freeze_support()", ""),
        ("from torch.autograd import Variable", "the tensor itself"),
        ("from torch_xla.distributed import xla_dist", "torchrun"),
        ("import torch_xla.experimental.pjrt", "torch_xla.runtime"),
        (
            "class M(pl.LightningModule):\n    def training_epoch_end(self, outputs): ...",
            "def on_train_epoch_end(self)",
        ),
        ("trainer.fit(model, train_dataloader=d)", "train_dataloaders"),
        ("RNNModel(14, torch_device_str='cuda:0')", "pl_trainer_kwargs"),
        ("os.environ['XRT_TPU_CONFIG'] = 'x'", ""),
        ("trainer.tune(model)", "Tuner(trainer)"),
    ],
)
def test_an_outdated_call_is_found(snippet, new):
    assert [one.new for one in explain_snippet(snippet)] == [new]


@pytest.mark.parametrize("snippet", ["for for", "x = (", "\x00", "\ud800", "(" * 500, "-" * 100_000 + "1"])
def test_what_is_not_python_is_refused_with_its_line(snippet):
    with pytest.raises(CannotTranslate, match=r"line 1: this is not Python"):
        explain_snippet(snippet)


def test_what_is_not_text_is_refused():
    with pytest.raises(CannotTranslate, match="bytes: a snippet is a text"):
        explain_snippet(b"Trainer()")


def test_a_snippet_is_never_run(tmp_path):
    target = tmp_path / "made"
    code = f"open({str(target)!r}, 'w')\n@print\ndef f(): ...\nTrainer(gpus=exit())\nimport this"
    explain_snippet(code)
    assert not target.exists()
    assert "this" not in sys.modules


def find(dotted):
    """Return what a full name stands for, importing modules on the way; raise AttributeError if there is nothing."""
    thing = importlib.import_module(dotted.partition(".")[0])
    for part in dotted.split(".")[1:]:
        try:
            thing = getattr(thing, part)
        except AttributeError:
            try:
                thing = importlib.import_module(f"{thing.__name__}.{part}")
            except ImportError:
                raise AttributeError(dotted) from None
    return thing


def installed(dotted):
    name = dotted.partition(".")[0]
    if name == "torch_xla":
        pytest.importorskip(name, reason="torch_xla is not installed")


DEPRECATED = {"torch_xla.core.xla_model.xla_device", "torch_xla.core.xla_model.mark_step"}
STILL_THERE = {"torch.multiprocessing.freeze_support", "multiprocessing.freeze_support", "torch.autograd.Variable"}


@pytest.mark.parametrize("dotted", sorted(CALLS.keys() - DEPRECATED - STILL_THERE))
def test_an_outdated_name_is_really_gone(dotted):
    installed(dotted)
    dotted = dotted.replace("trainer.tune", "lightning.pytorch.Trainer.tune")
    with pytest.raises(AttributeError):
        find(dotted)


@pytest.mark.parametrize(
    "dotted", sorted(new for new, _ in CALLS.values() if "." in new and "(" not in new and " " not in new)
)
def test_what_replaces_it_is_really_there(dotted):
    installed(dotted)
    if dotted != "self.log":
        assert find(dotted)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_method_that_left_the_module_is_gone_and_the_new_one_is_there(method):
    module = find("lightning.pytorch.LightningModule")
    assert not hasattr(module, method)
    assert hasattr(module, re.search(r"def (\w+)", METHODS[method][0])[1])


def test_an_old_keyword_is_gone_and_the_new_one_is_there():
    trainer = find("lightning.pytorch.Trainer")
    for function, old, new, _ in KEYWORDS:
        if function:
            names = inspect.signature(getattr(trainer, function)).parameters
            assert old not in names
            assert new in names


ALPHABET = "Trainer(gpus=2)\n !%$.,:{}[]'\"pl_kwargs=dict>>>...\\xmspawn@#\t\x0c\r0"
PIECES = st.sampled_from(
    ["Trainer(", "gpus=2", ")", "\n", "    ", "...", "!pip ", "{'gpus': ", "xm.", "def f():", "x", ",", "}"]
)


@settings(deadline=None, max_examples=400)
@given(st.text() | st.text(ALPHABET) | st.lists(PIECES).map("".join))
def test_any_text_is_explained_or_refused(text):
    try:
        found = explain_snippet(text)
    except CannotTranslate as refusal:
        assert str(refusal)
    else:
        assert [one.line for one in found] == sorted(one.line for one in found)


@settings(deadline=None, max_examples=100)
@given(st.permutations(["Trainer(gpus=2)", "trainer.tune(m)", "!pip install torch==1.9.0", "x = 1"]))
def test_findings_come_in_the_order_of_the_lines(lines):
    lines_found = [one.line for one in explain_snippet("\n".join(lines))]
    assert lines_found == [n for n, text in enumerate(lines, 1) if text != "x = 1"]


def test_every_pattern_matches_what_a_guide_printed():
    printed = "torch_xla-{}-cp36-cp36m-linux_x86_64.whl cloud-tpu-client==0.10 xrt==1.15.0 XLA_USE_BF16 "
    printed += "torch==1.9.0+cu111 python -m torch_xla.distributed.xla_dist"
    assert all(re.search(pattern, printed) for pattern, _, _ in TEXTS)
