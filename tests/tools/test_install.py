import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import install

pytestmark = pytest.mark.process


ROOT = Path(__file__).resolve().parents[2]


def stub(folder: Path, name: str, body: str) -> Path:
    program = folder / name
    program.write_text(f"#!{sys.executable}\n{body}")
    program.chmod(0o755)
    return program


def test_a_driver_is_found_by_its_tool_on_the_path(tmp_path, monkeypatch):
    if Path("/proc/driver/nvidia/version").exists():
        pytest.skip("this machine has an NVIDIA driver, so its absence cannot be shown")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not install.has_nvidia_driver()
    stub(tmp_path, "nvidia-smi", "")
    assert install.has_nvidia_driver()


def test_pinned_returns_the_line_of_exactly_that_package():
    assert install.pinned("torch").startswith("torch==2.9.0")
    with pytest.raises(LookupError, match="no line for 'torchless'"):
        install.pinned("torchless")


def run_install(tmp_path: Path, **answers: int) -> tuple[int, str, list[str]]:
    """Run the whole script as a program with a stand-in for the environment's Python, which logs
    what it was asked.

    `answers` are the exit statuses of the stand-in for "get_uv", "cpu" (the CPU build), "networks",
    "uv" and "pip" (everything else).
    """
    home, log = tmp_path / "env", tmp_path / "log"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    stub(
        home / "bin",
        "python",
        f"""import sys
asked = " ".join(sys.argv[1:])
open({str(log)!r}, "a").write(asked + "\\n")
if asked.startswith("-c "):
    sys.exit(1)  # there is no torch yet
marks = {{"pip --version": "whole", "--torch-backend": "cpu", "--target": "networks", " uv pip": "uv"}}
marks |= {{"[all]": "pip", "": "get_uv"}}
kind = next(kind for mark, kind in marks.items() if mark in asked)
sys.exit({answers!r}.get(kind, 0))
""",
    )
    environment = {**os.environ, "PATH": str(tmp_path)}  # no nvidia-smi on it
    command = [sys.executable, ROOT / "tools" / "install.py", home]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.returncode, done.stdout, log.read_text().splitlines()


needs_linux = pytest.mark.skipif(
    sys.platform != "linux" or install.has_nvidia_driver(),
    reason="the CPU build is chosen on Linux without a driver",
)


@needs_linux
def test_without_a_driver_the_cpu_build_comes_first_and_its_size_is_said(tmp_path):
    status, said, asked = run_install(tmp_path)
    assert status == 0
    assert "CPU build: about" in said and "GB to download" in said
    cpu = [line for line in asked if "--torch-backend cpu" in line]
    # They have to come from the same place: torchvision's default build does not load with torch's
    # CPU build.
    assert cpu[0].endswith(install.pinned("torch"))
    assert cpu[1].endswith(
        f"--no-deps --target {tmp_path / 'env' / 'networks'} {install.pinned('torchvision')}"
    )
    assert asked[-2].startswith("-m uv pip install")
    assert asked[-2].endswith(f"-c {ROOT}/constraints.txt -e {ROOT}[all]")
    assert (tmp_path / "env" / "ready").exists()


@needs_linux
@pytest.mark.parametrize(
    "there, missing",
    [((), "timm torchvision"), (("torchvision",), "timm"), (("timm", "torchvision"), "")],
)
def test_networks_to_compare_with_lie_beside_the_environment_and_are_installed_once(
    tmp_path, there, missing
):
    networks = tmp_path / "env" / "networks"
    for name in there:
        (networks / name).mkdir(parents=True)
    status, _, asked = run_install(tmp_path)
    wanted = " ".join(install.pinned(name) for name in missing.split())
    assert status == 0
    if missing:
        assert asked[-1].endswith(f"--no-deps --target {networks} {wanted}")
    else:
        assert asked[-1].endswith("[all]")
    lightning_sees = (
        (ROOT / "pyproject.toml").read_text().partition("\nall = ")[2].partition("\n")[0]
    )
    assert "lessons" in lightning_sees and "networks" not in lightning_sees


@needs_linux
def test_networks_that_cannot_be_installed_are_a_failure(tmp_path):
    status, _, _ = run_install(tmp_path, networks=3)
    assert status == 3 and not (tmp_path / "env" / "ready").exists()


@needs_linux
def test_an_index_out_of_reach_is_a_plain_word_and_no_failure(tmp_path):
    status, said, asked = run_install(tmp_path, cpu=2)
    assert status == 0
    assert "out of reach: the default build runs on a CPU as well" in said
    assert "error" not in said.lower() and "fail" not in said.lower()
    assert "[all]" in asked[-2]


@needs_linux
def test_a_failed_installation_is_not_taken_for_a_finished_one(tmp_path):
    status, _, _ = run_install(tmp_path, uv=2, pip=7)
    assert status == 7
    assert not (tmp_path / "env" / "ready").exists()


@needs_linux
@pytest.mark.parametrize("broken", ["get_uv", "uv"])
def test_where_uv_cannot_be_used_pip_installs_the_same_and_a_sentence_says_so(tmp_path, broken):
    status, said, asked = run_install(tmp_path, **{broken: 1})
    assert status == 0
    assert "Installing with pip, because uv could not be used" in said
    assert asked[-2].startswith("-m pip install") and asked[-2].endswith(
        f"-c {ROOT}/constraints.txt -e {ROOT}[all]"
    )
    assert (tmp_path / "env" / "ready").exists()


def test_constraints_are_names_and_exact_versions_and_at_most_the_pythons_that_have_them():
    import re

    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(
            r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_]+(; python_version >= '3\.\d+')?", line
        ), line


def test_a_python_outside_the_range_is_named_with_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    assert install.main(str(tmp_path / "env")) == 2
    assert "runs on Python 3.10 to 3.13, but" in capsys.readouterr().out
    assert not (tmp_path / "env").exists()


def test_a_mac_for_which_pytorch_has_no_release_is_told_so_before_anything_is_downloaded(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    # an Intel Mac, or a Python for one under Rosetta
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert install.main(str(tmp_path / "env")) == 2
    said = capsys.readouterr().out
    assert "Intel" in said and "Colab" in said and "make lab PYTHON=" in said
    assert not (tmp_path / "env").exists()


def test_an_option_that_is_none_of_its_own_makes_no_environment(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "install.py", "--quick"],
        cwd=tmp_path,
        capture_output=True,
    )
    assert (
        done.returncode == 2
        and b"usage: install.py" in done.stderr
        and not list(tmp_path.iterdir())
    )


@needs_linux
def test_an_environment_whose_python_has_gone_is_made_again(tmp_path):
    def asked() -> bool:
        done = subprocess.run(
            ["make", "-n", "-C", ROOT, f"VENV={home}", f"{home}/ready"],
            capture_output=True,
            text=True,
        )
        return "tools/install.py" in done.stdout

    home = tmp_path / "env"
    (home / "bin").mkdir(parents=True)
    python = home / "bin" / "python"
    python.symlink_to(sys.executable)
    (home / "ready").touch()
    assert not asked() and install.has_pip(Path(sys.executable))
    python.unlink()
    python.symlink_to(tmp_path / "gone")
    assert asked() and not install.has_pip(python)
