"""Lessons that the launcher can train: by name, or from a student's own file."""

import ast
import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.launch.messages import LaunchError

SHAPE = "It must return a LightningModule and its data: return module, dataset"


@dataclass(frozen=True)
class Lesson:
    """What a lesson gives the launcher.

    Attributes:
        module: the LightningModule to train.
        dataset: its samples, of which every rank will read a part.
        global_batch: samples in a step over all ranks, unless the command line says otherwise.
        collate: how samples become a batch; None for the usual way.
    """

    module: Any
    dataset: Any
    global_batch: int = 16
    collate: Callable | None = None


def air_rnn() -> tuple:
    """Return the 481-parameter RNN and the windows of AirPassengers to train on.

    A window of 25 months leaves 96 windows, which 1, 2, 3, 4, 6 or 8 ranks share evenly: no rank repeats a sample.
    """
    from torch.utils.data import TensorDataset

    from course_utils.data import Scale, air_passengers, make_windows
    from course_utils.data.models import AirRNN
    from course_utils.training import Regression

    series, _ = air_passengers()
    return Regression(AirRNN()), TensorDataset(*make_windows(Scale.fit(series).apply(series), 25))


def image_cnn() -> tuple:
    """Return the image CNN and CIFAR-10 where it is on this machine already, else the shapes that are drawn offline.

    Nothing is downloaded here: several ranks would do it at the same time, into the same file.
    """
    from torch.utils.data import DataLoader, TensorDataset

    from course_utils.data.images import load_images
    from course_utils.data.models import ImageCNN
    from course_utils.training import Classification

    images = load_images(download=False)
    return Classification(ImageCNN()), DataLoader(TensorDataset(images.train, images.train_labels), batch_size=64)


LESSONS = {"air_rnn": air_rnn, "image_cnn": image_cnn}


def check_lesson(name: str) -> None:
    """Raise LaunchError if a lesson, its file or its function is not there, without running any of it."""
    if name in LESSONS:
        return
    path, function = _split(name)
    if not path.is_file():
        raise LaunchError(f"the lesson {name!r} names the file {path}, which is not there (looked in {Path.cwd()}).")
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if getattr(error, "lineno", None) else ""
        raise LaunchError(
            f"the lesson's file {path}{line} is not valid Python: {error.args[0]}. Correct it and launch again."
        ) from None
    names = {getattr(node, "asname", None) or getattr(node, "name", None) for node in ast.walk(tree)}
    if function not in names:
        raise LaunchError(f"the lesson's file {path} defines no function {function!r}. {SHAPE}.")
    _check_module_name(path)


def load_lesson(name: str) -> Lesson:
    """Import a lesson, call its function, and raise LaunchError unless it returns a module and data.

    Args:
        name: one of `LESSONS`, or "path/to/file.py:function".
    """
    check_lesson(name)
    if name in LESSONS:
        return _checked(LESSONS[name](), name)
    path, function = _split(name)
    # A spawned rank imports the file again, by its name and along the same sys.path.
    sys.path.insert(0, str(path.parent.resolve()))
    return _checked(getattr(importlib.import_module(path.stem), function)(), name)


def _split(name: str) -> tuple[Path, str]:
    path, colon, function = name.rpartition(":")
    if not colon or not path.endswith(".py") or not function.isidentifier():
        raise LaunchError(
            f"there is no lesson {name!r}. Write one of {', '.join(LESSONS)}, or the file and the function of your "
            f"own, such as path/to/file.py:make_lesson."
        )
    return Path(path), function


def _check_module_name(path: Path) -> None:
    found = importlib.util.find_spec(path.stem) if path.stem.isidentifier() else None
    other = found and found.origin and Path(found.origin).resolve() != path.resolve()
    if not path.stem.isidentifier() or other:
        why = f"Python already has a module of that name ({found.origin})" if other else "it is no Python name"
        raise LaunchError(
            f"the lesson's file {path} cannot be imported as {path.stem!r}: {why}. Rename the file, for instance to "
            f"my_lesson.py."
        )


def _checked(returned: Any, name: str) -> Lesson:
    from torch.utils.data import DataLoader, IterableDataset

    from course_utils.training import pl

    if not isinstance(returned, tuple) or len(returned) != 2:
        raise LaunchError(f"the lesson {name!r} returned {_describe(returned)}. {SHAPE}.")
    module, data = returned
    if not isinstance(module, pl.LightningModule):
        raise LaunchError(f"the lesson {name!r} returned {_describe(module)} as its module. {SHAPE}.")
    lesson = Lesson(module, data)
    if isinstance(data, DataLoader):
        lesson = Lesson(module, data.dataset, data.batch_size or 16, data.collate_fn)
    if isinstance(lesson.dataset, IterableDataset) or not all(
        hasattr(lesson.dataset, method) for method in ("__len__", "__getitem__")
    ):
        raise LaunchError(
            f"the lesson {name!r} returned {_describe(data)} as its data, which cannot be split over ranks: a Dataset "
            f"with a length and numbered samples can."
        )
    if len(lesson.dataset) == 0:
        raise LaunchError(f"the lesson {name!r} returned data without a single sample.")
    return lesson


def _describe(value: Any) -> str:
    return (
        f"a tuple of {len(value)} things" if isinstance(value, tuple) else f"an object of type {type(value).__name__}"
    )
