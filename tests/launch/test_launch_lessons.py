"""Lessons by name and from a student's file."""

import sys

import pytest
import torch
from torch.utils.data import RandomSampler

from course_utils.launch.lessons import LESSONS, check_lesson, load_lesson
from course_utils.launch.messages import LaunchError
from course_utils.launch.options import Options
from course_utils.launch.ranks import make_loader

GOOD = """
import torch
from lightning.pytorch import LightningDataModule, LightningModule
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, WeightedRandomSampler

class Module(LightningModule):
    pass

class Stream(IterableDataset):
    def __iter__(self): ...

DATA = TensorDataset(torch.zeros(6, 1))

def good(): return Module(), DATA
def loader(): return Module(), DataLoader(DATA, batch_size=3)
def three(): return Module(), DATA, 1
def no_module(): return torch.nn.Linear(1, 1), DATA
def stream(): return Module(), Stream()
def number(): return Module(), 5
def shuffled(): return Module(), DataLoader(DATA, batch_size=3, shuffle=True, worker_init_fn=print)
def short(): return Module(), DataLoader(DATA, batch_size=4, drop_last=True)
def picked(): return Module(), DataLoader(DATA, sampler=WeightedRandomSampler([1.0] * 6, 6))
def batched(): return Module(), DataLoader(DATA, batch_sampler=[[0, 1], [4, 5]])
def mapping(): return Module(), {"train": DATA}
def data_module(): return Module(), LightningDataModule()
def own(): return Module(), DataLoader(DATA, 3, num_workers=1, pin_memory=True, timeout=7, prefetch_factor=5)
def empty(): return Module(), TensorDataset(torch.zeros(0, 1))
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "a_lesson_of_mine.py"
    path.write_text(GOOD)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield path
    sys.modules.pop("a_lesson_of_mine", None)


def test_air_rnn_is_the_481_parameters_and_96_windows_that_ranks_share_evenly():
    module, data = load_lesson("air_rnn")
    assert sum(parameter.numel() for parameter in module.parameters()) == 481
    assert len(data.dataset) == 96 and all(96 % ranks == 0 for ranks in (1, 2, 3, 4, 6, 8))
    inputs, targets = data.dataset[0]
    assert inputs.shape == targets.shape == (25, 1) and torch.equal(inputs[1:], targets[:-1])


def test_image_cnn_is_the_image_cnn_and_a_global_batch_of_64():
    module, data = load_lesson("image_cnn")
    pixels, label = data.dataset[0]
    assert pixels.shape == (3, 32, 32) and 0 <= label < 10 and len(data.dataset) >= 10_000
    assert module.model(pixels[None]).shape == (1, 10) and data.batch_size == 64
    assert set(LESSONS) == {"air_rnn", "image_cnn"}


def test_a_students_file_is_imported_by_its_name(file):
    module, data = load_lesson(f"{file}:good")
    assert type(module).__module__ == "a_lesson_of_mine" and len(data.dataset) == 6
    assert data.batch_size == 16 and not data.drop_last


def test_a_data_loader_gives_its_data_and_its_batch_size(file):
    _, data = load_lesson(f"{file}:loader")
    assert len(data.dataset) == 6 and data.batch_size == 3


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            "three",
            "returned Module, TensorDataset, int. It must return a LightningModule and its data",
        ),
        (
            "no_module",
            r"returned Linear, TensorDataset\. It must return a LightningModule and its data",
        ),
        ("stream", "returned Stream as its data, which cannot be split over ranks"),
        ("number", "returned int as its data"),
        ("picked", "returned a DataLoader whose own sampler would be lost"),
        ("batched", "returned a DataLoader whose own sampler would be lost"),
        ("mapping", "returned dict as its data"),
        (
            "data_module",
            r"returned LightningDataModule as its data.* return its train_dataloader\(\)",
        ),
        ("empty", "returned data without a single sample"),
    ],
)
def test_a_function_that_returns_the_wrong_thing_is_refused(file, function, message):
    with pytest.raises(LaunchError, match=message):
        load_lesson(f"{file}:{function}")


def test_a_file_is_checked_without_running_any_of_it(tmp_path):
    path = tmp_path / "explosive_lesson.py"
    path.write_text("raise RuntimeError('ran')\ndef make_lesson(): ...\n")
    check_lesson(f"{path}:make_lesson")


def test_a_function_that_the_file_imports_counts_as_its_own(tmp_path):
    path = tmp_path / "borrowed_lesson.py"
    path.write_text("from elsewhere import lesson as make_lesson\n")
    check_lesson(f"{path}:make_lesson")


@pytest.mark.parametrize("head", [b"\xef\xbb\xbf", b"# -*- coding: latin-1 -*-\nWORD = '\xe9'\n"])
def test_a_file_in_any_encoding_that_python_reads_is_taken(tmp_path, head):
    path = tmp_path / "encoded_lesson.py"
    path.write_bytes(head + b"def make_lesson(): ...\n")
    check_lesson(f"{path}:make_lesson")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("air_rrn", "there is no lesson 'air_rrn'. Write one of air_rnn"),
        ("file.py", "there is no lesson 'file.py'"),
        ("file.txt:make_lesson", "there is no lesson 'file.txt:make_lesson'"),
        ("file.py:1st", "there is no lesson 'file.py:1st'"),
        ("nowhere.py:f", "names the file nowhere.py, which is not there"),
    ],
)
def test_a_lesson_that_does_not_exist_is_refused(name, message):
    with pytest.raises(LaunchError, match=message):
        check_lesson(name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (\n", r"is not valid Python: '\(' was never closed \(broken_lesson\.py, line 1\)"),
        ("def f():\nreturn 1\n", "is not valid Python: expected an indented block .*line 2"),
        ("x = '\0'", "is not valid Python"),
        (
            "def other(): ...\n",
            "defines no function 'f'. It must return a LightningModule and its data",
        ),
    ],
)
def test_a_file_that_holds_no_such_function_is_refused(tmp_path, text, message):
    path = tmp_path / "broken_lesson.py"
    path.write_text(text)
    with pytest.raises(LaunchError, match=message):
        check_lesson(f"{path}:f")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("random.py", "already has a module of that name"),
        ("my-lesson.py", "it is not a Python name"),
    ],
)
def test_a_file_that_cannot_be_imported_by_its_name_is_refused(tmp_path, name, message):
    (tmp_path / name).write_text("def f(): ...\n")
    with pytest.raises(LaunchError, match=f"cannot be imported as .*{message}.* Rename the file"):
        check_lesson(f"{tmp_path / name}:f")


def test_a_loader_that_leaves_out_a_short_last_batch_does_so_in_every_rank(file):
    _, data = load_lesson(f"{file}:short")
    batches = make_loader(data, Options(f"{file}:short"), ranks=1)
    assert [len(samples) for (samples,) in batches] == [4]


@pytest.mark.parametrize(
    ("function", "drawn"), [("good", True), ("loader", False), ("shuffled", True)]
)
def test_the_order_of_a_lessons_own_loader_is_kept_and_a_dataset_is_shuffled(file, function, drawn):
    _, data = load_lesson(f"{file}:{function}")
    one, two = (make_loader(data, Options("", global_batch=2), ranks) for ranks in (1, 2))
    assert one.sampler.shuffle == drawn and isinstance(two.sampler, RandomSampler) == drawn
    assert drawn or list(one.sampler) == list(range(6))


def test_a_loaders_own_way_to_begin_its_processes_is_kept(file):
    _, data = load_lesson(f"{file}:shuffled")
    assert make_loader(data, Options(""), ranks=1).worker_init_fn is data.worker_init_fn is not None


@pytest.mark.parametrize(("asked", "workers", "timeout"), [(None, 1, 7), (0, 0, 0), (2, 2, 7)])
def test_how_a_lessons_own_loader_loads_is_kept_unless_the_command_line_says_otherwise(
    file, asked, workers, timeout
):
    _, data = load_lesson(f"{file}:own")
    made = make_loader(data, Options("", num_workers=asked), ranks=1)
    assert (made.num_workers, made.timeout, made.pin_memory) == (workers, timeout, True)
    assert made.prefetch_factor == (5 if workers else None) and made.persistent_workers == bool(
        workers
    )


def test_data_without_a_single_whole_batch_are_refused_where_only_whole_ones_count(file):
    _, data = load_lesson(f"{file}:short")
    with pytest.raises(
        LaunchError,
        match=r"a rank has 6 samples, and a batch needs 8. Pass a smaller --global-batch",
    ):
        make_loader(data, Options("", global_batch=8), ranks=1)
