"""From what was found on a machine to a cause for each accelerator family. Nothing here asks the machine anything."""

from course_utils.doctor.children import Outcome
from course_utils.doctor.cuda_causes import cuda_cause
from course_utils.doctor.evidence import Evidence, Finding, judge_kernels, no_answer
from course_utils.hardware.machine import INTEL

OLDEST_TORCH = (2, 6)
LEFT_OVER = ("TPU_PROCESS_ADDRESSES", "TPU_PROCESS_BOUNDS", "XRT_TPU_CONFIG", "COLAB_TPU_ADDR")


def find_cause(family: str, evidence: Evidence) -> Finding:
    """Return the finding of one family: first what is wrong with torch itself, then with the family."""
    torch = evidence.torch
    if torch is None:
        return evidence.found(family, "torch-absent", python=evidence.python)
    if torch.minor < OLDEST_TORCH:
        return evidence.found(family, "torch-too-old", version=torch.version)
    cpu = evidence.probes["cpu"]
    unknown_build = family in ("mps", "xpu") and "mps_built" not in cpu.told
    if family == "cpu" or "import_error" in cpu.told or unknown_build:
        return no_answer(family, cpu, evidence) or judge_kernels(family, cpu, evidence)
    return {"cuda": cuda_cause, "mps": _mps, "xpu": _xpu, "xla": _xla, "tpu": _tpu}[family](evidence)


def _mps(evidence: Evidence) -> Finding:
    probe, torch = evidence.probes["mps"], evidence.torch
    if not evidence.probes["cpu"].told.get("mps_built"):
        if not evidence.system.startswith("Darwin"):
            return evidence.found("mps", "other-platform", what="MPS is for the GPU of a Mac; this is not a Mac.")
        return evidence.found("mps", "not-built", version=torch.version, maker="MPS")
    unavailable = probe.told.get("available") is False
    if unavailable and probe.kernels:
        return evidence.found("mps", "mps-unavailable", error=probe.kernels[0].get("error", "no error"))
    return no_answer("mps", probe, evidence) or judge_kernels("mps", probe, evidence)


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
    return no_answer("xpu", probe, evidence) or judge_kernels("xpu", probe, evidence)


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
        error = error if pjrt != "TPU" or evidence.tpu_chips else f"no TPU was found here ({error})."
        return evidence.found("xla", "pjrt-device-wrong", value=pjrt, error=error)
    if pjrt == "CPU" and evidence.tpu_chips and probe.kernels:
        hides = "this machine has a TPU, which it hides."
        return evidence.found("xla", "pjrt-device-wrong", usable=True, value=pjrt, error=hides)
    return _left_over(evidence, _xla_kernels(evidence, probe, error))


def _left_over(evidence: Evidence, judged: Finding) -> Finding:
    names = [name for name in LEFT_OVER if name in evidence.variables]
    if not names or judged.cause not in ("works", "rehearsal", "hangs", "kernel-failed"):
        return judged
    effect = "It still works here." if judged.usable else judged.why
    words = {"names": ", ".join(names), "effect": effect, "quoted": ", ".join(map(repr, names))}
    return evidence.found("xla", "tpu-variables-left-over", usable=judged.usable, **words)


def _xla_kernels(evidence: Evidence, probe: Outcome, error: str) -> Finding:
    if error:
        return evidence.found("xla", "kernel-failed", device="XLA", step=probe.told.get("step", ""), error=error)
    judged = no_answer("xla", probe, evidence) or judge_kernels("xla", probe, evidence)
    if judged.cause == "works" and probe.told.get("hardware") == "CPU":
        return evidence.found("xla", "rehearsal", usable=True)
    return judged


def _tpu(evidence: Evidence) -> Finding:
    probe, package = evidence.probes["tpu"], evidence.torch_tpu
    if package is None:
        return evidence.found("tpu", "torchtpu-absent")
    if evidence.tpu_chips:
        return no_answer("tpu", probe, evidence) or judge_kernels("tpu", probe, evidence)
    problem = no_answer("tpu", probe, evidence)
    error = problem.why[:1].lower() + problem.why[1:] if problem else "it has nothing to run on."
    return evidence.found("tpu", "torchtpu-off-cloud", version=package.version, error=error)
