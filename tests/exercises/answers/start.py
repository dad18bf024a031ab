"""Answers to the exercises of lesson 0."""

CONTEXT = """
import torch

from course_utils.devices import find_devices, pick_device
"""

RIGHT = {
    "names": ['my_outcomes = dict([("gpu", "no such kind"), ("cuda:99", "not here"), ("cpu:0", "a device")])'],
    "choose": [
        """
def my_choose(asked, here):
    if asked is None:
        return [d for d in here if not d.rehearsal][0]
    by_name = {str(d): d for d in here}
    if asked not in by_name:
        raise ValueError(f"you asked for {asked}, here are {sorted(by_name)}")
    return by_name[asked]
""",
        """
def my_choose(asked, here):
    wanted = None if asked is None else torch.device(asked)
    for device in here:
        if device.torch_device == wanted or (wanted is None and device.kind != "xla"):
            return device
    raise LookupError(f"no {asked} in\\n{here}")
""",
        """
def my_choose(asked, here=None):
    names = [str(d) for d in here]
    if asked is None:
        return next(d for d in here if not d.rehearsal)
    assert asked in names, (asked, list(here))
    return here[names.index(asked)]
""",
    ],
    "works": [
        """
def my_works(multiply):
    a = (torch.arange(256).reshape(16, 16) % 7).float()
    try:
        return bool((multiply(a, a) == a @ a).all())
    except Exception:
        return False
""",
        """
class Works:
    def __call__(self, multiply):
        a, b = torch.rand(8, 8), torch.rand(8, 8)
        try:
            there = multiply(a, b)
        except RuntimeError:
            return False
        return (there.sub(a.matmul(b)).abs() < 1e-4).all()


my_works = Works()
""",
        """
import numpy as np


def my_works(multiply):
    a = np.arange(12.0).reshape(3, 4)
    try:
        return np.all(np.asarray(multiply(a, a.T)) == a @ a.T)
    except RuntimeError:
        return False
""",
    ],
    "missing": [
        """
def my_missing(report):
    found = []
    for finding in report.findings:
        if not finding.usable:
            found.append([finding.family, finding.cause])
    return found
""",
        "my_missing = lambda report: {f.family: f.cause for f in report.findings if f.works == 'no'}",
        """
def my_missing(report):
    table = report.to_frame()
    table = table[~table["usable"]]
    return list(zip(table["family"], table["cause"]))
""",
    ],
}

WRONG = {
    "names": [
        ('my_outcomes = {"cpu:0": "no such kind", "gpu": "no such kind", "cuda:99": "not here"}', "counted from 0"),
        ('my_outcomes = {"cpu:0": "a device", "gpu": "a device", "cuda:99": "not here"}', "does not guess"),
        (
            'my_outcomes = {"cpu:0": "a device", "gpu": "not here", "cuda:99": "not here"}',
            "not missing on this machine",
        ),
        ('my_outcomes = {"cpu:0": "a device", "gpu": "no such kind", "cuda:99": "a device"}', "never takes another"),
        ('my_outcomes = {"cpu:0": "a device", "gpu": "no such kind", "cuda:99": "no such kind"}', "is a good name"),
        ('my_outcomes = {"cpu:0": "a device", "gpu": "an error", "cuda:99": "not here"}', "Say of 'gpu' one of"),
        ('my_outcomes = {"cpu:0": "a device"}', "Your dict has Ellipsis"),
        ('my_outcomes = ["a device", "no such kind", "not here"]', "should be a dict"),
    ],
    "choose": [
        ("my_choose = lambda asked, here: next((d for d in here if str(d) == asked), here[-1])", "in silence"),
        ("my_choose = lambda asked, here: next((d for d in here if str(d) == asked), None)", "returned None"),
        ("my_choose = lambda asked, here: [d for d in here if str(d) == asked][0]", "not what was asked for"),
        ("my_choose = lambda asked, here: {str(d): d for d in here}[asked]", "not what is here"),
        ('my_choose = lambda asked, here: pick_device("cuda:99")', "which is not this machine"),
        ("my_choose = lambda asked, here: asked", "not its name"),
        (
            'my_choose = lambda asked, here: next(d for d in here if d.kind == asked.split(":")[0])',
            "Compare the whole name",
        ),
        (
            """
def my_choose(asked, here):
    for device in here:
        if asked in (None, str(device)):
            return device
    raise RuntimeError(f"{asked} is not among {list(here)}")
""",
            "took the rehearsal",
        ),
        (
            """
def my_choose(asked, here):
    for device in here:
        if str(device) == (asked or "cpu"):
            return device
    raise RuntimeError(f"{asked} is not among {list(here)}")
""",
            "first device that is no rehearsal",
        ),
        (
            """
def my_choose(asked, here):
    if asked is None:
        return next((device for device in here if device.kind == "cuda"), here[0])
    if asked in [str(device) for device in here]:
        return {str(device): device for device in here}[asked]
    raise RuntimeError(f"{asked} is not among {list(here)}")
""",
            "no GPU at all",
        ),
    ],
    "works": [
        ("my_works = lambda multiply: torch.cuda.is_available()", "without giving the processor any work"),
        (
            """
def my_works(multiply):
    a = torch.rand(4, 4)
    return torch.equal(multiply(a, a), a @ a)
""",
            "the answer is False",
        ),
        *(
            (
                f"""
def my_works(multiply):
    a = {matrix}
    try:
        there = multiply(a, a)
        return {verdict}
    except RuntimeError:
        return {otherwise}
""",
                message,
            )
            for matrix, verdict, otherwise, message in (
                ("torch.rand(4, 4)", "True", "False", "only looked whether it answers"),
                ("torch.rand(4, 4)", "there.shape == a.shape", "False", "only looked whether it answers"),
                ("torch.rand(4, 4)", "bool(there[0, 0] == (a @ a)[0, 0])", "False", "Compare all of them"),
                (
                    "torch.rand(4, 4)",
                    "bool((there.sum() - (a @ a).sum()).abs() < 1e-3)",
                    "False",
                    "in the wrong places",
                ),
                ("torch.ones(4, 4)", "torch.equal(there, a @ a)", "False", "multiply matrices whose numbers differ"),
                ("torch.zeros(4, 4)", "torch.equal(there, a @ a)", "False", "You multiply zeros"),
                ("torch.rand(4, 4)", "torch.equal(there, a * a)", "False", "right in every number"),
                ("torch.rand(4, 4)", "torch.equal(there, a @ a)", "True", "raised an error instead of multiplying"),
                ("torch.rand(4, 4)", "there == a @ a", "False", "one True or False"),
            )
        ),
    ],
    "missing": [
        ("my_missing = lambda report: [(f.family, f.cause) for f in report.findings if f.usable]", "that do work"),
        ("my_missing = lambda report: [(f.family, f.cause) for f in report.findings]", "Ask each finding"),
        (
            "my_missing = lambda report: [(f.family, f.cause) for f in report.findings if f.cause != 'works']",
            "rehearsal",
        ),
        ("my_missing = lambda report: [f.family for f in report.findings if not f.usable]", "should be a pair"),
        (
            "my_missing = lambda report: [(f.family, f.why) for f in report.findings if not f.usable]",
            "each for its cause",
        ),
    ],
}
