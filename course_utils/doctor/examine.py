"""Examine this machine: read files and variables, and try a kernel on each family in a child process."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from course_utils.doctor.causes import find_cause
from course_utils.doctor.children import Outcome, run_limited, run_probe
from course_utils.doctor.evidence import FAMILIES, Evidence, read_package
from course_utils.doctor.report import Diagnosis
from course_utils.hardware.machine import ROOT, in_container, pci_devices, place, tpu_chips, wsl_driver

LIMIT_S = 10.0  # for one step of a child process
TELLING = "(CUDA|HIP|ROCR|HSA|NVIDIA|TPU|PJRT|XRT|XLA|LD|COURSE)_|TORCH_DEVICE_BACKEND_AUTOLOAD"  # variables
SMI = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]


def diagnose(families: tuple[str, ...] = FAMILIES, *, limit_s: float = LIMIT_S, root: Path = ROOT) -> Diagnosis:
    """Say for each accelerator family whether it works here, why not, and what to do.

    Args:
        families: the families to examine, of "cpu", "cuda", "mps", "xpu", "xla" and "tpu".
        limit_s: seconds that one step of a child process may take; an import may take three times as long.
        root: where to look for /sys, /proc and /dev: another folder holds a copy of another machine's files.

    Raises:
        ValueError: a family is not one of the six.
    """
    unknown = [family for family in families if family not in FAMILIES]
    if unknown:
        raise ValueError(f"family {unknown[0]!r} was asked for, but the families are {', '.join(FAMILIES)}.")
    start = time.perf_counter()
    evidence = _examine(families, limit_s, root)
    findings = tuple(find_cause(family, evidence) for family in families)
    torch = f"torch {evidence.torch.version}" if evidence.torch.version else "no torch"
    devices = tuple(evidence.probe("cpu").told.get("devices", ()))
    return Diagnosis(evidence.place, torch, devices, findings, time.perf_counter() - start, _facts(evidence))


def _facts(evidence: Evidence) -> dict[str, str]:
    """Return what somebody who helps from afar will ask for."""
    nvidia = evidence.probe("nvidia").told.get("driver") or {}
    packages = {"torch": evidence.torch, "torch_xla": evidence.torch_xla, "torch_tpu": evidence.torch_tpu}
    kinds = {"a container": evidence.container, "WSL": evidence.wsl is not None, evidence.place: True}
    facts = {
        "system": f"{platform.platform()}, Python {platform.python_version()}",
        "inside": ", ".join(kind for kind, true in kinds.items() if true),
        **{
            name: f"{one.version}, for CUDA {one.cuda}, ROCm {one.hip}" for name, one in packages.items() if one.version
        },
        "NVIDIA driver": "{}, CUDA {}.{}".format(nvidia["version"], *nvidia["cuda"]) if nvidia else "none that answers",
        "cards": ", ".join(card["name"] for card in nvidia.get("cards", ())),
        "PCI": ", ".join(f"{pci.vendor} {pci.model}" for pci in evidence.pci if pci.is_display),
        "nvidia-smi": evidence.smi.noise,
    }
    variables = {name: value for name, value in evidence.variables.items() if re.match(TELLING, name)}
    return {name: value for name, value in {**facts, **variables}.items() if value}


def _examine(families: tuple[str, ...], limit_s: float, root: Path) -> Evidence:
    torch, torch_xla, torch_tpu = map(read_package, ("torch", "torch_xla", "torch_tpu"))
    absent = {name for name, package in (("xla", torch_xla), ("tpu", torch_tpu)) if not package.version}
    smi, probes = _try(set(families) - absent if torch.version else set(), limit_s)
    return Evidence(
        place=place(root),
        torch=torch,
        torch_xla=torch_xla,
        torch_tpu=torch_tpu,
        system=platform.system(),
        python=sys.executable,
        variables=dict(os.environ),
        pci=pci_devices(root),
        tpu_chips=len(tpu_chips(root)),
        container=in_container(root),
        wsl=wsl_driver(root),
        limit_s=limit_s,
        smi=smi,
        probes=probes,
    )


def _try(families: set[str], limit_s: float) -> tuple[Outcome, dict[str, Outcome]]:
    """Run the children side by side; MPS and XPU only once the CPU's has said that torch was built for them."""
    with ThreadPoolExecutor(len(FAMILIES) + 2) as pool:
        smi = pool.submit(run_limited, SMI, limit_s)
        special = {"mps", "xpu"} & families
        first = {"nvidia", *families} - special | ({"cpu"} if special else set())
        running = {name: pool.submit(run_probe, name, limit_s) for name in sorted(first)}
        built = [name for name in sorted(special) if running["cpu"].result().told.get(f"{name}_built")]
        running.update({name: pool.submit(run_probe, name, limit_s) for name in built})
        return smi.result(), {name: run.result() for name, run in running.items()}
