"""From what was found on a machine to a cause for each accelerator family. Nothing here asks the
machine anything.

A family's function yields findings, the first of which counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from course_utils.doctor.evidence import Evidence, Finding, judge, meaning, no_answer
from course_utils.hardware.machine import AMD, INTEL, NVIDIA
from course_utils.hardware.nvidia import Card, split_version, visible_cards

OLDEST_TORCH = (2, 6)
LEFT_OVER = ("TPU_PROCESS_ADDRESSES", "TPU_PROCESS_BOUNDS", "XRT_TPU_CONFIG", "COLAB_TPU_ADDR")


def find_cause(family: str, evidence: Evidence) -> Finding:
    """Return the finding of one family: first what is wrong with torch itself, then with the
    family.
    """
    torch, cpu = evidence.torch, evidence.probe("cpu")
    if not torch.version:
        return evidence.found(family, "torch-absent")
    if torch.shadow:
        return evidence.found(family, "torch-shadowed", file=torch.shadow)
    if torch.minor < OLDEST_TORCH:
        return evidence.found(family, "torch-too-old")
    if family == "cpu" or "error" in cpu.told:
        return judge(family, cpu, evidence)
    return next(
        {"cuda": _cuda, "mps": _mps, "xpu": _xpu, "xla": _xla, "tpu": _tpu}[family](evidence)
    )


def _cuda(evidence: Evidence) -> Iterator[Finding]:
    torch, probe, cards = evidence.torch, evidence.probe("cuda"), _known_cards(evidence)
    hardware = ", ".join(card.name for card in cards)
    if not torch.cuda and hardware and not probe.kernels and (evidence.cards or not torch.hip):
        build = _build(tuple(evidence.probe("nvidia").told.get("cuda", ())), cards)
        yield evidence.found(
            "cuda", "rocm-build" if torch.hip else "cpu-only-build", hardware=hardware, build=build
        )
    if probe.kernels:
        value, there, shown = (
            evidence.variables.get("CUDA_VISIBLE_DEVICES"),
            len(evidence.cards),
            len(probe.kernels),
        )
        hides = f" CUDA_VISIBLE_DEVICES is {value!r}: it shows {shown} of {there} cards."
        yield judge("cuda", probe, evidence, hides if value is not None and shown < there else "")
    names = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES") if torch.hip else ()
    for name in (*names, "CUDA_VISIBLE_DEVICES"):
        value = evidence.variables.get(name)
        is_slice = (value or "").startswith("MIG-") and any(card.mig for card in cards)
        if hardware and not is_slice and not visible_cards(cards, value):
            yield evidence.found("cuda", "hidden", variable=name, value=value, hardware=hardware)
    yield from _refused(evidence)
    silence = no_answer("cuda", probe, evidence)
    # An error before CUDA has started, when no `archs` were told, is explained below.
    if silence and (
        silence.cause == "broken-install" or "error" not in probe.told or "archs" in probe.told
    ):
        yield silence
    yield from _not_started(evidence, hardware)


def _known_cards(evidence: Evidence) -> list[Card]:
    """Return the cards that there are, from the best witness: the driver, nvidia-smi or the PCI
    bus.
    """
    smi = evidence.probe("nvidia-smi")
    vendor, maker = (AMD, "AMD") if evidence.torch.hip else (NVIDIA, "NVIDIA")
    names = smi.noise.splitlines() if smi.ended == "well" and "No devices" not in smi.noise else []
    names = names or [
        f"{maker} device {model} on the PCI bus"
        for its, model in evidence.graphics
        if its == vendor
    ]
    return evidence.cards or [Card(name, uuid=str(index)) for index, name in enumerate(names)]


def _refused(evidence: Evidence) -> Iterator[Finding]:
    """Yield the causes that the driver's version and the messages point to."""
    error, needed = evidence.probe("cuda").told.get("error", ""), evidence.torch.cuda
    refused = re.search(r"too old \(found version (\d+)\)", error)
    newest = (
        split_version(int(refused[1]))
        if refused
        else tuple(evidence.probe("nvidia").told.get("cuda", ()))
    )
    # A driver runs every CUDA of its own major version (CUDA Compatibility, "minor version"). (0,
    # 0) says nothing.
    if needed and any(newest) and (refused or newest[0] < int(needed.split(".")[0])):
        found, compat = f"{newest[0]}.{newest[1]}", "-".join(needed.split(".")[:2])
        build = _build(newest, evidence.cards)
        yield evidence.found(
            "cuda", "driver-too-old", found=found, needed=needed, compat=compat, build=build
        )
    said = " ".join(evidence.probe("nvidia-smi").noise.split()), error
    yield from (
        evidence.found("cuda", meaning(one), device="cuda", error=one)
        for one in said
        if meaning(one)
    )


def _build(newest: tuple[int, ...], cards: list[Card]) -> str:
    """Return the newest build of PyTorch, in uv's word, for these cards and the newest CUDA that
    their driver runs.
    """
    # Since torch 2.11 those for CUDA 12.8 begin at 7.5 (pytorch/pytorch 172352), as those for CUDA
    # 13 do.
    told = [re.search(r"capability (\d+\.\d+)", card.detail) for card in cards]
    if (0, 0) < newest < (12, 8) or any(found and float(found[1]) < 7.5 for found in told):
        return "cu118" if (0, 0) < newest < (12, 0) else "cu126"
    return "cu130" if newest >= (13, 0) else "cu128"  # also where no driver says what it runs


def _not_started(evidence: Evidence, hardware: str) -> Iterator[Finding]:
    """Yield why CUDA shows no card when no message names the cause, from where this runs and what
    cards there are.
    """
    cards, maker = evidence.cards, "AMD" if evidence.torch.hip else "NVIDIA"
    error = evidence.probe("cuda").told.get("error", "torch lists no card.")
    if evidence.probe("nvidia").ended in ("late", "killed"):
        yield judge("cuda", evidence.probe("nvidia"), evidence)
    if evidence.wsl and not cards:
        yield evidence.found("cuda", "wsl-driver", error=error, maker=maker)
    if cards and all(card.mig for card in cards):
        value = evidence.variables.get("CUDA_VISIBLE_DEVICES", "not set")
        yield evidence.found("cuda", "mig", hardware=hardware, value=value)
    if cards and "NVIDIA driver" not in error:
        yield evidence.found("cuda", "driver-error", error=error)
    failed = re.search(
        "NVIDIA-SMI (has failed|couldn't find).*", evidence.probe("nvidia-smi").noise
    )
    off = evidence.place in ("colab", "kaggle") and not evidence.tpu_chips
    if hardware or (failed and not off):
        cause = "container-without-gpu" if evidence.container and hardware else "no-driver"
        detail = failed[0] if failed else error
        yield evidence.found(
            "cuda",
            cause,
            hardware=hardware or "nvidia-smi is installed",
            detail=detail,
            maker=maker,
        )
    if amd := [model for vendor, model in evidence.graphics if vendor == AMD]:
        yield evidence.found("cuda", "not-built", maker=f"ROCm (AMD graphics {', '.join(amd)})")
    yield evidence.found(
        "cuda", "accelerator-off" if off else "no-hardware", maker=f"{maker} graphics card"
    )


def _mps(evidence: Evidence) -> Iterator[Finding]:
    probe = evidence.probe("mps")
    if "mps" not in evidence.probes:  # it is tried on a Mac only
        yield evidence.found("mps", "other-platform")
    if not probe.told.get("built", True):
        yield evidence.found("mps", "not-built", maker="MPS")
    if probe.kernels and not probe.told["available"]:
        yield evidence.found(
            "mps", "mps-unavailable", error=probe.kernels[0].get("error", "no error")
        )
    yield judge("mps", probe, evidence)


def _xpu(evidence: Evidence) -> Iterator[Finding]:
    probe, built = evidence.probe("xpu"), evidence.torch.xpu
    there = ", ".join(model for vendor, model in evidence.graphics if vendor == INTEL)
    if built and (probe.kernels or no_answer("xpu", probe, evidence)):
        yield judge("xpu", probe, evidence)
    if not there:
        yield evidence.found(
            "xpu", "no-hardware", maker="Intel graphics card" + " that torch can use" * built
        )
    if built:
        yield evidence.found(
            "xpu", "no-driver", hardware=f"Intel {there}", detail="torch counts no XPU device"
        )
    yield evidence.found("xpu", "not-built", maker=f"XPU (Intel graphics {there})")


def _xla(evidence: Evidence) -> Iterator[Finding]:
    probe, xla, chips = evidence.probe("xla"), evidence.torch_xla, evidence.tpu_chips
    if not xla.version:
        yield evidence.found("xla", "torch-xla-absent")
    error, pjrt = probe.told.get("error", ""), evidence.variables.get("PJRT_DEVICE")
    judged = judge("xla", probe, evidence)
    if judged.cause == "broken-install":
        yield judged
    if xla.minor != evidence.torch.minor and not probe.kernels:
        maker = "TPU" if chips else "none"
        yield evidence.found(
            "xla", "torch-xla-mismatch", error=error or f"it ended {probe.ended}", maker=maker
        )
    if "libtpu not found" in error and chips:
        yield evidence.found("xla", "libtpu-absent", error=error)
    if error and pjrt is not None and not (pjrt == "TPU" and chips):
        error = f"no TPU was found here ({error})." if pjrt == "TPU" else error
        yield evidence.found("xla", "pjrt-device-wrong", value=pjrt, error=error)
    if pjrt == "CPU" and chips and probe.kernels:
        hides = "this machine has a TPU, which it hides."
        yield evidence.found(
            "xla", "pjrt-device-wrong", usable=judged.usable, value=pjrt, error=hides
        )
    if judged.cause == "works" and probe.told.get("hardware") == "CPU":
        judged = evidence.found(
            "xla", "libtpu-absent" if chips else "rehearsal", usable=True, error="it took the CPU."
        )
    # "local" is what Kaggle's TPU image itself sets (Kaggle/docker-python, tpu/Dockerfile).
    names = [name for name in LEFT_OVER if evidence.variables.get(name, "local") != "local"]
    if names and judged.cause in ("works", "rehearsal", "hangs", "kernel-failed", "not-permitted"):
        effect = "It still works here." if judged.usable else judged.why
        words = {"names": ", ".join(names), "quoted": ", ".join(map(repr, names)), "effect": effect}
        yield evidence.found("xla", "tpu-variables-left-over", usable=judged.usable, **words)
    yield judged


def _tpu(evidence: Evidence) -> Iterator[Finding]:
    probe, package = evidence.probe("tpu"), evidence.torch_tpu
    if not package.version:
        yield evidence.found("tpu", "torchtpu-absent")
    if evidence.tpu_chips:
        yield judge("tpu", probe, evidence)
    problem = no_answer("tpu", probe, evidence)
    error = problem.why[:1].lower() + problem.why[1:] if problem else "it has nothing to run on."
    yield evidence.found("tpu", "torchtpu-off-cloud", version=package.version, error=error)
