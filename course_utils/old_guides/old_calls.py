"""Calls, names, keywords and commands of old guides that are outdated, and what replaces each.

Every entry was tried with torch 2.9, torch_xla 2.9, Lightning 2.6 and Darts 0.48; the tests try each again.
"""

# What guides call their modules without always showing the import.
ALIASES = {
    "xm": "torch_xla.core.xla_model",
    "xmp": "torch_xla.distributed.xla_multiprocessing",
    "pl": "lightning.pytorch",
    "Variable": "torch.autograd.Variable",
}

_MODULE = "It left the LightningModule in 2.0. Keep what you need of each step in self."
_FROZEN = "It matters for programs frozen into a Windows .exe, and nowhere else."
_STATS = "One callback logs the figures of any device."
_ARGPARSE = "They left Lightning in 2.0; its LightningCLI is the other way."
_GONE = "It left torch_xla; this is its new place."
_OLD = "It still works, with a DeprecationWarning."
_PLAIN = "Every tensor can have gradients since PyTorch 0.4."

# By full name: what to write today, and why.
CALLS = {
    "torch_xla.core.xla_model.xrt_world_size": ("torch_xla.runtime.world_size", _GONE),
    "torch_xla.core.xla_model.get_ordinal": ("torch_xla.runtime.global_ordinal", _GONE),
    "torch_xla.core.xla_model.xla_device": ("torch_xla.device", _OLD),
    "torch_xla.core.xla_model.mark_step": ("torch_xla.sync", _OLD),
    "torch_xla.distributed.xla_dist": ("torchrun", "Start the script on each host, by torchrun or the cloud's ssh."),
    "torch_xla.experimental.pjrt": ("torch_xla.runtime", "PJRT is the only runtime now."),
    "lightning.pytorch.metrics": ("torchmetrics", "Metrics are a package of their own."),
    "lightning.pytorch.plugins.DDPPlugin": ("lightning.pytorch.strategies.DDPStrategy", "It is a strategy now."),
    "lightning.pytorch.strategies.TPUSpawnStrategy": ("lightning.pytorch.strategies.XLAStrategy", "It was renamed."),
    "lightning.pytorch.callbacks.GPUStatsMonitor": ("lightning.pytorch.callbacks.DeviceStatsMonitor", _STATS),
    "lightning.pytorch.callbacks.XLAStatsMonitor": ("lightning.pytorch.callbacks.DeviceStatsMonitor", _STATS),
    "lightning.pytorch.Trainer.from_argparse_args": ("Trainer(**vars(args))", _ARGPARSE),
    "lightning.pytorch.Trainer.add_argparse_args": ("your own add_argument calls", _ARGPARSE),
    "lightning.pytorch.TrainResult": ("self.log", "Results are logged, and the loss is returned."),
    "lightning.pytorch.EvalResult": ("self.log", "Results are logged."),
    "trainer.tune": ("Tuner(trainer)", "It is a class of its own, in lightning.pytorch.tuner."),
    "torch.multiprocessing.freeze_support": ("", _FROZEN),
    "multiprocessing.freeze_support": ("", _FROZEN),
    "torch.autograd.Variable": ("the tensor itself", _PLAIN),
}
SPAWN = ("torch_xla.launch(function)", "It takes 1 or None as nprocs: all devices or one.")
NEXT = "Python 3 iterators have no next method, and a DataLoader's has lost the one that it had."

# Methods that a LightningModule once had.
_STEPS = {"training": "train", "validation": "validation", "test": "test"}
METHODS = {f"{old}_epoch_end": (f"def on_{new}_epoch_end(self)", _MODULE) for old, new in _STEPS.items()}

# (function or "" for any, keyword, what to write today, why)
KEYWORDS = [
    ("fit", "train_dataloader", "train_dataloaders", "The name got an s."),
    ("test", "test_dataloaders", "dataloaders", "It has one name in all of them."),
    ("validate", "val_dataloaders", "dataloaders", "It has one name in all of them."),
    ("", "torch_device_str", "pl_trainer_kwargs", "Since 0.17 Darts leaves devices to a Lightning Trainer."),
]

_WHEELS = "Install nothing on Colab or Kaggle: their TPU images bring a matching pair of torch and torch_xla."
_XRT = "The XRT runtime is gone. PJRT, which replaced it, needs no address."

# In a shell line or in a string: (pattern, what to write today, why)
TEXTS = [
    (r"torch_xla-[\w.{}]+-cp3\w+|gs://tpu-pytorch/wheels\S*", "", _WHEELS),
    (r"cloud-tpu-client(?:==[\w.]+)?", "", _WHEELS),
    (r"xrt==[\w.]+|XRT_TPU_CONFIG|COLAB_TPU_ADDR", "", _XRT),
    (r"torch_xla\.distributed\.xla_dist", "torchrun", "The module is gone. Start the script on each host."),
    (
        r"XLA_USE_BF16",
        "torch.bfloat16, or precision='bf16-true'",
        "It still works and is on its way out, torch_xla says.",
    ),
    (r"\btorch==1\.[\w.+]+", "", "A torch of that age has no wheel for the Pythons that are supported today."),
]

# Reading a clock, and what waits for a GPU before it is read.
CLOCKS = {"time.time", "time.perf_counter", "time.monotonic", "datetime.datetime.now", "timeit.default_timer"}
WAITS = {"synchronize", "item", "tolist", "cpu", "numpy", "sync", "wait_device_ops", "wait_for", "elapsed_time"}
CLOCK = (
    "torch.cuda.synchronize() before it",
    "A GPU is only handed its work: this clock stops before the work is done.",
)
