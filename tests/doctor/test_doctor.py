"""Every cause is produced on a real Python with a real torch; a docstring says what is a stand-in
and why.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict

import pytest
import torch
from stand_ins import (
    REPOSITORY,
    changed_torch,
    compile_stub,
    doctor,
    environment_without,
    finding,
    machine_with,
    needs_cuda_build,
    needs_gcc,
    needs_linux,
    needs_no_gpu,
    run_doctor,
    stub_driver,
    stub_package,
    stub_smi,
)

from course_utils.doctor import diagnose
from course_utils.hardware import KINDS

pytestmark = needs_linux
H200_ON_PCI = ("0x10de", "0x2335", "0x030200")
V5E_ON_PCI = ("0x1ae0", "0x0063", "0x088000")
H200 = "NVIDIA H200|GPU-11111111-2222|150754820096|9|0"
has_xla = pytest.mark.skipif(
    importlib.util.find_spec("torch_xla") is None, reason="needs torch_xla"
)


@pytest.fixture
def bare(tmp_path):
    """A machine whose /sys, /proc and /dev show nothing at all."""
    (tmp_path / "bare").mkdir()
    return tmp_path / "bare"


# NVIDIA: no hardware, no driver, the wrong driver


@needs_no_gpu
def test_no_nvidia_hardware_is_named(bare):
    """Real where this machine has no card; only its /sys is replaced by an empty one."""
    found = finding("cuda", root=bare)
    assert (found["cause"], found["usable"]) == ("no-hardware", False)
    assert "No NVIDIA graphics card" in found["why"] and "Colab" in found["fix"]


@needs_no_gpu
def test_a_card_on_the_pci_bus_without_a_driver_is_named(tmp_path):
    """Stand-in: a copy of the /sys of a machine with an H200. That there is no driver is real."""
    found = finding("cuda", root=machine_with(tmp_path, H200_ON_PCI))
    assert found["cause"] == "no-driver"
    assert (
        "0x2335" in found["why"]
        and "libcuda" in found["why"]
        and "Install the driver" in found["fix"]
    )


@needs_no_gpu
def test_an_nvidia_smi_that_reaches_no_driver_is_named(tmp_path, bare):
    """Stand-in: an nvidia-smi on the PATH that says what the real one says without a driver."""
    said = "NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver."
    found = finding("cuda", root=bare, **stub_smi(tmp_path, said, status=9))
    assert found["cause"] == "no-driver" and said in found["why"]


@needs_gcc
@needs_cuda_build
def test_a_driver_too_old_for_the_cuda_of_torch_is_named_with_both_versions(tmp_path, bare):
    """Stand-in: libcuda, NVML and the CUDA runtime below torch; the refusal is torch's own."""
    old = {
        "STUB_FAULT": "old-driver",
        "STUB_DRIVER_CUDA": "11040",
        **stub_driver(tmp_path, cards=H200),
    }
    found = finding("cuda", root=bare, **old)
    assert found["cause"] == "driver-too-old"
    assert (
        "11.4" in found["why"]
        and torch.version.cuda in found["why"]
        and "Update the driver" in found["fix"]
    )


@needs_gcc
@needs_cuda_build
def test_a_driver_that_does_not_start_cuda_is_named_with_its_error(tmp_path, bare):
    """Stand-in: the CUDA runtime answers "system not yet initialized", as a server without its
    fabric manager does.
    """
    found = finding("cuda", root=bare, STUB_FAULT="not-ready", **stub_driver(tmp_path, cards=H200))
    assert found["cause"] == "driver-error"
    assert "system not yet initialized" in found["why"] and "fabricmanager" in found["fix"]


# NVIDIA: the wrong torch, the wrong variable, the wrong card


def test_a_cpu_only_torch_on_a_machine_with_a_card_is_named(tmp_path, bare):
    """Stand-in: nvidia-smi, and a torch without its CUDA entry points, which is how the CPU build
    differs.
    """
    without_cuda = "torch.version.cuda = None; [delattr(torch._C, name) for name in dir(torch._C) if name.startswith('_cuda_')]"
    path = changed_torch(tmp_path / "cpu", without_cuda)
    found = finding("cuda", root=bare, path=path, **stub_smi(tmp_path, "NVIDIA H200"))
    assert found["cause"] == "cpu-only-build"
    assert (
        "+cpu" in found["why"] and "NVIDIA H200" in found["why"] and "--reinstall" in found["fix"]
    )


@needs_gcc
@needs_cuda_build
def test_a_card_hidden_by_cuda_visible_devices_is_named_with_the_value(tmp_path, bare, value="7"):
    """Stand-in: the driver libraries of a machine with one card, whose runtime counts none under
    this variable.
    """
    driver = stub_driver(tmp_path, cards=H200)
    found = finding("cuda", root=bare, CUDA_VISIBLE_DEVICES=value, STUB_COUNT="0", **driver)
    assert found["cause"] == "hidden"
    assert f"CUDA_VISIBLE_DEVICES is {value!r}" in found["why"] and "NVIDIA H200" in found["why"]
    assert "unset CUDA_VISIBLE_DEVICES" in found["fix"]


@needs_gcc
@needs_cuda_build
def test_a_card_too_old_for_this_torch_is_named_with_what_torch_was_built_for(tmp_path, bare):
    """Stand-in: the CUDA runtime plays Kaggle's P100 and refuses the kernel; the exception is
    torch's own.
    """
    p100 = {"STUB_NAME": "Tesla P100-PCIE-16GB", "STUB_MAJOR": "6", "STUB_FAULT": "no-kernel"}
    found = finding(
        "cuda", root=bare, KAGGLE_KERNEL_RUN_TYPE="Interactive", **p100, **stub_driver(tmp_path)
    )
    assert found["cause"] == "card-too-old"
    assert (
        "Tesla P100" in found["why"]
        and "capability 6.0" in found["why"]
        and "sm_90" in found["why"]
    )
    assert "T4" in found["fix"]


@needs_gcc
@needs_cuda_build
def test_out_of_memory_on_the_first_kernel_is_named(tmp_path, bare):
    """Stand-in: the CUDA runtime has no memory to give; the exception is torch's own."""
    found = finding("cuda", root=bare, STUB_FAULT="memory", **stub_driver(tmp_path))
    assert found["cause"] == "out-of-memory"
    assert "CUDA out of memory" in found["why"] and "Another process" in found["fix"]


@needs_gcc
@needs_cuda_build
def test_a_card_that_lets_one_process_in_is_named_without_advice_for_who_writes_kernels(
    tmp_path, bare
):
    """Stand-in: the CUDA runtime refuses as a card in exclusive mode does; torch's own exception
    has five lines.
    """
    found = finding("cuda", root=bare, STUB_FAULT="held", **stub_driver(tmp_path))
    assert found["cause"] == "held" and "busy or unavailable" in found["why"]
    assert "CUDA_LAUNCH_BLOCKING" not in found["why"] and found["why"].isprintable()


@pytest.mark.skipif(os.path.exists("/dev/kfd"), reason="needs a machine without AMD's driver")
def test_an_amd_card_without_its_driver_is_named_with_the_file_that_is_missing(tmp_path):
    """Stand-in: a /sys with a Radeon, and a torch that says it was built for ROCm. That there is no
    driver is real.
    """
    path = changed_torch(tmp_path / "rocm", "pass")
    (path / "torch/version.py").write_text("__version__ = '2.9.0+rocm6.4'\nhip = '6.4'\n")
    found = finding(
        "cuda", root=machine_with(tmp_path, ("0x1002", "0x744c", "0x030000")), path=path
    )
    assert (
        found["cause"] == "no-driver" and "/dev/kfd" in found["why"] and "rocminfo" in found["fix"]
    )


def test_a_convolution_that_fails_where_all_else_works_is_named(tmp_path):
    """Stand-in: a convolution that fails as under a cuDNN of two versions (pytorch/pytorch
    188892).
    """
    error = "raise RuntimeError('cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH')"
    path = changed_torch(tmp_path, f"torch.nn.functional.conv2d = lambda *_: exec({error!r})")
    found = finding("cpu", path=path)
    assert (found["cause"], found["usable"]) == (
        "libraries-mixed",
        False,
    ) and "a convolution" in found["why"]


@needs_gcc
@needs_cuda_build
def test_a_card_that_computes_wrongly_is_not_called_usable(tmp_path, bare):
    """Stand-in: a CUDA runtime whose copies work and whose kernels compute nothing. "Available" is
    not "works".
    """
    found = finding("cuda", root=bare, **stub_driver(tmp_path))
    assert (found["cause"], found["usable"]) == ("wrong-answer", False)
    assert "cuda:0" in found["why"] and "differs from the CPU" in found["why"]


@needs_gcc
@needs_cuda_build
def test_a_kernel_that_kills_its_process_is_a_finding(tmp_path, bare):
    """Stand-in: a CUDA runtime that aborts at the first kernel."""
    found = finding("cuda", root=bare, STUB_FAULT="abort", **stub_driver(tmp_path))
    assert found["cause"] == "died" and "SIGABRT" in found["why"] and "on cuda:0" in found["why"]


@needs_gcc
@needs_cuda_build
def test_a_kernel_that_never_returns_is_stopped_and_named(tmp_path, bare):
    """Stand-in: a CUDA runtime that never returns from the first kernel."""
    found = finding("cuda", "--limit", "5", root=bare, STUB_FAULT="hang", **stub_driver(tmp_path))
    assert found["cause"] == "hangs" and "5 s" in found["why"] and "on cuda:0" in found["why"]


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
    asked, library = (
        ("--require", "cpu", "--require", "cuda", "--limit", "5"),
        {"LD_LIBRARY_PATH": str(tmp_path)},
    )
    status, report = run_doctor(*asked, root=bare, **library)
    cpu, cuda = report["findings"]
    assert (status, cpu["cause"], cuda["cause"]) == (
        0,
        "works",
        cause,
    ) and "management library" in cuda["why"]


@pytest.mark.skipif(
    shutil.which("nvidia-smi") is None, reason="needs a machine with an NVIDIA card that works"
)
def test_a_card_that_works_is_called_usable():
    found = finding("cuda")
    assert (found["cause"], found["usable"], found["fix"]) == ("works", True, "")
    assert "cuda:0" in found["why"]


# Hosted notebooks


@needs_no_gpu
def test_a_hosted_notebook_with_its_accelerator_switched_off_is_named(bare):
    """Stand-in: the variable that the host sets. That there is no card is real."""
    found = finding("cuda", root=bare, COLAB_RELEASE_TAG="release")
    assert (
        found["cause"] == "accelerator-off"
        and "Google Colab" in found["why"]
        and "Runtime > Change" in found["fix"]
    )


# torch itself


def test_a_library_that_does_not_load_is_a_broken_install(tmp_path):
    """Real: an empty libstdc++ before the system's, the most common way to break an install from
    outside.
    """
    (tmp_path / "libstdc++.so.6").touch()
    found = finding("cpu", LD_LIBRARY_PATH=str(tmp_path))
    assert found["cause"] == "broken-install"
    assert "libstdc++" in found["why"] and "LD_LIBRARY_PATH" in found["fix"]


def test_a_torch_that_kills_python_on_import_is_a_finding(tmp_path):
    """Stand-in: a torch whose import ends in a segmentation fault."""
    path = stub_package(
        tmp_path, "torch", "2.9.0", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    )
    found = finding("cpu", path=path)
    assert (
        found["cause"] == "died" and "SIGSEGV" in found["why"] and "importing torch" in found["why"]
    )


def test_a_torch_too_old_for_the_course_is_named_for_every_family(tmp_path):
    """Stand-in: an installed torch 2.5.1."""
    status, report = run_doctor(path=stub_package(tmp_path, "torch", "2.5.1", ""))
    assert status == 1 and {found["cause"] for found in report["findings"]} == {"torch-too-old"}
    assert len(report["findings"]) == len(KINDS) and "2.5.1" in report["findings"][0]["why"]


@pytest.mark.parametrize("name", ["torch.py", "torch/__init__.py"])
def test_a_students_own_file_that_python_takes_for_torch_is_named_for_every_family(tmp_path, name):
    """Real: a first script, saved under the name of what it imports."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("import torch\nprint(torch.arange(3))\n")
    status, report = run_doctor(path=tmp_path)
    assert status == 1 and {found["cause"] for found in report["findings"]} == {"torch-shadowed"}
    found = report["findings"][0]
    assert str(file) in found["why"] and "Rename" in found["fix"] and "driver" not in found["fix"]


def test_the_doctor_starts_where_there_is_no_torch_at_all(tmp_path):
    """Real: an environment without torch."""
    found = finding("cpu", python=environment_without(tmp_path / "empty", "torch"))
    assert found["cause"] == "torch-absent" and "make lab" in found["fix"]


# MPS and XPU


def test_mps_built_but_not_available_is_named(tmp_path):
    """Stand-in: a doctor on a Mac, and a torch built for MPS; that there is none, and the error,
    are its own.
    """
    path = changed_torch(tmp_path, "torch._C._has_mps = True")
    on_mac = (
        "import platform, sys\nif '-m' in sys.orig_argv:\n    platform.system = lambda: 'Darwin'\n"
    )
    (path / "sitecustomize.py").write_text(on_mac)
    found = finding("mps", path=path)
    assert found["cause"] == "mps-unavailable" and "macOS" in found["fix"]


@pytest.fixture(scope="module")
def mps_and_cpu(tmp_path_factory):
    """The doctor's status and report of two families, of which one works, on a machine whose /sys
    shows nothing.
    """
    return run_doctor("--require", "mps", "--require", "cpu", root=tmp_path_factory.mktemp("bare"))


def test_mps_on_another_platform_needs_no_fix(mps_and_cpu):
    assert mps_and_cpu[1]["findings"][0]["cause"] == "other-platform"


def test_an_intel_card_that_this_torch_was_not_built_for_is_named(tmp_path):
    """Stand-in: a copy of the /sys of a machine with an Intel Arc A770."""
    found = finding("xpu", root=machine_with(tmp_path, ("0x8086", "0x56a0", "0x030000")))
    assert found["cause"] == "not-built" and "0x56a0" in found["why"]


# XLA


@has_xla
def test_an_environment_without_torch_xla_is_named(tmp_path):
    """Real: an environment that has everything but torch_xla."""
    found = finding("xla", python=environment_without(tmp_path / "empty", "torch_xla", "_XLAC"))
    assert found["cause"] == "torch-xla-absent" and "torch_xla==2.9.0" in found["fix"]


@needs_gcc
def test_a_torch_xla_of_another_minor_version_is_named_with_its_undefined_symbol(tmp_path):
    """Stand-in: a torch_xla 2.4.0 whose compiled part misses a symbol of torch; the error is the
    linker's own.
    """
    path = stub_package(tmp_path, "torch_xla", "2.4.0", "import torch; import _XLAC")
    (tmp_path / "xlac.c").write_text(
        "int of_torch_2_4(void); int PyInit__XLAC(void) { return of_torch_2_4(); }"
    )
    compile_stub(tmp_path / "xlac.c", tmp_path / "_XLAC.so", "-Wl,-z,now")
    found = finding("xla", path=path)
    assert found["cause"] == "torch-xla-mismatch"
    assert "2.4.0" in found["why"] and torch.__version__ in found["why"]
    assert (
        "undefined symbol: of_torch_2_4" in found["why"]
        and "torch==2.9.0 torch_xla==2.9.0" in found["fix"]
    )


@has_xla
def test_a_wrong_pjrt_device_is_named_with_its_error(
    bare, value="GPU", error="No PjRtPlugin registered for: GPU"
):
    """Real: torch_xla with that variable."""
    found = finding("xla", root=bare, PJRT_DEVICE=value)
    assert found["cause"] == "pjrt-device-wrong"
    assert (
        f"PJRT_DEVICE is {value!r}" in found["why"]
        and error in found["why"]
        and "Unset PJRT_DEVICE" in found["fix"]
    )


@has_xla
def test_variables_left_over_from_another_tpu_set_up_are_all_named(bare):
    """Real: torch_xla with those variables, which the rehearsal survives."""
    left = {
        "TPU_PROCESS_ADDRESSES": "localhost:8476",
        "XRT_TPU_CONFIG": "tpu_worker;0;10.0.0.2:8470",
        "COLAB_TPU_ADDR": "10.0.0.2:8470",
    }
    found = finding("xla", root=bare, **left)
    assert (found["cause"], found["usable"]) == ("tpu-variables-left-over", True)
    for name in left:
        assert name in found["why"] and repr(name) in found["fix"]


@has_xla
def test_a_tpu_without_libtpu_is_named(tmp_path):
    """Stand-in: a copy of the /sys of a TPU v5e machine. That libtpu is missing is real."""
    root = machine_with(tmp_path, V5E_ON_PCI)
    # without the variable, torch_xla takes the CPU and says nothing
    for variables in ({"PJRT_DEVICE": "TPU"}, {}):
        found = finding("xla", root=root, **variables)
        assert found["cause"] == "libtpu-absent" and "torch_xla[tpu]" in found["fix"]


def test_torchtpu_off_googles_cloud_is_stopped_and_named(tmp_path, bare):
    """Stand-in: a torch_tpu that loads itself with torch, as the real one does, and never
    answers.
    """
    entry = "[torch.backends]\ntorch_tpu = torch_tpu:start\n"
    code = "import time\ndef start():\n    time.sleep(600)\n"
    path = stub_package(tmp_path, "torch_tpu", "0.2.0", code, entry_points=entry)
    status, report = run_doctor(
        "--require", "tpu", "--require", "cpu", "--limit", "5", root=bare, path=path
    )
    tpu, cpu = report["findings"]
    assert (
        tpu["cause"] == "torchtpu-off-cloud"
        and "silent for 5 s" in tpu["why"]
        and "uninstall" in tpu["fix"]
    )
    assert cpu["usable"] and status == 0, "the other families are tried without it"


def test_torchtpu_that_is_not_installed_needs_no_fix():
    found = finding("tpu")
    assert found["cause"] == "torchtpu-absent" and "Nothing to fix" in found["fix"]


# The report


@has_xla
def test_a_cpu_machine_works_and_rehearses(bare):
    status, report = run_doctor(root=bare)
    causes = {found["family"]: found["cause"] for found in report["findings"]}
    assert status == 0 and causes["cpu"] == "works" and causes["xla"] == "rehearsal"
    assert [device["kind"] for device in report["devices"]][-2:] == ["cpu", "xla"]


def test_a_family_that_was_not_asked_for_is_not_examined(mps_and_cpu):
    assert [found["family"] for found in mps_and_cpu[1]["findings"]] == ["mps", "cpu"]


def test_one_working_family_of_those_required_is_enough(mps_and_cpu):
    status, report = mps_and_cpu
    assert status == 0 and [found["usable"] for found in report["findings"]] == [False, True]


def test_the_terminal_report_names_cause_why_and_fix_and_json_is_json(bare):
    command = [sys.executable, *doctor(bare), "--require", "tpu"]
    text = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert (
        "tpu: torchtpu-absent\n  Why: TorchTPU" in text.stdout
        and "\n  Fix: " in text.stdout
        and text.stderr == ""
    )


@needs_no_gpu
def test_a_hostile_card_name_stays_text_in_a_terminal_that_knows_ascii_only(tmp_path, bare):
    """Stand-in: an nvidia-smi that prints markup, an escape sequence and Chinese."""
    hostile = stub_smi(tmp_path, "<script>\x1b[31m图形</script>")
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONIOENCODING": "ascii",
        **hostile,
    }
    command = [sys.executable, *doctor(bare), "--require", "cuda"]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=120)
    assert b"no-driver" in done.stdout and b"<script>" in done.stdout and done.returncode == 1
    assert b"\x1b" not in done.stdout and done.stdout.isascii() and done.stderr == b""


def test_diagnose_in_python_shows_a_card_and_becomes_json():
    report = diagnose(("mps", "tpu"))
    assert report.finding("tpu").cause == "torchtpu-absent"
    assert report._repr_html_().count("<tr") == 3
    assert json.loads(json.dumps(asdict(report)))["findings"][0]["family"] == "mps"


def test_an_unknown_family_is_refused_with_the_known_ones():
    with pytest.raises(
        ValueError, match="family 'gpu' was asked for, but the families are cpu, cuda, mps"
    ):
        diagnose(("gpu",))
