"""From what was found on a machine to a cause for each accelerator family. Nothing here asks the machine anything."""

import re
from dataclasses import dataclass, field

from course_utils.cards import clean, html_card
from course_utils.machine import AMD, INTEL, NVIDIA, PciDevice
from course_utils.nvidia import Card, split_version, visible_cards
from course_utils.probes import Outcome
from course_utils.remedies import explain

OLDEST_TORCH = (2, 6)
LEFT_OVER = ("TPU_PROCESS_ADDRESSES", "TPU_PROCESS_BOUNDS", "XRT_TPU_CONFIG", "COLAB_TPU_ADDR")


@dataclass(frozen=True, repr=False)
class Finding:
    """What the doctor says of one accelerator family.

    Attributes:
        family: one of `devices.KINDS`.
        usable: True when a kernel ran on it and its answer agreed with the CPU's.
        cause: one word for scripts, such as "works" or "no-driver": a key of `remedies.REMEDIES`.
        why: the cause in words, with what was found.
        fix: what to do about it, in the place where this runs; "" when there is nothing to do.
    """

    family: str
    usable: bool
    cause: str
    why: str
    fix: str

    @property
    def works(self) -> str:
        """Return "yes" or "no", for a person."""
        return "yes" if self.usable else "no"

    def __repr__(self) -> str:
        fix = f"\n  Fix: {clean(self.fix, 600)}" if self.fix else ""
        return f"{self.family}: {self.cause}\n  Why: {clean(self.why, 900)}{fix}"

    def _repr_html_(self) -> str:
        rows = [("works", self.works), ("why", self.why), ("fix", self.fix or "nothing to do")]
        return html_card(f"{self.family}: {self.cause}", ("", "the doctor says"), rows)


@dataclass(frozen=True)
class Package:
    """An installed distribution as its files describe it, without importing it."""

    version: str
    cuda: str | None = None
    hip: str | None = None

    @property
    def minor(self) -> tuple[int, int]:
        """The first two parts of the version, such as (2, 9)."""
        numbers = re.findall(r"\d+", self.version)
        return int(numbers[0]), int(numbers[1])


@dataclass(frozen=True)
class Evidence:
    """All that was found: files and variables first, then how each child process ended."""

    place: str
    system: str
    python: str
    variables: dict[str, str]
    pci: list[PciDevice]
    tpu_chips: int
    torch: Package | None
    torch_xla: Package | None
    torch_tpu: Package | None
    limit_s: float
    smi: Outcome = field(default_factory=lambda: Outcome("badly"))
    probes: dict[str, Outcome] = field(default_factory=dict)

    def found(self, family: str, cause: str, *, usable: bool = False, **words: object) -> Finding:
        """Return the finding of one cause, with its words filled in for this place."""
        why, fix = explain(cause, self.place, **words)
        return Finding(family, usable, cause, why, fix)


def find_cause(family: str, evidence: Evidence) -> Finding:
    """Return the finding of one family: first what is wrong with torch itself, then with the family."""
    torch = evidence.torch
    if torch is None:
        return evidence.found(family, "torch-absent", python=evidence.python)
    if torch.minor < OLDEST_TORCH:
        return evidence.found(family, "torch-too-old", version=torch.version)
    cpu = evidence.probes["cpu"]
    if family == "cpu" or "import_error" in cpu.told:
        return _no_answer(family, cpu, evidence) or _kernels(family, cpu, evidence)
    return {"cuda": _cuda, "mps": _mps, "xpu": _xpu, "xla": _xla, "tpu": _tpu}[family](evidence)


def _no_answer(family: str, outcome: Outcome, evidence: Evidence) -> Finding | None:
    """Return why a child told nothing useful, or None when it did."""
    told = outcome.told
    if "import_error" in told:
        return evidence.found(family, "broken-install", error=told["import_error"])
    if outcome.ended == "killed":
        return evidence.found(family, "died", signal=outcome.signal, step=told.get("step", "starting Python"))
    if outcome.ended == "late":
        return evidence.found(family, "hangs", limit=f"{evidence.limit_s:g}", step=told.get("step", "starting Python"))
    if outcome.ended == "badly":
        error = outcome.noise.strip().splitlines()[-1:] or ["no message"]
        return evidence.found(
            family, "kernel-failed", device=family, step=told.get("step", "starting Python"), error=error[0]
        )
    return None


def _kernels(family: str, outcome: Outcome, evidence: Evidence, note: str = "") -> Finding:
    """Judge a family by the kernels that ran: usable when one device's answers agree, with the first thing wrong."""
    bad = [kernel for kernel in outcome.kernels if "failed" in kernel or "wrong" in kernel]
    good = [kernel["device"] for kernel in outcome.kernels if kernel not in bad]
    if not bad:
        what = f"An addition, a matrix product and a gradient on {', '.join(good)} agree with the CPU's.{note}"
        if family == "cpu":
            what = "An addition, a matrix product and a gradient ran."
        return evidence.found(family, "works", usable=bool(good), what=what)
    first = bad[0]
    device = first["device"]
    about = outcome.told.get(device, {})
    words = {"device": device, "error": first.get("error", ""), "name": about.get("name", "")}
    if "wrong" in first:
        cause, words["step"], words["difference"] = "wrong-answer", first["wrong"], first["difference"]
    elif "no kernel image" in words["error"]:
        words["capability"] = ".".join(map(str, about.get("capability", ["unknown"])))
        cause, words["archs"] = "card-too-old", " ".join(outcome.told.get("archs", []))
    elif first["kind"] == "OutOfMemoryError" or "out of memory" in words["error"]:
        cause = "out-of-memory"
    else:
        cause, words["step"] = "kernel-failed", first["failed"]
    return evidence.found(family, cause, usable=bool(good), **words)


def _cuda(evidence: Evidence) -> Finding:
    torch, probe = evidence.torch, evidence.probes["cuda"]
    hardware = _graphics_hardware(evidence)
    if not torch.cuda and not torch.hip and hardware:
        return evidence.found("cuda", "cpu-only-build", version=torch.version, hardware=hardware)
    if probe.kernels:
        return _no_answer("cuda", probe, evidence) or _kernels("cuda", probe, evidence, _partly_hidden(evidence))
    return (
        _hidden(evidence, hardware)
        or _driver_too_old(evidence)
        or (_no_answer("cuda", probe, evidence) if _cuda_was_tried(evidence) else None)
        or _no_driver(evidence, hardware)
    )


def _cuda_was_tried(evidence: Evidence) -> bool:
    return bool(evidence.probes["cuda"].told)


def _graphics_hardware(evidence: Evidence) -> str:
    """Return what cards there are, in words, from the best witness; "" when nothing shows any."""
    cards = _cards(evidence)
    if cards:
        return ", ".join(card.name for card in cards)
    if evidence.smi.ended == "well" and evidence.smi.noise.strip():
        return ", ".join(evidence.smi.noise.strip().splitlines())
    vendor, maker = (AMD, "AMD") if evidence.torch.hip else (NVIDIA, "NVIDIA")
    there = [pci.model for pci in evidence.pci if pci.vendor == vendor and pci.is_display]
    return f"on the PCI bus: {maker} device {', '.join(there)}" if there else ""


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
        smi = evidence.smi.noise.splitlines() if evidence.smi.ended == "well" else []
        there = smi or [pci for pci in evidence.pci if pci.is_display]
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
    smi_said = evidence.smi.noise.strip().splitlines()
    if not hardware and "NVIDIA-SMI has failed" in evidence.smi.noise:
        hardware = "nvidia-smi is installed"
    if hardware:
        if "NVIDIA driver" not in error and not evidence.torch.hip and _cards(evidence):
            return evidence.found("cuda", "driver-error", error=error)
        detail = smi_said[0] if smi_said and evidence.smi.ended != "well" else error
        return evidence.found("cuda", "no-driver", hardware=hardware, detail=detail)
    if evidence.place in ("colab", "kaggle") and not evidence.tpu_chips:
        return evidence.found("cuda", "accelerator-off", maker=maker)
    return evidence.found("cuda", "no-hardware", maker=maker)


def _mps(evidence: Evidence) -> Finding:
    probe, torch = evidence.probes["mps"], evidence.torch
    if not evidence.probes["cpu"].told.get("mps_built"):
        if not evidence.system.startswith("Darwin"):
            return evidence.found("mps", "other-platform", what="MPS is for the GPU of a Mac; this is not a Mac.")
        return evidence.found("mps", "not-built", version=torch.version, maker="MPS")
    unavailable = probe.told.get("available") is False
    if unavailable and probe.kernels:
        return evidence.found("mps", "mps-unavailable", error=probe.kernels[0].get("error", "no error"))
    return _no_answer("mps", probe, evidence) or _kernels("mps", probe, evidence)


def _xpu(evidence: Evidence) -> Finding:
    probe = evidence.probes["xpu"]
    there = [pci.model for pci in evidence.pci if pci.vendor == INTEL and pci.is_display]
    if not evidence.probes["cpu"].told.get("xpu_built"):
        if there:
            hardware = f"Intel graphics {', '.join(there)}"
            return evidence.found("xpu", "not-built", version=evidence.torch.version, maker=f"XPU ({hardware})")
        return evidence.found("xpu", "no-hardware", maker="Intel graphics card")
    if probe.ended == "well" and not probe.kernels:
        if there:
            return evidence.found("xpu", "no-driver", hardware=f"Intel {there[0]}", detail="torch counts no XPU device")
        return evidence.found("xpu", "no-hardware", maker="Intel graphics card")
    return _no_answer("xpu", probe, evidence) or _kernels("xpu", probe, evidence)


def _xla(evidence: Evidence) -> Finding:
    probe, xla = evidence.probes["xla"], evidence.torch_xla
    if xla is None:
        return evidence.found("xla", "torch-xla-absent")
    error = probe.told.get("error", "")
    pjrt = evidence.variables.get("PJRT_DEVICE")
    if xla.minor != evidence.torch.minor and not probe.kernels:
        minor = ".".join(map(str, xla.minor))
        words = {"xla": xla.version, "xla_minor": minor, "version": evidence.torch.version}
        return evidence.found("xla", "torch-xla-mismatch", error=error or f"it ended {probe.ended}", **words)
    if error and "libtpu not found" in error and evidence.tpu_chips:
        return evidence.found("xla", "libtpu-absent", error=error, xla=xla.version)
    if error and pjrt is not None:
        return evidence.found("xla", "pjrt-device-wrong", value=pjrt, error=error)
    if pjrt == "CPU" and evidence.tpu_chips and probe.kernels:
        hides = "this machine has a TPU, which it hides."
        return evidence.found("xla", "pjrt-device-wrong", usable=True, value=pjrt, error=hides)
    judged = _xla_kernels(evidence, probe, error)
    names = [name for name in LEFT_OVER if name in evidence.variables]
    if not names or judged.cause not in ("works", "rehearsal", "hangs", "kernel-failed"):
        return judged
    effect = "It still works here." if judged.usable else judged.why
    quoted = ", ".join(map(repr, names))
    words = {"names": ", ".join(names), "effect": effect, "quoted": quoted}
    return evidence.found("xla", "tpu-variables-left-over", usable=judged.usable, **words)


def _xla_kernels(evidence: Evidence, probe: Outcome, error: str) -> Finding:
    if error:
        return evidence.found("xla", "kernel-failed", device="XLA", step=probe.told.get("step", ""), error=error)
    judged = _no_answer("xla", probe, evidence) or _kernels("xla", probe, evidence)
    if judged.cause == "works" and probe.told.get("hardware") == "CPU":
        return evidence.found("xla", "rehearsal", usable=True)
    return judged


def _tpu(evidence: Evidence) -> Finding:
    probe, package = evidence.probes["tpu"], evidence.torch_tpu
    if package is None:
        return evidence.found("tpu", "torchtpu-absent")
    if evidence.tpu_chips:
        return _no_answer("tpu", probe, evidence) or _kernels("tpu", probe, evidence)
    problem = _no_answer("tpu", probe, evidence)
    error = problem.why[:1].lower() + problem.why[1:] if problem else "it has nothing to run on."
    return evidence.found("tpu", "torchtpu-off-cloud", version=package.version, error=error)
