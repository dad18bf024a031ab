"""The kinds of device that PyTorch has: one row for each, with what the helpers must know of it."""

from __future__ import annotations

from dataclasses import dataclass

# One reading of the clock spans at least so long: the clock itself costs about 1e-7, and waiting
# for a device that works through a queue about 1e-5. The system's timer interrupts come every 1 to
# 4 ms and miss most short blocks, and so the median; in a long loop they cost 2.5 % on the virtual
# machine where this was measured.
BLOCK_S = 2e-4
QUEUED_BLOCK_S = 4e-3


@dataclass(frozen=True)
class Kind:
    """What sets one kind of device apart from the others."""

    #: the processor that Python itself runs on; there is always one, and its calls return when the
    #: work is done
    host: bool = False
    #: torch_xla records operations for it, and runs them when it is told to
    lazy: bool = False
    #: using it creates a context in the process, and `is_initialized` of its module in torch says
    #: whether there is one
    has_context: bool = False
    #: its memory is the host's
    shares_memory: bool = False
    #: NVIDIA's management library describes it, unless torch was built for AMD
    nvml: bool = False
    maker: str = ""  #: of a card of which nothing else is known
    #: a copy to it may safely go on after the call that asked for it; from a GPU to the CPU it may
    #: not, because Python could read the CPU's tensor before its data have arrived
    queues_copies: bool = True
    #: seconds that one reading of the clock spans at least; see `timing.Stopwatch`
    block_s: float = QUEUED_BLOCK_S
    lightning: str = ""  #: its name for a Lightning Trainer, or "" if that has none
    ddp: bool = False  #: several of them train one model by Lightning's DDP
    activity: str = ""  #: its name in `torch.profiler.ProfilerActivity`, or "" if it has none


# The keys are PyTorch's names. "cuda" also stands for ROCm.
KINDS = {
    "cpu": Kind(host=True, queues_copies=False, block_s=BLOCK_S, lightning="cpu", ddp=True),
    "cuda": Kind(
        has_context=True,
        nvml=True,
        maker="AMD",
        lightning="cuda",
        ddp=True,
        activity="CUDA",
    ),
    # It may read the CPU's tensor after that was freed (pytorch/pytorch 189690): no queued copies.
    "mps": Kind(shares_memory=True, queues_copies=False, lightning="mps"),
    "xpu": Kind(has_context=True, maker="Intel", activity="XPU"),
    # A TPU, or its rehearsal. It is waited for at every call, so one block need not last longer.
    "xla": Kind(lazy=True, block_s=BLOCK_S, lightning="tpu"),
}


def kind_called(name: str) -> Kind:
    """Return the row of a kind; one that has none, such as "meta", is taken for an accelerator."""
    return KINDS.get(name) or Kind()
