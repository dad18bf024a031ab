"""Packages that a process does without."""

import importlib.metadata
import importlib.util
import subprocess
import sys

import pytest

from course_utils.launch.hiding import without


def test_a_hidden_package_is_neither_imported_nor_found_nor_known_by_version():
    sys.modules.pop("colorsys", None)
    with without("colorsys", "torch"):
        with pytest.raises(ModuleNotFoundError, match="colorsys is kept out of this process"):
            import colorsys
        with pytest.raises(importlib.metadata.PackageNotFoundError):
            importlib.metadata.version("torch")
        assert importlib.metadata.version("psutil")
    import colorsys

    assert colorsys and importlib.metadata.version("torch")


def test_nothing_stays_hidden_after_an_error():
    before = list(sys.meta_path)
    with pytest.raises(KeyError), without("torch"):
        raise KeyError
    assert sys.meta_path == before


def test_lightning_without_matplotlib_does_not_import_it_and_a_lesson_still_can():
    code = (
        "import sys, course_utils.launch.ranks; print('matplotlib' in sys.modules, 'lightning' in sys.modules)\n"
        "import matplotlib.pyplot; print('matplotlib' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", "True", "True"]
