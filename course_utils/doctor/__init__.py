"""Why an accelerator is missing or unusable, and the fix: `python -m course_utils.doctor`.

It reads files and variables first, then tries a kernel on every device in child processes with a
time limit, so that nothing here can hang or die with a driver. It starts without torch, since torch
may be what is broken.
"""

from __future__ import annotations

import os
import platform
import re
import time
from concurrent.futures import ThreadPoolExecutor

from course_utils.doctor.causes import find_cause
from course_utils.doctor.children import Outcome, run_limited, run_probe
from course_utils.doctor.evidence import Evidence
from course_utils.doctor.report import Diagnosis
from course_utils.hardware import KINDS, machine

__all__ = ["Diagnosis", "diagnose"]

LIMIT_S = 10.0  # for one step of a child process
# variables
TELLING = "(CUDA|HIP|ROCR|HSA|NVIDIA|TPU|PJRT|XRT|XLA|LD|COURSE)_|TORCH_DEVICE_BACKEND_AUTOLOAD"
SMI = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]


def diagnose(families: tuple[str, ...] = KINDS, *, limit_s: float = LIMIT_S) -> Diagnosis:
    """Say for each accelerator family whether it works here, why not, and what to do.

    Args:
        families: the families to examine, of "cpu", "cuda", "mps", "xpu", "xla" and "tpu".
        limit_s: seconds that one step of a child process may take; an import may take three times
            as long.

    Raises:
        ValueError: a family is not one of the six.
    """
    if unknown := [family for family in families if family not in KINDS]:
        raise ValueError(
            f"family {unknown[0]!r} was asked for, but the families are {', '.join(KINDS)}."
        )
    start = time.perf_counter()
    evidence = _examine(families, limit_s)
    findings = tuple(find_cause(family, evidence) for family in families)
    torch = f"torch {evidence.torch.version}" if evidence.torch.version else "no torch"
    devices = tuple(evidence.probe("cpu").told.get("devices", ()))
    return Diagnosis(
        evidence.place, torch, devices, findings, time.perf_counter() - start, _facts(evidence)
    )


def _facts(evidence: Evidence) -> dict[str, str]:
    """Return what somebody who helps from afar will ask for."""
    packages = {
        "torch": evidence.torch,
        "torch_xla": evidence.torch_xla,
        "torch_tpu": evidence.torch_tpu,
    }
    kinds = {"a container": evidence.container, "WSL": evidence.wsl, evidence.place: True}
    driver = evidence.probe("nvidia").told
    facts = {
        "system": f"{platform.platform()}, Python {platform.python_version()}",
        "inside": ", ".join(kind for kind, true in kinds.items() if true),
        **{
            name: f"{p.version}, for CUDA {p.cuda}, ROCm {p.hip}"
            for name, p in packages.items()
            if p.version
        },
        "NVIDIA driver": "{version}, CUDA {cuda[0]}.{cuda[1]}".format(**driver)
        if "cuda" in driver
        else "none answers",
        "cards": ", ".join(card.name for card in evidence.cards),
        "PCI": ", ".join(map(" ".join, evidence.graphics)),
        "nvidia-smi": evidence.probe("nvidia-smi").noise,
    }
    variables = {
        name: value for name, value in evidence.variables.items() if re.match(TELLING, name)
    }
    return {name: value for name, value in {**facts, **variables}.items() if value}


def _examine(families: tuple[str, ...], limit_s: float) -> Evidence:
    torch, torch_xla, torch_tpu = map(machine.read_package, ("torch", "torch_xla", "torch_tpu"))
    needs = {
        "mps": platform.system() == "Darwin",
        "xpu": torch.xpu,
        "xla": torch_xla.version,
        "tpu": torch_tpu.version,
    }
    tried = [family for family in families if torch.version and needs.get(family, True)]
    return Evidence(
        place=machine.place(),
        torch=torch,
        torch_xla=torch_xla,
        torch_tpu=torch_tpu,
        variables=dict(os.environ),
        graphics=machine.graphics_cards(),
        tpu_chips=len(machine.tpu_chips()),
        container=machine.in_container(),
        wsl=machine.in_wsl(),
        probes=_try(tried, limit_s),
    )


def _try(families: list[str], limit_s: float) -> dict[str, Outcome]:
    """Run all children side by side."""
    with ThreadPoolExecutor(len(KINDS) + 2) as pool:
        running = {name: pool.submit(run_probe, name, limit_s) for name in ("nvidia", *families)}
        running["nvidia-smi"] = pool.submit(run_limited, SMI, limit_s)
        return {name: run.result() for name, run in running.items()}
