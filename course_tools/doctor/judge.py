"""What a probe's outcome says, by the rules that all kinds of device share."""

from __future__ import annotations

import re
from dataclasses import replace

from course_tools.doctor.evidence import Evidence
from course_tools.doctor.finding import Finding
from course_tools.doctor.run_child import Outcome


def judge_probe(kind: str, outcome: Outcome, evidence: Evidence) -> Finding:
    """Return why a probe reported nothing useful, or else what its kernels say.

    A kind of device is usable when the answers of one device agree with the CPU's; the cause is the
    first thing that is wrong.
    """
    bad = [kernel for kernel in outcome.kernels if "failed" in kernel or "wrong" in kernel]
    good = tuple(kernel["device"] for kernel in outcome.kernels if kernel not in bad)
    silence = explain_silence(kind, outcome, evidence)
    if silence:
        return replace(silence, usable=bool(good), devices=good)
    if not bad:
        ran = "ran" if kind == "cpu" else f"on {', '.join(good)} agree with the CPU's"
        what = f"An addition, a matrix product, a convolution and a gradient {ran}."
        found = evidence.finding(kind, "works", usable=bool(good), what=what)
        return replace(found, devices=good)
    first, archs = bad[0], outcome.facts.get("archs", [])
    card = outcome.facts.get(first["device"], {})
    capability = card.get("capability", [])
    words = {
        **card,
        **first,
        "step": first.get("wrong") or first.get("failed"),
        "error": first.get("error", ""),
        "capability": ".".join(map(str, capability)) or "unknown",
        "archs": " ".join(archs),
    }
    cause = _cause(first, capability, archs, evidence)
    return replace(evidence.finding(kind, cause, usable=bool(good), **words), devices=good)


def explain_silence(kind: str, outcome: Outcome, evidence: Evidence) -> Finding | None:
    """Return why a probe reported nothing useful, or None when it did."""
    step = outcome.facts.get("step", "starting Python")
    error = outcome.facts.get("error")
    if error and step == "importing torch":
        return evidence.finding(kind, evidence.meaning(error) or "broken-install", error=error)
    silent = kind == "cpu" and not outcome.kernels  # as where an import ends the process
    if outcome.ended == "ok" and not error and not silent:
        return None
    if step == "listing the devices":  # a driver may die there, which is another probe's business
        return None
    lines = [error] if error else outcome.output.splitlines() or ["no message"]
    message = next(filter(evidence.meaning, lines), lines[-1])
    slow = "slow" if outcome.working else "hangs"
    ended = {"ok": "died", "killed": "died", "timed out": slow}.get(outcome.ended, "kernel-failed")
    return evidence.finding(
        kind,
        evidence.meaning(message) or ("kernel-failed" if error else ended),
        step=step,
        signal=outcome.signal or "nothing that it said",
        limit=f"{outcome.limit_s:g}",
        device=kind,
        error=message,
    )


def _cause(kernel: dict, capability: list[int], archs: list[str], evidence: Evidence) -> str:
    """Return why a kernel went wrong under a torch that was built for the architectures `archs`."""
    if "wrong" in kernel:
        return "wrong-answer"
    cause = evidence.meaning(kernel["error"]) or "kernel-failed"
    # such as sm_90, and sm_90a, whose letter stands for instructions of that card alone
    numbers = [re.fullmatch(r"sm_(\d+)(\d)[a-z]?", arch) for arch in archs]
    built = [(int(number[1]), int(number[2])) for number in numbers if number]
    if cause == "card-too-old" and built and tuple(capability) > max(built):
        return "card-too-new"
    return cause
