"""The estimate for a terminal: `python -m course_tools.estimate --help`."""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from course_tools.estimate.chips import DEVICES, all_chips, all_links, find_chip
from course_tools.estimate.finetuning import FineTuning, estimate_finetuning
from course_tools.estimate.inference import Inference, estimate_inference
from course_tools.estimate.language_model import language_models
from course_tools.estimate.money.prices import read_prices
from course_utils.load_function import load_function
from course_utils.text import show_result

TOKENS = 2048  # of a sample that a language model is fine-tuned with
ABOUT = "Estimate the hours and money that training takes on devices that you do not have."


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer the command line and return the exit status, 2 where there is no answer."""
    asked = vars(_parser().parse_args(arguments))
    try:
        show_result(_answer(**asked))
    except (ValueError, TypeError, RuntimeError) as error:
        print(f"estimate: {error}", file=sys.stderr)
        return 2
    return 0


def build(name: str) -> Any:
    """Make a torch.nn.Module from "package.module:factory" or "folder/file.py:factory".

    A name alone is looked up in torchvision, if that is installed. The name of a network that was
    counted beforehand is returned as it is.

    Raises:
        ValueError: there is no such factory, or it makes no module.
    """
    from torch import nn

    from course_tools.estimate.counted import counted_names, nearest

    try:
        model = load_function(name if ":" in name else f"torchvision.models:{name}")()
    except (ImportError, TypeError, ValueError) as error:
        if name in counted_names():
            return name
        raise ValueError(
            f"model {name!r} was asked for: {error} Pass package.module:factory or "
            f"file.py:factory, where factory() returns a model, or {nearest(name)}; or a language "
            f"model, as its config.json or by one of these names: {', '.join(language_models())}."
        ) from error
    if not isinstance(model, nn.Module):
        raise ValueError(f"{name} made {type(model).__name__}, which is not a torch.nn.Module.")
    return model


def _parser() -> argparse.ArgumentParser:
    chips = f"Chips: {', '.join(chip.name for chip in all_chips())}."
    links = f"Links: {', '.join(link.name for link in all_links())}."
    parser = argparse.ArgumentParser(
        "python -m course_tools.estimate", description=ABOUT, epilog=f"{chips} {links}"
    )
    add = parser.add_argument
    model = "a name such as resnet50 or 'Llama 3.1 8B', package.module:factory, or file.py:factory"
    add("model", help=model)
    shape = "shape of one sample (3 224 224)"
    add("--input", type=int, nargs="+", default=[3, 224, 224], metavar="N", help=shape)
    add("--tokens", action="store_true", help="samples are whole numbers, such as tokens")
    several = f"chips ({', '.join(DEVICES)})"
    add("--devices", nargs="+", metavar="CHIP", help=several)
    batch = "samples in a step on each device (64; 1 for a language model)"
    add("--batch", type=int, metavar="N", help=batch)
    add("--precision", default="amp", help="amp, bf16, fp16, tf32 or fp32 (amp)")
    add("--inference", dest="training", action="store_false", help="the forward pass alone")
    add("--optimizer", default="adam", help="sgd, momentum, adam, adamw or adam8bit (adam)")
    add("--compiled", action="store_true", help="with torch.compile")
    add("--samples", type=int, default=50_000, help="samples in one epoch (50000)")
    add("--epochs", type=int, default=1, help="passes through the data (1)")
    deadline = "hours until it must be done"
    add("--deadline", dest="deadline_hours", type=float, metavar="H", help=deadline)
    add("--count", type=int, default=1, help="how many of each device (1)")
    price = "your price for an hour, such as T4=0.35"
    add("--price", dest="prices", nargs="+", default=[], metavar="CHIP=X", help=price)
    own = "seconds of one such step, measured on this machine"
    add("--this-machine", type=float, metavar="S", help=own)
    method = "how a language model is fine-tuned: full, lora or 4-bit (lora)"
    add("--method", default="lora", help=method)
    add("--bits", type=int, default=16, help="of a language model's weights in inference (16)")
    add("--json", dest="as_json", action="store_true", help="print JSON")
    return parser


def _answer(model: str, as_json: bool, prices: list[str], **asked: Any) -> str:
    own_prices = dict(read_prices(",".join(prices)))
    if name := _language_model(model):
        _refuse_what_language_models_do_not_take(asked)
        answers = _language_answers(name, own_prices, asked)
        if as_json:
            return json.dumps([answer.to_dict() for answer in answers], indent=1)
        return "\n\n".join(map(repr, answers))
    return _any_model(model, own_prices, as_json, **asked)


def _refuse_what_language_models_do_not_take(asked: dict[str, Any]) -> None:
    """Raise ValueError for the options of other models that would change nothing."""
    others = {"deadline_hours": "deadline", "count": "count", "this_machine": "this-machine"}
    others |= {"precision": "precision", "input": "input", "tokens": "tokens"}
    parser = _parser()
    for name, option in others.items():
        if asked[name] != parser.get_default(name):
            raise ValueError(
                f"a language model by name is estimated on one card, in its own 16 bits and from "
                f"its shape: leave out --{option}, or pass a factory of the model."
            )


def _language_model(name: str) -> str | Path | None:
    """Return the name of a language model as the table has it, or its config.json.

    Capitals and marks do not matter in a name.
    """
    if name.endswith(".json") and Path(name).is_file():
        return Path(name)
    plain = {re.sub(r"[\W_]", "", known.lower()): known for known in language_models()}
    return plain.get(re.sub(r"[\W_]", "", name.lower()))


def _language_answers(
    name: str | Path, prices: dict[str, float], asked: dict[str, Any]
) -> list[FineTuning | Inference]:
    by_chip = {find_chip(chip).name: price for chip, price in prices.items()}
    answers: list[FineTuning | Inference] = []
    for device in asked["devices"] or DEVICES:
        chip = find_chip(device)
        common: dict[str, Any] = {
            "batch": asked["batch"] or 1,
            "price_per_hour": by_chip.get(chip.name),
        }
        if asked["training"]:
            tokens = asked["samples"] * asked["epochs"] * TOKENS
            tuning: dict[str, Any] = {
                "optimizer": asked["optimizer"],
                "compiled": asked["compiled"],
                **common,
            }
            answers.append(
                estimate_finetuning(
                    name, asked["method"], device=chip, length=TOKENS, tokens=tokens, **tuning
                )
            )
        else:
            answers.append(estimate_inference(name, chip, bits=asked["bits"], **common))
    return answers


def _any_model(
    model: str, prices: dict[str, float], as_json: bool, tokens: bool, **asked: Any
) -> str:
    import torch  # not at the top, so that --help costs nothing

    from course_tools.estimate.estimate_job import estimate

    kind = torch.int64 if tokens else torch.float32
    sample = torch.empty(1, *asked.pop("input"), dtype=kind, device="meta")
    del asked["method"], asked["bits"]  # of language models
    asked["batch"] = asked["batch"] or 64
    result = estimate(build(model), sample, prices=prices, **asked)
    if as_json:
        return result.to_json()
    text = f"{result!r}\n\n{result.details()}"
    return text.replace("this_machine=", "--this-machine")


if __name__ == "__main__":
    sys.exit(main())
