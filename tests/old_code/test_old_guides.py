import ast
import importlib
import inspect
import json
import os
import pickle
import re
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from course_utils.lightning import pl
from course_utils.old_code import Unreadable, explain
from course_utils.old_code.__main__ import main
from course_utils.old_code.names import ATTRIBUTES, KEYWORDS, METHODS, NAMES, TEXTS, advise
from course_utils.old_code.reading import LIMIT

pytestmark = pytest.mark.process


def summary(snippet):
    return [(finding.line, finding.old, finding.new) for finding in explain(snippet)]


def rewritten(snippet):
    """Return a text as it has to read today, after asserting that a second time changes nothing."""
    text = explain(snippet).text
    assert explain(text).text == text
    return text


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


@pytest.mark.parametrize("before", ["a b\u2028c\x0c\n", "a b\rc\n", "a b\r\n"])
def test_a_command_is_on_the_line_that_an_editor_shows(before):
    assert summary(before + "!pip install torch==1.9.0") == [(2, "torch==1.9.0", "")]


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


def test_a_value_that_is_not_spelled_out_is_carried_through():
    (gpus, spread) = explain('Trainer(gpus=args.gpus, accelerator="ddp")')
    assert (gpus.new, spread.new) == ("accelerator='gpu', devices=args.gpus", "strategy='ddp'")
    assert "0 or None" in gpus.why


ON_A_TRAINER = [
    *(
        f"{{}}(devices=4, strategy={name!r})"
        for name in ("dp", "horovod", "ddp_sharded", "fsdp_native", "colossalai")
    ),
    *(
        "{}(strategy='tpu_spawn')",
        "{}(accelerator='hpu')",
        "{}(accelerator='tpu', precision=16)",
        "{}(gpus=2)",
    ),
    *("t = {}()\nt.tune(model)", "t = {}()\nprint(t.gpus)", "{}.from_argparse_args(args)"),
]


@pytest.mark.parametrize("line", ON_A_TRAINER)
@pytest.mark.parametrize("statement", ["import lightning as L", "from lightning import Trainer"])
def test_lightnings_own_short_form_of_the_import_changes_nothing_that_is_found(statement, line):
    def found(statement, name):
        return [
            (note.line, note.new, note.why)
            for note in explain(f"{statement}\n{line.format(name)}\n")
        ]

    short = found(statement, "L.Trainer" if statement.endswith("L") else "Trainer")
    assert short and short == found("import lightning.pytorch as pl", "pl.Trainer")


@pytest.mark.parametrize("base", ["Callback", "LightningModule", "LightningDataModule"])
def test_a_hook_that_takes_other_arguments_is_found_under_the_short_form_too(base):
    hook = {"Callback": "on_train_epoch_end(self, trainer, module, outputs)"}.get(
        base, "teardown(self, stage, other)"
    )
    (found,) = explain(f"import lightning as L\nclass Mine(L.{base}):\n    def {hook}: ...\n")
    assert found.line == 3 and "with fewer arguments" in found.why


def test_what_cannot_be_translated_is_listed_with_the_reason_and_stays_in_the_text():
    found = explain("Trainer(gpus=2, strategy='dp')")
    assert found.findings[1].new == "nothing that means the same"
    assert "divide the batch size" in found.findings[1].why
    assert found.text == "Trainer(accelerator=\"gpu\", devices=2, strategy='dp')"


REWRITES = [
    ('Trainer(gpus=n, accelerator="ddp")', 'Trainer(accelerator="gpu", devices=n, strategy="ddp")'),
    (
        "Trainer(gpus=1 if cuda else 0)",
        'Trainer(accelerator="gpu" if cuda else "cpu", devices=1 if cuda else "auto")',
    ),
    ("Trainer(gpus=None, max_epochs=3)", 'Trainer(accelerator="cpu", max_epochs=3)'),
    (
        "Trainer(\n    weights_summary='top',  # as ever\n    max_epochs=3,\n)",
        "Trainer(\n    # as ever\n    max_epochs=3,\n)",
    ),
    ("Trainer(a, profiler=False, weights_summary='top')", "Trainer(a)"),
    (
        "Trainer(\n    gpus=0,\n    max_epochs=3,  # long enough\n    weights_summary='top',\n)",
        'Trainer(\n    accelerator="cpu",\n    max_epochs=3,  # long enough\n    \n)',
    ),
    (
        "Trainer(callbacks=[A(), *[B(i) for i in range(3)]], checkpoint_callback=b)",
        "Trainer(callbacks=[A(), *[B(i) for i in range(3)], b])",
    ),
    (
        "Trainer(distributed_backend='ddp', gpus=1 if cuda else 0)",
        'Trainer(strategy="ddp", accelerator="gpu" if cuda else "cpu", devices=1 if cuda else "auto")',
    ),
    (
        "Trainer(gpus=2, plugins=DDPPlugin(x=1))",
        'Trainer(accelerator="gpu", devices=2, strategy=DDPStrategy(x=1))',
    ),
    ("Trainer(callbacks=[a], checkpoint_callback=b)", "Trainer(callbacks=[a, b])"),
    ("Trainer(callbacks=more, checkpoint_callback=b)", "Trainer(callbacks=[*more, b])"),
    ("Trainer(train_percent_check=p)", "Trainer(limit_train_batches=float(p))"),
    (
        "trainer = Trainer(resume_from_checkpoint=path, max_epochs=3)\ntrainer.fit(model)",
        "trainer = Trainer(max_epochs=3)\ntrainer.fit(model, ckpt_path=path)",
    ),
    (
        "t = Trainer(gpus=1 if g else 0, resume_from_checkpoint=None if n else p)\nt.fit(model)",
        't = Trainer(accelerator="gpu" if g else "cpu", devices=1 if g else "auto")\n'
        "t.fit(model, ckpt_path=None if n else p)",
    ),
    (
        "Trainer(resume_from_checkpoint=path, max_epochs=3)",
        "Trainer(resume_from_checkpoint=path, max_epochs=3)",
    ),
    (
        "trainer_args['resume_from_checkpoint'] = path",
        "trainer_args['resume_from_checkpoint'] = path",
    ),
    (
        "from torch_xla.core.xla_model import xla_device\ndevice = xla_device()",
        "from torch_xla import device as xla_device\ndevice = xla_device()",
    ),
    ("x.cuda(async=True)", "x.cuda(non_blocking=True)"),
    ("loss.backward(retain_variables=True)", "loss.backward(retain_graph=True)"),
    (
        "total += F.nll_loss(y, t, size_average=False).data[0]",
        "total += F.nll_loss(y, t, size_average=False).item()",
    ),
    ("print(errD.data[0])", "print(errD.item())"),
    ("n = correct[:k].view(-1).float().sum(0)", "n = correct[:k].reshape(-1).float().sum(0)"),
    (
        "Trainer(gpus=..., checkpoint_callback=...)",
        'Trainer(accelerator="gpu", devices=..., callbacks=[...])',
    ),
    (
        "In [1]: t = Trainer(\n   ...:     gpus=2,\n   ...: )\nOut[1]: <Trainer>",
        'In [1]: t = Trainer(\n   ...:     accelerator="gpu", devices=2,\n   ...: )\nOut[1]: <Trainer>',
    ),
    (
        "@@ -1 +1 @@\n-Trainer(gpus=2)\n+Trainer(gpus=3)\n",
        '@@ -1 +1 @@\n-Trainer(gpus=2)\n+Trainer(accelerator="gpu", devices=3)\n',
    ),
    (
        "```diff\n- Trainer(gpus=2)\n+ Trainer(gpus=3)\n```\n",
        '```diff\n- Trainer(gpus=2)\n+ Trainer(accelerator="gpu", devices=3)\n```\n',
    ),
    (
        "from torchmetrics import F1, PSNR",
        "from torchmetrics import F1Score\nfrom torchmetrics.image import PeakSignalNoiseRatio",
    ),
    ("batch = iter(loader).next()", "batch = next(iter(loader))"),
    ("it = iter(loader)\nbatch = it.next()", "it = iter(loader)\nbatch = next(it)"),
    (
        "from torch.cuda.amp import autocast\nwith autocast():\n    f()",
        'from torch.amp import autocast\nwith autocast("cuda"):\n    f()',
    ),
    (
        "import torch\ns = torch.cuda.amp.GradScaler(enabled=e)",
        'import torch\ns = torch.amp.GradScaler("cuda", enabled=e)',
    ),
    (
        "from pytorch_lightning.utilities.distributed import rank_zero_only, x",
        "from pytorch_lightning.utilities.distributed import x\nfrom pytorch_lightning.utilities import rank_zero_only",
    ),
    (
        "from pytorch_lightning.plugins import DDPPlugin\nDDPPlugin()",
        "from pytorch_lightning.strategies import DDPStrategy\nDDPStrategy()",
    ),
    (
        "from pytorch_lightning.callbacks import ModelCheckpoint\nModelCheckpoint(period=2)",
        "from pytorch_lightning.callbacks import ModelCheckpoint\nModelCheckpoint(every_n_epochs=2)",
    ),
    (
        "Trainer(progress_bar_refresh_rate=20, weights_summary='full', max_epochs=3)",
        "Trainer(max_epochs=3)",
    ),
    (
        "```\nimport pytorch_lightning as pl\n```\n```\ngpus=2, checkpoint_callback=b)\n```\n",
        '```\nimport pytorch_lightning as pl\n```\n```\naccelerator="gpu", devices=2, callbacks=[b])\n```\n',
    ),
    ("trainer_args['gpus'] = 2", 'trainer_args.update(accelerator="gpu", devices=2)'),
    ("trainer_args['checkpoint_callback'] = b", "trainer_args.update(callbacks=[b])"),
    ("trainer_args.update(gpus=2)", 'trainer_args.update(accelerator="gpu", devices=2)'),
    (
        "parser = Trainer.add_argparse_args(parser)\nparser.set_defaults(gpus=1)",
        'parser = Trainer.add_argparse_args(parser)\nparser.set_defaults(accelerator="gpu", devices=1)',
    ),
    ("self.hparams = hparams", "self.save_hyperparameters(hparams)"),
    ("print 'a'\nTrainer(gpus=2)", "print 'a'\nTrainer(accelerator=\"gpu\", devices=2)"),
    (
        "\u00a0\u00a0Trainer(gpus=2, profiler=\u201csimple\u201d)",
        '\u00a0\u00a0Trainer(accelerator="gpu", devices=2, profiler=\u201csimple\u201d)',
    ),
    (
        "if n > 1:\n    trainer_args['distributed_backend'] = 'ddp'",
        'if n > 1:\n    trainer_args.update(strategy="ddp")',
    ),
    (
        "  'dirpath',\n    monitor='x',\n    period=2,\n)",
        "  'dirpath',\n    monitor='x',\n    every_n_epochs=2,\n)",
    ),
    (
        "hydra.utils.instantiate(cfg.trainer, gpus=n)",
        'hydra.utils.instantiate(cfg.trainer, accelerator="gpu", devices=n)',
    ),
    (
        "from pytorch_lightning.callbacks import EarlyStopping, LearningRateLogger",
        "from pytorch_lightning.callbacks import EarlyStopping, LearningRateMonitor",
    ),
    ("else:\n\tTrainer(gpus=2)\r\n", 'else:\n\tTrainer(accelerator="gpu", devices=2)\r\n'),
]


@pytest.mark.parametrize(("old", "new"), REWRITES)
def test_old_code_is_rewritten_once_and_the_rest_of_the_text_stays(old, new):
    assert rewritten(old) == new


@pytest.mark.parametrize(
    "line",
    [
        "m = RNNModel(14, torch_device_str='cuda:0')",
        "x, _ = torch.solve(b, a)",
        "x, _ = torch.lstsq(b, a)",
        "w, v = torch.symeig(a, eigenvectors=True)",
        "w, v = torch.eig(a, eigenvectors=True)",
        "y = torch.rfft(x, 1, onesided=False)",
        "y = torch.irfft(x, 1)",
        "y = torch.ifft(x, 2)",
    ],
)
def test_a_call_whose_arguments_mean_something_else_today_is_named_and_left_as_it_is(line):
    text = f"import torch\n{line}\n"
    found = explain(text)
    assert [one.line for one in found] == [2] and found.text == text


LITERALS = [
    "Trainer(gpus=0, max_epochs=3, weights_summary=None)",
    "Trainer(distributed_backend='ddp_cpu', num_processes=2, precision=32)",
    "Trainer(tpu_cores=None, progress_bar_refresh_rate=0, checkpoint_callback=False, use_amp=False)",
    "Trainer(train_percent_check=0.1, val_percent_check=1, row_log_interval=5, early_stop_callback=False)",
    "Trainer(gpus=None, accumulate_grad_batches=4, amp_level='O2', replace_sampler_ddp=False, max_nb_epochs=2)",
    "Trainer(gpus=[], profiler=True, flush_logs_every_n_steps=100, terminate_on_nan=False, track_grad_norm=-1)",
]


@pytest.mark.parametrize("old", LITERALS)
def test_a_rewritten_trainer_is_made_by_the_installed_lightning(old):
    new = ast.parse(rewritten(old), mode="eval").body
    arguments = {each.arg: ast.literal_eval(each.value) for each in new.keywords}
    trainer = pl.Trainer(**{"logger": False, "enable_model_summary": False, **arguments})
    assert type(trainer.accelerator).__name__ == "CPUAccelerator"


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
        "cursor.next()",
        "from transformers import Trainer\nTrainer(model, gpus=2)",
        "ray.init({'gpus': 2})",
        "class Mine:\n    def validation_epoch_end(self, outputs): ...",
        "try:\n    from torch._six import inf\nexcept ImportError:\n    from math import inf",
        "import torch\nif hasattr(torch, 'nothing'):\n    torch.nothing()",
        "if __name__ == '__main__':\n    torch.multiprocessing.freeze_support()",
        "def on_epoch_end(self, runner):\n    self.n += 1",  # of another library
        "$ python train.py --gpus=8 --cfg=stylegan2",
        "import torch.export.exported_program as ep\ndef f(ep: ep.ExportedProgram):\n    return ep.graph_module",
        "import torch\ntorch.nothing_of_the_kind = 1",
        "import torch\ndef f(x: torch.NothingOfTheKind): ...",
        "def f():\n    if _XLA_GREATER_EQUAL_2_1:\n        return 1\n    return xm.xrt_world_size()",
        "def f():\n    a = time.time()\n    x.cuda()\n\ndef g():\n    b = time.time()\n    y.cuda()",
        "",
        "# gpus=2",
        "!ls",
        "series = self.__class__(times=t, values=v)",
        "from torch import nn\nm = m.module if isinstance(m, nn.DataParallel) else m",
        "try:\n    from apex import amp\nexcept ImportError:\n    amp = None\namp.initialize(m, o)",
        "from apex.optimizers import FusedAdam",
        "import torch\nmodel = build(torch.load(p))\nmodel.eval()",
        "import torch\nmodel = torch.load(p)\nmodel.update(more)\ntorch.save(model, q)",
        "$ conda install -c pytorch faiss-cpu",
        "!pip install torch==2.9.0 torch_xla[tpu]==2.9.0",
        "$ gcloud compute tpus tpu-vm create v --zone=z --version=tpu-ubuntu2204-base",
        "$ python train.py --accelerator gpu --strategy ddp --devices 4",
        # torch_xla's parallel_loader
        "import torch_xla\nfor x in pl.MpDeviceLoader(loader, device): ...",
        "from torchmetrics import Accuracy\nAccuracy(task='binary')\nAccuracy(**options)\nAccuracy(...)",
        "from pytorch_lightning.callbacks import EarlyStopping\nEarlyStopping('loss', mode='min')",
        "lightning\ndef on_train_batch_end(self, *args, **kwargs): ...",
        "- pip install pytorch-lightning>=2,<3",
        "hidden = output.data[0]",
    ],
)
def test_what_is_current_is_left_in_peace(snippet):
    assert summary(snippet) == []
    assert rewritten(snippet) == snippet


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


@pytest.mark.parametrize("work", ["f(x)", "f(x)  # or 'cuda'", '"""cuda timing."""'])
def test_a_clock_around_cpu_work_is_left_in_peace(work):
    assert summary(f"import time\nt = time.time()\n{work}\nprint(time.time() - t)") == []


@pytest.mark.parametrize("unpacked", ["conf", "conf['runs']", "conf['runs'][0]"])
def test_a_dictionary_that_a_trainer_is_given_a_part_of_holds_its_arguments(unpacked):
    text = f"import pytorch_lightning as pl\nconf['gpus'] = 2\ntrainer = pl.Trainer(**{unpacked})"
    assert (2, "gpus=2", "accelerator='gpu', devices=2") in summary(text)


@pytest.mark.parametrize(
    ("snippet", "new"),
    [
        ("xmp.spawn(f, nprocs=8)", "torch_xla.launch(function)"),
        ("from torch.autograd import Variable\nVariable(x)", "the tensor itself"),
        ("from torch_xla.distributed import xla_dist", "torchrun"),
        ("import torch_xla.experimental.pjrt", "torch_xla.runtime"),
        (
            "class M(pl.LightningModule):\n    def training_epoch_end(self, outputs): ...",
            "def on_train_epoch_end(self)",
        ),
        (
            "class C(pl.Callback):\n    def on_train_epoch_end(self, trainer, module, outputs): ...",
            "def on_train_epoch_end(self, trainer, pl_module)",
        ),
        ("trainer.fit(model, train_dataloader=d)", "train_dataloaders"),
        (
            "RNNModel(14, torch_device_str='cuda:0')",
            'pl_trainer_kwargs={"accelerator": ..., "devices": ...}',
        ),
        ("os.environ['XRT_TPU_CONFIG'] = 'x'", ""),
        ("trainer.tune(model)", "Tuner(trainer).lr_find(model) or .scale_batch_size(model)"),
        ("from pytorch_lightning.metrics.functional import f1", "torchmetrics.functional.f1_score"),
        ("from pytorch_lightning.metrics import Precision", "torchmetrics"),
        ("checkpoint = ModelCheckpoint(filepath=here)", "dirpath=..., filename=..."),
        ("images = self.dataloader_iters[i].next()", "next(self.dataloader_iters[i])"),
        ("gpus=2,\n    max_epochs=3,\n)\ntrainer.fit(model)", "accelerator='gpu', devices=2"),
        (
            "trainer = pl.Trainer(\n    gpus=2,\n    max_epochs=3,  # and so on",
            "accelerator='gpu', devices=2",
        ),
        ("flash.Trainer(gpus=2)", "accelerator='gpu', devices=2"),
        (
            "import pytorch_lightning as pl\npl.utilities.distributed.rank_zero_only",
            "lightning.pytorch.utilities.rank_zero_only",
        ),
        ("trainer = pl.Trainer()\nx = trainer.plugins", ""),  # not the module of that name
        ("Trainer(gpus=2, <your arguments>)", "accelerator='gpu', devices=2"),
        ("print(loss.data[0])", "loss.item()"),
        ("from darts.utils.data.sequential_dataset import X", ""),
        ("import torch\ntorch.nothing_of_the_kind(1)", ""),
        (
            "from pytorch_lightning.callbacks import EarlyStopping\nEarlyStopping(monitor='x', nothing=1)",
            "",
        ),
        (
            "$ python train.py --gpus 2 --weights_summary full",
            "--accelerator gpu --devices 2",
        ),
        ("$ python -m torch.distributed.launch train.py", "torchrun"),
        (
            "trainer = pl.Trainer(strategy=DDPPlugin(x=1) if n else 'ddp')",
            "lightning.pytorch.strategies.DDPStrategy",
        ),
        (
            "from pytorch_lightning.logging import TestTubeLogger",
            "pytorch_lightning.loggers.TensorBoardLogger",
        ),
        (
            "from pytorch_lightning.logging import TestTubeLogger\nTestTubeLogger('x')",
            "pytorch_lightning.loggers.TensorBoardLogger",
        ),
        ("xpu.variable(x, async=True)", "another name, such as non_blocking"),
        ("cfg.trainer.resume_from_checkpoint = p", "trainer.fit(model, ckpt_path=p)"),
        (
            "out['log'] = x\nreturn out\n\ndef validation_epoch_end(self, outputs): ...",
            "self.log_dict(...)",
        ),
        ('run(["++trainer.gpus=0"])', "trainer.accelerator=cpu"),
        (
            'Words of a docstring\n    that was cut.\n    """\n    x = Variable(y, volatile=True)',
            "the tensor itself",
        ),
        (
            "Train:\n\n```yaml\npython run.py trainer.gpus=1\n```",
            "trainer.accelerator=gpu trainer.devices=1",
        ),
        (
            "cd x\n```\n\nRun:\n\n```bash\npython train.py --gpus 2 --weights_summary top",
            "--accelerator gpu --devices 2",
        ),
        ("MyTrainer(gpus=2, distributed_backend='ddp')", "accelerator='gpu', devices=2"),
        ("!pip install pytorch-lightning==1.3.4", "pip install lightning"),
        ("!python pytorch-xla-env-setup.py --version 1.7", ""),
        ("Trainer(gpus=" + "1" * 50_000 + ")", None),
        (
            "from apex import amp\namp.initialize(m, o)",
            'torch.amp.autocast("cuda") and torch.amp.GradScaler("cuda")',
        ),
        (  # as Apex's own example has it
            "try:\n    from apex import amp\nexcept ImportError:\n    raise ImportError('Please install apex')",
            'torch.amp.autocast("cuda") and torch.amp.GradScaler("cuda")',
        ),
        ("import apex\napex.parallel.SyncBatchNorm(3)", "torch.nn.SyncBatchNorm"),
        (
            "from apex.parallel import DistributedDataParallel as DDP",
            "torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])",
        ),
        (
            "from torch import nn\nm = nn.DataParallel(m).cuda()",
            "torch.nn.parallel.DistributedDataParallel(model)",
        ),
        ("parser.add_argument('--local_rank', type=int)", 'int(os.environ["LOCAL_RANK"])'),
        ("$ conda install pytorch==1.12.1 cudatoolkit=10.2 -c pytorch", ""),
        ("$ conda install pytorch torchvision cudatoolkit=10.2 -c pytorch", "pip install torch"),
        ("$ conda install -c pytorch -c nvidia pytorch", "pip install torch"),
        ("conda install pytorch pytorch-cuda=11.8", "pip install torch"),
        ("!pip install torch_xla[tpu]~=2.1.0 torch~=2.1.0", "torch==2.9.0 torch_xla[tpu]==2.9.0"),
        ("from pytorch_lightning.lite import LightningLite", "lightning.fabric.Fabric"),
        ("from torch_xla.experimental import xla_sharding as xs", "torch_xla.distributed.spmd"),
        ("from torch_xla.experimental.xla_sharding import Mesh", "torch_xla.distributed.spmd"),
        (
            "srun python train.py --gpus 4 --accelerator ddp",
            "--strategy ddp --accelerator gpu --devices 4",
        ),
        ("$ python train.py --gpus 4 --strategy horovod", "--accelerator gpu --devices 4"),
    ],
)
def test_an_outdated_call_is_found(snippet, new):
    found = [one.new for one in explain(snippet)]
    assert found[0] == new if new is not None else found


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (
            "from torchmetrics import Accuracy\na = Accuracy(num_classes=3)",
            "Accuracy(...)",
            "task: Literal['binary'",
        ),
        (
            "import torchmetrics.functional as f\nf.accuracy(a, b)",
            "f.accuracy(...)",
            "task: Literal['binary'",
        ),
        (
            "from lightning.pytorch.callbacks import EarlyStopping\nEarlyStopping(patience=3)",
            "EarlyStopping(...)",
            "mon",
        ),
        (
            "ModelCheckpoint('x', mode='auto')",
            "ModelCheckpoint(mode=...)",
            'mode="min" or mode="max"',
        ),
        ("self.manual_backward(loss, opt)", "manual_backward(..., opt)", "manual_backward(loss)"),
        ("self.log('a', a, sync_dist_op='mean')", "log(sync_dist_op=...)", "reduce_fx=..."),
        ("!pip install 'pytorch-lightning<2'", "pytorch-lightning<2", "pip install lightning"),
        (
            "!pip install 'pytorch-lightning>=1.5,<1.6'",
            "pytorch-lightning>=1.5,<1.6",
            "pip install lightning",
        ),
        ("$ PJRT_DEVICE=CUDA python train.py", "PJRT_DEVICE=CUDA", "plain PyTorch"),
        ("torch.gels(y, x)", "torch.gels", "torch.linalg.lstsq(A, B)"),
        (
            "from pytorch_lightning.core.memory import ModelSummary",
            "pytorch_lightning.core.memory.ModelSummary",
            "pytorch_lightning.utilities.model_summary.ModelSummary",
        ),
        (
            "from lightning.lite.accelerators import find_usable_cuda_devices",
            "lightning.lite.accelerators.find_usable_cuda_devices",
            "lightning.fabric.accelerators",
        ),
        (
            "1 class M(pl.LightningModule):\n2   def test_end(self, outputs): ...",
            "def test_end",
            "def on_test_epoch_end",
        ),
    ],
)
def test_what_fails_today_is_named_with_what_it_needs(text, old, new):
    text = f"import torch\n{text}" if text.startswith("torch") else text
    (found,) = explain(text)
    assert found.old == old and found.new.startswith(new)


def batches(size=1):
    return torch.utils.data.DataLoader(torch.ones(4, 1), batch_size=size)


class Line(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def validation_step(self, batch, batch_idx):
        self.layer(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


METHOD_HEADS = [
    "M: backward(self, loss)",
    "M: backward(self, loss, optimizer, optimizer_idx)",
    "M: training_step(self, batch, batch_idx, hiddens)",
    "M: transfer_batch_to_device(self, batch, device)",
    "M: on_after_batch_transfer(self, batch)",
    "M: on_train_epoch_end(self)",
    "M: on_train_epoch_end(self, outputs)",
    "M: on_train_epoch_end(self, outputs=None)",
    "M: on_train_batch_end(self, *args)",
    "M: optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure)",
    "M: optimizer_step(self, epoch, batch_idx, optimizer, optimizer_idx, optimizer_closure)",
    "C: on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx)",
    "C: on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx)",
    "C: on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0)",
    "C: on_train_batch_start(self, trainer, pl_module, batch, batch_idx, dataloader_idx)",
    "C: on_save_checkpoint(self, trainer, pl_module)",
]


@pytest.mark.parametrize("head", METHOD_HEADS)
@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_a_method_is_found_where_the_installed_lightning_cannot_call_it(head, is_cut, tmp_path):
    kind, _, method = head.partition(": ")
    bodies = {"optimizer_step": "optimizer_closure()", "backward": "loss.backward()"}
    bodies |= dict.fromkeys(("transfer_batch_to_device", "on_after_batch_transfer"), "batch")
    body = bodies.get(method.partition("(")[0])
    code = f"class Mine({'Line' if kind == 'M' else 'pl.Callback'}):\n    def {method}:\n        return {body}\n"
    names = {"Line": Line, "pl": pl}
    exec(code, names)
    module, callbacks = (names["Mine"](), []) if kind == "M" else (Line(), [names["Mine"]()])
    quiet = {
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "max_epochs": 1,
    }
    trainer = pl.Trainer(accelerator="cpu", callbacks=callbacks, default_root_dir=tmp_path, **quiet)
    try:
        trainer.fit(module, batches(), batches())
        fails = False
    except TypeError:
        fails = True
    text = code.replace("(Line)", "(pl.LightningModule)")
    text = (
        f"# lightning\ndef {method}: ..." if is_cut else f"import lightning.pytorch as pl\n{text}"
    )
    assert bool(explain(text).findings) == fails


def test_how_the_work_was_spread_is_not_said_to_be_missing_where_it_was_named():
    for named in (
        "distributed_backend='dp'",
        "accelerator='horovod'",
        "plugins='ddp_sharded'",
        "strategy='ddp'",
    ):
        assert "Without a strategy" not in repr(explain(f"Trainer(gpus=2, {named})"))
    assert "Without a strategy" in repr(explain("Trainer(gpus=2)"))


def test_a_markdown_file_without_fences_is_read_as_it_is_pasted(tmp_path):
    path = tmp_path / "answer.md"
    path.write_text("I write\n\n    trainer = Trainer(gpus=2)\n\nand it fails.\n")
    assert [note.line for note in explain(path)] == [3]


def test_a_tpu_node_is_named_where_it_is_created():
    (found,) = explain(
        "gcloud compute tpus create demo --zone=us-central1-a --version=pytorch-1.9 --preemptible"
    )
    assert "tpu-vm create" in found.new and "TPU VM" in found.why


@pytest.mark.parametrize(
    "text",
    [
        "torch.save(model, path)\nmodel = torch.load(path)",
        "torch.save(model, path)\nother.model = torch.load(path, map_location='cpu')",
        "torch.save(other.net, path)\nnet = torch.load(path)\nnet.eval()",
        "torch.save(model.state_dict(), path)\nmodel.load_state_dict(torch.load(path))",
        "torch.save(model.state_dict(), path)\nbest_model = torch.load(path)\nmodel.load_state_dict(best_model)",
        "torch.save({'net': model.state_dict()}, path)\nnet = torch.load(path)\nmodel.load_state_dict(net['net'])",
        "torch.save(model, path)\nmodel = torch.load(path, weights_only=False)",
        "torch.save(data, path)\ndata = torch.load(path)",
    ],
)
def test_the_loading_of_a_model_is_found_where_the_installed_torch_refuses_it(text, tmp_path):
    module = torch.nn.Linear(2, 1)
    names = {"torch": torch, "path": tmp_path / "file", "model": module, "data": torch.ones(2)}
    try:
        exec(text, {**names, "other": SimpleNamespace(net=module)})
        refused = False
    except pickle.UnpicklingError:
        refused = True
    found = list(explain(f"import torch\n{text}\n"))
    assert bool(found) == refused
    assert all("state_dict" in each.new and "weights only" in each.why for each in found)


@pytest.mark.parametrize(
    ("home", "old"),
    [
        ("strategies", "DDPSpawnStrategy"),
        ("strategies", "DDPFullyShardedNativeStrategy"),
        ("plugins", "NativeMixedPrecisionPlugin"),
        ("plugins", "TPUSpawnPlugin"),
    ],
)
def test_the_class_that_replaces_one_of_lightnings_can_be_made(home, old):
    (imported,) = explain(f"from pytorch_lightning.{home} import {old}")
    (bare,) = explain(f"{old}(x)")
    assert imported.new == bare.new.replace("lightning.pytorch", "pytorch_lightning")
    if "XLA" in imported.new:
        pytest.importorskip("torch_xla", reason="torch_xla is not installed")
    made = eval(imported.new + "()" * (not imported.new.endswith(")")), {"pytorch_lightning": pl})
    assert type(made).__name__ in imported.new


def test_what_a_cell_imports_is_still_there_for_the_others():
    cells = [
        "from pytorch_lightning.plugins import DDPPlugin\nfrom torch.cuda.amp import autocast, GradScaler\n"
        "GradScaler()",
        "trainer = Trainer(resume_from_checkpoint=path, strategy=DDPPlugin())",
        "with autocast():\n    trainer.fit(model)",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    new = [
        cell.source for cell in nbformat.reads(rewritten(nbformat.writes(book)), as_version=4).cells
    ]
    first = "from pytorch_lightning.strategies import DDPStrategy as DDPPlugin\nfrom torch.cuda.amp import autocast\n"
    assert new == [first + 'from torch.amp import GradScaler\nGradScaler("cuda")', *cells[1:]]


def test_a_notebook_is_read_cell_by_cell_and_stays_a_notebook(tmp_path):
    book = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("gpus=2"),
            nbformat.v4.new_code_cell(
                "!pip install torch==1.9.0\n%matplotlib inline\nimport pytorch_lightning as pl"
            ),
            nbformat.v4.new_code_cell("pl.Trainer(gpus=2)"),
        ]
    )
    path = tmp_path / "old.ipynb"
    nbformat.write(book, path)
    found = explain(path)
    assert [(one.cell, one.line) for one in found] == [("cell 2", 1), ("cell 3", 1)]
    assert explain(path.read_text()).findings == found.findings  # pasted, without a name
    new = nbformat.reads(found.text, 4)
    nbformat.validate(new)
    assert [cell.source for cell in new.cells] == [
        "gpus=2",
        book.cells[1].source,
        'pl.Trainer(accelerator="gpu", devices=2)',
    ]
    assert "cell 3 (today)" in found.diff("old.ipynb")


MARKDOWN = (
    "Set gpus=2:\n\n```python\nTrainer(gpus=2)\n```\n\n```bash\npip install torch==1.9.0\n```\n"
)
REST = "Old\n===\n\n.. code-block:: python\n   :emphasize-lines: 1\n\n   Trainer(gpus=2)\n\nThen gpus=2.\n"


@pytest.mark.parametrize(
    ("suffix", "text", "lines"),
    [(".md", MARKDOWN, [4, 8]), (".rst", REST, [7]), ("", MARKDOWN, [4, 8]), ("", REST, [7])],
)
def test_only_the_code_of_a_page_is_read(tmp_path, suffix, text, lines):
    source = text
    if suffix:
        source = tmp_path / f"page{suffix}"
        source.write_text(text)
    found = explain(source)
    assert [one.line for one in found] == lines
    assert found.text == text.replace("Trainer(gpus=2)", 'Trainer(accelerator="gpu", devices=2)')


@pytest.mark.parametrize(
    "hostile",
    [
        "(" * 10_000,
        "-" * 100_000 + "1",
        "[" * 20_000 + "]" * 20_000,
        "f(" * 20_000 + ")" * 20_000,
        "\ud800",
        "for for",
        "x = (" * 9,
    ],
)
def test_hostile_code_ends_without_a_crash(hostile):
    try:
        assert explain(hostile).text == hostile
    except Unreadable as refusal:
        assert str(refusal)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("x = 1\n" * (LIMIT // 6 + 1), "characters"),
        ("\0", "no text"),
        ('{"cells": [', "a notebook"),
        ('{"cells": ' + "[" * 100_000, "a notebook"),
        (b"Trainer()", "bytes"),
        ("f(" * 20_000, "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(source, reason):
    with pytest.raises(Unreadable, match=reason):
        explain(source)


def test_the_command_prints_a_diff_and_says_by_its_status_what_it_found(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_bytes(b"\xef\xbb\xbfTrainer(gpus=2)\r\n")
    assert main([str(path)]) == 1
    assert '+Trainer(accelerator="gpu", devices=2)' in capsys.readouterr().out
    assert main([str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["old"] == "gpus=2"
    assert main([str(path), "--write"]) == 1
    assert path.read_bytes() == b'\xef\xbb\xbfTrainer(accelerator="gpu", devices=2)\r\n'
    assert (tmp_path / "train.py.orig").read_bytes() == b"\xef\xbb\xbfTrainer(gpus=2)\r\n"
    assert main([str(path)]) == 0
    path.write_bytes(b"Trainer(gpus=3)\n")
    assert main([str(path), "--write"]) == 2
    assert (
        ".orig is there already" in capsys.readouterr().err
        and path.read_bytes() == b"Trainer(gpus=3)\n"
    )
    assert (tmp_path / "train.py.orig").read_bytes() == b"\xef\xbb\xbfTrainer(gpus=2)\r\n"
    assert main([str(tmp_path / "nothing.py")]) == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "old"),
    [
        (
            "requirements-gpu.txt",
            "torch==1.7\npytorch-lightning==1.2.0\n",
            ["torch==1.7", "pytorch-lightning==1.2.0"],
        ),
        ("environment.yml", "dependencies:\n  - python=3.7\n  - pytorch=1.7\n", ["pytorch=1.7"]),
        (
            "Dockerfile",
            "FROM pytorch/pytorch:1.7.1-cuda11.0-cudnn8-runtime\nRUN pip install -U \\\n  pytorch-lightning==1.1.0\n",
            ["pytorch/pytorch:1.7.1-cuda11.0-cudnn8-runtime", "pytorch-lightning==1.1.0"],
        ),
        (
            "s.sbatch",
            "#SBATCH -N 1\nsrun python t.py --gpus 4 --accelerator ddp\n",
            ["--gpus 4 --accelerator ddp"],
        ),
    ],
)
def test_a_file_whose_lines_are_for_a_shell_or_an_installer_is_read(tmp_path, name, text, old):
    path = tmp_path / name
    path.write_text(text)
    assert [each.old for each in explain(path)] == old


def test_a_kind_of_file_that_it_knows_nothing_of_is_refused_and_the_others_are_read(
    tmp_path, capsys
):
    new, old, configuration = (tmp_path / name for name in ("new.py", "old.py", "config.yaml"))
    new.write_text("x = 1\n")
    old.write_text("Trainer(gpus=2)\n")
    configuration.write_text("trainer: {gpus: 2, distributed_backend: ddp}\n")
    assert main([str(new), str(old)]) == 1
    out = capsys.readouterr().out
    assert (
        out.index(f"{new}:")
        < out.index("No outdated use")
        < out.index(f"{old}:")
        < out.index("gpus=2")
    )
    assert main([str(configuration), str(old)]) == 2
    out, err = capsys.readouterr()
    assert (
        "gpus=2" in out
        and "config.yaml is a .yaml file" in err
        and ".py" in err
        and "notebooks" in err
    )
    assert main([str(old), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["file"] == str(old)


@pytest.mark.parametrize("missing", ["parso", "lightning"])
def test_the_command_names_a_package_that_is_missing_and_how_to_get_it(missing):
    code = f"import runpy, sys; sys.modules.update({missing}=None, pytorch_{missing}=None); sys.argv[1:] = ['-']\n"
    code += "runpy.run_module('course_utils.old_code', run_name='__main__')"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, input="Trainer(gpus=2)", capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert missing in done.stderr and "pip install 'accelerator-course[lessons]'" in done.stderr


def test_a_card_shows_each_finding_with_its_text_escaped():
    html = explain("Trainer(gpus=2, weights_summary='<b>')")._repr_html_()
    assert "gpus=2" in html and "&lt;b&gt;" in html and "<b>'" not in html


def test_a_snippet_is_never_run(tmp_path):
    target = tmp_path / "made"
    code = f"open({str(target)!r}, 'w')\n@print\ndef f(): ...\nTrainer(gpus=exit())\nimport this"
    explain(code)
    assert not target.exists()
    assert "this" not in sys.modules


def find(dotted):
    """Return what a full name stands for, importing modules on the way; raise AttributeError if
    there is nothing.
    """
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


def is_there(dotted):
    if dotted.startswith("torch_xla"):
        pytest.importorskip("torch_xla", reason="torch_xla is not installed")
    try:
        return find(dotted.rstrip(".")) is not None
    except (AttributeError, ModuleNotFoundError):
        return False


# These still work today, and their advice says so or why not to use them.
DEPRECATED = {
    name for name, (_, why) in NAMES.items() if "still works" in why or "raises RuntimeError" in why
}
STILL_THERE = {
    *DEPRECATED,
    "torch.autograd.Variable",
    "torch.utils.data._utils.collate.default_collate",
}
STILL_THERE |= {"lightning.pytorch.logging."}  # Python's own module, which Lightning imports
STILL_THERE |= {"torch.utils.data.dataloader.default_collate"}


@pytest.mark.parametrize("dotted", sorted(NAMES.keys() - STILL_THERE))
def test_an_outdated_name_is_really_gone(dotted):
    assert not is_there(dotted)


PLACES = (
    re.match(r"(torch|torch_xla|torchmetrics|lightning)(\.\w+)+", new) for new, _ in NAMES.values()
)
PLACES = sorted({place[0] for place in PLACES if place})


@pytest.mark.parametrize("dotted", PLACES)
def test_what_replaces_it_is_really_there(dotted):
    assert is_there(dotted)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_method_that_left_is_gone_and_the_new_one_is_there(method):
    homes = [
        find(f"lightning.pytorch.{name}")
        for name in ("LightningModule", "Callback", "LightningDataModule")
    ]
    assert not any(hasattr(home, method) for home in homes)
    if new := re.search(r"^def (\w+)", METHODS[method][0]):
        assert any(hasattr(home, new[1]) for home in homes)


def test_an_old_keyword_is_gone_and_the_new_one_is_there():
    trainer, checkpoint = (
        find("lightning.pytorch.Trainer"),
        find("lightning.pytorch.callbacks.ModelCheckpoint"),
    )
    for key, (new, _) in KEYWORDS.items():
        function, old = key.split(".")
        thing = checkpoint if function == "ModelCheckpoint" else getattr(trainer, function, None)
        if thing is not None:
            names = inspect.signature(thing).parameters
            assert old not in names
            assert not new.isidentifier() or new in names or new == "nothing"


def test_an_old_attribute_of_a_trainer_is_gone():
    assert not [name for name in ATTRIBUTES if hasattr(find("lightning.pytorch.Trainer"), name)]


def test_a_name_that_moved_is_named_in_its_new_place_under_the_readers_own_package():
    assert (
        advise("pytorch_lightning.profiler.SimpleProfiler")[0]
        == "pytorch_lightning.profilers.SimpleProfiler"
    )
    assert advise("torch.nn.Linear") is None


@pytest.mark.parametrize("name", ["Shard", "Replicate", "distribute_tensor"])
def test_a_place_that_was_only_proposed_is_not_said_to_have_been_left(name):
    """pytorch/pytorch 88838, the proposal; PyTorch/XLA's SPMD guide imports them from there."""
    assert not hasattr(torch.distributed, name)
    new, why = advise(f"torch.distributed.{name}")
    assert new == f"torch.distributed.tensor.{name}" and "proposed" in why and "moved" not in why


ALPHABET = "Trainer(gpus=2)\n !%$.,:{}[]'\"pl_kwargs=dict>>>...\\xmspawn@#\t\x0c\r0"
PIECES = st.sampled_from(
    [
        "Trainer(",
        "gpus=2",
        ")",
        "\n",
        "    ",
        "...",
        "!pip ",
        "{'gpus': ",
        "xm.",
        "def f():",
        "x",
        ",",
        "}",
    ]
)


@settings(deadline=None, max_examples=400)
@example("0(0<0=0")
@given(st.text() | st.text(ALPHABET) | st.lists(PIECES).map("".join))
def test_any_text_is_explained_or_refused_and_changed_once(text):
    try:
        found = explain(text)
    except Unreadable as refusal:
        assert str(refusal)
    else:
        lines = [one.line for one in found]
        assert lines == sorted(lines)
        assert explain(found.text).text == found.text


@settings(deadline=None, max_examples=100)
@given(
    st.permutations(["Trainer(gpus=2)", "trainer.tune(m)", "!pip install torch==1.9.0", "x = 1"])
)
def test_findings_come_in_the_order_of_the_lines(lines):
    lines_found = [one.line for one in explain("\n".join(lines))]
    assert lines_found == [n for n, text in enumerate(lines, 1) if text != "x = 1"]


def test_every_pattern_matches_what_a_guide_printed():
    printed = (
        "torch_xla-{}-cp36-cp36m-linux_x86_64.whl cloud-tpu-client==0.10 xrt==1.15.0 XLA_USE_BF16 "
    )
    printed += (
        "torch==1.9.0+cu111 python -m torch_xla.distributed.xla_dist pytorch-xla-env-setup.py "
    )
    printed += "pytorch-lightning==1.3.4 python -m torch.distributed.launch FROM pytorch/pytorch:1.7.1-cuda11.0 "
    printed += (
        "conda install pytorch torchvision cudatoolkit=10.2 -c pytorch torch_xla[tpu]~=2.1.0 "
    )
    printed += (
        "gcloud compute tpus create a --version=pytorch-1.9 parser.add_argument('--local_rank') "
    )
    printed += "PJRT_DEVICE=CUDA GPU_NUM_DEVICES=4 python train.py"
    assert all(re.search(pattern, printed) for pattern, _, _ in TEXTS)


def runs(text: str, **names) -> dict:
    """Execute a new text in which Trainer is a function, and return the arguments that it was
    given.
    """
    given: dict = {}
    names = {"pl": SimpleNamespace(Trainer=lambda **arguments: given.update(arguments)), **names}
    code = "\n".join(
        line for line in text.splitlines() if not line.startswith(("import ", "from "))
    )
    exec(compile(code, "new text", "exec"), names)
    return given


def test_callbacks_of_a_dictionary_are_kept_beside_those_that_replace_arguments():
    old = (
        'TFTModel(pl_trainer_kwargs={"gpus": 1, "callbacks": [mine], "checkpoint_callback": yours})'
    )
    new = explain(f"from darts.models import TFTModel\n{old}").text
    assert new.count('"callbacks"') == 1 and "[mine, yours]" in new


@pytest.mark.parametrize(
    ("old", "names", "expected"),
    [
        ("max_steps=None if e else 7", {"e": 0}, {"max_steps": 7}),
        ("max_steps=None if e else 7", {"e": 1}, {"max_steps": -1}),
        ("strategy=None if n else 'ddp'", {"n": 1}, {"strategy": "auto"}),
        (
            "early_stop_callback=a if e else None, callbacks=[b]",
            {"e": 1, "a": 1, "b": 2},
            {"callbacks": {1, 2}},
        ),
        ("progress_bar_refresh_rate=0 if e else 20", {"e": 1}, {"enable_progress_bar": False}),
        # the default, True
        ("progress_bar_refresh_rate=0 if e else 20", {"e": 0}, {"enable_progress_bar": None}),
        (
            "callbacks=[x for x in c], checkpoint_callback=k",
            {"c": [1], "k": 2},
            {"callbacks": {1, 2}},
        ),
        ("callbacks=c or [], checkpoint_callback=k", {"c": None, "k": 2}, {"callbacks": {2}}),
        (
            "tpu_cores=8 if t else None, precision=16 if a else 32",
            {"t": 0, "a": 1},
            {"precision": "16-mixed"},
        ),
        (
            "tpu_cores=8 if t else None, precision=16 if a else 32",
            {"t": 1, "a": 1},
            {"precision": "bf16-true"},
        ),
    ],
)
def test_a_choice_means_afterwards_what_it_meant_before(old, names, expected):
    given = runs(explain(f"import pytorch_lightning as pl\npl.Trainer({old})").text, **names)
    found = {
        name: set(value) if isinstance(value, list) else value for name, value in given.items()
    }
    assert {name: found.get(name) for name in expected} == expected


def test_a_checkpoint_goes_to_the_fit_of_its_own_trainer():
    made = 'one = pl.Trainer(resume_from_checkpoint="a.ckpt")\ntwo = pl.Trainer()'
    new = explain(f"import pytorch_lightning as pl\n{made}\ntwo.fit(model)\none.fit(model)").text
    assert 'one.fit(model, ckpt_path="a.ckpt")' in new and "two.fit(model)" in new


def test_one_change_that_cannot_be_written_leaves_the_others():
    old = (
        "pl.Trainer(gpus=1, plugins=[DDPPlugin(find_unused_parameters=False), SLURMEnvironment()])"
    )
    assert "devices=1" in explain(f"import pytorch_lightning as pl\n{old}").text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("autocast(amp)", 'autocast("cuda", enabled=amp)'),
        ("autocast(enabled=amp)", 'autocast("cuda", enabled=amp)'),
        ("autocast()", 'autocast("cuda")'),
    ],
)
def test_whether_autocast_is_on_came_first_and_comes_by_name(old, new):
    assert f"torch.amp.{new}" in explain(f"import torch\nwith torch.cuda.amp.{old}:\n    pass").text


@pytest.mark.parametrize("number", ["FLAGS['num_cores']", "FLAGS.num_cores", "8"])
def test_any_number_of_processes_but_one_is_reported(number):
    code = f"import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(train, args=(FLAGS,), nprocs={number})"
    assert "torch_xla.launch" in repr(explain(code))


@pytest.mark.parametrize(
    "base",
    [
        "from pytorch_lightning.callbacks.base import Callback",
        "from pytorch_lightning.callbacks import ModelCheckpoint as Callback",
    ],
)
def test_a_hook_that_went_is_found_under_every_base(base):
    code = f"{base}\nclass Mine(Callback):\n    def on_epoch_end(self, trainer, pl_module): ..."
    assert "on_epoch_end" in repr(explain(code))


def test_a_file_that_is_not_there_is_not_taken_for_a_text():
    with pytest.raises(Unreadable, match=r"no file 'typo_train\.py'"):
        explain("typo_train.py")


@pytest.mark.parametrize(
    ("message", "new"),
    [
        (
            "TypeError: Trainer.__init__() got an unexpected keyword argument 'gpus'",
            "accelerator='gpu'",
        ),
        ("ModuleNotFoundError: No module named 'torch._six'", "collections.abc"),
        (
            "ImportError: cannot import name 'container_abcs' from 'torch._six' (here.py)",
            "collections.abc",
        ),
        ("AttributeError: module 'torch' has no attribute 'gels'", "torch.linalg.lstsq"),
        ("AttributeError: 'Trainer' object has no attribute 'lr_find'", "Tuner(trainer)"),
        (
            "NotImplementedError: Support for `training_epoch_end` has been removed in v2.0.0.",
            "on_train_epoch_end",
        ),
    ],
)
def test_the_message_of_an_error_alone_says_what_was_outdated(message, new):
    text = f'Traceback (most recent call last):\n  File "old.py", line 3, in <module>\n    main()\n{message}\n'
    (found,) = explain(text)
    assert found.line == 4 and new in found.new and explain(text).text == text
    assert not explain(re.sub("'(gpus|torch._six|lr_find|torch)'|`training", "'mine'", message))


def test_a_message_beside_the_code_that_raised_it_adds_nothing():
    code = "trainer = pl.Trainer(gpus=1)\n"
    message = "TypeError: Trainer.__init__() got an unexpected keyword argument 'gpus'\n"
    assert [note.line for note in explain(code + message)] == [1]


def test_an_exception_of_a_package_that_is_asked_has_no_arguments_to_miss():
    code = "from torchmetrics.utilities.exceptions import TorchMetricsUserError\n\nraise TorchMetricsUserError()\n"
    assert not explain(code)


@pytest.mark.parametrize(("last", "shown"), [("Á".encode(), "Á"), (b"\xff", "\\xff")])
def test_what_is_piped_in_is_read_as_a_file_is_whatever_code_page_the_terminal_has(last, shown):
    # Windows' code page lacks the second byte of this letter; a file of an old editor is not UTF-8.
    command = [sys.executable, "-m", "course_utils.old_code", "--json", "-"]
    environment, piped = (
        {**os.environ, "PYTHONIOENCODING": "cp1252"},
        b"\xef\xbb\xbfTrainer(gpus=2)  # " + last,
    )
    done = subprocess.run(command, input=piped, env=environment, capture_output=True)
    assert done.returncode == 1 and not done.stderr
    assert json.loads(done.stdout)["text"] == f'Trainer(accelerator="gpu", devices=2)  # {shown}'


# From the "Removed" lists of Lightning's change log, and the Trainer's source where a name was
# private.
LEFT = {
    "1.4": "use_dp use_ddp use_tpu on_gpu get_model run_evaluation",
    "1.5": "distributed_backend model_connector accelerator_connector",
    "1.7": "on_keyboard_interrupt on_post_move_to_device add_to_queue get_from_queue on_train_dataloader",
    "1.8": "on_init_start on_pretrain_routine_start on_epoch_end on_batch_end lr_schedulers gpus root_gpu use_amp",
    "2.0": "amp_backend",
}


def test_a_name_left_in_the_version_that_lightnings_change_log_says():
    for version, names in LEFT.items():
        for name in names.split():
            assert (METHODS | ATTRIBUTES)[name][1] == f"It left Lightning in {version}."


def test_a_method_that_no_lightning_had_is_not_renamed():
    assert not explain("class Model(LightningModule):\n    def tng_step(self, batch): ...").findings


def test_what_the_old_launcher_passes_is_told_apart_from_what_torchrun_sets():
    (finding,) = explain(
        "$ python -m torch.distributed.launch --nproc_per_node=2 train.py\n"
    ).findings
    assert (
        "passes --local-rank" in finding.why
        and "torchrun sets the variable LOCAL_RANK" in finding.why
    )


def test_a_tpu_vm_is_made_with_the_software_of_its_generation():
    (finding,) = explain("$ gcloud compute tpus create v --zone=z\n").findings
    assert "v4 and older" in finding.why and "v2-alpha-tpuv5-lite" in finding.why
