"""The script that builds the environment, with stand-ins for uv and for its Python."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import install

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        sys.platform != "linux" or bool(install.shutil.which("nvidia-smi")),
        reason="the CPU build is chosen on Linux without a driver",
    ),
]

STAND_IN = """#!{python}
import pathlib, sys
asked = " ".join(sys.argv[1:])
with open({log!r}, "a") as log:
    log.write(asked + "\\n")
if asked.startswith("venv"):
    target = pathlib.Path({home!r}) / "bin" / "python"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to({uv!r})
sys.exit(any(word in asked for word in {fails!r}))
"""


def build(tmp_path: Path, *words: str, fails: tuple = ()) -> tuple[int, str, list[str]]:
    """Run the script with a uv that fails where it is asked for one of some words."""
    home, log, uv = tmp_path / "env", tmp_path / "log", tmp_path / "uv"
    uv.write_text(
        STAND_IN.format(
            python=sys.executable, log=str(log), home=str(home), uv=str(uv), fails=fails
        )
    )
    uv.chmod(0o755)
    command = [sys.executable, install.ROOT / "tools" / "install.py", home, *words]
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, log.read_text().splitlines()


def test_learners_get_the_learners_packages_with_the_cpu_build_first(tmp_path):
    status, _, asked = build(tmp_path)
    assert status == 0
    assert asked[0].startswith("venv") and asked[0].endswith(f"--python {sys.executable}")
    assert asked[-2].endswith("--torch-backend=cpu torch")
    assert asked[-1].endswith(f"constraints.txt -e {install.ROOT}[learn]")
    assert (tmp_path / "env" / "ready-learn").exists()
    settings = tmp_path / "env" / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    assert '"fetchNews": "false"' in settings.read_text()


def test_maintainers_get_the_networks_beside_the_environment(tmp_path):
    status, _, asked = build(tmp_path, "test")
    assert status == 0 and asked[-2].endswith("[test]")
    assert asked[-1].endswith(
        f"--no-deps --target {tmp_path / 'env' / 'networks'} {' '.join(install.NETWORKS)}"
    )


def test_where_pytorchs_index_is_out_of_reach_the_default_build_is_installed(tmp_path):
    status, said, asked = build(tmp_path, fails=("--torch-backend",))
    assert status == 0 and "out of reach" in said
    assert asked[-1].endswith("[learn]")


def test_a_failed_installation_is_not_taken_for_a_finished_one(tmp_path):
    status, _, _ = build(tmp_path, fails=("[learn]",))
    assert status == 1 and not (tmp_path / "env" / "ready-learn").exists()


@pytest.mark.parametrize(("version", "wanted"), [((3, 14), install.FITS), ((3, 12), "this one")])
def test_uv_brings_a_python_where_this_one_does_not_fit(tmp_path, monkeypatch, version, wanted):
    asked = []
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr(install, "works", lambda *words, **_: asked.append(words[-1]) or True)
    install.make_environment(tmp_path, ["uv"])
    assert asked == [sys.executable if wanted == "this one" else wanted]


@pytest.mark.parametrize("version", [(3, 10), (3, 14)])
def test_without_a_python_that_fits_an_old_one_is_refused_and_a_new_one_taken(
    tmp_path, monkeypatch, capsys, version
):
    made = []
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr(install, "works", lambda *words, **_: False)
    monkeypatch.setattr(install.venv, "create", lambda home, **_: made.append(home))
    if version < (3, 11):
        with pytest.raises(SystemExit, match="needs Python 3"):
            install.make_environment(tmp_path, ["uv"])
    else:
        install.make_environment(tmp_path, ["uv"])
        assert made == [tmp_path] and "without torch_xla" in capsys.readouterr().out


def test_a_wrong_call_makes_no_environment(tmp_path):
    command = [sys.executable, install.ROOT / "tools" / "install.py", "--quick"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "usage:" in done.stderr and not list(tmp_path.iterdir())


def test_where_uv_leaves_half_an_environment_this_python_makes_it_anew(tmp_path, monkeypatch):
    home = tmp_path / "env"
    (home / "bin").mkdir(parents=True)
    base = Path(sys._base_executable)
    (home / "bin" / base.name).symlink_to(base)
    monkeypatch.setattr(install, "works", lambda *words, **_: False)
    install.make_environment(home, ["uv"])
    subprocess.run([install.python_in(home), "-m", "pip", "--version"], check=True)
