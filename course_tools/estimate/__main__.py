"""The estimate for a terminal: `python -m course_tools.estimate --help`."""

import argparse
import inspect
import itertools
import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from course_tools.estimate.answers import Answers
from course_tools.estimate.checks import nearest
from course_tools.estimate.chips import DEVICES, Chip, all_chips, all_links
from course_tools.estimate.known_networks import counted_name, counted_names
from course_tools.estimate.language.finetuning import estimate_finetuning
from course_tools.estimate.language.language_model import known_name, language_models
from course_tools.estimate.language.serving import estimate_serving
from course_utils.load_function import load_function
from course_utils.show_result import show_result
from course_utils.tables import LINE, terminal_width, wrapped

ABOUT = "Estimate the hours and money that a job takes on devices that you do not have."
MODULE = "python -m course_tools.estimate"
MORE = "Steps, memory, what was compared, and the sources of the prices: add --details."
EXAMPLES = {
    "network": f"{MODULE} network resnet50 --batch 128 --devices T4 A100",
    "finetune": f"{MODULE} finetune 'Llama 3.1 8B' --method 4-bit --samples 5000",
    "serve": f"{MODULE} serve 'Llama 3.1 8B' --bits 4 --devices 'RTX 4090'",
}
ALSO = {  # what people type for a command
    "train": ["network"],
    "training": ["network"],
    "inference": ["network", "--inference"],
    "fine-tune": ["finetune"],
    "fine-tuning": ["finetune"],
    "finetuning": ["finetune"],
    "serving": ["serve"],
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer the command line and return the exit status, 2 where there is no answer."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in ALSO:
        words[:1] = ALSO[words[0]]
    if words and words[0] not in EXAMPLES and not words[0].startswith("-"):
        words.insert(0, "network")  # the question that is asked most
    parser, commands = _parser()
    parsed, unknown = parser.parse_known_args(words)
    if unknown:  # here, because argparse would show the options of no command
        commands[words[0]].error(f"unrecognized arguments: {' '.join(unknown)}")
    asked = vars(parsed)
    answer, as_json, details = asked.pop("answer"), asked.pop("as_json"), asked.pop("details")
    own = asked.pop("chips")
    asked["prices"] = dict(itertools.chain.from_iterable(asked["prices"]))
    asked = {name: value for name, value in asked.items() if value is not None}
    if "devices" in asked:  # "T4,L4" too
        asked["devices"] = [name for part in asked["devices"] for name in part.split(",") if name]
    try:
        if own:
            asked["devices"] = [*asked.get("devices", []), *(_own_chip(*words) for words in own)]
        found = answer(**asked)
    except (ValueError, CannotBuild) as error:
        print(wrapped(f"estimate: {_in_shell(str(error), commands.values())}"), file=sys.stderr)
        return 2
    text = f"{found!r}\n\n{found.details() if details else MORE}"
    show_result(found.to_json() if as_json else filled(_in_shell(text, commands.values())))
    return 0


def filled(text: str) -> str:
    """Break paragraphs anew in which a line has become too long; a table stays as it is."""
    most = min(LINE, terminal_width() or LINE)
    paragraphs = []
    for block in re.split(r"(\n{2,}|\n(?=[A-Z]))", text):
        too_long = any(len(line) > most for line in block.splitlines())
        is_table = re.search(r"\S {2,}\S", block)
        paragraphs.append(wrapped(block) if too_long and not is_table else block)
    return "".join(paragraphs)


def _in_shell(text: str, commands: Iterable["Parser"]) -> str:
    """Write Python's `length=` as the `--length` of a command."""
    for option in itertools.chain.from_iterable(command.options for command in commands):
        if not option.option_strings:
            continue
        word, name = option.option_strings[-1], rf"(?<![\w-]){option.dest}="
        if option.nargs == 0:  # training=False is --inference
            text = re.sub(rf"{name}\w+", word, text)
        text = re.sub(rf"{name}(?=[\w'\"])", f"{word} ", text)
        text = re.sub(name, word, text)
    return text


def _own_chip(name: str, *figures: str) -> Chip:
    try:
        peak, bandwidth, memory = map(_number, figures)
        return Chip(name, peak, bandwidth, memory)
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"--chip takes a name and three numbers, but {error}.") from None


class CannotBuild(Exception):
    """A model that cannot be made or counted; its message says what to do."""


def build(name: str) -> Any:
    """Make a torch.nn.Module from "package.module:factory" or "folder/file.py:factory".

    A name alone is that of a network that was counted beforehand, and is returned.

    Raises:
        CannotBuild: there is no such factory, or it makes no module.
    """
    from torch import nn

    if found := counted_name(name):
        return found
    if ":" not in name or known_name(name):
        raise CannotBuild(_unknown(name))
    try:
        factory = load_function(name)
        inspect.signature(factory).bind()
    except (ImportError, TypeError, ValueError) as error:
        raise CannotBuild(f"model {name!r} was asked for: {error}") from error
    try:
        model = factory()
    except SystemExit as error:
        raise CannotBuild(f"{name} ended the program with status {error.code}.") from error
    if not isinstance(model, nn.Module):
        raise CannotBuild(f"{name} made {type(model).__name__}, which is not a torch.nn.Module.")
    return model


def _unknown(name: str) -> str:
    """Return what to ask instead of a name that no network has."""
    if language := known_name(name):
        asked = ["finetune"] if language_models()[language].encoder else ["finetune", "serve"]
        questions = " or ".join(f"`{command} {language!r}`" for command in asked)
        return f"{language} is a language model: ask {questions}."
    known = {each: each for each in (*counted_names(), *language_models())}
    return (
        f"no model {name!r} is known{nearest(name, known)}. Pass a name of pytorch-image-models, "
        f"or your own model as package.module:factory or file.py:factory, where factory() returns "
        f"a torch.nn.Module."
    )


def _network(
    model: str, *, input: Sequence[int], tokens: bool, prices: dict[str, float], **asked: Any
) -> Answers:
    import torch  # not at the top, so that --help costs nothing

    from course_tools.estimate.network import estimate

    kind = torch.int64 if tokens else torch.float32
    sample = torch.empty(1, *input, dtype=kind, device="meta")
    built = build(model)
    if tokens and isinstance(built, str):
        raise CannotBuild(f"{built} is a network for images, so tokens= is not for it.")
    try:
        return estimate(built, sample, prices=prices or None, **asked)
    except RuntimeError as error:
        raise CannotBuild(str(error)) from error


def _language(
    estimate: Callable[..., Answers], model: str, *, prices: dict[str, float], **asked: Any
) -> Answers:
    if network := counted_name(model):
        raise CannotBuild(f"{network} is a network for images: ask `network {network}`.")
    path = Path(model)
    name: str | Path = path if path.suffix == ".json" or path.is_dir() else model
    return estimate(name, prices=prices or None, **asked)


class Parser(argparse.ArgumentParser):
    """A parser that refuses a question in one sentence, without the list of all options.

    Attributes:
        options: what was added, in that order, with its --help.
    """

    def __init__(self, *words: Any, **settings: Any):
        """Make a parser as argparse does."""
        self.options: list[argparse.Action] = []  # before argparse adds --help
        super().__init__(*words, **settings)

    def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
        """Add an option as argparse does, and note it."""
        self.options.append(super().add_argument(*names, **settings))
        return self.options[-1]

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and exit with status 2."""
        self.exit(2, f"{wrapped(f'estimate: {message}. {self.prog} --help lists the options.')}\n")


def _parser() -> tuple[Parser, dict[str, Parser]]:
    """Return what reads the command line, and the parser of each command by its name."""
    links = f"Links: {', '.join(link.name for link in all_links())}."
    known = "\n".join(map(wrapped, (*_chips_by_maker(), links)))
    examples = "\n  ".join(["Examples:", *EXAMPLES.values()])
    parser = Parser(
        MODULE,
        description=f"{ABOUT} A model without a command is a network.",
        epilog=f"{examples}\n\n{known}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="{network,finetune,serve}", required=True)
    made: dict[str, Parser] = {}
    models = wrapped(f"Models: {', '.join(language_models())}.")
    for name, (about, answer, add_own) in COMMANDS.items():
        example = f"Example:\n  {EXAMPLES[name]}"
        command = commands.add_parser(
            name,
            help=about,
            description=about,
            epilog=example if name == "network" else f"{example}\n\n{models}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add_own(command)
        _add_common(command)
        command.set_defaults(answer=answer)
        made[name] = command
    return parser, made


def _chips_by_maker() -> list[str]:
    """Return the names of the chips of each maker, those of a series side by side."""
    makers: dict[str, list[str]] = {}
    for chip in all_chips():
        makers.setdefault(chip.vendor, []).append(chip.name)
    ordered = {maker: sorted(names, key=_by_number) for maker, names in makers.items()}
    return [f"{maker}: {', '.join(names)}." for maker, names in ordered.items()]


def _by_number(name: str) -> list[tuple[bool, int, str]]:
    """Return what sorts "A2" before "A10"."""
    parts = re.findall(r"\d+|\D+", name)
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive integer, such as 5000")
    return int(text)


def _amount(text: str) -> float:
    if not 0 < (number := _number(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number, such as 2.5")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a number without a unit") from None


def _prices(text: str) -> tuple[tuple[str, float], ...]:
    found = []
    for part in list(filter(None, map(str.strip, text.split(",")))) or [text]:
        name, _, price = part.partition("=")
        try:
            found.append((name.strip(), float(price if name else "")))
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{part!r} is not a price. Write T4=0.35, A100 80GB=1.30"
            ) from None
    return tuple(found)


def _add_common(command: Parser) -> None:
    add = command.add_argument
    several = f"names of chips ({', '.join(DEVICES)})"
    add("--devices", nargs="+", metavar="CHIP", help=several)
    own = "a card of your own: its peak in 16 bits, and the speed and size of its memory"
    figures = ("NAME", "TFLOP/s", "GB/s", "GB")
    add("--chip", dest="chips", nargs=4, action="append", default=[], metavar=figures, help=own)
    deadline = "hours until it must be done"
    add("--deadline", dest="deadline_hours", type=_amount, metavar="H", help=deadline)
    price = "your price of an hour, such as T4=0.35"
    add("--price", dest="prices", nargs="+", default=[], type=_prices, metavar="CHIP=X", help=price)
    more = "also steps, memory, what was compared, and the sources of the prices"
    add("--details", action="store_true", help=more)
    add("--json", dest="as_json", action="store_true", help="print JSON")


def _add_network(command: Parser) -> None:
    add = command.add_argument
    add("model", help="a name such as resnet50, package.module:factory, or file.py:factory")
    shape = "shape of one sample (3 224 224)"
    add("--input", type=_positive, nargs="+", default=[3, 224, 224], metavar="N", help=shape)
    add("--tokens", action="store_true", help="samples are whole numbers, such as tokens")
    batch = "samples in a step on each device (64)"
    add("--batch", type=_positive, default=64, metavar="N", help=batch)
    add("--precision", default="amp", help="amp, default, bf16, fp16, tf32 or fp32 (amp)")
    add("--inference", dest="training", action="store_false", help="the forward pass alone")
    add(
        "--optimizer",
        default="adam",
        type=str.lower,
        help="sgd, momentum, adam, adamw or adam8bit (adam)",
    )
    add("--compiled", action="store_true", help="with torch.compile")
    add("--samples", type=_positive, default=50_000, metavar="N", help="in one epoch (50000)")
    add("--epochs", type=_positive, default=1, metavar="N", help="passes through the data (1)")
    add("--count", type=_positive, default=1, metavar="N", help="how many of each device (1)")
    link = "between several devices, such as 'Ethernet 10G' (that of the chip)"
    add("--link", metavar="LINK", help=link)
    shards = "devices that share the weights, as FSDP does (1)"
    add("--shards", type=_positive, default=1, metavar="N", help=shards)
    own = "seconds of one such step, measured on this machine"
    add("--this-machine", type=_amount, metavar="S", help=own)


MODEL = "a name such as 'Llama 3.1 8B' or meta-llama/Llama-3.1-8B, or the path of a config.json"


def _add_finetuning(command: Parser) -> None:
    add = command.add_argument
    add("model", help=MODEL)
    add("--method", help="full, lora or 4-bit (lora)")
    add("--samples", type=_positive, metavar="N", help="in one epoch (10000)")
    add("--epochs", type=_positive, metavar="N", help="passes through the data (1)")
    length = "tokens of a sample (2048, at most the model's context)"
    add("--length", type=_positive, metavar="N", help=length)
    add("--batch", type=_positive, metavar="N", help="samples in a step (1)")
    add("--rank", type=_positive, metavar="N", help="the rank of LoRA's matrices (16)")
    add("--optimizer", help="adam, adamw, fused, adam8bit, paged8bit or sgd (adam)")
    trained = "bytes of a trained weight: 4, or 2 for 16 bits (4)"
    add("--trained-bytes", type=int, choices=(2, 4), help=trained)
    add("--in-backward", action="store_true", help="the optimizer runs in the backward pass")
    chunks = "pieces in which the loss is computed (1)"
    add("--chunks", type=_positive, metavar="N", help=chunks)
    add("--compiled", action="store_true", help="with torch.compile")
    add("--padded", action="store_true", help="a padding mask rules out flash attention")
    full = "all but products with 4-bit weights, as PEFT computes without autocast"
    add("--in-32-bits", action="store_true", help=full)


def _add_serving(command: Parser) -> None:
    add = command.add_argument
    add("model", help=MODEL)
    add("--runtime", help="vLLM, llama.cpp or Transformers (vLLM)")
    add("--bits", type=int, choices=(16, 8, 4), help="of a weight (as published: mostly 16)")
    add("--batch", type=_positive, metavar="N", help="requests that are answered at once (1)")
    add("--prompt", type=_positive, metavar="N", help="tokens of a request (512)")
    add("--generated", type=_positive, metavar="N", help="tokens of an answer (256)")
    add("--requests", type=_positive, metavar="N", help="of the whole job (1000)")


# what each is for, what answers it, and what adds its options
COMMANDS: dict[str, tuple[str, Callable[..., Answers], Callable[[Parser], None]]] = {
    "network": ("Train a network, or run it (--inference).", _network, _add_network),
    "finetune": (
        "Fine-tune a language model on one card.",
        partial(_language, estimate_finetuning),
        _add_finetuning,
    ),
    "serve": (
        "Answer requests with a language model on one card.",
        partial(_language, estimate_serving),
        _add_serving,
    ),
}


if __name__ == "__main__":
    sys.exit(main())
