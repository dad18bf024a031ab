"""What became of the device arguments of an old Lightning Trainer, one rule a name.

A rule is a function of the draft of a translation, the old name and its value. It returns the new arguments and why,
returns None when the value is still good today, or raises `Refusal` with the reason.
"""

from collections.abc import Callable, Mapping
from typing import Any

from course_utils.old_guides.values import Expression

Change = tuple[dict[str, Any], str]
Rule = Callable[[Any, str, Any], Change | None]


class Refusal(ValueError):
    """The reason why an old argument has no faithful translation."""


_PLAIN = (bool, int, float, str, list, Expression)


def same(one: object, other: object) -> bool:
    """Say whether two plain values are equal and of one type: 1 is not True. Other objects are only themselves."""
    return one is other or (type(one) is type(other) and type(one) in _PLAIN and one == other)


def check_switch(value: object) -> None:
    """Refuse what is neither True, False nor None."""
    if value is not None and type(value) is not bool:
        raise Refusal("it was True or False.")


def needless(*defaults: object, instead: str) -> Rule:
    """Return the rule of an argument of which only a default can be left out; `instead` is the advice otherwise."""

    def rule(draft: Any, name: str, value: object) -> Change:
        if not any(same(value, default) for default in defaults):
            raise Refusal(instead)
        return {}, "That was the default, and what Lightning does today."

    return rule


_SPREAD = {  # what an old `distributed_backend`, `accelerator` or `strategy` called it, and its name today
    "ddp": "ddp",
    "ddp_spawn": "ddp_spawn",
    "tpu_spawn": "xla",
    "tpu_spawn_debug": "xla_debug",
    "fsdp_native": "fsdp",
}
_SHARDED = "FairScale's sharding is gone. Lightning's 'fsdp' or 'deepspeed_stage_2' shard as well, with other settings."
_SPREAD_GONE = {
    "dp": "DataParallel is gone. It split each batch over the GPUs; 'ddp' gives each GPU a batch of its own, so write "
    "strategy='ddp' and divide the batch size by the number of GPUs.",
    "ddp2": "it was 'dp' inside a machine and 'ddp' between machines, and is gone. Choose 'ddp'.",
    "horovod": "Lightning has dropped Horovod. 'ddp' does the same job, started in another way.",
    "ddp_sharded": _SHARDED,
    "ddp_sharded_spawn": _SHARDED,
    "ddp_fully_sharded": _SHARDED,
    "bagua": "Bagua is not in Lightning any more.",
    "colossalai": "Colossal-AI is not in Lightning any more.",
    "hivemind": "Hivemind is not in Lightning any more.",
}
_NO_DEVICE = {
    "ipu": "Lightning has dropped Graphcore's IPU.",
    "hpu": "Intel's HPU left Lightning for lightning-habana, and Lightning 2.5.6 dropped that package as well.",
}


def _spread(draft: Any, name: str, value: Any) -> Change | None:
    if value is None:
        spread = "None left the choice to Lightning, as saying nothing does today."
        return {}, "None named no device." if name == "accelerator" else spread
    low = value.lower() if isinstance(value, str) else ""
    if low in _SPREAD_GONE or low in _NO_DEVICE:
        raise Refusal(_SPREAD_GONE.get(low) or _NO_DEVICE[low])
    if low == "ddp_cpu":
        why = "It meant 'ddp_spawn' on the CPU; num_processes said how many."
        return {"accelerator": "cpu", "strategy": "ddp_spawn"}, why
    if low in _SPREAD and (name, low) != ("strategy", _SPREAD[low]):
        return {"strategy": _SPREAD[low]}, "How to spread the work is the strategy now."
    if name == "distributed_backend":
        if not isinstance(value, str):
            raise Refusal("it was the name of a way to spread the work, such as 'ddp'.")
        raise Refusal(f"no old Lightning knew this; it knew {', '.join([*_SPREAD, *_SPREAD_GONE, 'ddp_cpu'])}.")
    return None


def point(draft: Any, kind: str, devices: object, why: str) -> Change:
    """Replace an old count of devices by today's accelerator and devices; "auto" gives way to it."""
    if kind == "gpu" and same(draft.new.get("accelerator"), "cuda"):
        kind = "cuda"
    if same(draft.new.get("accelerator"), "auto"):
        del draft.new["accelerator"]
    if "devices" in draft.new and (draft.new["devices"] is None or same(draft.new["devices"], "auto")):
        del draft.new["devices"]
    return {"accelerator": kind, "devices": devices}, why


def _gpus(draft: Any, name: str, value: Any) -> Change:
    if value is None or same(value, 0) or same(value, []):
        asked = draft.new.get("accelerator")
        if value is not None and (same(asked, "gpu") or same(asked, "cuda")):
            raise Refusal(f"it means no GPU, but accelerator={asked!r} asks for one.")
        return {}, "It meant: no GPU."
    if isinstance(value, str):
        value = _numbers(value) if "," in value else -1 if value.strip() == "-1" else value
        if isinstance(value, str):
            raise Refusal(
                f"up to Lightning 1.4 it meant GPU number {value}, from 1.5 on that many GPUs. "
                f"Write accelerator='gpu' with devices=[{value}] or devices={value}."
            )
    listed = isinstance(value, list | tuple)
    count = type(value) is int and (value > 0 or value == -1)
    if not count and not (_indices(value) and len(set(value)) == len(value)):
        raise Refusal("it was a number of GPUs, -1 for all of them, or a list of different indices.")
    many = value == -1 or (len(value) if listed else value) > 1
    why = "A list says which GPUs." if listed else "A number says how many GPUs, -1 all."
    spawn = " Without a strategy, Lightning 1 took 'ddp_spawn' here, and today's takes 'ddp'."
    return point(draft, "gpu", value, why + spawn * (many and "strategy" not in draft.new))


def _tpu_cores(draft: Any, name: str, value: Any) -> Change:
    if value is None:
        return {}, "It meant: no TPU."
    if isinstance(value, str):
        value = int(value) if value.strip() in ("1", "8") else _numbers(value)
    if same(value, 1):
        return point(draft, "tpu", 1, "One core is one device today.")
    if same(value, 8):
        boards = "Other boards show 1, 4 or 8 devices: 'auto' takes what is there."
        return point(draft, "tpu", 8, f"It meant all 8 cores of a v2 or v3 board. {boards}")
    if _indices(value) and len(value) == 1 and 1 <= value[0] <= 8:
        only = f"It meant core number {value[0]}, counted from 1, and one core only."
        return point(draft, "tpu", [value[0] - 1], f"{only} Since Lightning 2.1 we count from 0.")
    raise Refusal("it was 1, 8, or a list of one core number from 1 to 8; nothing else was valid.")


def _num_processes(draft: Any, name: str, value: Any) -> Change:
    if value is None or same(value, 1):
        return {}, "One process is the default."
    if type(value) is int and value > 1:
        return point(draft, "cpu", value, "It counted processes on the CPU.")
    raise Refusal("it was a number of processes, 1 or more.")


def _auto_select_gpus(draft: Any, name: str, value: Any) -> Change:
    check_switch(value)
    devices = draft.new.get("devices")
    if value and type(devices) is int and devices > 0:
        why = f"It picked {devices} that were free; today the first are taken. For free ones write devices="
        return {}, f"{why}find_usable_cuda_devices({devices}), from lightning.pytorch.accelerators."
    return {}, "There was nothing to select." if value else "The GPUs are not selected by default."


def _precision(draft: Any, name: str, value: Any) -> Change | None:
    sixteen, brain = same(value, 16) or same(value, "16"), same(value, "bf16")
    if not sixteen and not brain:
        return None
    if same(draft.new.get("accelerator"), "tpu"):
        return {"precision": "bf16-true"}, "On a TPU it made every float a bfloat16, which is what 'bf16-true' does."
    return {"precision": "bf16-mixed" if brain else "16-mixed"}, "It meant mixed precision."


def _indices(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(type(one) is int and one >= 0 for one in value)


def _numbers(text: str) -> list[int] | None:
    parts = [part.strip() for part in text.split(",") if part]
    return [int(part) for part in parts] if all(part.isascii() and part.isdigit() for part in parts) else None


# In the order in which they must be read: how the work is spread, on what kind of device, on which ones.
COUNTS = {
    "gpus": _gpus,
    "tpu_cores": _tpu_cores,
    "num_tpu_cores": _tpu_cores,
    "ipus": needless(None, instead=_NO_DEVICE["ipu"]),
    "num_processes": _num_processes,
    "auto_select_gpus": _auto_select_gpus,
}
DEVICE_RULES = {
    "distributed_backend": _spread,
    "accelerator": _spread,
    "strategy": _spread,
    **COUNTS,
    "precision": _precision,
}


def named_a_device(kwargs: Mapping) -> bool:
    """Say whether these arguments chose a device in the old way, which without any choice was the CPU."""
    return "distributed_backend" in kwargs or any(name in kwargs for name in COUNTS) or _is_old(kwargs)


def _is_old(kwargs) -> bool:
    value = kwargs.get("accelerator", "auto")
    return value is None or (isinstance(value, str) and value.lower() in {*_SPREAD, *_SPREAD_GONE, "ddp_cpu"})
