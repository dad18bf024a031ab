"""The doctor's report: for a terminal, a notebook, a script, and for everybody, without what tells
who somebody is.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.doctor.evidence import PLACES, Finding
from course_utils.text import format_bytes, html_card, text_table

# in the name of a variable
SECRET = re.compile("TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
# which the doctor's own fixes name
OUR_HOSTS = r"(?:[\w-]+\.)*(?:pytorch\.org|nvidia\.com|github\.com)"
# Hidden before any name is: a user may be called "home", and what stands behind /USER/ would be
# nobody's home folder. A name of two words is one only where its path goes on.
FOLDER = r"[^/\\\s:'\"]+(?: [^/\\\s:'\"]+(?=[/\\]))?"
HOME = rf"(?:/home|/Users|/export/home|\b[A-Za-z]:[/\\]Users)[/\\]{FOLDER}|/root\b"
USERS = [
    "USER",
    "LOGNAME",
    "USERNAME",
    "SUDO_USER",
    "JUPYTERHUB_USER",
    "NB_USER",
    "SLURM_JOB_USER",
    "PBS_O_LOGNAME",
]
HOSTS = ["HOSTNAME", "COMPUTERNAME", "SLURMD_NODENAME", "TPU_NAME", "TPU_WORKER_HOSTNAMES"]
# What is hidden wherever it stands, in this order: a pattern, and what is written in its place.
PATTERNS = (
    (r"\w+://(?!" + OUR_HOSTS + r"\b)[^\s'\"<>]+", "ADDRESS"),
    (r"\b(?:gh[pousr]_|github_pat_|hf_|sk-|xox[a-z]-|AKIA|AIza|glpat-|eyJ)[\w.-]{8,}", "TOKEN"),
    (r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{32,}", "TOKEN"),  # also the serial number of a card
    (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "ADDRESS"),
    (r"\b\d{1,3}(?:\.\d{1,3}){3}\b", "ADDRESS"),
    (r"(?<![\w:])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){3,7}(?![\w:])", "ADDRESS"),
    (r"(?<![\w:])[0-9a-fA-F]{1,4}::[0-9a-fA-F]{1,4}(?![\w:])", "ADDRESS"),
    (r"\b[\w-]+(?:\.[\w-]+)*\.(?:local|internal|lan|corp|intra|intranet|home)\b", "HOST"),
)


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The doctor's report: where it ran, the devices that were listed, and one finding for each
    family.
    """

    place: str
    torch: str
    devices: tuple[dict, ...]
    findings: tuple[Finding, ...]
    seconds: float
    facts: dict[str, str] = field(default_factory=dict)  # of the machine, for a report to others

    def finding(self, family: str) -> Finding:
        """Return the finding of one family, such as "cuda"."""
        return next(finding for finding in self.findings if finding.family == family)

    def to_markdown(self) -> str:
        """Return it for a public issue: folded, and without names, home folders, addresses and
        tokens.
        """
        summary = ", ".join(f"{one.family}: {one.cause}" for one in self.findings)
        facts = "\n".join(
            f"{name}: {' '.join(value.split())}" for name, value in self.facts.items()
        )
        body = hide(f"{self!r}\n\n{facts}", private_names())
        return f"<details><summary>Doctor's report ({summary})</summary>\n\n~~~text\n{body}\n~~~\n\n</details>"

    @property
    def title(self) -> str:
        """Where this is, and with which torch."""
        return f"This is {PLACES[self.place]}, with {self.torch}"

    def __repr__(self) -> str:
        parts = [f"{self.title}. Examined in {self.seconds:.1f} s."]
        if self.devices:
            rows = [
                (d["device"], d["name"], format_bytes(d["memory_bytes"]), d["detail"])
                for d in self.devices
            ]
            parts.append(text_table(("device", "name", "memory", "detail"), rows))
        causes = text_table(
            ("family", "works", "cause"),
            [(one.family, one.works, one.cause) for one in self.findings],
        )
        return "\n\n".join([*parts, causes, *map(str, self.findings)])

    def _repr_html_(self) -> str:
        rows = [
            (one.family, one.works, one.why, one.fix or "nothing to do") for one in self.findings
        ]
        return html_card(self.title, ("family", "works", "why", "fix"), rows)


def private_names(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what must not be told: names of this user and machine, secrets in variables, and words
    for them.
    """
    names = {
        value: "SECRET" for name, value in environ.items() if SECRET.search(name) and len(value) > 5
    }
    hosts = {platform.node(), *",".join(environ.get(name, "") for name in HOSTS).split(",")}
    users = {environ.get(name, "") for name in USERS}
    # a user without an entry in the system's list
    with contextlib.suppress(OSError, KeyError, RuntimeError):
        users |= {getpass.getuser(), Path.home().name}
        names[str(Path.home())] = "~"
    names.update({part: "HOST" for host in hosts for part in (host, host.partition(".")[0])})
    names.update(dict.fromkeys(users, "USER"))
    return {name: word for name, word in names.items() if len(name) > (4 if name.isdigit() else 1)}


def hide(text: str, names: Mapping[str, str]) -> str:
    """Return a text with these names, and with every address, home folder and token, replaced by
    words for them.
    """
    home = [(rf"{re.escape(name)}(?!\w)", "~") for name, word in names.items() if word == "~"]
    longest_first = sorted(names, key=len, reverse=True)  # a host's full name before its short one
    known = [(rf"(?i)(?<!\w){re.escape(name)}(?!\w)", names[name]) for name in longest_first]
    for pattern, word in (*home, (HOME, "~"), *known, *PATTERNS):
        text = re.sub(pattern, word, text)
    return text
