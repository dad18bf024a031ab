"""PyTorch's profiler in a rehearsal: it records the CPU, as no kernel runs on a GPU."""

from collections.abc import Iterator
from typing import Any

from torch.autograd.profiler import profile

from course_tools.rehearsal.replacing import Replacement
from course_tools.rehearsal.world import World


def replacements(world: World) -> Iterator[Replacement]:
    """Yield what leaves the simulated GPU out of a recording, and says so.

    PyTorch would ask the driver for the time before and after each operation, and write a warning
    each time that there is none.
    """
    plain = profile.__init__

    def __init__(self: profile, *enabled: bool, **how: Any) -> None:
        if how.pop("use_cuda", False):  # its old name
            how["use_device"] = "cuda"
        if how.get("use_device") == world.kind:
            world.seen.remark(
                "torch.profiler recorded the CPU alone: nothing ran on a GPU that it could time."
            )
            # torch.profiler.profile(activities=[CUDA]) asks for no CPU
            how |= {"use_device": None, "use_cpu": True}
        plain(self, *enabled, **how)

    yield Replacement(profile, "__init__", __init__)
