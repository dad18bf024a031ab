"""Cells that begin with `%%needs XLA`: they run where XLA is here, or say why it is missing."""

import os
import sys

import torch

from course_utils.xla import started_xla

# https://github.com/pytorch/pytorch/issues/148283, and there is no fork.
NO_RANKS = (
    None
    if hasattr(os, "fork")
    else "on Windows no ranks start: open the lesson in WSL, or on Colab or Kaggle."
)


def no_copies() -> str | None:
    """Return why no copy of this kernel can train, or None where one can."""
    if NO_RANKS:
        return NO_RANKS
    # https://github.com/Lightning-AI/pytorch-lightning/issues/21345
    if sys.platform != "linux":
        return "on a Mac no copy of this kernel can train."
    # The first backward pass beside a GPU, or XLA, starts a thread, which a copy would lack.
    if torch.cuda.device_count() or torch.xpu.device_count():
        return "beside a GPU it is left out. The text below it says what to write there."
    if started_xla():
        return "where XLA has started, no copy of this kernel can train."
    return None


def no_darts() -> str | None:
    """Return why Darts cannot be used here and what helps, or None where it can."""
    try:
        import darts.models  # noqa: F401
    except ImportError as error:
        how = 'set_up(extra="darts") (Python 3.11+)'
        return f"Darts is not here ({error}). Add it: {how}."
    return None


def what_cells_need(**problems: str | None) -> None:
    """Let cells begin with `%%needs NAME ...`.

    Args:
        **problems: for each NAME, a sentence that says why it is missing, or None.
    """
    from IPython import get_ipython

    def needs(lines: list[str]) -> list[str]:
        first, *others = lines or [""]
        if not first.startswith("%%needs "):
            return lines
        for name in first.split()[1:]:
            if problems[name]:
                message = f"This cell needs {name}, but {problems[name]}"
                return [f"print({message!r})\n"]
        return [f"# {first}", *others]  # as many lines as before, for the cell's errors

    # After the first, which drops empty lines, and before what an earlier call has inserted.
    get_ipython().input_transformers_cleanup.insert(1, needs)
