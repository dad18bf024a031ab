"""What torch says of its GPUs: torch.cuda, torch.mps, torch.xpu, torch.accelerator, as tables."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from course_tools.rehearsal.lines import TORCH, current_spot
from course_tools.rehearsal.memory import SimulatedGpu, size_text
from course_tools.rehearsal.placement import put, simulated_device
from course_tools.rehearsal.replacing import Replacement, everywhere
from course_tools.rehearsal.rules import TYPES
from course_tools.rehearsal.world import State, World, current_world

NAMES = {
    "cuda": "simulated GPU (not there)",
    "xpu": "simulated Intel GPU (not there)",
    "mps": "simulated GPU of a Mac (not there)",
}
NOT_SIMULATED = {
    "CUDAGraph": "CUDA graphs",
    "graph": "CUDA graphs",
    "make_graphed_callables": "CUDA graphs",
    "utilization": "what the driver measures",
    "temperature": "what the driver measures",
    "power_draw": "what the driver measures",
    "clock_rate": "what the driver measures",
    "memory_usage": "what the driver measures",
    "memory_snapshot": "the blocks of the allocator",
    "list_gpu_processes": "other processes",
}


class Stream:
    """A stream: in a rehearsal everything happens at once, in the order of the program."""

    stream_id, device_index, cuda_stream, sycl_queue = 0, 0, 0, 0

    def __init__(self, device: Any = None, *args: Any, **kwargs: Any) -> None:
        self.device = device

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return 0

    def query(self) -> bool:
        """Tell that all work is done."""
        return True

    def is_capturing(self) -> bool:
        """Tell that nothing is captured for a CUDA graph."""
        return False

    def record_event(self, event: Any = None) -> Any:
        """Return an event that has happened."""
        event = event or Event()
        event.record()
        return event

    def synchronize(self) -> None:
        """Wait for nothing."""
        count_wait("Stream.synchronize")

    def wait_stream(self, stream: Any) -> None:
        """Wait for nothing."""

    def wait_event(self, event: Any) -> None:
        """Wait for nothing."""


class Event:
    """An event; the time between two is this CPU's, and nothing else."""

    def __init__(self, enable_timing: bool = False, *args: Any, **kwargs: Any) -> None:
        self.enable_timing = enable_timing
        self.time_s: float | None = None  # until it is recorded

    def record(self, stream: Any = None) -> None:
        """Note the time."""
        self.time_s = time.perf_counter()

    def elapsed_time(self, end: "Event") -> float:
        """Return the milliseconds until another event, on this CPU."""
        if not (self.enable_timing and end.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.time_s is None or end.time_s is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end.time_s - self.time_s) * 1e3

    def query(self) -> bool:
        """Tell that it has happened."""
        return True

    def synchronize(self) -> None:
        """Wait for nothing."""
        count_wait("Event.synchronize")

    def wait(self, stream: Any = None) -> None:
        """Wait for nothing: only a stream would."""


class AnyEvent(Event):
    """What stands for torch.Event, which is given a device first."""

    def __init__(self, device: Any = None, *, enable_timing: bool = False, **kwargs: Any) -> None:
        super().__init__(enable_timing)


def count_wait(name: str) -> None:
    """Count that a program waits for a GPU; streams and events may outlive a rehearsal."""
    if State.world is not None:
        State.world.seen.add(f"wait: {name}", current_spot())


def replacements(world: World) -> Iterator[Replacement]:
    """Yield what is replaced of the modules that speak of GPUs."""
    module = {"cuda": torch.cuda, "xpu": torch.xpu, "mps": torch.mps}[world.kind]
    numbers = random_table(world)
    table = common_table(world) | memory_table(world) | numbers
    if world.kind == "mps":
        yield Replacement(torch.backends.mps, "is_available", lambda: True)
        yield Replacement(torch.backends.mps, "is_built", lambda: True)
        table |= {
            "current_allocated_memory": table["memory_allocated"],
            "driver_allocated_memory": table["memory_allocated"],
            "recommended_max_memory": lambda: world.cards[0].total_bytes,
        }
    if world.kind == "cuda":
        table |= cuda_table(world)
        table |= {
            name: not_simulated(f"torch.cuda.{name}", what, vars(torch.cuda).get(name))
            for name, what in NOT_SIMULATED.items()
        }
    accelerator = accelerator_table(world) | memory_table(world)
    owners = [(module, table), (torch.accelerator, accelerator)]
    if hasattr(torch.accelerator, "random"):
        owners.append((torch.accelerator.random, numbers))
    for owner, values in owners:
        # torch.cuda.memory_stats, for one, is also torch.cuda.memory.memory_stats.
        there = {name: value for name, value in values.items() if hasattr(owner, name)}
        yield from everywhere(owner, there, owner.__name__)
    for name in ("_get_accelerator", "_accelerator_getAccelerator"):
        if hasattr(torch._C, name):
            yield Replacement(torch._C, name, lambda *_: torch.device(world.kind))
    for name in LEGACY:
        yield Replacement(torch, name, legacy_type(name, "cpu"))
    yield Replacement(torch, "Stream", Stream)
    yield Replacement(torch, "Event", AnyEvent)
    yield Replacement(Tensor, "record_stream", lambda tensor, stream: None)
    yield Replacement(torch.backends.cudnn, "is_acceptable", lambda tensor: False)
    # A program may allow only kernels of attention that the CPU lacks.
    yield Replacement(torch._C, "_set_sdp_use_math", lambda enabled: None)


def not_simulated(name: str, what: str, original: Any) -> Callable[..., Any]:
    """Return a function, or a class where there was one, that says that it is not simulated.

    A class is named in annotations and asked of by isinstance where nobody makes an object of it.
    """

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{name}: a rehearsal does not simulate {what}. Leave this out in a rehearsal, or "
            "run it on a real GPU."
        )

    if isinstance(original, type):
        return type(original.__name__, (), {"__new__": refused})
    return refused


def index_of(world: World, device: Any = None) -> int:
    """Return the index of a card that a function of torch was given."""
    if device is None:
        return world.thread.current
    found = world.device(device)
    if found.type != world.kind:
        raise ValueError(f"Expected a {world.kind} device, but got: {device}")
    return found.index


def common_table(world: World) -> dict[str, Any]:
    """Return the functions that every kind of GPU has."""
    return current_table(world) | description_table(world) | stream_table(world)


def current_table(world: World) -> dict[str, Any]:
    """Return the functions that say and choose which GPU is the current one."""

    class device(contextlib.AbstractContextManager[None]):
        """The current GPU inside a block, as torch.cuda.device."""

        def __init__(self, device: Any) -> None:
            nothing = device is None or (isinstance(device, int) and device < 0)
            self.index = world.thread.current if nothing else index_of(world, device)

        def __enter__(self) -> None:
            self.before = world.thread.current
            world.thread.current = self.index

        def __exit__(self, *error: object) -> None:
            world.thread.current = self.before

    class device_of(device):
        """The GPU of a tensor inside a block."""

        def __init__(self, tensor: Tensor) -> None:
            its = simulated_device(tensor)
            super().__init__(its if its.type == world.kind else None)

    def set_device(device: Any) -> None:
        if isinstance(device, int) and device < 0:
            return  # as PyTorch does
        if not isinstance(device, int) and torch.device(device).index is None:
            raise ValueError(
                f"Expected a torch.device with a specified index or an integer, but got:{device}"
            )
        world.thread.current = index_of(world, device)

    def exchange(index: int) -> int:
        before = world.thread.current
        world.thread.current = before if index < 0 else index
        return before

    return {
        "current_device": lambda: world.thread.current,
        "set_device": set_device,
        "_exchange_device": exchange,
        "_maybe_exchange_device": exchange,
        "device": device,
        "device_of": device_of,
    }


def description_table(world: World) -> dict[str, Any]:
    """Return the functions that say which GPUs there are, what they can do, and if one was used."""

    def get_device_properties(device: Any = None) -> Any:
        index = device if isinstance(device, int) else torch.device(device or world.kind).index
        if world.kind == "cuda" and index is not None and not 0 <= index < len(world.cards):
            raise AssertionError("Invalid device id")  # as PyTorch says it
        return properties(world, index_of(world, device))

    return {
        "is_available": lambda: True,
        "device_count": lambda: len(world.cards),
        "get_device_name": lambda device=None: get_device_properties(device).name,
        "get_device_properties": get_device_properties,
        "is_bf16_supported": lambda including_emulation=True: (
            including_emulation or world.setting.capability >= (8, 0)
        ),
        "_lazy_init": world.initialize,
        "init": world.initialize,
        "is_initialized": lambda: world.initialized,
    }


def stream_table(world: World) -> dict[str, Any]:
    """Return the functions of streams and events, and the wait for all of them."""

    def synchronize(device: Any = None) -> None:
        world.seen.add(f"wait: torch.{world.kind}.synchronize", current_spot())

    return {
        "synchronize": synchronize,
        "Stream": Stream,
        "Event": Event,
        "stream": lambda stream: contextlib.nullcontext(),
        "set_stream": lambda stream: None,
        "current_stream": lambda device=None: Stream(world.thread.current),
        "default_stream": lambda device=None: Stream(world.thread.current),
    }


def properties(world: World, index: int) -> Any:
    """Return what torch.cuda.get_device_properties says."""
    return SimpleNamespace(
        name=NAMES[world.kind],
        major=world.setting.capability[0],
        minor=world.setting.capability[1],
        total_memory=world.cards[index].total_bytes,
        multi_processor_count=40,
        max_threads_per_multi_processor=1024,
        warp_size=32,
        is_integrated=False,
        is_multi_gpu_board=False,
        gcnArchName="",
        L2_cache_size=4 * 1024**2,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=48 * 1024,
        shared_memory_per_block_optin=64 * 1024,
        shared_memory_per_multiprocessor=64 * 1024,
        uuid=f"rehearsed-{index}",
    )


def cuda_table(world: World) -> dict[str, Any]:
    """Return what torch.cuda alone has."""

    def get_device_capability(device: Any = None) -> tuple[int, int]:
        card = torch.cuda.get_device_properties(device)
        return card.major, card.minor

    table: dict[str, Any] = {
        "get_device_capability": get_device_capability,
        "get_arch_list": lambda: ["sm_{}{}".format(*world.setting.capability)],
        "is_tf32_supported": lambda: world.setting.capability >= (8, 0),
        "is_current_stream_capturing": lambda: False,
        "can_device_access_peer": lambda device, peer: True,
        "ipc_collect": lambda: None,
        "_is_in_bad_fork": lambda: False,
        "_check_capability": lambda: None,
        "set_per_process_memory_fraction": lambda fraction, device=None: None,
        "nvtx": SimpleNamespace(
            range_push=lambda text: 0,
            range_pop=lambda: 0,
            mark=lambda text: None,
            range=lambda text: contextlib.nullcontext(),
        ),
    }
    table |= {name: legacy_type(name, "cuda") for name in LEGACY}
    return table


class LegacyType(type):
    """The type of torch.cuda.FloatTensor: a class that makes tensors, and has them as instances."""

    plain: Any  #: PyTorch's own class of the CPU, torch.FloatTensor
    kind: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        """Make a tensor."""
        made = cls.plain(*args, **kwargs)
        if cls.kind == "cpu":
            return made
        if not args or isinstance(args[0], (int, torch.Size)):  # sizes: there is nothing to copy
            return put(made, current_world().device(cls.kind))
        return made.to(cls.kind)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.plain) and simulated_device(value).type == cls.kind


def legacy_type(name: str, kind: str) -> LegacyType:
    """Return what stands for torch.FloatTensor or torch.cuda.FloatTensor."""
    plain = LEGACY[name]
    module = "torch" if kind == "cpu" else f"torch.{kind}"
    content = {"__module__": module, "plain": plain, "kind": kind, "dtype": plain.dtype}
    return LegacyType(name, (), content | {"is_cuda": kind == "cuda"})


LEGACY: dict[str, Any] = {
    f"{name}Tensor": getattr(torch, f"{name}Tensor")
    for name in TYPES.values()
    if hasattr(torch, f"{name}Tensor")
}


def memory_table(world: World) -> dict[str, Any]:
    """Return the functions that say how full a card is."""

    def card(device: Any = None) -> SimulatedGpu:
        return world.cards[index_of(world, device)]

    def reset(device: Any = None) -> None:
        card(device).peak_bytes = card(device).live_bytes

    def stats(device: Any = None) -> dict[str, Any]:
        names = ("allocated_bytes", "active_bytes", "reserved_bytes", "requested_bytes")
        found: dict[str, Any] = {}
        for name in names:
            found[f"{name}.all.current"] = card(device).live_bytes
            found[f"{name}.all.peak"] = card(device).peak_bytes
        return found | {"num_ooms": 0, "num_alloc_retries": 0, "allocation.all.current": 0}

    def mem_get_info(device: Any = None) -> tuple[int, int]:
        return max(card(device).total_bytes - card(device).live_bytes, 0), card(device).total_bytes

    def summary(device: Any = None, abbreviated: bool = False) -> str:
        now, most = size_text(card(device).live_bytes), size_text(card(device).peak_bytes)
        return f"rehearsal: tensors {now}, peak {most}"

    def live(device: Any = None) -> int:
        return card(device).live_bytes

    def peak(device: Any = None) -> int:
        return card(device).peak_bytes

    return {
        "memory_allocated": live,
        "memory_reserved": live,
        "memory_cached": live,
        "max_memory_allocated": peak,
        "max_memory_reserved": peak,
        "max_memory_cached": peak,
        "reset_peak_memory_stats": reset,
        "reset_max_memory_allocated": reset,
        "reset_max_memory_cached": reset,
        "reset_accumulated_memory_stats": reset,
        "memory_stats": stats,
        "memory_summary": summary,
        "mem_get_info": mem_get_info,
        "get_memory_info": mem_get_info,
        "empty_cache": lambda: None,
    }


def random_table(world: World) -> dict[str, Any]:
    """Return the functions of random numbers: those of the CPU, so that values are the CPU's."""
    generators = tuple(torch.default_generator for _ in world.cards)
    return seed_table(world) | state_table(world) | {"default_generators": generators}


def seed_table(world: World) -> dict[str, Any]:
    """Return the functions that set where the random numbers of a GPU begin."""
    seeds: dict[int, int | None] = dict.fromkeys(range(len(world.cards)))  #: each card's, if set

    def seeded_by(name: str, every_card: bool) -> Callable[[int], None]:
        """Return a function that keeps a seed, and says so if the numbers are not that seed's."""

        def manual_seed(seed: int) -> None:
            start = torch._C.Generator().manual_seed(int(seed))
            for index in seeds if every_card else [world.thread.current]:
                seeds[index] = start.initial_seed()
            # torch.manual_seed asks this too, and seeds the CPU next.
            by_torch = sys._getframe(1).f_code.co_filename.startswith(TORCH)
            if not by_torch and not torch.equal(start.get_state(), torch.get_rng_state()):
                world.seen.remark(
                    f"torch.{world.kind}.{name} changed no numbers: a rehearsal draws those of a "
                    "GPU from the CPU's generator. Call torch.manual_seed, which seeds both."
                )

        return manual_seed

    def initial_seed() -> int:
        seed = seeds[world.thread.current]
        return torch.initial_seed() if seed is None else seed

    return {
        "manual_seed": seeded_by("manual_seed", every_card=False),
        "manual_seed_all": seeded_by("manual_seed_all", every_card=True),
        "seed": lambda: None,
        "seed_all": lambda: None,
        "initial_seed": initial_seed,
    }


def state_table(world: World) -> dict[str, Any]:
    """Return the functions that hand out the state of the random numbers, and set it."""

    def get_rng_state(device: Any = None) -> Tensor:
        return torch.get_rng_state()

    def set_rng_state(state: Tensor, device: Any = None) -> None:
        if state.numel() == torch.get_rng_state().numel():
            torch.set_rng_state(state.cpu())
        else:
            world.seen.remark("The state of a real GPU's random numbers was set: it was ignored.")

    def set_rng_state_all(states: list[Tensor]) -> None:
        for state in states[:1]:
            set_rng_state(state)

    return {
        "get_rng_state": get_rng_state,
        "get_rng_state_all": lambda: [get_rng_state() for _ in world.cards],
        "set_rng_state": set_rng_state,
        "set_rng_state_all": set_rng_state_all,
    }


def accelerator_table(world: World) -> dict[str, Any]:
    """Return the functions of torch.accelerator."""
    common = common_table(world)
    dtypes = {each for each in TYPES if world.kind != "mps" or each != torch.float64}
    return {
        "is_available": common["is_available"],
        "device_count": common["device_count"],
        "current_accelerator": lambda check_available=False: torch.device(world.kind),
        "current_device_index": common["current_device"],
        "current_device_idx": common["current_device"],
        "set_device_index": common["set_device"],
        "set_device_idx": common["set_device"],
        "device_index": common["device"],
        "synchronize": common["synchronize"],
        "current_stream": common["current_stream"],
        "set_stream": common["set_stream"],
        "get_device_capability": lambda device=None: {"supported_dtypes": dtypes},
    }
