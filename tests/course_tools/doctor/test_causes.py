"""Verdicts that need no process: a decision is a function of the evidence."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from course_tools import doctor
from course_tools.doctor.causes import find_cause
from course_tools.doctor.evidence import REMEDIES, Evidence
from course_tools.doctor.packages import Package
from course_tools.doctor.run_child import Outcome

TORCH = Package("2.9.0", "13.0")
RAN = ({"device": "xla:0"},)
NO_LIBRARY = {
    "error": "OSError: libcuda.so.1: cannot open shared object file: No such file or directory"
}
NO_CUDA = {"cuda": Outcome("ok", NO_LIBRARY)}


def on_mac(host_kind, error):
    """What GitHub's macOS runners answer: MPS is available, and the first bytes are refused."""
    kernel = {
        "device": "mps",
        "failed": "a copy",
        "error": f"RuntimeError: {error}",
    }
    probes = {
        "cpu": Outcome("ok", {}, ({"device": "cpu"},)),
        "mps": Outcome("ok", {"built": True, "available": True}, (kernel,)),
    }
    return find_cause("mps", Evidence(host_kind=host_kind, torch=Package("2.9.0"), probes=probes))


def test_a_real_mac_whose_memory_is_taken_is_out_of_memory():
    found = on_mac(
        "computer",
        "MPS backend out of memory (MPS allocated: 0 bytes, other allocations: 17.35 GB).",
    )
    assert found.cause == "out-of-memory" and "Activity Monitor" in found.fix


@pytest.mark.parametrize(
    ("noise", "cause", "advice"),
    [  # as reported in pytorch/pytorch 83540 and 176993 (a Raspberry Pi 4)
        (
            "OMP: Error #15: Initializing libomp.dylib, but found it already initialized.",
            "openmp-twice",
            "conda",
        ),
        ("", "died", "SIGILL"),
    ],
)
def test_a_torch_that_dies_while_it_is_imported_has_a_fix(noise, cause, advice):
    for ended in (("killed", "SIGABRT"), ("failed", "")) if noise else (("killed", "SIGILL"),):
        probes = {
            name: Outcome(ended[0], {"step": "importing torch"}, (), ended[1], noise)
            for name in ("cpu", "mps")
        }
        for kind in probes:
            found = find_cause(
                kind, Evidence(host_kind="computer", torch=Package("2.10.0"), probes=probes)
            )
            assert (
                found.cause == cause
                and not found.usable
                and advice in found.fix
                and noise in found.why
            )


def test_an_old_driver_of_a_data_centre_gpu_is_pointed_to_nvidias_compatibility_package():
    """NVIDIA, CUDA Compatibility: cuda-compat-13-0 holds what a torch built for CUDA 13.0 needs."""
    told = {
        "count": 0,
        "error": "The NVIDIA driver on your system is too old (found version 12080).",
    }
    found = find_cause("cuda", Evidence("computer", TORCH, {"cuda": Outcome("ok", told)}))
    assert (
        found.cause == "driver-too-old"
        and "cuda-compat-13-0" in found.fix
        and "data-centre" in found.fix
    )


def test_where_torch_cannot_be_imported_every_kind_says_so_and_none_blames_the_hardware():
    error = (
        "ImportError: libtorch_cpu.so: cannot open shared object file: No such file or directory"
    )
    probes = {
        name: Outcome("ok", {"step": "importing torch", "error": error})
        for name in ("cpu", "cuda", "xpu", "xla")
    }
    evidence = Evidence("computer", TORCH, probes, torch_xla=TORCH)
    found = [find_cause(kind, evidence) for kind in ("cpu", "cuda", "mps", "xpu", "xla")]
    assert {one.cause for one in found} == {found[0].cause} and all(
        "libtorch_cpu.so" in one.why for one in found
    )


@pytest.mark.parametrize(
    ("host_kind", "cause", "word"),
    [
        ("colab", "accelerator-off", "Runtime > Change runtime type"),
        ("kaggle", "accelerator-off", "Settings > Accelerator"),
        ("binder", "no-hardware", "Binder lends"),
        ("ci", "no-hardware", "CI runners"),
        ("computer", "no-hardware", "Colab"),
    ],
)
def test_where_there_is_no_card_the_fix_is_one_for_the_host(host_kind, cause, word):
    # a build for the CPU is no fault where there is nothing else
    for torch in (TORCH, Package("2.9.0+cpu")):
        found = find_cause("cuda", Evidence(host_kind, torch, NO_CUDA))
        assert found.cause == cause and word in found.fix


@pytest.mark.parametrize("value", ["", "-1", "1", "7", "GPU-ffff"])
def test_every_value_that_shows_no_card_hides_it(value):
    driver = {
        "version": "575.57",
        "cuda": [13, 0],
        "cards": [{"name": "NVIDIA H200", "uuid": "GPU-1"}],
    }
    found = on_nvidia(NO_GPUS, driver=driver, variables={"CUDA_VISIBLE_DEVICES": value})
    assert (
        found.cause == "hidden"
        and repr(value) in found.why
        and "unset CUDA_VISIBLE_DEVICES" in found.fix
    )


NO_KERNEL = "AcceleratorError: CUDA error: no kernel image is available for execution on the device"
HIP_NO_KERNEL = "AcceleratorError: HIP error: invalid device function"
CARD = [("0x10de", "0x2684")]
NO_GPUS = {"count": 0, "error": "RuntimeError: No CUDA GPUs are available"}


def on_nvidia(told, *, smi=None, driver=None, torch=TORCH, kernel=None, **machine):
    kernels = ({"device": "cuda:0", "failed": "a copy", "error": kernel},) if kernel else ()
    probes = {"cuda": Outcome("ok", told, kernels), "nvidia": Outcome("ok", driver or {})}
    probes["nvidia-smi"] = smi or Outcome("failed")
    return find_cause("cuda", Evidence("computer", torch, probes, **machine))


@pytest.mark.parametrize(
    ("archs", "name", "capability", "cause", "advice"),
    # pytorch/pytorch 167244: an RTX 5090 under CUDA 12.4; edenaion/EZ-CorridorKey 87: a GTX 1080 Ti
    # under CUDA 13
    [
        (
            "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90",
            "NVIDIA GeForce RTX 5090",
            [12, 0],
            "card-too-new",
            "12.8",
        ),
        # builds whose newest kernels are those of one card alone (sm_90a, sm_100a)
        ("sm_80 sm_86 sm_90a", "NVIDIA GeForce RTX 5090", [12, 0], "card-too-new", "12.8"),
        ("sm_90a compute_90", "NVIDIA B200", [10, 0], "card-too-new", "12.8"),
        ("sm_90a sm_100a", "Tesla V100", [7, 0], "card-too-old", "CUDA 12.6"),
        (
            "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120",
            "NVIDIA GeForce GTX 1080 Ti",
            [6, 1],
            "card-too-old",
            "CUDA 12.6",
        ),
        (
            "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90",
            "Tesla K80",
            [3, 7],
            "card-too-old",
            "cu118 torch==2.6.0 ",
        ),
    ],
)
def test_a_card_that_this_torch_was_not_built_for_is_too_new_or_too_old(
    archs, name, capability, cause, advice
):
    told = {"count": 1, "archs": archs.split(), "cuda:0": {"name": name, "capability": capability}}
    found = on_nvidia(told, kernel=NO_KERNEL)
    assert found.cause == cause and name in found.why and advice in found.fix


def test_an_amd_card_that_this_torch_was_not_built_for_is_named():
    """pytorch/pytorch 164346: a gfx1151 under a build for ROCm 7.0."""
    rocm = Package("2.10.0+rocm7.0", None, "7.0")
    found = on_nvidia({"count": 1, "archs": ["gfx1100"]}, kernel=HIP_NO_KERNEL, torch=rocm)
    assert found.cause == "amd-card-not-built" and "HSA_OVERRIDE_GFX_VERSION" in found.fix


@pytest.mark.parametrize(
    ("said", "cause", "advice"),
    [
        # NVIDIA-BioNeMo/nvMolKit 209 (June 2026): pip brings a torch for CUDA 13 to a driver for
        # 12.7
        (
            "The NVIDIA driver on your system is too old (found version 12070)",
            "driver-too-old",
            "backend cu126 ",
        ),
        (
            "The NVIDIA driver on your system is too old (found version 12080)",
            "driver-too-old",
            "backend cu128 ",
        ),
        # the newest driver of a Kepler card, 470, knows CUDA 11.4, and no build for CUDA 12 runs on
        # it
        (
            "The NVIDIA driver on your system is too old (found version 11040)",
            "driver-too-old",
            "backend cu118 ",
        ),
        # tinygrad/open-gpu-kernel-modules 47; Nobara-Project/rpm-sources 525: a restart alone did
        # not help
        (
            "Failed to initialize NVML: Driver/library version mismatch",
            "driver-mismatch",
            ["Restart", "install the driver again"],
        ),
        # NVIDIA/nvidia-container-toolkit 1227
        ("Failed to initialize NVML: Unknown Error", "gpu-taken-away", "Start the container again"),
        (
            "Failed to initialize NVML: Insufficient Permissions",
            "gpu-taken-away",
            "usermod -aG video",
        ),
        # oobabooga/textgen 4407, NVIDIA/nvidia-docker 1294
        (
            "CUDA: Error 804: forward compatibility was attempted on non supported HW",
            "compat-refused",
            "/compat",
        ),
        ("CUDA: Error 2: out of memory", "out-of-memory", "Another process"),
        # JosephKJ/OWOD 81, NVIDIA/open-gpu-kernel-modules 387; a card that its driver has lost is
        # on the bus, and looked like one without a driver
        (
            "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.",
            "card-lost",
            "dmesg",
        ),
        (
            "Unable to determine the device handle for GPU0000:01:00.0: Unknown Error",
            "card-lost",
            "dmesg",
        ),
        # microsoft/WSL 13027: TCC mode; where no other card is left, a lost one gets the second
        # line as well
        (
            "Unable to determine the device handle for GPU0: Unknown Error\nNo devices were found",
            "card-lost",
            "-dm 2",
        ),
        # microsoft/WSL 9938 (in a container) and 9952 (TCC mode)
        (
            "Failed to initialize NVML: GPU access blocked by the operating system",
            "wsl-driver",
            ["wsl --update", "no-cgroups = false", "nvidia-smi -dm 2"],
        ),
        (
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.",
            "no-driver",
            "modprobe",
        ),
        # pytorch/pytorch 88639, ultralytics/ultralytics 7716; pytorch/pytorch 49081:
        # /dev/nvidia-uvm was missing
        (
            "CUDA unknown error - this may be due to an incorrectly set up environment",
            "driver-stuck",
            ["nvidia_uvm", "-modprobe -c 0"],
        ),
        # NVIDIA/open-gpu-kernel-modules 872 and 862
        ("No devices were found", "card-refused", ["-open", "Resizable BAR", "srun --gpus"]),
    ],
)
def test_what_the_driver_says_names_the_cause(said, cause, advice):
    by_torch = {"count": 0, "error": said}
    by_smi = not said.startswith(("The NVIDIA", "CUDA")) and Outcome("failed", output=said)
    found = on_nvidia(NO_GPUS, smi=by_smi, graphics=CARD) if by_smi else on_nvidia(by_torch)
    assert found.cause == cause
    assert all(words in found.fix for words in ([advice] if isinstance(advice, str) else advice))


@pytest.mark.parametrize(
    ("error", "cause", "advice"),
    [
        # pytorch/pytorch 100691; NVIDIA/DIGITS 2005: the compute mode was "exclusive process"
        (
            "CUDA error: CUDA-capable device(s) is/are busy or unavailable",
            "held",
            "nvidia-smi -q -d COMPUTE",
        ),
        ("CUDA error: uncorrectable ECC error encountered", "card-lost", "xid"),
        (
            "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            "out-of-memory",
            "nvidia-smi",
        ),
        (
            "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling",
            "libraries-mixed",
            "LD_LIBRARY_PATH",
        ),
        # pytorch/pytorch 185512 and 188892: a new environment with the same torch fails again
        (
            "cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
            "libraries-mixed",
            ["LD_LIBRARY_PATH", "take a newer torch", "remove the system's cuDNN"],
        ),
    ],
)
def test_what_a_kernel_says_names_the_cause(error, cause, advice):
    found = on_nvidia({"archs": ["sm_90"]}, kernel=error)
    assert found.cause == cause and error in found.why and "no kernel" not in found.fix
    assert all(words in found.fix for words in ([advice] if isinstance(advice, str) else advice))


def test_a_container_without_the_machines_gpu_is_told_from_a_machine_without_a_driver():
    """TorchDSP/torchsig 329, zzzyuqing/DreamMat 14: the card is on the bus, and no driver is in the
    container.
    """
    found = [on_nvidia(NO_LIBRARY, graphics=CARD, container=inside) for inside in (True, False)]
    assert [one.cause for one in found] == [
        "container-without-gpu",
        "no-driver",
    ] and "--gpus all" in found[0].fix
    assert "apptainer exec --nv" in found[0].fix and "nvidia.com/gpu" in found[0].fix


@pytest.mark.parametrize("told", [NO_LIBRARY, NO_GPUS])
def test_inside_of_windows_the_driver_belongs_to_windows(told):
    """NVIDIA/cuml 6218: a Linux driver inside of WSL hid the one that Windows brings."""
    found = on_nvidia(told, wsl=True)
    assert found.cause == "wsl-driver" and told["error"] in found.why
    assert "in Windows" in found.fix and "wsl --shutdown" in found.fix


ROCM = Package("2.9.0+rocm6.4", None, "6.4.4")
NO_HIP = {"step": "starting CUDA", "error": "RuntimeError: No HIP GPUs are available"}
RADEON = [("0x1002", "0x744c")]


def test_a_build_for_the_cpu_is_named_where_only_the_pci_bus_shows_the_card():
    told, alone = {"error": "Torch not compiled with CUDA enabled"}, Package("2.9.0+cpu")
    assert on_nvidia(told, torch=alone, graphics=CARD).cause == "cpu-only-build"
    ran = {"cuda": Outcome("ok", {}, ({"device": "cuda:0"},))}
    assert find_cause("cuda", Evidence("computer", alone, ran, graphics=CARD)).cause == "works"


@pytest.mark.parametrize(
    ("driver_cuda", "capability", "build"),
    [
        ([11, 4], "3.7", "cu118"),  # a K80
        ([12, 7], "8.0", "cu126"),
        ([12, 8], "12.0", "cu128"),
        ([12, 8], "7.0", "cu126"),  # a V100: no kernels in a build for CUDA 12.8 since torch 2.11
        ([13, 0], "6.1", "cu126"),  # a P40, which no build for CUDA 13 has kernels for
        # a T4; the builds for CUDA 12.8 ended with torch 2.11 (pytorch/pytorch 178665)
        ([13, 0], "7.5", "cu130"),
    ],
)
def test_the_build_that_a_fix_names_has_kernels_for_the_card_and_runs_on_its_driver(
    driver_cuda, capability, build
):
    card = {"name": "NVIDIA card", "detail": f"compute capability {capability}"}
    driver = {"version": "1", "cuda": driver_cuda, "cards": [card]}
    found = on_nvidia(
        {"error": "Torch not compiled with CUDA enabled"}, torch=Package("2.9.0+cpu"), driver=driver
    )
    assert found.cause == "cpu-only-build" and f"--torch-backend {build} " in found.fix


def test_last_words_before_a_signal_name_the_cause():
    """pytorch/pytorch 179865: rocBLAS has no kernels for a gfx900, prints what it has, and
    aborts.
    """
    words = "rocBLAS error: Cannot read TensileLibrary.dat: Illegal seek for GPU arch : gfx900"
    outcome = Outcome(
        "killed",
        {"step": "a matrix product on cuda:0"},
        (),
        "SIGABRT",
        f"{words}\nList of files :\n'x'",
    )
    found = find_cause("cuda", Evidence("computer", ROCM, {"cuda": outcome}, graphics=RADEON))
    assert (
        found.cause == "amd-card-not-built"
        and words in found.why
        and "HSA_OVERRIDE_GFX_VERSION" in found.fix
    )
    outcome = Outcome("killed", {"step": "a copy on cuda:0"}, (), "SIGSEGV", "one\nlast")
    found = find_cause("cuda", Evidence("computer", TORCH, {"cuda": outcome}))
    assert found.cause == "died" and "SIGSEGV" in found.why and found.why.endswith("last")


def test_every_cause_that_the_code_names_has_its_section():
    code = "".join(
        path.read_text(encoding="utf-8") for path in Path(doctor.__file__).parent.glob("*.py")
    )
    named = set(re.findall(r'\.finding\((?:\w+|"\w+"), "([\w-]+)"', code))
    assert len(named) > 15 and not named - {*REMEDIES}, (
        "write a section for each of these in remedies.ini"
    )


def test_a_driver_without_the_part_that_computes_is_named():
    """A container with NVIDIA_DRIVER_CAPABILITIES=utility: NVML answers, says CUDA 0, as it finds
    no libcuda to ask, and nvidia-smi prints "CUDA Version: N/A".
    """
    driver = {"version": "550.54", "cuda": [0, 0], "cards": [{"name": "NVIDIA H200"}]}
    probes = {**NO_CUDA, "nvidia": Outcome("ok", driver)}
    found = find_cause("cuda", Evidence("computer", TORCH, probes, container=True))
    assert found.cause == "compute-part-missing" and "libcuda" in found.why
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in found.fix


SLICE = "MIG-feee0c61-26ec-5616-bb59-b6d777cc4f34"
OLD_DRIVER = "RuntimeError: The NVIDIA driver on your system is too old (found version 11070)"


@pytest.mark.parametrize(
    ("setting", "error", "cause"),
    # pytorch/pytorch 95784: driver 515.86 under a scheduler that hands out slices
    [
        (SLICE, OLD_DRIVER, "driver-too-old"),
        ("MIG-GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77/1/0", OLD_DRIVER, "driver-too-old"),
        ("GPU-1", OLD_DRIVER, "driver-too-old"),
        (SLICE, "RuntimeError: No CUDA GPUs are available", "slice-missing"),
        ("GPU-2", OLD_DRIVER, "hidden"),
    ],
)
def test_a_slice_of_a_card_hides_no_card_and_is_never_to_be_unset(setting, error, cause):
    variables = {"CUDA_VISIBLE_DEVICES": setting}
    found = on_nvidia({"error": error}, driver=H200, variables=variables)
    assert found.cause == cause
    assert ("Unset it" in found.fix) is (cause == "hidden")


@pytest.mark.parametrize(
    "error", ["open(/dev/accel2): Operation not permitted", "Failed to connect to [::]:8353"]
)
def test_a_tpu_that_may_not_be_opened_is_named(error):
    """pytorch/xla 9604: on the machine itself; 8735: in a container without the machine's
    network.
    """
    told = {
        "step": "starting XLA's runtime",
        "error": f"RuntimeError: TPU initialization failed: {error}",
    }
    evidence = Evidence("tpu-vm", TORCH, {"xla": Outcome("ok", told)}, torch_xla=TORCH, tpu_chips=4)
    found = find_cause("xla", evidence)
    assert (
        found.cause == "not-permitted"
        and "--privileged --net=host" in found.fix
        and "usermod" not in found.fix
    )


@pytest.mark.parametrize(
    ("ended", "step", "cause"),
    [("ok", "importing torch", "broken-install"), ("killed", "starting XLA", "kernel-failed")],
)
def test_what_a_probe_of_xla_told_is_not_lost_behind_a_variable_or_how_it_ended(ended, step, cause):
    outcome = Outcome(
        ended, {"step": step, "error": "ImportError: libtorch_cpu.so: undefined symbol"}
    )
    variables = {"PJRT_DEVICE": "CPU"} if ended == "ok" else {}
    found = find_cause(
        "xla", Evidence("computer", TORCH, {"xla": outcome}, torch_xla=TORCH, variables=variables)
    )
    assert found.cause == cause and "undefined symbol" in found.why


@pytest.mark.parametrize("variables", [{}, {"PJRT_DEVICE": "CPU"}])
def test_a_python_without_the_library_that_torch_xla_needs_is_told_which(variables):
    """What Debian 13's Python says (torch_xla 2.9.0; pytorch/xla 8948)."""
    error = "ImportError: libpython3.13.so.1.0: cannot open shared object file: No such file"
    outcome = Outcome("ok", {"step": "importing torch_xla", "error": error})
    found = find_cause(
        "xla", Evidence("computer", TORCH, {"xla": outcome}, torch_xla=TORCH, variables=variables)
    )
    assert found.cause == "libpython-absent" and "libpython3.13.so.1.0" in found.why
    assert "sudo apt install libpython3." in found.fix and "driver" not in found.fix


def test_a_gpu_that_works_stays_usable_beside_one_that_hangs():
    outcome = Outcome(
        "timed out", {"step": "an addition on cuda:1"}, ({"device": "cuda:0"},), limit_s=10
    )
    found = find_cause("cuda", Evidence("computer", TORCH, {"cuda": outcome}))
    assert (found.cause, found.usable) == ("hangs", True) and "cuda:1" in found.why


def test_an_amd_card_under_another_build_is_told_of_the_build_for_it():
    found = find_cause(
        "cuda", Evidence("computer", TORCH, NO_CUDA, graphics=[("0x1002", "0x744c")])
    )
    assert found.cause == "not-built" and "ROCm" in found.why and "0x744c" in found.why


def test_nvidias_tools_on_a_colab_without_a_gpu_do_not_mean_a_missing_driver():
    said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    probes = {**NO_CUDA, "nvidia-smi": Outcome("failed", output=said)}
    assert find_cause("cuda", Evidence("colab", TORCH, probes)).cause == "accelerator-off"
    assert find_cause("cuda", Evidence("computer", TORCH, probes)).cause == "no-driver"


def test_a_hidden_tpu_does_not_make_a_wrong_answer_usable():
    wrong = {"device": "xla:0", "wrong": "an addition", "difference": "1.0"}
    probes = {"xla": Outcome("ok", {"hardware": "CPU"}, (wrong,))}
    evidence = Evidence(
        "tpu-vm", TORCH, probes, torch_xla=TORCH, variables={"PJRT_DEVICE": "CPU"}, tpu_chips=4
    )
    found = find_cause("xla", evidence)
    assert (found.cause, found.usable) == ("pjrt-device-wrong", False)


H200 = {"version": "575.57", "cuda": [13, 0], "cards": [{"name": "NVIDIA H200", "uuid": "GPU-1"}]}
NO_TPU = {"error": "RuntimeError: libtpu not found"}
ODD = {"error": "odd"}
CPU_RAN = ({"hardware": "CPU"}, RAN)
WRONG = ({"hardware": "CPU"}, ({"device": "xla:0", "wrong": "an addition", "difference": 1.0},))
LATE, DEAD = (
    Outcome("timed out", {"step": "a sum"}),
    Outcome("killed", {"step": "a sum"}, (), "SIGSEGV"),
)
FAILED = Outcome("failed", output="NVIDIA-SMI has failed because it could not talk to the driver")


def on_cuda(*, smi=None, driver=None, facts=None, torch=TORCH, **machine):
    """What is found where the CUDA probe told this, and beside it the driver's library and
    nvidia-smi.
    """
    listed = Outcome("ok", output=smi) if isinstance(smi, str) else smi or Outcome("failed")
    probes = {"cuda": Outcome("ok", facts or {}), "nvidia-smi": listed}
    probes["nvidia"] = driver if isinstance(driver, Outcome) else Outcome("ok", driver or {})
    return Evidence("computer", torch, probes, **machine)


def on_xla(*told, xla="2.9.0", chips=0, **variables):
    """What is found where the XLA probe told this and tried these kernels, or ended as the one
    outcome given.
    """
    outcome = told[0] if isinstance(told[0], Outcome) else Outcome("ok", *told)
    packages = {"torch_xla": Package(xla), "variables": variables, "tpu_chips": chips}
    return Evidence("computer", TORCH, {"xla": outcome}, **packages)


@pytest.mark.parametrize(
    ("evidence", "cause", "word"),
    [
        (on_cuda(torch=Package()), "torch-absent", ""),
        (
            on_cuda(torch=Package("2.9.0", shadow="/home/me/torch.py")),
            "torch-shadowed",
            "/home/me/torch.py",
        ),
        (on_cuda(torch=Package("2.5.1", "12.4")), "torch-too-old", "2.5.1"),
        # Nothing in the machine, and nothing that names another cause.
        (on_cuda(facts={"count": 0}), "no-hardware", ""),
        (on_cuda(variables={"CUDA_VISIBLE_DEVICES": ""}), "no-hardware", ""),
        (on_cuda(graphics=[("0x8086", "0x56a0")]), "no-hardware", ""),
        (on_cuda(smi="No devices found", container=True), "no-hardware", ""),
        (replace(on_cuda(tpu_chips=1), host_kind="colab"), "no-hardware", ""),
        (on_cuda(driver={"cuda": [12, 4]}, torch=ROCM), "no-hardware", ""),
        # A card, and what keeps it away.
        (on_cuda(smi="NVIDIA T4"), "no-driver", "NVIDIA T4"),
        (on_cuda(smi="NVIDIA T4", container=True), "container-without-gpu", "NVIDIA T4"),
        (on_cuda(smi=FAILED, container=True), "no-driver", FAILED.output),
        (on_cuda(smi=FAILED), "no-driver", "nvidia-smi is installed"),
        (on_cuda(facts={"error": "unheard of"}, graphics=CARD), "no-driver", "unheard of"),
        (on_cuda(driver=H200, wsl=True), "driver-error", ""),
        (on_cuda(driver=H200, facts={"error": "Found no NVIDIA driver"}), "no-driver", "H200"),
        (on_cuda(driver=H200, variables={"HIP_VISIBLE_DEVICES": ""}), "driver-error", ""),
        (on_cuda(driver=H200, variables={"CUDA_VISIBLE_DEVICES": "0"}), "driver-error", ""),
        (on_cuda(driver=H200, variables={"CUDA_VISIBLE_DEVICES": "7"}), "hidden", "'7'"),
        (
            on_cuda(torch=ROCM, graphics=RADEON, variables={"HIP_VISIBLE_DEVICES": "-1"}),
            "hidden",
            "HIP_VISIBLE_DEVICES",
        ),
        (on_cuda(driver={"cuda": [12, 4]}), "driver-too-old", "12.4"),
        (
            on_cuda(driver=Outcome("timed out", {"step": "asking the driver"})),
            "hangs",
            "asking the driver",
        ),
        (on_xla({}, xla=""), "torch-xla-absent", ""),
        (
            on_xla({"error": "undefined symbol"}, xla="2.8.0"),
            "torch-xla-mismatch",
            "undefined symbol",
        ),
        (on_xla(DEAD, xla="2.8.0"), "torch-xla-mismatch", "killed"),
        (on_xla({}, RAN, xla="2.8.0"), "works", ""),
        (on_xla(NO_TPU, chips=4), "libtpu-absent", "libtpu not found"),
        (on_xla(NO_TPU), "kernel-failed", "libtpu"),
        (on_xla(ODD, PJRT_DEVICE="GPU"), "pjrt-device-wrong", "'GPU'"),
        (on_xla(ODD, PJRT_DEVICE="TPU"), "pjrt-device-wrong", "no TPU was found here (odd)"),
        (on_xla(ODD, PJRT_DEVICE="TPU", chips=4), "kernel-failed", "odd"),
        (on_xla(ODD, PJRT_DEVICE="CPU", chips=4), "pjrt-device-wrong", "odd"),
        (on_xla({}, RAN, PJRT_DEVICE="CPU", chips=4), "pjrt-device-wrong", "it hides"),
        (on_xla(LATE, PJRT_DEVICE="CPU", chips=4), "hangs", "a sum"),
        (on_xla(*CPU_RAN, PJRT_DEVICE="CPU"), "rehearsal", ""),
        (on_xla(*CPU_RAN, chips=4), "libtpu-absent", "it took the CPU"),
        (on_xla(*WRONG), "wrong-answer", "an addition"),
    ],
)
def test_what_was_found_decides_the_cause(evidence, cause, word):
    found = find_cause("cuda" if "cuda" in evidence.probes else "xla", evidence)
    assert found.cause == cause and word in found.why, found


@pytest.mark.parametrize(
    ("kind", "told", "cause", "word"),
    [
        ("mps", None, "other-platform", ""),
        ("xpu", None, "no-hardware", "Intel"),
        ("mps", Outcome("ok", {"built": False}), "not-built", ""),
        (
            "mps",
            Outcome("ok", {"available": False}, ({"device": "mps", "error": "no Metal"},)),
            "mps-unavailable",
            "no Metal",
        ),
    ],
)
def test_what_was_found_decides_the_cause_in_the_other_kinds_too(kind, told, cause, word):
    probes = {kind: told} if told else on_cuda().probes
    found = find_cause(kind, Evidence("computer", TORCH, probes, graphics=CARD))
    assert found.cause == cause and word in found.why, found


UPDATE = ("driver-too-old", "Update the driver")
COUNT = (
    "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions "
    "before calling NumCudaDevices() that might have already set an error? Error "
)


@pytest.mark.parametrize(
    ("error", "machine", "cause", "advice"),
    [
        # NVIDIA/warp 219: no card and no driver is at fault
        (
            "34: CUDA driver is a stub library",
            {"variables": {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64/stubs:/usr/lib"}},
            "driver-stub",
            "Take /usr/local/cuda/lib64/stubs out of LD_LIBRARY_PATH",
        ),
        ("34: CUDA driver is a stub library", {"container": True}, "driver-stub", "Dockerfile"),
        # jhj0517/Whisper-WebUI 279; NVIDIA/nvidia-container-toolkit 520
        (
            "500: named symbol not found",
            {"wsl": True, "container": True},
            "driver-part-missing",
            "Update Docker Desktop",
        ),
        ("500: named symbol not found", {"wsl": True}, "driver-part-missing", "inside WSL"),
        (
            "500: named symbol not found",
            {"container": True},
            "driver-part-missing",
            "NVIDIA Container Toolkit",
        ),
        ("500: named symbol not found", {}, "driver-part-missing", "two versions"),
        # pytorch/pytorch 35710, gpustack/gpustack 1254
        ("802: system not yet initialized", {}, "fabric-manager", "nvidia-fabricmanager"),
        (
            "304: OS call failed or operation not supported on this OS",
            {},
            "os-refused",
            "ulimit -a",
        ),
        (
            "304: OS call failed or operation not supported on this OS",
            {"wsl": True, "container": True},
            "os-refused",
            "Docker Desktop",
        ),
        ("35: CUDA driver version is insufficient for CUDA runtime version", {}, *UPDATE),
        ("36: API call is not supported in the installed CUDA driver", {}, *UPDATE),
        ("100: no CUDA-capable device is detected", {}, "no-capable-device", "nvidia-modprobe"),
        (
            "100: no CUDA-capable device is detected",
            {"container": True},
            "no-capable-device",
            "--gpus all",
        ),
        ("101: invalid device ordinal", {}, "no-slice", "-mig 0"),
        ("805: MPS client failed to connect to the MPS control daemon", {}, "mps-server", "quit"),
        (
            "3: initialization error",
            {"variables": {"LD_PRELOAD": "/x.so"}},
            "driver-error",
            "here: LD_PRELOAD",
        ),
        (
            "3: initialization error",
            {"container": True},
            "driver-error",
            "outside of the container",
        ),
        ("3: initialization error", {"wsl": True}, "driver-error", "wsl --update"),
        # easydiffusion/easydiffusion 134
        (
            "803: system has unsupported display driver / cuda driver combination",
            {},
            "driver-mismatch",
            "after an update",
        ),
    ],
)
def test_an_error_with_a_number_gets_the_cure_that_the_machine_decides(
    error, machine, cause, advice
):
    driver = {**H200, "cards": [{"name": "NVIDIA H200", "uuid": "GPU-1"}]}
    found = on_nvidia({"error": COUNT + error}, driver=driver, **machine)
    assert found.cause == cause and advice in found.fix
    assert error in found.why or cause == "driver-too-old"
    assert cause == "driver-mismatch" or "Restart the machine" not in found.fix


JETSON = {"jetson": "Jetson (R35)"}
ORIN = {
    "archs": ["sm_80", "sm_90", "sm_100"],
    "cuda:0": {"name": "Orin", "capability": [8, 7]},
}
ORIN_SMI = Outcome("ok", output="Orin (nvgpu)")


@pytest.mark.parametrize(
    ("told", "kernel", "more"),
    # pinokiocomputer/pinokio 1027, dusty-nv/jetson-inference 1932: JetPack 5 has no nvidia-smi
    [
        (NO_LIBRARY, None, {**JETSON, "torch": Package("2.9.0+cpu")}),
        ({"error": OLD_DRIVER}, None, JETSON),
        ({}, None, {"smi": ORIN_SMI, "torch": Package("2.9.0+cpu")}),
        (ORIN, NO_KERNEL, {"smi": ORIN_SMI}),
    ],
)
def test_a_jetson_is_sent_to_its_own_build_and_never_to_a_servers(told, kernel, more):
    found = on_nvidia(told, kernel=kernel, **more)
    assert found.cause == "jetson-build" and "JetPack" in found.fix
    assert "--torch-backend" not in found.fix and "nvidia.com/drivers" not in found.fix


def test_a_jetson_whose_memory_is_full_or_that_works_is_left_with_its_build():
    found = on_nvidia(ORIN, kernel="CUDA error: out of memory", **JETSON)
    assert found.cause == "out-of-memory"
    ran = {"cuda": Outcome("ok", {}, ({"device": "cuda:0"},))}
    assert find_cause("cuda", Evidence("computer", TORCH, ran, **JETSON)).cause == "works"


@pytest.mark.parametrize(
    ("value", "output", "cause"),
    # what torch 2.9.0 prints before it aborts
    [
        ("max_split_size_mb:abc", "  what():  stoull", "allocator-setting"),
        ("foo:1", "  what():  Unrecognized CachingAllocator option: foo", "allocator-setting"),
        (
            "backend:native",
            "Warning: PYTORCH_CUDA_ALLOC_CONF is deprecated, use PYTORCH_ALLOC_CONF instead",
            "died",
        ),
    ],
)
def test_a_setting_that_torchs_allocator_refuses_is_named_and_a_good_one_is_not(
    value, output, cause
):
    outcome = Outcome("killed", {"step": "importing torch"}, (), "SIGABRT", output)
    variables = {"PYTORCH_CUDA_ALLOC_CONF": value}
    evidence = Evidence("computer", TORCH, {"cpu": outcome}, variables=variables)
    found = find_cause("cpu", evidence)
    assert found.cause == cause and (value in found.why) is (cause == "allocator-setting")


@pytest.mark.parametrize(
    ("torch", "step", "words", "cause"),
    [
        # pytorch/pytorch 73534 and 53738
        (ROCM, "starting CUDA", "hipErrorNoBinaryForGpu: Unable to find code object for all", ""),
        (ROCM, "starting CUDA", "guarantee(false && \"Coudn't find binary for current devices", ""),
        (ROCM, "a copy on cuda:0", "HIP error: no kernel image is available", ""),
        (TORCH, "a copy on cuda:0", "CUDA error: invalid device function", "card-too-old"),
        (TORCH, "a copy on cuda:0", "CUDA error: out of memory", "out-of-memory"),
    ],
)
def test_the_words_before_an_abort_are_read_for_every_maker(torch, step, words, cause):
    outcome = Outcome("killed", {"step": step}, (), "SIGABRT", f"{words}\nAborted (core dumped)")
    found = find_cause("cuda", Evidence("computer", torch, {"cuda": outcome}, graphics=RADEON))
    assert found.cause == (cause or "amd-card-not-built")
    assert words in found.why or cause == "card-too-old"


@pytest.mark.parametrize(
    ("kind", "words", "cause"),
    [
        ("xla", "The TPU is already in use by process with pid 77", "held"),
        ("xla", "open(/dev/accel0): Operation not permitted", "not-permitted"),
        ("xpu", "UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", "out-of-memory"),
        ("mps", "MPS backend out of memory", "out-of-memory"),
    ],
)
def test_an_abort_of_another_kind_is_judged_by_its_words_too(kind, words, cause):
    outcome = Outcome("killed", {"step": "a copy", "available": True}, (), "SIGABRT", words)
    other = Package("2.8.0")  # of torch_xla: another minor version is not the cause
    torch = replace(TORCH, xpu=True)
    graphics = [("0x8086", "0x56a0")]
    evidence = Evidence("computer", torch, {kind: outcome}, torch_xla=other, graphics=graphics)
    assert find_cause(kind, evidence).cause == cause


@pytest.mark.parametrize(
    "error",
    ["KeyError: 'getpwuid(): uid not found: 1001'", "OSError: No username set in the environment"],
)
def test_a_user_without_a_name_is_told_to_take_one(error):
    """What `docker run --user 1001` gets from torch_xla 2.9 (Python 3.11, and 3.13's words)."""
    told = Outcome("ok", {"step": "importing torch_xla", "error": error})
    found = find_cause("xla", Evidence("computer", TORCH, {"xla": told}, torch_xla=TORCH))
    assert found.cause == "user-without-name" and "export USER=me" in found.fix


def test_a_driver_that_answers_only_by_its_tool_lacks_the_part_that_computes():
    smi = Outcome("ok", output="NVIDIA H200")
    found = on_nvidia(NO_LIBRARY, smi=smi)
    assert found.cause == "compute-part-missing"
    assert "/usr/lib/wsl/lib" in on_nvidia(NO_LIBRARY, smi=smi, wsl=True).fix


@pytest.mark.parametrize(("working", "cause"), [(True, "slow"), (False, "hangs")])
def test_a_probe_that_was_still_computing_is_slow_and_one_that_waited_hangs(working, cause):
    outcome = Outcome("timed out", {"step": "a sum"}, limit_s=10, working=working)
    found = find_cause("cpu", Evidence("computer", TORCH, {"cpu": outcome}))
    assert found.cause == cause and "--limit" in found.fix
    assert found.works == ("not known" if working else "no")
