"""What became of the device arguments of an old Lightning Trainer, one rule a name.

A rule is a function of the translation so far, the old name and its value. It returns the new
arguments and why, returns None when the value is still good today, or raises `Refusal` with the
reason.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from course_utils.old_code.notes import Expression
from course_utils.old_code.old_names import TABLES

Change = tuple[dict[str, Any], str]
Rule = Callable[[Any, str, Any], Change | None]


class Refusal(ValueError):
    """The reason why an old argument has no faithful translation."""


_PLAIN = (bool, int, float, str, list, Expression)


def same(value: object, *others: object) -> bool:
    """Say whether a plain value equals one of others of its type (1 is not True).

    Other objects equal only themselves.
    """
    is_plain = type(value) in _PLAIN
    for other in others:
        if value is other or (is_plain and type(value) is type(other) and value == other):
            return True
    return False


def check_switch(value: object) -> None:
    """Refuse what is neither True, False nor None."""
    if value is not None and type(value) is not bool:
        raise Refusal("It was True or False.")


def by_value(rows: Sequence, instead: str, modern: Any, name: str, value: object) -> Change | None:
    """Translate a value as its row says: values, new arguments, why.

    A row without new arguments refuses its values. Any other value is refused with `instead`, or
    stays where that is "".
    """
    for values, new, why in rows:
        if same(value, *values):
            if new is None:
                raise Refusal(why)
            return new, why
    if instead:
        raise Refusal(instead)
    return None


# What an old `distributed_backend`, `accelerator` or `strategy` called it: its name today, or why
# it is gone.
_STRATEGIES: dict[str, str] = TABLES["strategies"]
_GONE: dict[str, str] = TABLES["gone_strategies"]
_SPREADING = ("distributed_backend", "accelerator", "strategy")  # in this order
_MOVED = "How to spread the work is the strategy now."


def _spread(modern: Any, name: str, value: Any) -> Change | None:
    if isinstance(value, Expression):
        return _spread_by_expression(modern, name, value)
    if value is None:
        if name == "accelerator":
            return {}, "None named no device."
        return {}, "None left the choice to Lightning, as saying nothing does today."
    old = value.lower() if isinstance(value, str) else ""
    if old in _GONE:
        raise Refusal(_GONE[old])
    if old == "ddp_cpu":
        why = "It meant 'ddp_spawn' on the CPU; num_processes said how many."
        return {"accelerator": "cpu", "strategy": "ddp_spawn"}, why
    if old in _STRATEGIES:
        new = _STRATEGIES[old]
        if name == "strategy":
            return None if new == old else ({"strategy": new}, "Only the name changed.")
        return {"strategy": new}, _MOVED
    if name == "distributed_backend":
        names = [*_STRATEGIES, *_GONE, "ddp_cpu"]
        names = [each for each in names if each not in ("ipu", "hpu")]  # came after it
        raise Refusal(f"No old Lightning knew this; it knew {', '.join(names)}.")
    return None


def _spread_by_expression(modern: Any, name: str, value: Expression) -> Change | None:
    beside = {"gpus", "num_processes", "tpu_cores"} & modern.kwargs.keys()
    if name == "distributed_backend" or (name == "accelerator" and beside):
        unknown = (
            "None is 'auto' today; 'dp', 'ddp2' and 'horovod' are gone;"
            " 'ddp_cpu' is accelerator='cpu' with 'ddp_spawn'."
        )
        return {"strategy": value}, f"{_MOVED} {unknown}"
    return None


def _point(modern: Any, kind: str, devices: object, why: str) -> Change:
    """Replace an old count of devices by today's two arguments; "auto" gives way to them."""
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
        why = (
            "A number says how many GPUs, a list which."
            " If it can be 0 or None, write accelerator='cpu' for that."
        )
        return _point(modern, "gpu", value, why)
    if isinstance(value, str):
        value = _gpus_in_text(value)
    is_count = type(value) is int and (value > 0 or value == -1)
    is_list = _are_indices(value) and len(set(value)) == len(value)
    if not is_count and not is_list:
        raise Refusal(
            "It was a number of GPUs, -1 for all of them, or a list of different indices."
        )
    why = "A number says how many GPUs, -1 all." if is_count else "A list says which GPUs."
    is_several = value == -1 or (value if is_count else len(value)) > 1
    is_named = {"strategy", "plugins"} & modern.kwargs.keys() or modern.refused.keys() & _SPREADING
    if is_several and not is_named:
        why += " Without a strategy, Lightning 1 took 'ddp_spawn' here, and today's takes 'ddp'."
    return _point(modern, "gpu", value, why)


def _gpus_in_text(value: str) -> object:
    if "," in value:
        return _numbers(value)
    if value.strip() == "-1":
        return -1
    counted = "accelerator='cpu'" if value.strip() == "0" else f"devices={value}"
    raise Refusal(
        f"Up to Lightning 1.4 it meant GPU number {value}, from 1.5 on that many GPUs."
        f" Write accelerator='gpu' with devices=[{value}] or {counted}."
    )


def _tpu_cores(modern: Any, name: str, value: Any) -> Change:
    if value is None:
        return {}, "It meant: no TPU."
    if isinstance(value, Expression):
        why = (
            "None or 0 meant no TPU."
            " A list counted cores from 1 and counts from 0 today: subtract 1."
        )
        return _point(modern, "tpu", value, why)
    if isinstance(value, str):
        value = int(value) if value.strip() in ("1", "8") else _numbers(value)
    if same(value, 1):
        return _point(modern, "tpu", 1, "One core is one device today.")
    if same(value, 8):
        why = (
            "It meant all 8 cores of a v2 or v3 board."
            " Other boards show 1, 4 or 8 devices: 'auto' takes what is there."
        )
        return _point(modern, "tpu", 8, why)
    if _are_indices(value) and len(value) == 1 and 1 <= value[0] <= 8:
        why = (
            f"It meant core number {value[0]}, counted from 1, and one core only."
            " Since Lightning 2.1 a list counts from 0."
        )
        return _point(modern, "tpu", [value[0] - 1], why)
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
    if not value:
        return {}, "The first GPUs are taken by default."
    devices = modern.kwargs.get("devices")
    if type(devices) is not int or devices <= 0:
        return {}, "It chose which GPUs to use; here it had no choice."
    return {}, (
        "It took GPUs that were free; today the first ones are taken. For free ones write"
        f" devices=find_usable_cuda_devices({devices}), from lightning.pytorch.accelerators."
    )


def _precision(modern: Any, name: str, value: Any) -> Change | None:
    if not same(value, 16, "16", "bf16"):
        return None
    if same(modern.kwargs.get("accelerator"), "tpu"):
        why = "On a TPU it made every float a bfloat16, which is what 'bf16-true' does."
        return {"precision": "bf16-true"}, why
    return {"precision": f"{value}-mixed"}, "It meant mixed precision."


def _are_indices(value: object) -> bool:
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(type(one) is int and one >= 0 for one in value)


def _numbers(text: str) -> list[int] | None:
    parts = [part.strip() for part in text.split(",") if part]
    if all(part.isascii() and part.isdigit() for part in parts):
        return [int(part) for part in parts]
    return None


# In the order in which they must be read: how the work is spread, on what kind of device, on which
# ones.
OLD_COUNTS: dict[str, Rule] = {
    "gpus": _gpus,
    "tpu_cores": _tpu_cores,
    "num_tpu_cores": _tpu_cores,
    "ipus": partial(by_value, [[[None], {}, "It meant: no IPU."]], _GONE["ipu"]),
    "num_processes": _num_processes,
    "auto_select_gpus": _auto_select_gpus,
}
DEVICE_RULES: dict[str, Rule] = {
    **dict.fromkeys(_SPREADING, _spread),
    **OLD_COUNTS,
    "precision": _precision,
}


def named_a_device(kwargs: Mapping, whole: bool) -> bool:
    """Say whether these arguments chose a device in the old way, where no choice was the CPU.

    Where they are all that there are (`whole`), a way to spread the work without a device was for
    the CPU.
    """
    if OLD_COUNTS.keys() & kwargs.keys():
        return True
    accelerator = kwargs.get("accelerator", "auto")
    is_old = accelerator is None
    if isinstance(accelerator, str):
        is_old = accelerator.lower() in {*_STRATEGIES, *_GONE, "ddp_cpu"}
    return whole and ("distributed_backend" in kwargs or is_old)
