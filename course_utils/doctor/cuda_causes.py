"""Why CUDA (or ROCm) does not work: from files, from the driver's own words, and from the kernels that were tried."""

from __future__ import annotations

import re

from course_utils.doctor.evidence import Evidence, Finding, judge, no_answer
from course_utils.hardware.machine import AMD, NVIDIA
from course_utils.hardware.nvidia import Card, split_version, visible_cards

# What nvidia-smi, torch or the CUDA runtime says, and what it means; the first that was said counts.
SAYINGS = {
    "Driver/library version mismatch|unsupported display driver / cuda driver": "driver-mismatch",
    "Failed to initialize NVML: Unknown Error": "gpu-taken-away",
    "CUDA unknown error": "driver-stuck",
    "No devices were found": "card-refused",
}


def cuda_cause(evidence: Evidence) -> Finding:
    """Return the finding of the family "cuda"."""
    torch, probe = evidence.torch, evidence.probe("cuda")
    hardware = _graphics_hardware(evidence)
    if not torch.cuda and not torch.hip and hardware:
        return evidence.found("cuda", "cpu-only-build", version=torch.version, hardware=hardware)
    if probe.kernels:
        return judge("cuda", probe, evidence, _partly_hidden(evidence))
    tried = probe.told.get("libcuda", True)
    return (
        _hidden(evidence, hardware)
        or _driver_too_old(evidence)
        or _said(evidence, hardware)
        or (no_answer("cuda", probe, evidence) if tried else None)
        or _wsl(evidence)
        or _mig(evidence)
        or _no_driver(evidence, hardware)
    )


def _driver(evidence: Evidence) -> dict:
    return evidence.probe("nvidia").told.get("driver") or {}


def _cards(evidence: Evidence) -> tuple[Card, ...]:
    return tuple(Card(**card) for card in _driver(evidence).get("cards", ()))


def _smi_names(evidence: Evidence) -> list[str]:
    listed = evidence.smi.ended == "well" and "No devices" not in evidence.smi.noise
    return evidence.smi.noise.splitlines() if listed else []


def _graphics_hardware(evidence: Evidence) -> str:
    """Return what cards there are, in words, from the best witness; "" when nothing shows any."""
    if names := [card.name for card in _cards(evidence)] or _smi_names(evidence):
        return ", ".join(names)
    vendor, maker = (AMD, "AMD") if evidence.torch.hip else (NVIDIA, "NVIDIA")
    there = [pci.model for pci in evidence.pci if pci.vendor == vendor and pci.is_display]
    return f"{maker} device {', '.join(there)} on the PCI bus" if there else ""


def _hidden(evidence: Evidence, hardware: str) -> Finding | None:
    names = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES") if evidence.torch.hip else ()
    for name in (*names, "CUDA_VISIBLE_DEVICES"):
        value = evidence.variables.get(name)
        if value is not None and hardware and not _shows_any(value, evidence):
            return evidence.found("cuda", "hidden", variable=name, value=value, hardware=hardware)
    return None


def _shows_any(value: str, evidence: Evidence) -> bool:
    # Where only nvidia-smi or the PCI bus saw cards, judge by how many there are.
    there = _smi_names(evidence) or [pci.model for pci in evidence.pci if pci.is_display]
    cards = _cards(evidence) or tuple(Card(str(index), "") for index, _ in enumerate(there))
    return value.startswith("MIG-") or bool(visible_cards(cards, value))


def _partly_hidden(evidence: Evidence) -> str:
    value, cards = evidence.variables.get("CUDA_VISIBLE_DEVICES"), _cards(evidence)
    shown = len(evidence.probe("cuda").kernels)
    hides = value is not None and shown < len(cards)
    return f" CUDA_VISIBLE_DEVICES is {value!r}: it shows {shown} of {len(cards)} cards." if hides else ""


def _driver_too_old(evidence: Evidence) -> Finding | None:
    """A driver runs every CUDA of its own major version (CUDA Compatibility, "minor version compatibility")."""
    told, needed = evidence.probe("cuda").told, evidence.torch.cuda
    refused = re.search(r"too old \(found version (\d+)\)", told.get("said", "") + told.get("error", ""))
    newest = split_version(int(refused[1])) if refused else tuple(_driver(evidence).get("cuda", ()))
    if not needed or not newest or (not refused and newest[0] >= int(needed.split(".")[0])):
        return None
    driver_cuda, compat = f"{newest[0]}.{newest[1]}", "-".join(needed.split(".")[:2])
    return evidence.found("cuda", "driver-too-old", driver_cuda=driver_cuda, torch_cuda=needed, compat=compat)


def _said(evidence: Evidence, hardware: str) -> Finding | None:
    told = evidence.probe("cuda").told
    said = " ".join([evidence.smi.noise, told.get("error", ""), told.get("said", "")])
    for words, cause in SAYINGS.items():
        if found := re.search(words, said):
            return evidence.found("cuda", cause, said=found[0], hardware=hardware or "nvidia-smi is installed")
    return None


def _wsl(evidence: Evidence) -> Finding | None:
    if evidence.wsl is None or _cards(evidence):
        return None
    there = f"{evidence.wsl} is here, but CUDA does not start with it" if evidence.wsl else "/usr/lib/wsl/lib has none"
    return evidence.found("cuda", "wsl-driver", detail=evidence.probe("cuda").told.get("error", there))


def _mig(evidence: Evidence) -> Finding | None:
    cards = _cards(evidence)
    if not cards or not all(card.mig for card in cards):
        return None
    value = evidence.variables.get("CUDA_VISIBLE_DEVICES", "not set")
    return evidence.found("cuda", "mig", hardware=", ".join(card.name for card in cards), value=value)


def _no_driver(evidence: Evidence, hardware: str) -> Finding:
    error = evidence.probe("cuda").told.get("error", "its library (libcuda) is not here.")
    failed = re.search("NVIDIA-SMI has failed.*", evidence.smi.noise)
    if "NVIDIA driver" not in error and not evidence.torch.hip and _cards(evidence):
        return evidence.found("cuda", "driver-error", error=error)
    if hardware or failed:
        detail = failed[0] if failed else error
        cause = "container-without-gpu" if evidence.container and hardware else "no-driver"
        return evidence.found("cuda", cause, hardware=hardware or "nvidia-smi is installed", detail=detail)
    off = evidence.place in ("colab", "kaggle") and not evidence.tpu_chips
    maker = "AMD graphics card" if evidence.torch.hip else "NVIDIA graphics card"
    return evidence.found("cuda", "accelerator-off" if off else "no-hardware", maker=maker)
