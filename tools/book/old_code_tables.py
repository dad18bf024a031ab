"""The reference on the page about old code, made from the tables of the tool itself."""

import json
from collections.abc import Iterable
from pathlib import Path

from course_tools.old_code.old_names import ATTRIBUTES, KEYWORDS, METHODS, NAMES
from course_tools.old_code.trainer_arguments import ROWS, removed_arguments, translate

HERE = Path(__file__).resolve().parent
MARK = "<!-- The tables are written here by tools/book/old_code_tables.py. -->"

SEE_WHY = "see why"  # where no single argument takes its place

# What guides print most often; the tool says what each means today.
EXAMPLES = (
    {"gpus": 2},
    {"gpus": -1},
    {"gpus": [0]},
    {"gpus": 0},
    {"tpu_cores": 8},
    {"tpu_cores": 1},
    {"tpu_cores": [4]},
    {"num_tpu_cores": 8},
    {"num_processes": 2},
    {"gpus": 2, "auto_select_gpus": True},
    {"ipus": 8},
    {"distributed_backend": "ddp"},
    {"accelerator": "ddp"},
    {"accelerator": "ddp_cpu"},
    {"strategy": "dp"},
    {"strategy": "tpu_spawn"},
    {"precision": 16},
    {"tpu_cores": 8, "precision": 16},
    {"use_amp": True},
    {"resume_from_checkpoint": "last.ckpt"},
    {"progress_bar_refresh_rate": 0},
    {"progress_bar_refresh_rate": 20},
    {"weights_summary": None},
    {"weights_summary": "full"},
    {"checkpoint_callback": False},
    {"early_stop_callback": True},
    {"profiler": True},
    {"reload_dataloaders_every_epoch": True},
    {"accumulate_grad_batches": {0: 1, 5: 2}},
    {"max_steps": None},
    {"amp_level": "O2"},
)


def old_code_page(text: str) -> str:
    """Return the text of the page with the tables in the place of the mark."""
    assert MARK in text
    return text.replace(MARK, tables())


def tables() -> str:
    """Return all tables as Markdown, each under its heading."""
    guides = json.loads((HERE / "old_guides.json").read_text(encoding="utf-8"))
    names = {f"{name}*" if name.endswith(".") else name: new for name, new in NAMES.items()}
    methods = {f"def {name}": advice for name, advice in METHODS.items()}
    attributes = {f"trainer.{name}": advice for name, advice in ATTRIBUTES.items()}
    keywords = {f"{key}=": advice for key, advice in KEYWORDS.items()}
    parts = [
        _table("Arguments of the Trainer, by value", _examples()),
        _table("Arguments of the Trainer, by name", _arguments()),
        _table("Names", _rows(names)),
        _table("Methods of a module or callback", _rows(methods)),
        _table("Attributes of a Trainer", _rows(attributes)),
        _table("Arguments of other calls", _rows(keywords)),
        _guides(guides),
    ]
    return "\n".join(parts)


def _examples() -> Iterable[tuple[str, str, str]]:
    for old in EXAMPLES:
        modern = translate(old)
        what = ", ".join(f"{name}={value!r}" for name, value in old.items())
        new = ", ".join(f"{name}={value!r}" for name, value in modern.kwargs.items())
        if modern.fit_kwargs:
            new = f"trainer.fit(model, ckpt_path={modern.fit_kwargs['ckpt_path']!r})"
        if modern.refused:
            new = SEE_WHY
        notes = {**modern.changes, **modern.refused}
        reasons = [note.why for note in notes.values()]
        yield what, new, " ".join(reasons)


def _arguments() -> Iterable[tuple[str, str, str]]:
    for old in sorted(removed_arguments()):
        new, why = ROWS[old][-1][1:]  # the row of any other value is the last
        names = [name for name in new or () if name != "ckpt_path"]
        yield old, ", ".join(names) or SEE_WHY, why


def _rows(table: dict) -> Iterable[tuple[str, str, str]]:
    for old, (new, why) in table.items():
        yield old, new, why


def _table(heading: str, rows: Iterable[tuple[str, str, str]]) -> str:
    lines = [*_opening(heading), "| Old | Today | Why |", "|---|---|---|"]
    for old, new, why in rows:
        is_code = new not in ("", "nothing", SEE_WHY)
        today = _code(new) if is_code else new or "nothing"
        lines.append(f"| {_code(old)} | {today} | {_cell(why)} |")
    return "\n".join([*lines, "```", ""])


def _guides(rows: list[list[str]]) -> str:
    lines = _opening("What old guides say, and what holds today")
    lines += ["| Guide | It says | Today | As seen |", "|---|---|---|---|"]
    for row in rows:
        lines.append("| " + " | ".join(_cell(text) for text in row) + " |")
    return "\n".join([*lines, "```", ""])


def _opening(heading: str) -> list[str]:
    return [f"## {heading}", "", "```{table}", ":class: shared-width", ""]


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _cell(text: str) -> str:
    """Return a text as plain words of a table: no part of it is read as Markdown."""
    for mark in "\\`*_[]<>|$":
        text = text.replace(mark, f"\\{mark}")
    return text
