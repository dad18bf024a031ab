"""Cells that begin with `%%needs XLA`: they run where that is here, and say in one sentence why not
where it is not.
"""

import os

from course_lessons.exercises.sandbox import FORKS, can_copy

# https://github.com/pytorch/pytorch/issues/148283, and there is no fork.
NO_RANKS = (
    None
    if hasattr(os, "fork")
    else "on Windows no ranks start: open the lesson in WSL, or on Colab or Kaggle."
)


def no_copies() -> str | None:
    """Say why no copy of this kernel can train, or return None where one can."""
    # https://github.com/Lightning-AI/pytorch-lightning/issues/21345
    where = "beside a GPU" if FORKS else "on a Mac"
    return NO_RANKS or (None if can_copy() else f"{where} no copy of this kernel can train.")


def what_cells_need(**problems: str | None) -> None:
    """Let cells begin with `%%needs NAME ...`. For each NAME give a sentence that says why it is
    missing, or None.
    """
    from IPython import get_ipython

    def needs(lines: list[str]) -> list[str]:
        first, *others = lines or [""]
        if not first.startswith("%%needs "):
            return lines
        missing = [
            f"This cell needs {name}, but {problems[name]}"
            for name in first.split()[1:]
            if problems[name]
        ]
        # as many lines, for its errors
        return [f"print({missing[0]!r})\n"] if missing else [f"# {first}", *others]

    # After the first, which drops empty lines, and before what an earlier call has inserted.
    get_ipython().input_transformers_cleanup.insert(1, needs)
