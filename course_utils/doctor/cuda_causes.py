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
MAKERS = {NVIDIA: "NVIDIA", AMD: "AMD"}


def cuda_cause(evidence: Evidence) -> Finding:
    """Return the finding of the family "cuda"."""
    torch, probe, cards = evidence.torch, evidence.probe("cuda"), _known_cards(evidence)
    hardware = ", ".join(card.name for card in cards)
    if not torch.cuda and not torch.hip and hardware:
        return evidence.found("cuda", "cpu-only-build", hardware=hardware)
    if probe.kernels:
        value, there, shown = evidence.variables.get("CUDA_VISIBLE_DEVICES"), len(evidence.cards), len(probe.kernels)
        hides = f" CUDA_VISIBLE_DEVICES is {value!r}: it shows {shown} of {there} cards."
        return judge("cuda", probe, evidence, hides if value is not None and shown < there else "")
    return (
        _hidden(evidence, cards, hardware)
        or _driver_too_old(evidence)
        or _said(evidence, hardware)
        or no_answer("cuda", probe, evidence)
        or _not_started(evidence, hardware)
    )


def _known_cards(evidence: Evidence) -> list[Card]:
    """Return the cards that there are, from the best witness: the driver, nvidia-smi or the PCI bus."""
    smi, vendor = evidence.probe("nvidia-smi"), AMD if evidence.torch.hip else NVIDIA
    names = smi.noise.splitlines() if smi.ended == "well" and "No devices" not in smi.noise else []
    on_bus = [model for its_vendor, model in evidence.graphics if its_vendor == vendor]
    names = names or [f"{MAKERS[vendor]} device {model} on the PCI bus" for model in on_bus]
    return evidence.cards or [Card(name, uuid=str(index)) for index, name in enumerate(names)]


def _hidden(evidence: Evidence, cards: list[Card], hardware: str) -> Finding | None:
    names = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES") if evidence.torch.hip else ()
    for name in (*names, "CUDA_VISIBLE_DEVICES"):
        value = evidence.variables.get(name)
        if hardware and value is not None and not value.startswith("MIG-") and not visible_cards(cards, value):
            return evidence.found("cuda", "hidden", variable=name, value=value, hardware=hardware)
    return None


def _driver_too_old(evidence: Evidence) -> Finding | None:
    """A driver runs every CUDA of its own major version (CUDA Compatibility, "minor version"). (0, 0) says nothing."""
    error, needed = evidence.probe("cuda").told.get("error", ""), evidence.torch.cuda
    refused = re.search(r"too old \(found version (\d+)\)", error)
    newest = split_version(int(refused[1])) if refused else tuple(evidence.driver.get("cuda", ()))
    if not needed or not any(newest) or (not refused and newest[0] >= int(needed.split(".")[0])):
        return None
    driver_cuda, compat = f"{newest[0]}.{newest[1]}", "-".join(needed.split(".")[:2])
    return evidence.found("cuda", "driver-too-old", driver_cuda=driver_cuda, torch_cuda=needed, compat=compat)


def _said(evidence: Evidence, hardware: str) -> Finding | None:
    said = f"{evidence.probe('nvidia-smi').noise} {evidence.probe('cuda').told.get('error', '')}"
    for words, cause in SAYINGS.items():
        if found := re.search(words, said):
            return evidence.found("cuda", cause, said=found[0], hardware=hardware or "nvidia-smi is installed")
    return None


def _not_started(evidence: Evidence, hardware: str) -> Finding:
    """Return why CUDA shows no card though nobody names the cause, from where this runs and what cards there are."""
    cards, hip = evidence.cards, evidence.torch.hip
    error = evidence.probe("cuda").told.get("error")
    if evidence.wsl is not None and not cards:
        useless = f"{evidence.wsl} is here, but CUDA does not start with it"
        detail = error or (useless if evidence.wsl else "/usr/lib/wsl/lib has none")
        return evidence.found("cuda", "wsl-driver", detail=detail)
    error = error or "its library (libcuda) is not here."
    if cards and all(card.mig for card in cards):
        value = evidence.variables.get("CUDA_VISIBLE_DEVICES", "not set")
        return evidence.found("cuda", "mig", hardware=hardware, value=value)
    if cards and not hip and "NVIDIA driver" not in error:
        return evidence.found("cuda", "driver-error", error=error)
    failed = re.search("NVIDIA-SMI has failed.*", evidence.probe("nvidia-smi").noise)
    off = evidence.place in ("colab", "kaggle") and not evidence.tpu_chips
    if hardware or (failed and not off):
        cause = "container-without-gpu" if evidence.container and hardware else "no-driver"
        detail = failed[0] if failed else error
        return evidence.found("cuda", cause, hardware=hardware or "nvidia-smi is installed", detail=detail)
    if not hip and (amd := [model for vendor, model in evidence.graphics if vendor == AMD]):
        return evidence.found("cuda", "not-built", maker=f"ROCm (AMD graphics {', '.join(amd)})")
    maker = "AMD graphics card" if hip else "NVIDIA graphics card"
    return evidence.found("cuda", "accelerator-off" if off else "no-hardware", maker=maker)
