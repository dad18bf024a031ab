"""Functions that are loaded by the name of their file or module."""

import json
import random
import sys

import pytest

from course_utils.load_function import load_function, split_name


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file and return its path; what Python imports is restored afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = dict(sys.modules)

    def write(name, source):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
        return path

    yield write
    for name in set(sys.modules) - set(before):
        del sys.modules[name]
    sys.modules.update(before)


NAMES = ["mlp-mnist.py", "training 2.py", "2nd.py", "my.model.v2.py", "sieć.py"]


@pytest.mark.parametrize("name", [*NAMES, "random.py", "json.py"])
def test_a_file_is_loaded_whatever_its_name(write, name):
    path = write(name, "def make():\n    return 'made'\n")
    assert load_function(f"{path}:make")() == "made"
    import json as json_again
    import random as random_again

    assert (json_again, random_again) == (json, random)


def test_a_file_imports_what_is_beside_it_even_if_a_library_has_the_name(write):
    write("parso.py", "WHERE = 'beside'\n")  # an installed library that nothing here has loaded
    write("parts/layers.py", "WHERE = 'in a folder beside'\n")
    path = write("a-file.py", "import parso\nfrom parts import layers\ndef f():\n    return 1\n")
    sys.modules.pop("parso", None)
    function = load_function(f"{path}:f")
    assert function.__globals__["parso"].WHERE == "beside"
    assert function.__globals__["layers"].WHERE == "in a folder beside"
    assert sys.path[0] != str(path.parent)  # spawned processes would look there for libraries


def test_a_file_is_run_once(write):
    path = write("counted.py", "import sys\nsys.runs = getattr(sys, 'runs', 0) + 1\ndef f(): ...\n")
    first = load_function(f"{path}:f")
    assert load_function(f"{path}:f") is first
    assert sys.runs == 1
    del sys.runs


def test_a_function_of_a_module_is_loaded():
    assert load_function("random:choice") is random.choice
    assert load_function("json.decoder:JSONDecoder") is json.JSONDecoder


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nobody", "does not name a function"),
        ("file.py", "does not name a function"),
        ("json:", "does not name a function"),
        ("missing.py:make", "no file 'missing.py'"),
        ("nobody.here:make", "no module 'nobody.here'"),
        ("json.nobody:make", "no module 'json.nobody'"),
        ("json:nobody", "json defines no function 'nobody'"),
    ],
)
def test_what_is_missing_is_named(name, words):
    with pytest.raises(ValueError, match=words):
        load_function(name)


def test_an_error_in_the_file_is_passed_on_at_each_call(write):
    path = write("faulty.py", "import a_module_that_is_missing\n")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="a_module_that_is_missing"):
            load_function(f"{path}:make")


def test_a_name_is_checked_without_running_its_file(write):
    path = write("checked.py", "raise RuntimeError('this file was run')\n")
    assert split_name(f"{path}:make") == (str(path), "make")


def test_a_folder_without_code_is_not_taken_for_a_library_of_its_name(write):
    sys.modules.pop("colorsys", None)
    write("colorsys/data.csv", "1,2\n")
    file = write("one.py", "import colorsys\n\ndef f():\n    return colorsys.rgb_to_hsv(0, 0, 0)\n")
    assert load_function(f"{file}:f")() == (0.0, 0.0, 0)
