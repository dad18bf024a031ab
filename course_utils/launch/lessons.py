"""Lessons that the launcher can train: by name, or from a student's own file."""

import ast
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from course_utils.launch.messages import LaunchError

SHAPE = "It must return a LightningModule and its data: return module, dataset"


def air_rnn() -> tuple:
    """Return the 481-parameter RNN and the windows of AirPassengers to train on.

    A window of 25 months leaves 96 windows, which 1, 2, 3, 4, 6 or 8 ranks share evenly: no rank
    repeats a sample.
    """
    from torch.utils.data import TensorDataset

    from course_utils.data import Scale, air_passengers, make_windows
    from course_utils.data.models import AirRNN
    from course_utils.lightning import Regression

    series, _ = air_passengers()
    return Regression(AirRNN()), TensorDataset(*make_windows(Scale.fit(series).apply(series), 25))


def image_cnn() -> tuple:
    """Return the image CNN and CIFAR-10 where it is on this machine already, else the shapes that
    are drawn offline.

    Nothing is downloaded here: several ranks would do it at the same time, into the same file.
    """
    from torch.utils.data import DataLoader, TensorDataset

    from course_utils.data.images import load_images
    from course_utils.data.models import ImageCNN
    from course_utils.lightning import Classification

    images = load_images(download=False)
    return Classification(ImageCNN()), DataLoader(
        TensorDataset(images.train, images.train_labels), 64, shuffle=True
    )


LESSONS = {"air_rnn": air_rnn, "image_cnn": image_cnn}


def check_lesson(name: str) -> None:
    """Raise LaunchError if a lesson, its file or its function is not there, without running any of
    it.
    """
    if name in LESSONS:
        return
    path, function = _split(name)
    if not path.is_file():
        raise LaunchError(
            f"the lesson {name!r} names the file {path}, which is not there (looked in {Path.cwd()})."
        )
    try:
        tree = ast.parse(path.read_bytes(), path)  # in the encoding that the file declares
    except (SyntaxError, ValueError) as error:
        raise LaunchError(
            f"the lesson's file {path} is not valid Python: {error}. Correct it."
        ) from None
    if function not in {
        getattr(node, "asname", None) or getattr(node, "name", None) for node in ast.walk(tree)
    }:
        raise LaunchError(f"the lesson's file {path} defines no function {function!r}. {SHAPE}.")
    named = path.stem.isidentifier()
    found = importlib.util.find_spec(path.stem) if named else None
    if not named or (found and found.origin and Path(found.origin).resolve() != path.resolve()):
        why = (
            f"Python already has a module of that name ({found.origin})"
            if found
            else "it is not a Python name"
        )
        advice = "Rename the file, for instance to my_lesson.py."
        raise LaunchError(
            f"the lesson's file {path} cannot be imported as {path.stem!r}: {why}. {advice}"
        )


def load_lesson(name: str) -> tuple[Any, Any]:
    """Import a lesson and return its module and a DataLoader: the lesson's own, or one made of its
    dataset.

    The loader's batch size is that of a step over all ranks, unless the command line says
    otherwise.

    Args:
        name: one of `LESSONS`, or "path/to/file.py:function".

    Raises:
        LaunchError: the lesson does not return a LightningModule and data that ranks can share.
    """
    from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler

    from course_utils.lightning import pl

    check_lesson(name)
    if name not in LESSONS:
        path, function = _split(name)
        # a spawned rank imports the file again, by its name
        sys.path.insert(0, str(path.parent.resolve()))
    returned = (LESSONS.get(name) or getattr(importlib.import_module(path.stem), function))()
    kinds = [
        type(one).__name__ for one in (returned if isinstance(returned, tuple) else [returned])
    ]
    if len(kinds) != 2 or not isinstance(returned[0], pl.LightningModule):
        raise LaunchError(f"the lesson {name!r} returned {', '.join(kinds) or 'nothing'}. {SHAPE}.")
    module, data = returned
    dataset: Any = data.dataset if isinstance(data, DataLoader) else data
    numbered = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
    if isinstance(dataset, IterableDataset | dict) or not numbered:
        wanted = (
            "which cannot be split over ranks: a Dataset with a length and numbered samples can"
        )
        if isinstance(data, pl.LightningDataModule):
            wanted += ". Call its setup('fit'), set module.val_dataloader to its own, and return its train_dataloader()"
        raise LaunchError(f"the lesson {name!r} returned {kinds[1]} as its data, {wanted}.")
    if len(dataset) == 0:
        raise LaunchError(f"the lesson {name!r} returned data without a single sample.")
    loader = (
        data if isinstance(data, DataLoader) else DataLoader(dataset, batch_size=16, shuffle=True)
    )
    if loader.batch_size is None or type(loader.sampler) not in (RandomSampler, SequentialSampler):
        lost = "whose own sampler would be lost, since each rank has one for its share: return the dataset alone"
        raise LaunchError(f"the lesson {name!r} returned a DataLoader {lost}.")
    return module, loader


def _split(name: str) -> tuple[Path, str]:
    path, colon, function = str(name).rpartition(":")  # somebody may pass the function itself
    if not colon or not path.endswith(".py") or not function.isidentifier():
        known = f"Write one of {', '.join(LESSONS)}, or the file and the function of your own"
        raise LaunchError(
            f"there is no lesson {name!r}. {known}, such as path/to/file.py:make_lesson."
        )
    return Path(path), function
