"""Why CUDA (or ROCm) does not work: from files, from the driver's own words, and from the kernels that were tried."""

import re

from course_utils.doctor.evidence import Evidence, Finding, judge_kernels, no_answer
from course_utils.hardware.machine import AMD, NVIDIA
from course_utils.hardware.nvidia import Card, split_version, visible_cards


def cuda_cause(evidence: Evidence) -> Finding:
    """Return the finding of the family "cuda"."""
    torch, probe = evidence.torch, evidence.probes["cuda"]
    hardware = _graphics_hardware(evidence)
    if not torch.cuda and not torch.hip and hardware:
        return evidence.found("cuda", "cpu-only-build", version=torch.version, hardware=hardware)
    if probe.kernels:
        return no_answer("cuda", probe, evidence) or judge_kernels("cuda", probe, evidence, _partly_hidden(evidence))
    return (
        _hidden(evidence, hardware)
        or _driver_too_old(evidence)
        or (no_answer("cuda", probe, evidence) if _cuda_was_tried(evidence) else None)
        or _no_driver(evidence, hardware)
    )


def _cuda_was_tried(evidence: Evidence) -> bool:
    return bool(evidence.probes["cuda"].told)


def _graphics_hardware(evidence: Evidence) -> str:
    """Return what cards there are, in words, from the best witness; "" when nothing shows any."""
    cards = _cards(evidence)
    if cards:
        return ", ".join(card.name for card in cards)
    if names := _smi_names(evidence):
        return ", ".join(names)
    vendor, maker = (AMD, "AMD") if evidence.torch.hip else (NVIDIA, "NVIDIA")
    there = [pci.model for pci in evidence.pci if pci.vendor == vendor and pci.is_display]
    return f"on the PCI bus: {maker} device {', '.join(there)}" if there else ""


def _smi_names(evidence: Evidence) -> list[str]:
    listed = evidence.smi.ended == "well" and "No devices" not in evidence.smi.noise
    return evidence.smi.noise.splitlines() if listed else []


def _cards(evidence: Evidence) -> tuple[Card, ...]:
    driver = evidence.probes["nvidia"].told.get("driver") or {}
    return tuple(Card(**card) for card in driver.get("cards", ()))


def _hidden(evidence: Evidence, hardware: str) -> Finding | None:
    names = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES") if evidence.torch.hip else ()
    for name in (*names, "CUDA_VISIBLE_DEVICES"):
        value = evidence.variables.get(name)
        if value is not None and hardware and not _shows_any(value, evidence):
            return evidence.found("cuda", "hidden", variable=name, value=value, hardware=hardware)
    return None


def _shows_any(value: str, evidence: Evidence) -> bool:
    cards = _cards(evidence)
    if not cards:  # only nvidia-smi or the PCI bus saw them: judge by how many there are
        there = _smi_names(evidence) or [pci for pci in evidence.pci if pci.is_display]
        cards = tuple(Card(str(index), "") for index, _ in enumerate(there))
    return value.startswith("MIG-") or bool(visible_cards(cards, value))


def _partly_hidden(evidence: Evidence) -> str:
    value, cards = evidence.variables.get("CUDA_VISIBLE_DEVICES"), _cards(evidence)
    shown = len(evidence.probes["cuda"].kernels)
    hides = value is not None and shown < len(cards)
    return f" CUDA_VISIBLE_DEVICES is {value!r}: it shows {shown} of {len(cards)} cards." if hides else ""


def _driver_too_old(evidence: Evidence) -> Finding | None:
    """A driver runs every CUDA of its own major version (CUDA Compatibility, "minor version compatibility")."""
    driver = evidence.probes["nvidia"].told.get("driver") or {}
    told = evidence.probes["cuda"].told
    refused = re.search(r"too old \(found version (\d+)\)", told.get("said", "") + told.get("error", ""))
    newest = split_version(int(refused[1])) if refused else tuple(driver.get("cuda", ()))
    needed = evidence.torch.cuda
    if not needed or not newest or (not refused and newest[0] >= int(needed.split(".")[0])):
        return None
    return evidence.found("cuda", "driver-too-old", driver_cuda=f"{newest[0]}.{newest[1]}", torch_cuda=needed)


def _no_driver(evidence: Evidence, hardware: str) -> Finding:
    maker = "AMD graphics card" if evidence.torch.hip else "NVIDIA graphics card"
    error = evidence.probes["cuda"].told.get("error", "its library (libcuda) is not here.")
    if not hardware and "NVIDIA-SMI has failed" in evidence.smi.noise:
        hardware = "nvidia-smi is installed"
    if hardware:
        if "NVIDIA driver" not in error and not evidence.torch.hip and _cards(evidence):
            return evidence.found("cuda", "driver-error", error=error)
        failed = re.search("NVIDIA-SMI has failed.*", evidence.smi.noise)
        detail = failed[0] if failed else error
        return evidence.found("cuda", "no-driver", hardware=hardware, detail=detail)
    if evidence.place in ("colab", "kaggle") and not evidence.tpu_chips:
        return evidence.found("cuda", "accelerator-off", maker=maker)
    return evidence.found("cuda", "no-hardware", maker=maker)
