"""Find idioms of old PyTorch, and old packages and variables in strings and commands."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from course_tools.old_code.names_in_code import Names
from course_tools.old_code.note import Note
from course_tools.old_code.old_names import IDIOMS, TEXTS
from course_tools.old_code.parsed_code import Call, Code, source

LONGEST_TEXT = 10_000  # characters of a command, string or message; a longer one is data


def find_idioms(code: Code, names: Names) -> Iterator[Note]:
    """Find `loss.data[0]` and the like."""
    expressions = [chain[0][1].parent for chain in code.chains]
    assignments = [node for node in code.nodes if node.type == "expr_stmt"]
    for node in expressions + assignments:
        text = source(node).partition("\n")[0][:200]
        for pattern, new, why in IDIOMS:
            if match := re.match(pattern, text):
                yield code.note(node, match[match.re.groups], new, why)


def find_device_strings(code: Code, names: Names) -> Iterator[Note]:
    """Find `device="cuda0"`."""
    for call in code.calls:
        for each in call.arguments:
            is_place = each.name == "" and call.name.endswith((".device", ".to"))
            text = getattr(each.value, "value", "")
            name = re.fullmatch(r"(['\"])(cuda|xla|mps|xpu)(\d+)\1", text)
            if name and (is_place or each.name in ("device", "map_location")):
                why = "A device's number stands behind a colon; this is an invalid device string."
                yield code.note(each.value, name[0], name.expand(r"\1\2:\3\1"), why)


def find_async(code: Code, names: Names) -> Iterator[Note]:
    """Find `async=True`, which is no longer Python."""
    for one, following in pairwise(code.leaves):
        if one.value == "async" and following.value == "=":
            why = "`async` is a keyword since Python 3.7; .cuda() and .to() take non_blocking=."
            yield code.note(one, "async=", "non_blocking=", why)


def find_strings(code: Code, names: Names) -> Iterator[Note]:
    """Find old packages and variables in strings, but not in docstrings."""
    for node in code.leaves:
        if node.type == "string" and not node.value.startswith(('"""', "'''", 'r"""')):
            for each in find_in_text(node.value):
                yield code.note(node, each.old, each.new, each.why, below=each.line)


def find_in_text(text: str) -> Iterator[Note]:
    """Find what is outdated in a command or a string: wheels, versions, variables.

    The line of a note is counted from 0, the first line of the text.
    """
    for pattern, new, why in TEXTS:
        if len(text) < LONGEST_TEXT and (match := re.search(pattern, text)):
            yield Note(match[0], new, why, text.count("\n", 0, match.start()))


def find_fourier(code: Code, names: Names) -> Iterator[Note]:
    """Find `torch.stft` and `torch.istft` of the time when they had real numbers."""
    stfts = [call for call in code.calls if names.full_name(call.name) == "torch.stft"]
    old = [call for call in stfts if _gives_real_numbers(call)]
    for call in old:
        if call.keyword("return_complex") is None:
            why = "It raises RuntimeError without return_complex=. torch.view_as_real gives the old"
            why += " form, with a real and an imaginary part."
            yield code.note(call.node, "torch.stft(...)", "return_complex=True", why)
    makes_complex = any("complex" in call.name for call in code.calls)
    for call in code.calls if old and not makes_complex else ():
        if names.full_name(call.name) == "torch.istft":
            why = "It takes complex numbers only, and raises RuntimeError for real ones."
            new = "torch.istft(torch.view_as_complex(x), ...)"
            yield code.note(call.node, "torch.istft(x, ...)", new, why)


def _gives_real_numbers(call: Call) -> bool:
    """Say whether a call of `torch.stft` does not ask for complex numbers."""
    asks = call.keyword("return_complex")
    if asks is not None:
        return source(asks) == "False"
    by_position = [each for each in call.arguments if not each.name]
    is_open = any(
        each.name in ("*", "**") or source(each.value) == "..." for each in call.arguments
    )
    return not is_open and len(by_position) < 10  # the tenth is return_complex


def find_masks(code: Code, names: Names) -> Iterator[Note]:
    """Find `1 - mask` where the mask is a comparison of tensors."""
    if "torch" not in {each.partition(".")[0] for each in names.imported.values()}:
        return
    masks = {
        source(node.children[0])
        for node in code.nodes
        if node.type == "expr_stmt" and len(node.children) == 3 and _is_mask(node)
    }
    for node in code.nodes:
        if node.type != "arith_expr" or [source(each) for each in node.children[:2]] != ["1", "-"]:
            continue
        text = source(node.children[2])
        is_comparison = re.fullmatch(r"\(.*(torch|mask).*(==|!=|<|>).*\)", text)
        if text in masks or is_comparison or re.fullmatch(_GIVES_BOOL, text):
            why = "Minus is refused for a tensor of truth values since PyTorch 1.2 (RuntimeError)."
            yield code.note(node, f"1 - {text}", f"~{text}", why)


_GIVES_BOOL = r"[^()]*\.(bool\(\)|(eq|ne|gt|lt|ge|le)\([^()]*\))|torch\.is(nan|inf)\([^()]*\)"
_MASK_NAME = re.compile(r"mask|pad|valid|keep", re.IGNORECASE)


def _is_mask(assignment: Any) -> bool:
    """Say whether an assignment makes a tensor of truth values, as far as can be read."""
    target, _, value = assignment.children
    text = source(value)
    if re.fullmatch(_GIVES_BOOL, text):
        return True
    return value.type == "comparison" and (
        "torch." in text or bool(_MASK_NAME.search(source(target)))
    )
