"""The script that builds the environment, with stand-ins for uv and for its Python."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools import install

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or bool(install.shutil.which("nvidia-smi")),
        reason="the CPU build is chosen on Linux without a driver",
    )
]

STAND_IN = """#!{python}
import os, pathlib, sys
asked = " ".join(sys.argv[1:])
patience = [os.environ.get(name, "") for name in ("UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES")]
with open({log!r}, "a") as log:
    log.write(" ".join([*filter(None, patience), asked]) + "\\n")
for word in {fails!r}:
    if word in asked:
        sys.exit("error: refused\\n  Caused by: no answer to " + word)
if asked.startswith("venv"):
    target = pathlib.Path({home!r}) / "bin" / "python"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to({uv!r})
"""


def build(tmp_path: Path, *words: str, fails: tuple = ()) -> tuple[int, str, list[str]]:
    """Run the script with a uv that fails where it is asked for one of some words; return the
    status, what it says, and what uv was asked for.
    """
    home, log, uv = tmp_path / "env", tmp_path / "log", tmp_path / "uv"
    uv.write_text(
        STAND_IN.format(
            python=sys.executable, log=str(log), home=str(home), uv=str(uv), fails=fails
        )
    )
    uv.chmod(0o755)
    log.touch()
    command = [sys.executable, install.ROOT / "tools" / "install.py", home, *words]
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr, log.read_text().splitlines()


@pytest.mark.process
def test_learners_get_the_learners_packages_with_the_cpu_build_first(tmp_path):
    status, _, asked = build(tmp_path)
    assert status == 0
    python = sys.executable if sys.version_info < (3, 14) else install.FITS
    assert asked[0].startswith("venv") and asked[0].endswith(f"--python {python}")
    assert asked[-2].endswith("--torch-backend=cpu torch")
    assert asked[-2].startswith("10 1 pip install")  # seconds and retries of a network that blocks
    assert asked[-1].endswith(f"constraints.txt -e {install.ROOT}[learn]")
    assert (tmp_path / "env" / "ready-learn").exists()
    settings = tmp_path / "env" / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    assert '"fetchNews": "false"' in settings.read_text()


@pytest.mark.process
def test_maintainers_get_the_networks_beside_the_environment(tmp_path):
    status, _, asked = build(tmp_path, "test")
    assert status == 0 and asked[-2].endswith("[test]")
    assert asked[-1].endswith(
        f"--no-deps --target {tmp_path / 'env' / 'networks'} {' '.join(install.NETWORKS)}"
    )


@pytest.mark.process
def test_where_pytorchs_index_is_out_of_reach_the_default_build_is_installed(tmp_path):
    status, said, asked = build(tmp_path, fails=("--torch-backend",))
    assert status == 0 and "4.5 GB" in said and "(no answer to --torch-backend)" in said
    assert asked[-1].endswith("[learn]")


@pytest.mark.process
def test_without_any_index_one_line_says_so_and_nothing_is_tried_further(tmp_path):
    status, said, asked = build(tmp_path, fails=("pip install",))
    assert status == 1 and len(asked) == 2 and "CUDA" not in said
    assert said == (
        "No package index answers, so nothing can be installed: no answer to pip install\n"
    )


@pytest.mark.process
def test_a_failed_installation_is_not_taken_for_a_finished_one(tmp_path):
    status, _, _ = build(tmp_path, fails=("[learn]",))
    assert status == 1 and not (tmp_path / "env" / "ready-learn").exists()


@pytest.mark.parametrize(("version", "wanted"), [((3, 14), install.FITS), ((3, 12), "this one")])
def test_uv_brings_a_python_where_this_one_does_not_fit(tmp_path, monkeypatch, version, wanted):
    asked = []
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr(install, "run", lambda *words, **_: asked.append(words[-1]) or "")
    install.make_environment(tmp_path, ["uv"])
    install.make_environment(tmp_path, ["uv"], this_python=True)
    assert asked == [sys.executable if wanted == "this one" else wanted, sys.executable]


@pytest.mark.parametrize("version", [(3, 10), (3, 14), (3, 15)])
def test_without_a_python_that_fits_3_14_is_taken_and_an_older_or_newer_one_is_refused(
    tmp_path, monkeypatch, capsys, version
):
    made = []
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr(install, "run", lambda *words, **_: "no")
    monkeypatch.setattr(install.venv, "create", lambda home, **_: made.append(home))
    if version != (3, 14):
        with pytest.raises(SystemExit, match=r"from 3.11 to 3.14.*is 3.1[05]: install another"):
            install.make_environment(tmp_path, ["uv"])
    else:
        install.make_environment(tmp_path, ["uv"])
        assert made == [tmp_path] and "(no): XLA is left out" in capsys.readouterr().out
        install.make_environment(tmp_path, ["uv"], this_python=True)  # as asked: nothing to say
        assert made == [tmp_path] * 2 and not capsys.readouterr().out


@pytest.mark.process
def test_a_wrong_call_makes_no_environment(tmp_path):
    command = [sys.executable, install.ROOT / "tools" / "install.py", "--quick"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "usage:" in done.stderr and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_where_uv_leaves_half_an_environment_this_python_makes_it_anew(tmp_path, monkeypatch):
    home = tmp_path / "env"
    install.claim(home)
    (home / "bin").mkdir()
    base = Path(sys._base_executable)
    (home / "bin" / base.name).symlink_to(base)
    (home / "uv").mkdir()
    (home / "uv" / "its own").touch()
    monkeypatch.setattr(install, "run", lambda *words, **_: "no")
    install.make_environment(home, ["uv"])
    assert (home / "uv" / "its own").exists()
    subprocess.run([install.python_in(home), "-m", "pip", "--version"], check=True)


@pytest.mark.parametrize(("left", "written"), [(7.5e9, "2.5"), (11e9, "0.0")])
def test_a_long_installation_says_now_and_then_what_it_has_written(
    tmp_path, monkeypatch, capsys, left, written
):
    """Another program may free more than this one writes."""
    free, clock, answers = iter([10e9, left]), iter([60.0, 150.0]), ["wait", 0]

    class Process:
        def __init__(self, words):
            assert words == ["pip", str(tmp_path)]

        def wait(self, seconds):
            if answers.pop(0) == "wait":
                raise subprocess.TimeoutExpired("pip", seconds)
            return 0

    monkeypatch.setattr(install.shutil, "disk_usage", lambda _: SimpleNamespace(free=next(free)))
    monkeypatch.setattr(install.time, "monotonic", lambda: next(clock))
    assert 10 <= install.SIGN_OF_LIFE_S <= 60
    monkeypatch.setattr(install.subprocess, "Popen", Process)
    assert install.run_long(tmp_path, "pip", tmp_path)
    assert capsys.readouterr().out == f"... {written} GB of disk filled so far, 1.5 minutes\n"


@pytest.mark.parametrize("name", ["thesis.tex", "pyvenv.cfg"])
def test_a_folder_with_files_of_others_is_never_emptied(tmp_path, name):
    (tmp_path / name).write_text("years of work")
    install.claim(tmp_path)
    with pytest.raises(SystemExit, match=r"holds files of others.*LESSONS=\$HOME/my-lessons"):
        install.make_with_venv(tmp_path, "uv")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["years of work"]


def test_the_python_of_an_environment_is_a_link_as_python_m_venv_makes_it(tmp_path, monkeypatch):
    """Apple's refuses copies (poetry's installer 24); Homebrew's die (lektor 1159)."""
    given = {}
    monkeypatch.setattr(install.venv, "create", lambda home, **options: given.update(options))
    install.make_with_venv(tmp_path)
    assert given["symlinks"] == (os.name != "nt") and given["with_pip"]


def test_a_python_that_cannot_make_an_environment_is_one_line(tmp_path, monkeypatch):
    def dies(home, **_):
        raise subprocess.CalledProcessError(-6, ["python3", "-m", "ensurepip"])

    monkeypatch.setattr(install.venv, "create", dies)
    with pytest.raises(SystemExit, match=r"no environment \(python3 ended with status -6\)"):
        install.make_with_venv(tmp_path)


@pytest.mark.process
def test_a_folder_that_cannot_be_written_is_one_line_that_names_another(tmp_path):
    (tmp_path / "env").touch()
    status, said, _ = build(tmp_path, fails=("venv",))
    assert status == 1 and "LESSONS=$HOME/my-lessons" in said.splitlines()[-1]


SITE = "lib/python3.13/site-packages"


@pytest.mark.parametrize("found", ["", "/uv/lib/libpython3.13.so.1.0"])
def test_a_torch_xla_that_does_not_load_is_helped_or_left_out_and_one_line_says_so(
    tmp_path, monkeypatch, capsys, found
):
    helper, removed = tmp_path / SITE / "accelerator_course_libpython.pth", []
    helper.parent.mkdir(parents=True)

    def run(*command, **_):
        if "import torch_xla" not in command:
            removed.append(command)
        elif not helper.exists():
            return "ImportError: libpython3.13.so.1.0: cannot open shared object file"
        return ""

    monkeypatch.setattr(install, "run", run)
    answer = subprocess.CompletedProcess([], 0, f"{found}\n", "")
    monkeypatch.setattr(install.subprocess, "run", lambda *_, **__: answer)
    install.settle_xla(Path("python"), tmp_path / SITE / "torch_xla", ["uninstall"])
    said = capsys.readouterr().out
    if found:
        assert repr(found) in helper.read_text() and not removed and not said
    else:
        assert removed == [("uninstall", "torch_xla")] and not helper.exists()
        assert "XLA is left out" in said and "sudo apt install libpython3.13`" in said


@pytest.mark.parametrize("folder", ["lib/python3.12/site-packages", "Lib/site-packages"])
def test_packages_are_counted_where_each_system_keeps_them(tmp_path, folder):
    (tmp_path / folder / "torch-2.9.0.dist-info").mkdir(parents=True)
    with (tmp_path / "torch.so").open("wb") as file:
        file.truncate(4_350_000_000)  # it has no blocks on the disk
    assert install.size_of(tmp_path) == f"1 packages, 4.4 GB in {tmp_path}"


@pytest.mark.parametrize("kind", ["folder", "link", "file"])
def test_an_environment_is_made_anew_without_what_lay_in_it_or_behind_its_links(
    tmp_path, monkeypatch, kind
):
    home, theirs = tmp_path / "env", tmp_path / "theirs"
    install.claim(home)
    theirs.mkdir()
    (theirs / "kept").touch()
    part = home / "lib64"
    {"folder": part.mkdir, "link": lambda: part.symlink_to(theirs), "file": part.touch}[kind]()
    monkeypatch.setattr(install.venv, "create", lambda home, **_: None)
    install.make_with_venv(home)
    assert not os.path.lexists(part) and (theirs / "kept").exists()


@pytest.mark.parametrize(
    ("system", "driver", "wanted"),
    [
        (("Linux", "x86_64"), None, True),
        (("Linux", "x86_64"), "/usr/bin/nvidia-smi", False),
        (("Linux", "aarch64"), None, False),
        (("Darwin", "arm64"), None, False),
    ],
)
def test_the_cpu_build_is_for_linux_on_x86_without_a_driver(monkeypatch, system, driver, wanted):
    monkeypatch.setattr(install.platform, "system", lambda: system[0])
    monkeypatch.setattr(install.platform, "machine", lambda: system[1])
    monkeypatch.setattr(install.shutil, "which", lambda name: driver)
    assert install.wants_cpu_build() == wanted


def test_a_failed_command_is_one_line_of_at_most_200_letters(tmp_path):
    assert install.run(tmp_path / "none").endswith("none does not start: No such file or directory")
    why = install.run("sh", "-c", "echo no >&2; printf 'error: %0300d' 7 >&2; exit 3", quiet=True)
    assert why == "0" * 200
    assert install.run("sh", "-c", "exit 3", quiet=True) == "status 3"
