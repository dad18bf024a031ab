"""From what was found on a machine to a cause for each accelerator family. Nothing here asks the machine anything."""

from __future__ import annotations

from course_utils.doctor.cuda_causes import cuda_cause
from course_utils.doctor.evidence import Evidence, Finding, judge, no_answer
from course_utils.hardware.machine import INTEL

OLDEST_TORCH = (2, 6)
LEFT_OVER = ("TPU_PROCESS_ADDRESSES", "TPU_PROCESS_BOUNDS", "XRT_TPU_CONFIG", "COLAB_TPU_ADDR")


def find_cause(family: str, evidence: Evidence) -> Finding:
    """Return the finding of one family: first what is wrong with torch itself, then with the family."""
    torch, cpu = evidence.torch, evidence.probe("cpu")
    if not torch.version:
        return evidence.found(family, "torch-absent")
    if torch.minor < OLDEST_TORCH:
        return evidence.found(family, "torch-too-old")
    if family == "cpu" or "import_error" in cpu.told:
        return judge(family, cpu, evidence)
    return {"cuda": cuda_cause, "mps": _mps, "xpu": _xpu, "xla": _xla, "tpu": _tpu}[family](evidence)


def _mps(evidence: Evidence) -> Finding:
    probe = evidence.probe("mps")
    if evidence.system != "Darwin":
        return evidence.found("mps", "other-platform")
    if not probe.told.get("built", True):
        return evidence.found("mps", "not-built", maker="MPS")
    if probe.kernels and not probe.told["available"]:
        return evidence.found("mps", "mps-unavailable", error=probe.kernels[0].get("error", "no error"))
    return judge("mps", probe, evidence)


def _xpu(evidence: Evidence) -> Finding:
    probe = evidence.probe("xpu")
    there = ", ".join(model for vendor, model in evidence.graphics if vendor == INTEL)
    if evidence.torch.xpu and (probe.ended != "well" or probe.kernels):
        return judge("xpu", probe, evidence)
    if not there:
        return evidence.found("xpu", "no-hardware", maker="Intel graphics card")
    if evidence.torch.xpu:
        return evidence.found("xpu", "no-driver", hardware=f"Intel {there}", detail="torch counts no XPU device")
    return evidence.found("xpu", "not-built", maker=f"XPU (Intel graphics {there})")


def _xla(evidence: Evidence) -> Finding:
    probe, xla, chips = evidence.probe("xla"), evidence.torch_xla, evidence.tpu_chips
    if not xla.version:
        return evidence.found("xla", "torch-xla-absent")
    error, pjrt = probe.told.get("error", ""), evidence.variables.get("PJRT_DEVICE")
    if xla.minor != evidence.torch.minor and not probe.kernels:
        minor = "{}.{}".format(*xla.minor)
        return evidence.found("xla", "torch-xla-mismatch", xla_minor=minor, error=error or f"it ended {probe.ended}")
    if "libtpu not found" in error and chips:
        return evidence.found("xla", "libtpu-absent", error=error)
    if error and pjrt is not None and not (pjrt == "TPU" and chips):
        error = f"no TPU was found here ({error})." if pjrt == "TPU" else error
        return evidence.found("xla", "pjrt-device-wrong", value=pjrt, error=error)
    judged = judge("xla", probe, evidence)
    if pjrt == "CPU" and chips and probe.kernels:
        hides = "this machine has a TPU, which it hides."
        return evidence.found("xla", "pjrt-device-wrong", usable=judged.usable, value=pjrt, error=hides)
    if error:
        judged = evidence.found("xla", "kernel-failed", device="XLA", step=probe.told.get("step", ""), error=error)
    elif judged.cause == "works" and probe.told.get("hardware") == "CPU":
        judged = evidence.found("xla", "rehearsal", usable=True)
    return _left_over(judged, evidence)


def _left_over(judged: Finding, evidence: Evidence) -> Finding:
    # "local" is what Kaggle's TPU image itself sets (Kaggle/docker-python, tpu/Dockerfile).
    names = [name for name in LEFT_OVER if evidence.variables.get(name, "local") != "local"]
    if not names or judged.cause not in ("works", "rehearsal", "hangs", "kernel-failed"):
        return judged
    effect = "It still works here." if judged.usable else judged.why
    words = {"names": ", ".join(names), "quoted": ", ".join(map(repr, names)), "effect": effect}
    return evidence.found("xla", "tpu-variables-left-over", usable=judged.usable, **words)


def _tpu(evidence: Evidence) -> Finding:
    probe, package = evidence.probe("tpu"), evidence.torch_tpu
    if not package.version:
        return evidence.found("tpu", "torchtpu-absent")
    if evidence.tpu_chips:
        return judge("tpu", probe, evidence)
    problem = no_answer("tpu", probe, evidence)
    error = problem.why[:1].lower() + problem.why[1:] if problem else "it has nothing to run on."
    return evidence.found("tpu", "torchtpu-off-cloud", version=package.version, error=error)
