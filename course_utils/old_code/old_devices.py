"""What became of the device arguments of an old Lightning Trainer, one rule a name.

A rule is a function of the translation so far, the old name and its value. It returns the new
arguments and why, returns None when the value is still good today, or raises `Refusal` with the
reason.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from course_utils.old_code.names import TABLES
from course_utils.old_code.values import Expression

Change = tuple[dict[str, Any], str]
Rule = Callable[[Any, str, Any], Change | None]


class Refusal(ValueError):
    """The reason why an old argument has no faithful translation."""


_PLAIN = (bool, int, float, str, list, Expression)


def same(value: object, *others: object) -> bool:
    """Say whether a plain value equals one of others of its type: 1 is not True. Other objects are
    only themselves.
    """
    plain = type(value) in _PLAIN
    return any(
        value is other or (plain and type(value) is type(other) and value == other)
        for other in others
    )


def check_switch(value: object) -> None:
    """Refuse what is neither True, False nor None."""
    if value is not None and type(value) is not bool:
        raise Refusal("It was True or False.")


def by_value(rows: Sequence, instead: str, modern: Any, name: str, value: object) -> Change | None:
    """Translate a value as its row says: values, new arguments, why. Refuse any other with
    `instead`; "" keeps it.
    """
    if row := next((row for row in rows if same(value, *row[0])), None):
        if row[1] is not None:
            return row[1], row[2]
        instead = row[2]
    if instead:
        raise Refusal(instead)
    return None


# What an old `distributed_backend`, `accelerator` or `strategy` called it: its name today, or why
# it is gone.
_STRATEGIES: dict[str, str] = TABLES["strategies"]
_GONE: dict[str, str] = TABLES["gone_strategies"]
# in this order
_SPREADING = dict.fromkeys(("distributed_backend", "accelerator", "strategy")).keys()
_MOVED = "How to spread the work is the strategy now."
_UNKNOWN = "None is 'auto' today; 'dp', 'ddp2' and 'horovod' are gone; 'ddp_cpu' is accelerator='cpu' with 'ddp_spawn'."


def _spread(modern: Any, name: str, value: Any) -> Change | None:
    if isinstance(value, Expression):
        beside = {"gpus", "num_processes", "tpu_cores"} & modern.kwargs.keys()
        is_old = name == "distributed_backend" or (name == "accelerator" and beside)
        return ({"strategy": value}, f"{_MOVED} {_UNKNOWN}") if is_old else None
    if value is None:
        spread = "None left the choice to Lightning, as saying nothing does today."
        return {}, "None named no device." if name == "accelerator" else spread
    low = value.lower() if isinstance(value, str) else ""
    if low in _GONE:
        raise Refusal(_GONE[low])
    if low == "ddp_cpu":
        why = "It meant 'ddp_spawn' on the CPU; num_processes said how many."
        return {"accelerator": "cpu", "strategy": "ddp_spawn"}, why
    if low in _STRATEGIES and (name, low) != ("strategy", _STRATEGIES[low]):
        return {
            "strategy": _STRATEGIES[low]
        }, "Only the name changed." if name == "strategy" else _MOVED
    if name == "distributed_backend":
        # came after it
        names = [each for each in (*_STRATEGIES, *_GONE, "ddp_cpu") if each not in ("ipu", "hpu")]
        raise Refusal(f"No old Lightning knew this; it knew {', '.join(names)}.")
    return None


def _point(modern: Any, kind: str, devices: object, why: str) -> Change:
    """Replace an old count of devices by today's accelerator and devices; "auto" gives way to
    it.
    """
    if kind == "gpu" and same(modern.kwargs.get("accelerator"), "cuda"):
        kind = "cuda"
    for name in ("accelerator", "devices"):
        if name in modern.kwargs and same(modern.kwargs[name], "auto", None):
            del modern.kwargs[name]
            modern.moved.setdefault(name, [])
    return {"accelerator": kind, "devices": devices}, why


def _gpus(modern: Any, name: str, value: Any) -> Change:
    if same(value, None, 0, []):
        asked = modern.kwargs.get("accelerator")
        if value is not None and same(asked, "gpu", "cuda"):
            raise Refusal(f"It means no GPU, but accelerator={asked!r} asks for one.")
        return {}, "It meant: no GPU."
    if isinstance(value, Expression):
        why = "A number says how many GPUs, a list which. If it can be 0 or None, write accelerator='cpu' for that."
        return _point(modern, "gpu", value, why)
    if isinstance(value, str):
        if "," not in value and value.strip() != "-1":
            meant = f"Up to Lightning 1.4 it meant GPU number {value}, from 1.5 on that many GPUs."
            counted = "accelerator='cpu'" if value.strip() == "0" else f"devices={value}"
            raise Refusal(f"{meant} Write accelerator='gpu' with devices=[{value}] or {counted}.")
        value = _numbers(value) if "," in value else -1
    count = type(value) is int and (value > 0 or value == -1)
    if not count and not (_indices(value) and len(set(value)) == len(value)):
        raise Refusal(
            "It was a number of GPUs, -1 for all of them, or a list of different indices."
        )
    many = value == -1 or (value if count else len(value)) > 1
    spawn = " Without a strategy, Lightning 1 took 'ddp_spawn' here, and today's takes 'ddp'."
    is_named = {"strategy", "plugins"} & modern.kwargs.keys() or _SPREADING & modern.refused.keys()
    why = "A number says how many GPUs, -1 all." if count else "A list says which GPUs."
    return _point(modern, "gpu", value, why + spawn * (many and not is_named))


def _tpu_cores(modern: Any, name: str, value: Any) -> Change:
    if value is None:
        return {}, "It meant: no TPU."
    if isinstance(value, Expression):
        why = "None or 0 meant no TPU. A list counted cores from 1 and counts from 0 today: subtract 1."
        return _point(modern, "tpu", value, why)
    if isinstance(value, str):
        value = int(value) if value.strip() in ("1", "8") else _numbers(value)
    if same(value, 1):
        return _point(modern, "tpu", 1, "One core is one device today.")
    if same(value, 8):
        boards = "Other boards show 1, 4 or 8 devices: 'auto' takes what is there."
        return _point(modern, "tpu", 8, f"It meant all 8 cores of a v2 or v3 board. {boards}")
    if _indices(value) and len(value) == 1 and 1 <= value[0] <= 8:
        only = f"It meant core number {value[0]}, counted from 1, and one core only."
        return _point(
            modern, "tpu", [value[0] - 1], f"{only} Since Lightning 2.1 a list counts from 0."
        )
    raise Refusal("It was 1, 8, or a list of one core number from 1 to 8; nothing else was valid.")


def _num_processes(modern: Any, name: str, value: Any) -> Change:
    if same(value, None, 1):
        return {}, "One process is the default."
    if isinstance(value, Expression) or (type(value) is int and value > 1):
        return _point(modern, "cpu", value, "It counted processes on the CPU.")
    raise Refusal("It was a number of processes, 1 or more.")


def _auto_select_gpus(modern: Any, name: str, value: Any) -> Change:
    if isinstance(value, Expression):
        return {}, "Free GPUs are found by find_usable_cuda_devices(n) today."
    check_switch(value)
    devices = modern.kwargs.get("devices")
    if value and type(devices) is int and devices > 0:
        why = "It took GPUs that were free; today the first ones are taken. For free ones write devices="
        return {}, f"{why}find_usable_cuda_devices({devices}), from lightning.pytorch.accelerators."
    return (
        {},
        "It chose which GPUs to use; here it had no choice."
        if value
        else "The first GPUs are taken by default.",
    )


def _precision(modern: Any, name: str, value: Any) -> Change | None:
    if not same(value, 16, "16", "bf16"):
        return None
    if same(modern.kwargs.get("accelerator"), "tpu"):
        return {
            "precision": "bf16-true"
        }, "On a TPU it made every float a bfloat16, which is what 'bf16-true' does."
    return {"precision": f"{value}-mixed"}, "It meant mixed precision."


def _indices(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(type(one) is int and one >= 0 for one in value)
    )


def _numbers(text: str) -> list[int] | None:
    parts = [part.strip() for part in text.split(",") if part]
    return (
        [int(part) for part in parts]
        if all(part.isascii() and part.isdigit() for part in parts)
        else None
    )


# In the order in which they must be read: how the work is spread, on what kind of device, on which
# ones.
COUNTS: dict[str, Rule] = {
    "gpus": _gpus,
    "tpu_cores": _tpu_cores,
    "num_tpu_cores": _tpu_cores,
    "ipus": partial(by_value, [[[None], {}, "It meant: no IPU."]], _GONE["ipu"]),
    "num_processes": _num_processes,
    "auto_select_gpus": _auto_select_gpus,
}
DEVICE_RULES: dict[str, Rule] = {
    **dict.fromkeys(_SPREADING, _spread),
    **COUNTS,
    "precision": _precision,
}


def named_a_device(kwargs: Mapping, whole: bool) -> bool:
    """Say whether these arguments chose a device in the old way, which without any choice was the
    CPU.

    Where they are all that there are (`whole`), a way to spread the work without a device was for
    the CPU.
    """
    value = kwargs.get("accelerator", "auto")
    is_old = value is None or (
        isinstance(value, str) and value.lower() in {*_STRATEGIES, *_GONE, "ddp_cpu"}
    )
    return bool(COUNTS.keys() & kwargs.keys()) or (
        whole and ("distributed_backend" in kwargs or is_old)
    )
