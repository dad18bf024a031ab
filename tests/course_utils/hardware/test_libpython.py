"""Python's shared library, which torch_xla needs."""

import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from course_utils.hardware import detect, libpython

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="torch_xla is for Linux")


@pytest.fixture
def library(tmp_path, monkeypatch) -> Path:
    """A library with a name that this process has not loaded, in a folder of its own."""
    import markupsafe._speedups as small

    monkeypatch.setattr(libpython, "NAME", "libpython9.99.so.1.0")
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "nowhere"))
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: None)
    (tmp_path / "lib").mkdir()
    return Path(shutil.copy(small.__file__, tmp_path / "lib" / libpython.NAME))


def test_uvs_and_condas_library_lies_beside_their_python(library, monkeypatch):
    assert libpython.load_libpython() is None
    monkeypatch.setattr(sys, "base_prefix", str(library.parent.parent))
    assert libpython.load_libpython() == str(library)


def test_the_folder_that_python_was_built_for_is_looked_into(library, monkeypatch):
    where = {"LIBDIR": str(library.parent)}
    monkeypatch.setattr(sysconfig, "get_config_var", where.get)
    assert libpython.load_libpython() == str(library)


def test_looking_for_devices_loads_nothing(library, monkeypatch):
    monkeypatch.setattr(sys, "base_prefix", str(library.parent.parent))
    monkeypatch.setattr(libpython.ctypes, "CDLL", lambda *_, **__: pytest.fail("it was loaded"))
    monkeypatch.setattr(detect, "xla_matches_torch", lambda: True)
    assert libpython.find_libpython() == str(library)
    detect.can_rehearse()


def test_a_folder_that_the_loader_is_told_to_search_counts(library, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", f":/nowhere:{library.parent}")
    assert libpython.find_libpython() == libpython.load_libpython() == str(library)


def test_a_library_in_the_working_folder_is_not_loaded(library, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", ":")
    monkeypatch.chdir(library.parent)
    assert libpython.find_libpython() is None


def test_no_rehearsal_is_listed_where_torch_xla_would_not_load(monkeypatch):
    monkeypatch.delenv("PJRT_DEVICE", raising=False)
    monkeypatch.setattr(detect, "xla_matches_torch", lambda: True)
    monkeypatch.setattr(detect.machine, "tpu_chips", lambda: [])
    assert detect.can_rehearse() == (libpython.load_libpython() is not None)
    monkeypatch.setattr(detect, "find_libpython", lambda: None)
    assert not detect.can_rehearse()
