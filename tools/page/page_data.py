"""The data of the page "Is it worth it?", from the package and the counted models beside it."""

import json
from pathlib import Path
from typing import Any

from course_tools.estimate import chips as chip_data
from course_tools.estimate.advice import MOST_GROUPS
from course_tools.estimate.answer import BRIM
from course_tools.estimate.choice import AS_MUCH, SHORT_S, SMALL_FLOPS, SMALL_S
from course_tools.estimate.counting.work import Work
from course_tools.estimate.free import LAUNCHER_S
from course_tools.estimate.known_networks import MERGED, counted_memory, networks
from course_tools.estimate.language.finetuning import finetuning_numbers as finetuning
from course_tools.estimate.language.finetuning_step import MASTER
from course_tools.estimate.language.language_model import FEED_FORWARD, language_models
from course_tools.estimate.language.serving import AT_ONCE, BATCHING, serving_numbers
from course_tools.estimate.memory.memory_model import UNBOUNDED, memory_numbers
from course_tools.estimate.prices import OFFERS, PRICES_FILE
from course_tools.estimate.time.error_factor import LARGE, SMALL
from course_tools.estimate.time.parallel import THROUGH_HOST
from course_tools.estimate.time.step_time import fitted, numbers

RANK = 16  # of LoRA's matrices
OTHERS = Path(__file__).parent / "other_networks.json"  # of benchmarks/count_other_networks.py
ENCODERS = {"tuning": "full", "batch": 16}  # the usual job: small models are trained whole


def page_data() -> dict[str, Any]:
    """Return what the page needs, ready for JSON; `model.js` says what each part is."""
    prices = json.loads(PRICES_FILE.read_text(encoding="utf-8"))
    return {
        "numbers": numbers(),
        "limits": {
            "as_much": AS_MUCH,
            "at_once": AT_ONCE,
            "brim": BRIM,
            "large": LARGE,
            "launcher_s": LAUNCHER_S,
            "most_groups": MOST_GROUPS,
            "short_s": SHORT_S,
            "small_flops": SMALL_FLOPS,
            "small_launches": SMALL,
            "small_s": SMALL_S,
            "unbounded": UNBOUNDED,
        },
        "batching": BATCHING,
        "share": fitted()["share"],
        "factors": fitted()["factors"],
        "evidence": [one for one in fitted()["evidence"] if not one["compiled"]],
        "memory": memory_numbers()["numbers"],
        "finetuning": {
            "logit": finetuning()["bytes_per_logit"],
            "nf4": finetuning()["nf4_bytes"],
            "adam": finetuning()["optimizers"]["adam"],
            "master": MASTER,
            "step": finetuning()["step"],
            "evidence": finetuning()["evidence"],
        },
        "runtimes": serving_numbers()["runtimes"],
        "chips": _chips(),
        "kinds": OFFERS,
        "providers": [_provider(one, prices["prices"]) for one in prices["providers"]],
        "free": prices["free"],
        "models": _image_networks() | json.loads(OTHERS.read_text("utf-8")) | _language_models(),
    }


def _provider(provider: dict[str, Any], prices: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a provider's name, how it bills, its prices of an hour with the place of their kind in
    OFFERS, and when they were read.
    """
    own = [listed for listed in prices if listed["provider"] == provider["name"]]
    return {
        "name": provider["name"],
        "what": provider["what"],
        "date": max(listed["date"] for listed in own),
        "prices": {
            device: [usd, OFFERS.index(listed["kind"])]
            for listed in own
            for device, usd in listed["usd_per_hour"].items()
        },
    }


def _chips() -> list[dict[str, Any]]:
    links = {link.name: link.gb_per_s for link in chip_data.all_links()}
    low_power = fitted()["factors"]["low power"]
    found = []
    for chip in chip_data.all_chips():
        figures = {
            "name": chip.name,
            "vendor": chip.vendor,
            "peaks": dict(chip.peaks),
            "achieved": dict(chip.achieved_share),
            "bandwidth": chip.bandwidth_gb_per_s,
            "sold": chip.memory_gb,
            "corrected": int(chip.corrected),
            "link": links.get(chip.link),
            "throughHost": int(chip.link == THROUGH_HOST),
            "lowPower": int(chip.watts is not None and chip.watts <= low_power["watts"]),
            "oldHost": int(chip.old_host),
            "family": chip.family,
        }
        found.append({name: value for name, value in figures.items() if value != 0})
    return found


def _image_networks() -> dict[str, dict[str, Any]]:
    """Return each network that was counted in 16 bits as it is trained: its sums for one batch, and
    its memory.
    """
    models: dict[str, dict[str, Any]] = {}
    for (name, image, training, half), network in networks().items():
        if not half or name.endswith(MERGED):
            continue
        model = models.setdefault(f"{name} ({image})", {"steps": {}, "memory": {}})
        task = "training" if training else "inference"
        model["steps"][task] = step_text(network.work, network.trained)
        lines = counted_memory().get((name, image, training), [])
        if lines:
            model["memory"][task] = short(*[number for line in lines for number in line])
    return models


def step_text(work: Work, trained: float) -> str:
    """Return the sums of a counted step without its optimizer, as model.js reads them."""
    volume = work.convolution3d
    image_flops = work.convolution.flops + work.depthwise.flops
    image_bytes = work.convolution.bytes_moved + work.depthwise.bytes_moved
    return short(
        work.batch,
        image_flops,
        image_bytes,
        float(f"{work.depthwise.bytes_moved:.2g}"),  # which kind it is needs no more
        work.attention.flops,
        work.recurrent.flops,
        work.flops - image_flops - volume.flops,
        work.bytes_moved - image_bytes - volume.bytes_moved,
        work.kernels,
        float(f"{work.depthwise.flops:.3g}"),
        volume.flops,
        volume.bytes_moved,
        work.unaligned if work.unaligned > 5e-4 * work.flops else 0.0,
        *([work.parameters, trained] if work.training else []),
    )


def _language_models() -> dict[str, dict[str, Any]]:
    """Return the shape of each language model, in the numbers that language.js calculates with."""
    models = {}
    for name, model in language_models().items():
        weights = {part: inputs * outputs for part, (inputs, outputs) in model.shapes.items()}
        expert = sum(weights.pop(part, 0) for part in FEED_FORWARD)
        shape = {
            "layers": model.layers,
            "hidden": model.hidden,
            "query": model.query,
            "kv": model.kv,
            "between": model.intermediate * model.experts_used,
            "gated": model.gated,
            "encoder": model.encoder,
            "vocabulary": model.vocabulary,
            "rest": model.rest,
            "attention": sum(weights.values()),
            "expert": expert,
            "experts": model.experts,
            "used": model.experts_used,
            "adapters": model.adapters(RANK, model.shapes),
            "context": model.context,
        }
        models[name] = {"steps": {}, "shape": shape}
        if model.encoder:
            models[name]["usual"] = ENCODERS
    return models


def short(*numbers: float) -> str:
    """Return numbers as text with four digits, half as long as JSON's own; 0 is left empty."""
    digits = (f"{number:.4g}".replace("e+", "e").replace("e0", "e") for number in numbers)
    return ",".join("" if text == "0" else text for text in digits)
