"""What an estimate of a network is asked: the job, wherever it will be done."""

from dataclasses import dataclass
from typing import Any

from course_tools.estimate.checks import check_deadline, check_positive, spelled
from course_tools.estimate.chips import PRECISIONS

CALLED = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "half": "fp16"}


@dataclass(frozen=True)
class Job:
    """What is to be computed, wherever that will be.

    Attributes:
        batch: samples in a step on each device, or None to take the example's.
        batch_dim: which dimension of the inputs is the batch, or None for the first.
        precision: "amp" (each chip's own 16 bits: bf16 where it has them, else fp16), "bf16",
            "fp16", "tf32", "fp32", or "default", as PyTorch computes without being asked: tf32 in
            convolutions where a card has it, and fp32 in products.
        training: forward, backward and optimizer, or the forward pass alone.
        loss: a function of what the model returns, or None for the loss that the model returns
            itself; see `count_work`. Without either, the result says that it is not counted.
        optimizer: as for `estimate_memory`.
        compiled: whether the model goes through torch.compile.
        channels_last: whether images and weights lie in memory with their channels last, or None
            to look at the model and its inputs.
        shards: devices that share parameters, gradients and optimizer state, as with FSDP.
        samples: in one epoch.
        epochs: how many times all samples are used.
        deadline_hours: when it must be done, or None.
    """

    batch: int | None = None
    batch_dim: int | None = None
    precision: str = "amp"
    training: bool = True
    loss: Any = None
    optimizer: Any = "adam"
    compiled: bool = False
    channels_last: bool | None = None
    shards: int = 1
    samples: int = 50_000
    epochs: int = 1
    deadline_hours: float | None = None

    def __post_init__(self) -> None:
        known = ("amp", "default", *PRECISIONS)
        precision = spelled("precision", self.precision, known, CALLED)
        object.__setattr__(self, "precision", precision)
        for name in ("samples", "epochs", "shards", "batch"):
            if name != "batch" or self.batch is not None:
                object.__setattr__(self, name, check_positive(name, getattr(self, name)))
        check_deadline(self.deadline_hours)
