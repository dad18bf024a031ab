"""Let a lesson run to its end where something that some of its cells need is missing."""


def skip_cells(mark: str, sentence: str | None) -> None:
    """Let each later cell of this notebook whose first line is `mark` print a sentence instead of running.

    Args:
        mark: a comment, such as "# Needs XLA".
        sentence: what to print; None changes nothing, and the mark stays a comment.
    """
    if sentence is None:
        return
    from IPython import get_ipython

    def say_so(lines: list[str]) -> list[str]:
        marked = bool(lines) and lines[0].strip() == mark
        return [f"print({sentence!r})\n"] if marked else lines

    get_ipython().input_transformers_cleanup.append(say_so)
