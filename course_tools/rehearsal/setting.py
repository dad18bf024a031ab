"""What was asked of a rehearsal: which GPUs, and by which command. Nothing changes it."""

import re
from dataclasses import dataclass

from course_tools.rehearsal.memory import GIB, SimulatedGpu

#: the kinds of device that can be simulated
SIMULATED = ("cuda", "mps", "xpu")
USUAL_CAPABILITY = (8, 0)
USUAL_BYTES = 16 * GIB  # what a card says of itself if nobody gave a size


@dataclass(frozen=True)
class Setting:
    """The GPUs that a rehearsal simulates."""

    kind: str  #: "cuda", "mps" or "xpu"
    gpus: int
    memory_bytes: int | None  #: of each; None: nothing is refused
    capability: tuple[int, int]  #: CUDA's compute capability

    def cards(self) -> list[SimulatedGpu]:
        """Return these GPUs, with nothing on them."""
        size, limited = self.memory_bytes or USUAL_BYTES, self.memory_bytes is not None
        return [SimulatedGpu(self.kind, index, size, limited) for index in range(self.gpus)]

    def holds_in(self, outer: "Setting") -> bool:
        """Tell whether another rehearsal has these GPUs too; what is usual was not asked for."""
        same = (self.kind, self.gpus) == (outer.kind, outer.gpus)
        memory = self.memory_bytes in (None, outer.memory_bytes)
        return same and memory and self.capability in (USUAL_CAPABILITY, outer.capability)

    def options(self) -> list[str]:
        """Return the options of the command that simulate the same."""
        memory = [] if self.memory_bytes is None else ["--memory", str(self.memory_bytes)]
        capability = "{}.{}".format(*self.capability)
        cards = ["--device", self.kind, "--gpus", str(self.gpus), "--capability", capability]
        return [*cards, *memory, "--hide-real"]

    def __str__(self) -> str:
        limited = self.memory_bytes is not None
        memory = f"{self.memory_bytes:,} bytes" if limited else "memory without a limit"
        capability = "{}.{}".format(*self.capability)
        return f"{self.gpus} x {self.kind} with {memory} and capability {capability}"


def setting_of(
    kind: str, gpus: int, memory: str | int | None, capability: tuple[int, int]
) -> Setting:
    """Return what was asked for, or refuse what cannot be."""
    if kind not in SIMULATED:
        raise ValueError(f"kind {kind!r} cannot be rehearsed: there are {', '.join(SIMULATED)}")
    most = 1 if kind == "mps" else 64
    if isinstance(gpus, bool) or not isinstance(gpus, int) or not 1 <= gpus <= most:
        raise ValueError(f"gpus={gpus!r}: a rehearsal of {kind} has 1 to {most}")
    pair = tuple(capability) if isinstance(capability, (tuple, list)) else ()
    if len(pair) != 2 or not all(isinstance(each, int) for each in pair) or pair < (3, 0):
        raise ValueError(f"capability={capability!r}: give two whole numbers, (7, 5) for a T4")
    memory_bytes = None if memory is None else size_bytes(memory)
    return Setting(kind, gpus, memory_bytes, (pair[0], pair[1]))


def size_bytes(text: str | int) -> int:
    """Return a size in bytes: 16 GB is 16 * 10**9, 16 GiB is 16 * 2**30."""
    units = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
    units |= {"KIB": 2**10, "MIB": 2**20, "GIB": GIB, "TIB": 2**40, "B": 1}
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(text))
    unit = units.get(found[2].upper()) if found else None
    size = int(float(found[1]) * unit) if found and unit else 0
    if size <= 0 or isinstance(text, bool):
        raise ValueError(f"memory={text!r} is not a size: write 16 GB, 500 MB, or bytes")
    return size


@dataclass(frozen=True)
class Command:
    """What `python -m course_tools.rehearsal` was asked to run; a block in a program has none."""

    script: tuple[str, ...] = ()  #: what follows python: a script, or "-m" and a module
    last_step: int | None = None  #: the step of an optimizer after which it ends
    used_folder: str = ""  #: where each process leaves a file once it has used a GPU
