"""A lesson in which things go wrong: FAULT names what, and rank 1 of the second epoch does it."""

import os
import sys
import threading
import time
from pathlib import Path

import torch
from lightning.pytorch import LightningModule
from torch.utils.data import Dataset

HEAVY = ("IPython", "ipykernel", "jupyter_client", "jupyter_core", "notebook", "ipywidgets")


class Numbers(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        if (
            index == 0
            and torch.utils.data.get_worker_info()
            and os.environ.get("FAULT") == "modules"
        ):
            print("a loader has", [name for name in HEAVY if name in sys.modules])
        return torch.tensor([index / 32, 1.0])


class Line(LightningModule):
    def __init__(self, width):
        super().__init__()
        self.line = torch.nn.Linear(2, width)

    def training_step(self, batch, index):
        fault = os.environ.get("FAULT", "")
        if self.current_epoch == 1 and index == 0:
            Path(os.environ["NOTES"], f"pid-{self.global_rank}").write_text(str(os.getpid()))
            if self.global_rank == self.trainer.world_size - 1 and fault:
                Path(os.environ["NOTES"], "fault").write_text(str(time.time()))
                misbehave(fault)
        elif self.current_epoch > 0 and fault == "slow":
            time.sleep(0.1)
        return self.line(batch).pow(2).mean()

    def on_train_epoch_end(self):
        if os.environ.get("FAULT") == "modules":
            print("a rank has", [name for name in HEAVY if name in sys.modules])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def misbehave(fault):
    if fault == "raise":
        raise ValueError("the sample is bad")
    if fault == "memory":
        torch.empty(2**50)
    if fault in ("hang", "wait to be killed"):
        time.sleep(600)
    if fault == "exit":
        os._exit(7)
    if fault == "exit quietly":
        os._exit(0)
    if fault == "leave a thread":
        threading.Thread(target=time.sleep, args=(600,)).start()


def make_lesson():
    return Line(1), Numbers()


def lesson_with_an_idle_layer():
    module = Line(1)
    module.idle = torch.nn.Linear(2, 1)
    return module, Numbers()


def lesson_that_rank_0_starts_late():
    # Only after a restart: by then rank 1 has long looked for rank 0.
    if os.environ.get("RANK") == "0" and Path(os.environ["NOTES"], "pid-1").exists():
        time.sleep(3)
    return make_lesson()


def lesson_that_calls_exit():
    sys.exit(0)


def lesson_that_sleeps():
    time.sleep(600)


def returns_a_number():
    return 3
