"""What there is while a rehearsal runs: the cards, which one is used, and what was seen."""

import os
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_tools.rehearsal.replacing import Replacement
from course_tools.rehearsal.seen import Seen
from course_tools.rehearsal.setting import Command, Setting

CPU = torch.device("cpu")
FORKED = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must "
    "use the 'spawn' start method"
)
DeviceLike = torch.device | str | int


class World:
    """What there is while a rehearsal runs: what was asked for, what was seen, and the cards."""

    def __init__(self, setting: Setting, command: Command, begin: Callable[..., Any]) -> None:
        self.setting = setting
        self.command = command
        self.begin = begin  #: begins the same rehearsal in another process
        self.seen = Seen()
        self.cards = setting.cards()
        self.thread = Thread()
        self.initialized = False  #: a GPU was used: a process that is forked now must not
        self.exchange_on_gpu = False  #: processes exchange with NCCL, so they would
        self.generators: dict[int, torch.device] = {}  #: by the address that C++ has of them
        self.originals: list[Replacement] = []  #: the names that are replaced, as PyTorch has them
        self._process = os.getpid()

    @property
    def kind(self) -> str:
        """The kind of device that is simulated."""
        return self.setting.kind

    def device(self, asked: DeviceLike) -> torch.device:
        """Return a device with its index; one of this kind must be there."""
        if isinstance(asked, int):
            asked = torch.device(self.kind, asked)
        device = torch.device(asked)
        if device.type != self.kind:
            return device
        self.initialize()
        if not self.thread.watched:
            self.seen.remark(
                "A thread that was started before the rehearsal used the GPU: its operations were "
                "not checked. Start threads inside the block."
            )
        index = self.thread.current if device.index is None else device.index
        if index >= len(self.cards):
            self.refuse_index(index)
        return torch.device(self.kind, index)

    def refuse_index(self, index: int) -> None:
        """Raise what PyTorch says of a GPU that is not there."""
        there = len(self.cards)
        if self.kind == "cuda":
            raise getattr(torch, "AcceleratorError", RuntimeError)(
                "CUDA error: invalid device ordinal\n"
                "GPU device may be out of range, do you have enough GPUs?"
            )
        raise RuntimeError(
            f"The device index is out of range. It must be in [0, {there}), but got {index}."
        )

    def simulates(self, device: DeviceLike | None) -> bool:
        """Tell whether a device is one of those that are not there."""
        if device is None or isinstance(device, bool):
            return False
        return isinstance(device, int) or torch.device(device).type == self.kind

    def initialize(self) -> None:
        """Let a process use the GPU; one that is forked after that cannot."""
        if self.initialized and os.getpid() != self._process:
            if self.kind != "cuda":
                raise RuntimeError(FORKED.replace("CUDA", self.kind.upper()))
            raise RuntimeError(FORKED)
        self.initialized = True
        self._process = os.getpid()


class Thread(threading.local):
    """What each thread has for itself, as with CUDA."""

    current = 0  #: index of the current GPU
    making_on: torch.device | None = None  #: where Python asked for a tensor, while it is made
    watched = False  #: its operations are seen

    def __init__(self) -> None:
        #: what autocast has cast, by address
        self.cast_weights: dict[int, tuple[Tensor, Tensor]] = {}


class State:
    """The rehearsal that is running, if one is."""

    world: World | None = None


def current_world() -> World:
    """Return what there is; only for code that runs during a rehearsal."""
    assert State.world is not None
    return State.world
