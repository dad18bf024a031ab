"""Examine this machine and name what keeps an accelerator from working."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from course_tools.doctor import shadows, surroundings
from course_tools.doctor.causes import find_cause
from course_tools.doctor.diagnosis import Diagnosis
from course_tools.doctor.evidence import Evidence
from course_tools.doctor.packages import read_package
from course_tools.doctor.run_child import Command, probe_command, run_all
from course_utils.hardware import machine
from course_utils.kinds import KINDS

LIMIT_S = 40.0  # for one child process; importing torch from a cold disk takes most of it
# The variables that a report shows, by name: any other may hold a key.
SHOWN = (
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH", "CUDA_MODULE_LOADING"),
    *("CUDA_LAUNCH_BLOCKING", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_CACHE_PATH"),
    *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_REQUIRE_CUDA"),
    *("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION"),
    *("ONEAPI_DEVICE_SELECTOR", "ZE_AFFINITY_MASK", "PYTORCH_ENABLE_MPS_FALLBACK"),
    *("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"),
    *("PJRT_DEVICE", "TPU_ACCELERATOR_TYPE", "TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_VISIBLE_CHIPS"),
    *("TPU_LIBRARY_PATH", "XLA_FLAGS", "LD_LIBRARY_PATH", "LD_PRELOAD"),
    *("COURSE_DEVICE", "TORCH_DEVICE_BACKEND_AUTOLOAD"),
)
SMI = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]


def diagnose(kinds: str | tuple[str, ...] = tuple(KINDS), *, limit_s: float = LIMIT_S) -> Diagnosis:
    """Say for each kind of device whether it works here, why not, and what to do.

    Args:
        kinds: the kinds to examine, of `KINDS`, or one of them.
        limit_s: seconds that one child process may take.

    Raises:
        ValueError: a kind is not one of `KINDS`, or none was named.
    """
    if isinstance(kinds, str):
        kinds = (kinds,)
    if not kinds:
        raise ValueError(f"no kind was requested; the kinds of device are {', '.join(KINDS)}.")
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(
            f"kind {unknown[0]!r} was requested, but the kinds of device are {', '.join(KINDS)}."
        )
    start = time.perf_counter()
    evidence = _examine(kinds, limit_s)
    findings = tuple(find_cause(kind, evidence) for kind in kinds)
    return Diagnosis(
        host_kind=evidence.host_kind,
        torch=f"torch {evidence.torch.version}" if evidence.torch.version else "no torch",
        torch_copies=evidence.torch_copies,
        devices=tuple(evidence.probe("cpu").facts.get("devices", ())),
        findings=findings,
        seconds=time.perf_counter() - start,
        facts=_facts(evidence),
    )


@contextmanager
def _like_a_program_here() -> Iterator[None]:
    """Let Python look for packages where a program in the working folder does, this folder first.

    The doctor itself may have left it.
    """
    before = [*sys.path]
    if folder := shadows.working_folder():
        sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path[:] = before


def _examine(kinds: tuple[str, ...], limit_s: float) -> Evidence:
    with _like_a_program_here():
        torch = read_package("torch")
        torch_xla = read_package("torch_xla")
        copies = tuple(surroundings.find_copies("torch"))
    possible = {
        "mps": platform.system() == "Darwin",
        "xpu": torch.xpu,
        "xla": bool(torch_xla.version),
    }
    tried = [kind for kind in kinds if torch.version and possible.get(kind, True)]
    commands = {name: probe_command(name) for name in ("nvidia", *tried)}
    commands["nvidia-smi"] = Command(SMI)
    return Evidence(
        host_kind=surroundings.host_kind(),
        torch=torch,
        torch_xla=torch_xla,
        torch_copies=copies,
        shadows=tuple(shadows.find_shadows()),
        folder_deleted=not shadows.working_folder(),
        variables=dict(os.environ),
        graphics=surroundings.graphics_cards(),
        tpu_chips=len(machine.tpu_chips()),
        container=surroundings.in_container(),
        wsl=surroundings.in_wsl(),
        jetson=surroundings.jetson(),
        probes=run_all(commands, limit_s),
    )


def _facts(evidence: Evidence) -> dict[str, str]:
    """Return the facts that people will ask for in an issue."""
    facts = {"system": f"{platform.platform()}, Python {platform.python_version()}"}
    around = {
        "a container": evidence.container,
        "WSL": evidence.wsl,
        evidence.jetson: bool(evidence.jetson),
        evidence.host_kind: True,
    }
    facts["inside"] = ", ".join(name for name, true in around.items() if true)
    for name in ("torch", "torch_xla"):
        package = getattr(evidence, name)
        if package.version:
            facts[name] = f"{package.version}, for CUDA {package.cuda}, ROCm {package.hip}"
    facts["torch's folders"] = ", ".join(evidence.torch_copies)
    driver = evidence.probe("nvidia").facts
    if "cuda" in driver:
        facts["NVIDIA driver"] = "{version}, CUDA {cuda[0]}.{cuda[1]}".format(**driver)
    else:
        facts["NVIDIA driver"] = "none answers"
    facts["cards"] = ", ".join(card.name for card in evidence.cards)
    facts["PCI"] = ", ".join(map(" ".join, evidence.graphics))
    facts["nvidia-smi"] = evidence.probe("nvidia-smi").output
    facts |= {name: evidence.variables.get(name, "") for name in SHOWN}
    return {name: value for name, value in facts.items() if value}
