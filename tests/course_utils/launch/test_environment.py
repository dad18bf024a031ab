"""The environment of a launched training."""

import os
import pwd
import tempfile
from pathlib import Path

import pytest

from course_utils.launch.environment import clean_environment, short_temporary_folder
from course_utils.launch.request import LaunchError


def test_another_launchers_variables_are_removed_and_the_users_stay():
    # What torchrun of PyTorch 2.9 sets (its manual, "Environment Variables"), and SLURM.
    foreign = {f"{of}{what}" for of in ("", "LOCAL_", "ROLE_") for what in ("RANK", "WORLD_SIZE")}
    foreign |= {"GROUP_RANK", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_NTASKS"}
    foreign |= {f"TORCHELASTIC_{one}" for one in ("RUN_ID", "RESTART_COUNT", "MAX_RESTARTS")}
    foreign |= {f"SLURM_{one}" for one in ("PROCID", "LOCALID", "NODEID")}
    own = ("LOCAL_DATA", "MASTER_KEY", "GROUP_NAME", "RANKING", "SLURM_JOB_ID", "PATH")
    left = clean_environment(dict.fromkeys([*foreign, *own], "1"))
    assert not foreign & set(left)
    assert set(own) <= set(left)
    assert left["PYTHONUNBUFFERED"] == "1" and left["PYTHONIOENCODING"].startswith("utf-8:")


def test_a_user_without_a_name_gets_one_and_a_home(monkeypatch):
    def no_entry(number):
        raise KeyError(f"getpwuid(): uid not found: {number}")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    assert clean_environment({})["USER"] == f"user-{os.getuid()}"
    assert clean_environment({"USER": "ada"})["USER"] == "ada"
    assert "HOME" not in clean_environment({})  # but in the file of users
    monkeypatch.delenv("HOME", raising=False)
    assert clean_environment({})["HOME"] == tempfile.gettempdir()


@pytest.mark.parametrize("letters", [5, 53, 54, 100])
def test_a_socket_fits_below_the_temporary_folder_whatever_its_name(monkeypatch, letters):
    with tempfile.TemporaryDirectory(dir="/tmp", suffix="x" * letters) as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        with short_temporary_folder() as variables:
            name = variables.get("TMPDIR", folder)
            # as multiprocessing and torch call theirs; 103 bytes are macOS's limit
            for socket in ("pymp-12345678/listener-12345678", "torch-shm-dir-123456/manager.sock"):
                assert len(f"{name}/{socket}") <= 103
            Path(name, "written").touch()
        assert Path(folder, "written").exists()
        assert bool(variables) == (letters > 53)  # 69 are the last that fit
        assert not variables or not Path(name).exists()


def test_a_machine_without_a_temporary_folder_is_refused(monkeypatch):
    def none():
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(LaunchError, match="TMPDIR"), short_temporary_folder():
        pass
