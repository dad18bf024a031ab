"""Verdicts that need no process: a decision is a function of the evidence."""

import re
import tomllib
from pathlib import Path

import pytest

from course_tools import doctor
from course_tools.doctor.causes import find_cause
from course_tools.doctor.evidence import Evidence
from course_tools.doctor.finding import REMEDIES
from course_tools.doctor.judge import explain_silence
from course_tools.doctor.packages import Package
from course_tools.doctor.run_child import Outcome

MACHINES = tomllib.loads(Path(__file__).with_name("machines.toml").read_text("utf-8"))["machine"]
PROBES = ("cpu", "cuda", "mps", "xpu", "xla", "nvidia", "nvidia-smi")
H200 = {"cuda": [13, 0], "cards": [{"name": "NVIDIA H200", "uuid": "GPU-1"}]}
BUILD = {"version": "2.9.0", "cuda": "13.0"}
OTHERS = ("host_kind", "variables", "graphics", "tpu_chips", "container", "wsl", "jetson")
OTHERS += ("shadows", "folder_deleted")


def package(told: dict | str) -> Package:
    return Package(told) if isinstance(told, str) else Package(**told)


def outcome(probe: str, told: dict | str) -> Outcome:
    """Return how a probe ended; a bare text is the error that it told, or what nvidia-smi wrote."""
    if isinstance(told, str):
        told = {"output" if probe == "nvidia-smi" else "error": told}
    end = {name: told[name] for name in told.keys() & {*Outcome.__dataclass_fields__}}
    kernels = [told["kernel"]] if "kernel" in told else end.pop("kernels", [])
    if "failed_copy" in told:
        device = "mps" if probe == "mps" else f"{probe}:0"
        kernels = [{"device": device, "failed": "a copy", "error": told["failed_copy"]}]
    facts = {name: told[name] for name in told.keys() - {"kernel", "failed_copy", *end, "kernels"}}
    return Outcome(**{"ended": "ok", **end}, facts=facts, kernels=tuple(kernels))


def evidence(machine: dict) -> Evidence:
    told = {name: machine[name] for name in PROBES if name in machine}
    if told.get("nvidia") == "H200":
        told["nvidia"] = H200
    return Evidence(
        torch=package(machine.get("torch", BUILD)),
        torch_xla=package(machine.get("torch_xla", "")),
        probes={name: outcome(name, each) for name, each in told.items()},
        **{"host_kind": "computer"} | {name: machine[name] for name in OTHERS if name in machine},
    )


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine["cause"])
def test_a_machine_gets_the_cause_the_words_and_the_fix_of_the_table(machine):
    for kind in machine.get("kinds", ["cuda"]):
        found = find_cause(kind, evidence(machine))
        assert found.cause == machine["cause"], found
        assert found.works == machine.get("works", "no")
        for text, name in ((found.why, "why"), (found.fix, "fix")):
            assert all(words in text for words in machine.get(name, [])), found
        assert not any(words in found.fix for words in machine.get("not_fix", []))


def test_every_cause_that_the_code_names_has_its_section():
    code = "".join(
        path.read_text(encoding="utf-8") for path in Path(doctor.__file__).parent.glob("*.py")
    )
    named = set(re.findall(r'\.finding\((?:\w+|"\w+"), "([\w-]+)"', code))
    assert len(named) > 15 and not named - {*REMEDIES}, (
        "write a section for each of these in remedies.ini"
    )


def test_every_cause_has_a_machine():
    sections = {cause for cause, section in REMEDIES.items() if "why" in section}
    assert not sections - {machine["cause"] for machine in MACHINES}


@pytest.mark.parametrize(
    ("version", "too_old"), [("2.5.1", True), ("2.6.0", False), ("2.10.0", False), ("1.13", True)]
)
def test_torch_2_6_is_the_oldest_that_is_examined(version, too_old):
    found = find_cause("cpu", Evidence("computer", Package(version), {}))
    assert (found.cause == "torch-too-old") == too_old


def test_of_what_a_child_printed_the_last_line_is_its_error():
    ended = Outcome("failed", output="it begins\nit ends")
    why = explain_silence("cpu", ended, Evidence("computer", Package("2.9.0"), {})).why
    assert "it ends" in why and "it begins" not in why


def test_a_file_in_the_way_of_torch_is_named_with_the_last_line_that_was_printed():
    ended = Outcome("failed", output="Traceback\nImportError: no Queue in /x/queue.py")
    evidence = Evidence("computer", Package("2.9.0"), {"cpu": ended}, shadows=("/x/queue.py",))
    found = find_cause("cpu", evidence)
    assert found.cause == "module-shadowed" and "/x/queue.py" in found.why
    assert "ImportError: no Queue" in found.why and "Traceback" not in found.why
