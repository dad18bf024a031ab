"""From the evidence to a cause for each kind of device; nothing here asks the machine anything.

The rules of a kind stand in order, and the first that applies decides.
"""

from __future__ import annotations

import re

from course_tools.doctor.evidence import Evidence
from course_tools.doctor.finding import MESSAGES, Finding
from course_tools.doctor.judge import explain_silence, judge_probe
from course_tools.doctor.run_child import Outcome
from course_tools.doctor.surroundings import AMD, INTEL, NVIDIA
from course_utils.hardware.card import Card
from course_utils.hardware.nvidia import card_called, split_version

OLDEST_TORCH = (2, 6)
# What a build for servers answers on a Jetson, whose driver and card it does not fit.
CURED_BY_THE_BOARDS_BUILD = (
    *("no-hardware", "no-driver", "container-without-gpu", "cpu-only-build", "card-too-old"),
    *("card-too-new", "driver-too-old", "compute-part-missing", "compat-refused", "driver-error"),
    *("kernel-failed", "libraries-mixed"),
)
# Errors 35, 36 and 222: the driver lacks what this CUDA asks of it, whatever its version says.
INSUFFICIENT = re.compile(
    r"driver version is insufficient|not supported in the installed CUDA driver"
    r"|unsupported toolchain"
)
# torch 2.9's words for a setting that it does not know, and those of the C++ library for a number
# that is none; "operation not supported" is a card without the memory functions of cudaMallocAsync.
REFUSED_SETTING = re.compile(
    r"[Aa]llocator (option|backend|settings)|AllocatorConfig|expandable_segments|ALLOC_CONF"
    r"|^\s*what\(\):\s+sto\w+|operation not supported"
)


def find_cause(kind: str, evidence: Evidence) -> Finding:
    """Return the finding of one kind: first what is wrong with torch itself, then with the kind."""
    torch, cpu = evidence.torch, evidence.probe("cpu")
    if not torch.version:
        return evidence.finding(kind, "torch-absent")
    if torch.shadow:
        return evidence.finding(kind, "torch-shadowed", file=torch.shadow)
    if torch.minor < OLDEST_TORCH:
        return evidence.finding(kind, "torch-too-old")
    tried = [evidence.probes[name] for name in ("cpu", kind) if name in evidence.probes]
    for probe in tried:
        if evidence.folder_deleted and _has_not_imported_torch(probe):
            return evidence.finding(kind, "folder-deleted")
        if evidence.shadows and _has_not_imported_torch(probe):
            return _shadowed(kind, probe, evidence)
        if refused := _refused_setting(kind, probe, evidence):
            return refused
    if kind == "cpu" or "error" in cpu.facts:
        return judge_probe(kind, cpu, evidence)
    rules = {"cuda": _cuda_or_jetson, "mps": _mps, "xpu": _xpu, "xla": _xla}
    return rules[kind](evidence)


def _has_not_imported_torch(probe: Outcome) -> bool:
    failed = probe.ended != "ok" or "error" in probe.facts
    return failed and probe.facts.get("step", "importing torch") == "importing torch"


def _shadowed(kind: str, probe: Outcome, evidence: Evidence) -> Finding:
    """Return that a file of the working folder keeps torch from being imported."""
    error = probe.facts.get("error") or probe.output
    named = [file for file in evidence.shadows if file in error]
    files = ", ".join(named or evidence.shadows)
    last = error.splitlines()[-1] if error else f"the process {probe.ended}"
    return evidence.finding(kind, "module-shadowed", file=files, error=last)


def _refused_setting(kind: str, probe: Outcome, evidence: Evidence) -> Finding | None:
    """Return that torch's allocator cannot follow its settings, which ends the process, if so."""
    said = [probe.facts.get("error", ""), *(each.get("error", "") for each in probe.kernels)]
    if probe.ended != "ok":  # the warning is there wherever the variable's older name is set
        said += [line for line in probe.output.splitlines() if "deprecated" not in line]
    blaming = [line for line in said if REFUSED_SETTING.search(line)]
    if not (evidence.allocator and blaming):
        return None
    # A line of the C++ library's says more than the names of functions below it.
    error = next((line for line in said if "what():" in line), blaming[0])
    words = {"setting": evidence.allocator, "error": error.strip()}
    return evidence.finding(kind, "allocator-setting", **words)


def _cuda_or_jetson(evidence: Evidence) -> Finding:
    """Return what is wrong with CUDA; on a Jetson, that its own build of torch is missing."""
    found = _cuda(evidence)
    smi = evidence.probe("nvidia-smi").output
    board = evidence.jetson or ("Jetson" if "(nvgpu)" in smi else "")
    if board and found.cause in CURED_BY_THE_BOARDS_BUILD:
        return evidence.finding("cuda", "jetson-build", hardware=board, error=found.why)
    return found


def _cuda(evidence: Evidence) -> Finding:
    torch, probe, cards = evidence.torch, evidence.probe("cuda"), _known_cards(evidence)
    hardware = ", ".join(card.name for card in cards)
    if probe.kernels:
        return judge_probe("cuda", probe, evidence)
    if hardware and not torch.cuda and not torch.hip:
        build = _build(tuple(evidence.probe("nvidia").facts.get("cuda", ())), cards)
        return evidence.finding("cuda", "cpu-only-build", hardware=hardware, build=build)
    names = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES") if torch.hip else ()
    for name in (*names, "CUDA_VISIBLE_DEVICES"):
        value = evidence.variables.get(name)
        if hardware and value is not None and _hides_all(cards, value):
            return evidence.finding("cuda", "hidden", variable=name, value=value, hardware=hardware)
    refused = _read_messages(evidence)
    if refused:
        return refused
    silence = explain_silence("cuda", probe, evidence)
    # An error before CUDA has started, when no `archs` were reported, is explained below, unless
    # its message names the cause.
    early = "error" in probe.facts and "archs" not in probe.facts
    if silence and (silence.cause != "kernel-failed" or not early):
        return silence
    return _not_started(evidence, hardware)


def _hides_all(cards: list[Card], setting: str) -> bool:
    """Say whether a setting of CUDA_VISIBLE_DEVICES shows none of the cards that are here.

    CUDA stops at the first entry that names no card (CUDA C Programming Guide, "CUDA Environment
    Variables"), so the first one decides. The name of a MIG slice hides nothing: whoever shares a
    card out has set it.
    """
    first = setting.split(",")[0].strip()
    if first.isdigit():
        return int(first) >= len(cards)
    if first.startswith("MIG-"):
        return False
    uuids_known = any(card.uuid.startswith("GPU-") for card in cards)
    could_be_one = first.startswith("GPU-") and not uuids_known
    return not could_be_one and card_called(cards, first) is None


def _known_cards(evidence: Evidence) -> list[Card]:
    """Return the cards of this machine, from the driver, from nvidia-smi or from the PCI bus."""
    if evidence.cards:
        return evidence.cards
    smi = evidence.probe("nvidia-smi")
    if smi.ended == "ok" and smi.output and "No devices" not in smi.output:
        names = smi.output.splitlines()
    else:
        vendor, maker = (AMD, "AMD") if evidence.torch.hip else (NVIDIA, "NVIDIA")
        models = [model for its, model in evidence.graphics if its == vendor]
        names = [f"{maker} device {model} on the PCI bus" for model in models]
    return [Card(name, uuid=str(index)) for index, name in enumerate(names)]


def _read_messages(evidence: Evidence) -> Finding | None:
    """Return the cause that the driver's version or a message points to, if any."""
    error, needed = evidence.probe("cuda").facts.get("error", ""), evidence.torch.cuda
    too_old = re.search(r"too old \(found version (\d+)\)", error)
    if too_old:
        newest: tuple[int, ...] = split_version(int(too_old[1]))
    else:
        newest = tuple(evidence.probe("nvidia").facts.get("cuda", ()))
    # A driver runs every CUDA of its own major version (CUDA Compatibility, "minor version"). A
    # version of (0, 0) says nothing.
    is_older = any(newest) and (too_old or newest[0] < int((needed or "0").split(".")[0]))
    if needed and (is_older or INSUFFICIENT.search(error)):
        return evidence.finding(
            "cuda",
            "driver-too-old",
            found=f"{newest[0]}.{newest[1]}" if any(newest) else "an older version",
            needed=needed,
            compat="-".join(needed.split(".")[:2]),
            build=_build(newest, evidence.cards),
        )
    for message in (" ".join(evidence.probe("nvidia-smi").output.split()), error):
        cause = evidence.meaning(message)
        if cause == "driver-stub":
            return evidence.finding("cuda", cause, error=message, folders=_stubs(evidence))
        if cause:
            return evidence.finding(
                "cuda", cause, device="cuda", error=message, fix_for=_case_of_cuda(evidence)
            )
    return None


def _stubs(evidence: Evidence) -> str:
    """Return the folders in LD_LIBRARY_PATH that hold libraries for linking alone."""
    folders = evidence.variables.get("LD_LIBRARY_PATH", "").split(":")
    found = [folder for folder in folders if "stubs" in folder.split("/")]
    return ", ".join(found) or "the folder of a libcuda.so.1 that is not the driver's"


def _case_of_cuda(evidence: Evidence) -> str:
    """Return for which case the fix is where the same error has several."""
    if evidence.torch.hip:
        return "AMD"
    if evidence.wsl:
        return "WSL container" if evidence.container else "WSL"
    return "container" if evidence.container else "NVIDIA"


def _build(newest: tuple[int, ...], cards: list[Card]) -> str:
    """Return the newest build of PyTorch, in uv's word, that a driver and its cards can use.

    `newest` is the newest CUDA that the driver runs, or empty where no driver reports it.
    """
    # Since torch 2.11 those for CUDA 12.8 begin at 7.5 (pytorch/pytorch 172352), as those for CUDA
    # 13 do.
    matches = [re.search(r"capability (\d+\.\d+)", card.detail) for card in cards]
    old_card = any(match and float(match[1]) < 7.5 for match in matches)
    if (0, 0) < newest < (12, 0):
        return "cu118"
    if old_card or (0, 0) < newest < (12, 8):
        return "cu126"
    return "cu130" if newest >= (13, 0) else "cu128"


def _not_started(evidence: Evidence, hardware: str) -> Finding:
    """Return why CUDA shows no card where no message names the cause."""
    cards, driver = evidence.cards, evidence.probe("nvidia")
    error = evidence.probe("cuda").facts.get("error", "torch lists no card.")
    if driver.ended in ("timed out", "killed"):
        return judge_probe("cuda", driver, evidence)
    setting = evidence.variables.get("CUDA_VISIBLE_DEVICES", "")
    if setting.startswith("MIG-"):
        return evidence.finding("cuda", "slice-missing", value=setting, error=error)
    case = _case_of_cuda(evidence)
    answers = cards or evidence.probe("nvidia-smi").ended == "ok"
    if answers and hardware and "libcuda" in error:
        words = {"error": error, "hardware": hardware}
        return evidence.finding("cuda", "compute-part-missing", fix_for=case, **words)
    if evidence.wsl and not cards:
        return evidence.finding("cuda", "wsl-driver", fix_for=_maker(evidence), error=error)
    if cards and "NVIDIA driver" not in error:
        names = ("LD_LIBRARY_PATH", "LD_PRELOAD", "CUDA_HOME", "PYTORCH_CUDA_ALLOC_CONF")
        there = ", ".join(name for name in names if evidence.variables.get(name))
        return evidence.finding(
            "cuda", "driver-error", fix_for=case, error=error, set=there or "none"
        )
    return _without_driver(evidence, hardware, error)


def _without_driver(evidence: Evidence, hardware: str, error: str) -> Finding:
    """Return why CUDA shows no card where no driver lists any."""
    smi = evidence.probe("nvidia-smi").output
    failed = re.search("NVIDIA-SMI (has failed|couldn't find).*", smi)
    off = evidence.host_kind in ("colab", "kaggle") and not evidence.tpu_chips
    if hardware or (failed and not off):
        in_container = evidence.container and hardware
        return evidence.finding(
            "cuda",
            "container-without-gpu" if in_container else "no-driver",
            fix_for=_maker(evidence),
            hardware=hardware or "nvidia-smi is installed",
            detail=failed[0] if failed else error,
        )
    amd = ", ".join(model for vendor, model in evidence.graphics if vendor == AMD)
    if amd:
        return evidence.finding("cuda", "not-built", backend=f"ROCm (AMD graphics {amd})")
    cause, maker = "accelerator-off" if off else "no-hardware", _maker(evidence)
    return evidence.finding("cuda", cause, fix_for=maker, missing=f"{maker} graphics card")


def _maker(evidence: Evidence) -> str:
    """Return whose cards torch was built for."""
    return "AMD" if evidence.torch.hip else "NVIDIA"


def _mps(evidence: Evidence) -> Finding:
    probe = evidence.probe("mps")
    if "mps" not in evidence.probes:  # it is tried on a Mac only
        return evidence.finding("mps", "other-platform")
    if not probe.facts.get("built", True):
        return evidence.finding("mps", "not-built", backend="MPS")
    if probe.kernels and not probe.facts["available"]:
        error = probe.kernels[0].get("error", "no error")
        return evidence.finding("mps", "mps-unavailable", error=error)
    return judge_probe("mps", probe, evidence)


def _xpu(evidence: Evidence) -> Finding:
    probe, built = evidence.probe("xpu"), evidence.torch.xpu
    there = ", ".join(model for vendor, model in evidence.graphics if vendor == INTEL)
    if built and (probe.kernels or explain_silence("xpu", probe, evidence)):
        return judge_probe("xpu", probe, evidence)
    if not there:
        missing = "Intel graphics card that torch can use" if built else "Intel graphics card"
        case = "Intel" if built else ""
        return evidence.finding("xpu", "no-hardware", fix_for=case, missing=missing)
    if built:
        detail = "torch counts no XPU device"
        return evidence.finding("xpu", "no-driver", hardware=f"Intel {there}", detail=detail)
    return evidence.finding("xpu", "not-built", backend=f"XPU (Intel graphics {there})")


def _xla(evidence: Evidence) -> Finding:
    probe, xla, chips = evidence.probe("xla"), evidence.torch_xla, evidence.tpu_chips
    if not xla.version:
        return evidence.finding("xla", "torch-xla-absent")
    error, pjrt = probe.facts.get("error", ""), evidence.variables.get("PJRT_DEVICE")
    judged = judge_probe("xla", probe, evidence)
    if judged.cause in MESSAGES.values() or judged.cause == "broken-install":
        return judged
    if xla.minor != evidence.torch.minor and not probe.kernels:
        error = error or f"its process {probe.ended}."
        case = "TPU" if chips else ""
        return evidence.finding("xla", "torch-xla-mismatch", fix_for=case, error=error)
    if "libtpu not found" in error and chips:
        return evidence.finding("xla", "libtpu-absent", error=error)
    if wrong := _wrong_pjrt_device(evidence, error):
        return evidence.finding("xla", "pjrt-device-wrong", value=pjrt, error=wrong)
    if judged.cause == "works" and probe.facts.get("hardware") == "CPU":
        cause = "libtpu-absent" if chips else "rehearsal"
        judged = evidence.finding("xla", cause, usable=not chips, error="it took the CPU.")
    return judged


def _wrong_pjrt_device(evidence: Evidence, error: str) -> str:
    """Return what is wrong with the device that PJRT_DEVICE names, or ""."""
    pjrt, chips = evidence.variables.get("PJRT_DEVICE"), evidence.tpu_chips
    if error and pjrt is not None and not (pjrt == "TPU" and chips):
        return f"no TPU was found here ({error})." if pjrt == "TPU" else error
    if pjrt == "CPU" and chips and evidence.probe("xla").kernels:
        return "this machine has a TPU, which it hides."
    return ""
