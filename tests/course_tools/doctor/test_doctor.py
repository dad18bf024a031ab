"""The doctor as a command, on a real Python with a real torch and few stand-ins."""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import asdict

import pytest
from stand_ins import (
    FOREIGN,
    REPOSITORY,
    STUBS,
    compile_stub,
    needs_gcc,
    needs_linux,
    needs_no_gpu,
    stub_package,
    stub_smi,
)

from course_tools.doctor.examine import diagnose

pytestmark = needs_linux


has_xla = pytest.mark.skipif(
    importlib.util.find_spec("torch_xla") is None, reason="needs torch_xla"
)


IN_ANOTHER_ROOT = """
import pathlib, runpy
from course_utils.hardware import machine
machine.ROOT = pathlib.Path({!r})
runpy.run_module("course_tools.doctor", run_name="__main__")
"""


def command(*options, root=None, path="", cwd=STUBS, **variables) -> subprocess.CompletedProcess:
    """Run the doctor, for whom /sys, /proc and /dev are in the folder `root`, and a package on
    `path` is the first.
    """
    start = ["-c", IN_ANOTHER_ROOT.format(str(root))] if root else ["-m", "course_tools.doctor"]
    kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, [str(path), str(REPOSITORY)]))
    words = [sys.executable, *start, *options]
    how = {"capture_output": True, "text": True, "timeout": 400}
    return subprocess.run(words, cwd=cwd, env=kept | variables, **how)


def run_doctor(*options, **how) -> tuple[int, dict]:
    """Run the doctor, and return its exit status and its report."""
    done = command("--json", "--limit", "150", *options, **how)
    assert done.stdout.startswith("{"), done.stderr
    return done.returncode, json.loads(done.stdout)


def finding(kind: str, **how) -> dict:
    """Run the doctor for one kind of device, check its exit status, and return its finding."""
    status, report = run_doctor("--require", kind, **how)
    (only,) = report["findings"]
    assert status == (0 if only["usable"] else 1)
    return only


@pytest.fixture
def bare(tmp_path):
    """A machine whose /sys, /proc and /dev show nothing at all."""
    (tmp_path / "bare").mkdir()
    return tmp_path / "bare"


# NVIDIA: the wrong torch, the wrong variable, the wrong card


@pytest.mark.process
@needs_gcc
@needs_no_gpu
@pytest.mark.parametrize(("does", "cause"), [("for (;;) pause()", "hangs"), ("abort()", "died")])
def test_a_driver_that_hangs_or_dies_when_it_is_asked_does_not_spoil_the_cpu(
    tmp_path, bare, does, cause
):
    """Stand-in: an NVML that never answers, as under a stuck driver (NVIDIA/go-nvml 152), or that
    aborts.
    """
    (tmp_path / "nvml.c").write_text(
        f"#include <stdlib.h>\n#include <unistd.h>\nint nvmlInit_v2(void) {{ {does}; }}"
    )
    compile_stub(tmp_path / "nvml.c", tmp_path / "libnvidia-ml.so.1")
    asked = ("--require", "cpu", "--require", "cuda", "--limit", "20")
    status, report = run_doctor(*asked, root=bare, LD_LIBRARY_PATH=str(tmp_path))
    cpu, cuda = report["findings"]
    assert (status, cpu["cause"], cuda["cause"]) == (1, "works", cause)
    assert "management library" in cuda["why"]


# torch itself


@pytest.mark.process
def test_a_library_that_does_not_load_is_a_broken_install(tmp_path):
    """Real: an empty libstdc++ before the system's, the most common way to break an install from
    outside.
    """
    (tmp_path / "libstdc++.so.6").touch()
    found = finding("cpu", LD_LIBRARY_PATH=str(tmp_path))
    assert found["cause"] == "broken-install"
    assert "libstdc++" in found["why"] and "LD_LIBRARY_PATH" in found["fix"]


@pytest.mark.process
@pytest.mark.parametrize("name", ["torch.py", "torch/__init__.py"])
def test_a_students_own_file_that_python_takes_for_torch_is_named_for_every_kind(tmp_path, name):
    """Real: a first script, saved under the name of what it imports."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("import torch\nprint(torch.arange(3))\n")
    status, report = run_doctor(path=tmp_path)
    assert status == 1 and {found["cause"] for found in report["findings"]} == {"torch-shadowed"}
    found = report["findings"][0]
    assert str(file) in found["why"] and "Rename" in found["fix"] and "driver" not in found["fix"]


@pytest.mark.process
def test_a_students_file_that_stands_in_for_a_standard_module_is_named(tmp_path, name="random"):
    """Real, as in pytorch/pytorch 6412: a first script, saved under the name of a module that
    torch needs, and the doctor too.
    """
    (tmp_path / f"{name}.py").write_text("from torch.autograd import Variable\n")
    done = command("--require", "cpu", "--json", cwd=tmp_path)
    (found,) = json.loads(done.stdout)["findings"]
    assert found["cause"] == "module-shadowed" and f"{tmp_path}/{name}.py" in found["why"]


# The report


@pytest.mark.process
@has_xla
def test_a_cpu_machine_works_and_rehearses(bare):
    status, report = run_doctor(root=bare)
    causes = {found["kind"]: found["cause"] for found in report["findings"]}
    assert status == 0 and causes["cpu"] == "works" and causes["xla"] == "rehearsal"
    assert [device["kind"] for device in report["devices"]][-2:] == ["cpu", "xla"]


@pytest.mark.process
def test_the_terminal_report_names_cause_why_and_fix_and_is_not_too_wide(bare):
    done = command("--require", "mps", root=bare)
    assert done.stdout.startswith("No GPU works here.")
    assert "mps: other-platform\n  Why: MPS" in done.stdout and "\n  Fix: " in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.process
@needs_no_gpu
def test_a_hostile_card_name_stays_text_in_a_terminal_that_knows_ascii_only(tmp_path, bare):
    """Stand-in: an nvidia-smi that prints markup, an escape sequence and Chinese."""
    hostile = stub_smi(tmp_path, "<script>\x1b[31m图形</script>")
    done = command("--require", "cuda", root=bare, PYTHONIOENCODING="ascii", **hostile)
    assert done.returncode == 1 and "compute-part-missing" in done.stdout
    assert "<script>" in done.stdout and "\x1b" not in done.stdout and done.stdout.isascii()


SECRETS = {
    "NVIDIA_API_KEY": "SECRET123",
    "LD_SDK_KEY": "SECRET123",
    "TPU_WORKER_HOSTNAMES": "10.1.2.3",
    "COURSE_TOKEN": "SECRET123",
    "XLA_FLAGS": "--dump=/scratch/SECRET123/x",
    "HOME": REPOSITORY.as_posix(),
    "LD_LIBRARY_PATH": f"{REPOSITORY}/lib",
}


@pytest.mark.process
def test_no_form_of_the_report_shows_secrets_and_the_one_for_an_issue_asks_to_be_read():
    facts = json.loads(command("--require", "mps", "--json", **SECRETS).stdout)["facts"]
    issue = command("--require", "mps", "--report", **SECRETS)
    assert issue.stdout.startswith("<details><summary>Doctor's report (mps: other-platform)")
    assert "before you paste" in issue.stderr
    assert facts["LD_LIBRARY_PATH"] == "~/lib" and "LD_LIBRARY_PATH: ~/lib" in issue.stdout
    for shown in (repr(facts), issue.stdout):
        hidden = ("SECRET123", "10.1.2.3", "_KEY", str(REPOSITORY))
        assert "XLA_FLAGS" in shown and not [word for word in hidden if word in shown]


@pytest.mark.process
@needs_linux
@pytest.mark.parametrize(
    ("limit", "cause"),
    # with 60 MB not even a thread would start
    [("-v 2000000", "address-space"), ("-v 60000", "address-space"), ("-n 9", "open-files")],
)
def test_a_limit_of_the_shell_is_not_called_a_broken_installation(limit, cause):
    """Real: the shell's own limits on memory and on open files."""
    asked = "--json --require cpu --require cuda"
    script = f"ulimit {limit}; exec {sys.executable} -m course_tools.doctor {asked}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=180)
    causes = {found["cause"] for found in json.loads(done.stdout)["findings"]}
    assert cause in causes and not causes & {"broken-install", "no-driver"}


@pytest.mark.process
def test_a_report_that_cannot_be_written_is_an_error_of_one_sentence():
    script = f"{sys.executable} -m course_tools.doctor --require mps > /dev/full"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "No space left" in done.stderr.splitlines()[-1]


@pytest.mark.process
@needs_linux
def test_a_torch_whose_import_ends_the_process_does_not_work(tmp_path):
    path = stub_package(tmp_path, "torch", "2.9.0", "import os; os._exit(0)")
    found = finding("cpu", path=path)
    assert (found["cause"], found["usable"]) == ("died", False)
    assert "importing torch" in found["why"]


@pytest.mark.process
def test_diagnose_in_python_shows_a_card_and_becomes_json():
    report = diagnose(("mps", "xpu"))
    assert report.finding("mps").cause == "other-platform"
    assert report._repr_html_().count("<tr") == 3
    assert json.loads(json.dumps(asdict(report)))["findings"][0]["kind"] == "mps"


def test_an_unknown_kind_or_none_is_refused_with_the_known_ones():
    for asked in ("gpu", ("gpu",)):
        with pytest.raises(ValueError, match="'gpu' was requested, but the kinds"):
            diagnose(asked)
    with pytest.raises(ValueError, match="no kind was requested; the kinds of device are cpu, "):
        diagnose(())
