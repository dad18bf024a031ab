"""Answers to the exercises of lesson 0."""

CONTEXT = """
import torch
"""

SPEED_UP = "my_speed_up = lambda load_s, compute_s, times: {result}"

RIGHT = {
    "speed_up": [
        SPEED_UP.format(
            result="1 / (load_s / (load_s + compute_s) + compute_s / (load_s + compute_s) / times)"
        ),
        SPEED_UP.format(result="round((load_s + compute_s) / (load_s + compute_s / times), 1)"),
        """
def my_speed_up(load_s, compute_s, times):
    before = load_s + compute_s
    saved = compute_s * (1 - 1 / times)
    return torch.tensor(before) / (before - saved)
""",
    ],
    "choose": [
        """
def my_choose(asked, here):
    if asked is not None and asked not in here:
        raise LookupError(f"no {asked} in\\n{here}")
    return next(name for name in here if asked in (None, name))
""",
        """
def my_choose(asked, here=None):
    wanted = asked or here[0]
    assert wanted in here, (asked, here)
    return torch.device(wanted)
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
}

WRONG = {
    "speed_up": [
        (SPEED_UP.format(result="times"), "holds for the computing alone"),
        (SPEED_UP.format(result="load_s + compute_s / times"), "how many seconds the job takes"),
        (
            SPEED_UP.format(result="(load_s + compute_s / times) / (load_s + compute_s)"),
            "Turn it round",
        ),
        (SPEED_UP.format(result="(load_s + compute_s) / times"), "made the loading faster"),
        (SPEED_UP.format(result="times - load_s"), "is not 140 times as fast"),
        (SPEED_UP.format(result="'ten'"), "how many times as fast the job is"),
        ("my_speed_up = 9.6", "should be a function"),
        (SPEED_UP.format(result="9.6"), "With 3 of 4 s cut 2-fold, the job is not 9.6 times"),
        (
            "def my_speed_up(load_s, compute_s):\n    return load_s",
            "(load_s, compute_s, times), but yours takes (load_s,",
        ),
    ],
    "choose": [
        (
            "my_choose = lambda asked, here: asked if asked in here else here[-1]",
            "returned 'cpu' all the same",
        ),
        (
            "my_choose = lambda asked, here: asked if asked in here else f'error: {asked} is not in {here}'",
            "use `raise`",
        ),
        ("my_choose = lambda asked, here: asked if asked in here else None", "returned None"),
        (
            "my_choose = lambda asked, here: [name for name in here if name == asked][0]",
            "not what was asked for",
        ),
        (
            "my_choose = lambda asked, here: {name: name for name in here}[asked]",
            "not what is here",
        ),
        (
            'my_choose = lambda asked, here: torch.zeros(1, device="cuda:99")',
            "which is not this machine",
        ),
        (
            "my_choose = lambda asked, here: next(n for n in here if n[:4] == asked[:4])",
            "return that whole name",
        ),
        (
            """
def my_choose(asked, here):
    if asked is None:
        return here[-1]
    if asked in here:
        return asked
    raise RuntimeError(f"{asked} is not among {here}")
""",
            "take the first of the list",
        ),
        (
            """
def my_choose(asked, here):
    if asked is None:
        return "cuda:0"
    if asked in here:
        return asked
    raise RuntimeError(f"{asked} is not among {here}")
""",
            "nothing but a CPU",
        ),
    ],
    "works": [
        (
            "my_works = lambda multiply: torch.cuda.is_available()",
            "without giving the processor any work",
        ),
        (
            """
def my_works(multiply):
    a = torch.rand(4, 4)
    return torch.equal(multiply(a, a), a @ a)
""",
            "return False",
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
                ("torch.rand(4, 4)", "True", "False", "only checked that it answers"),
                (
                    "torch.rand(4, 4)",
                    "there.shape == a.shape",
                    "False",
                    "only checked that it answers",
                ),
                (
                    "torch.rand(4, 4)",
                    "bool(there[0, 0] == (a @ a)[0, 0])",
                    "False",
                    "Compare all of them",
                ),
                (
                    "torch.rand(4, 4)",
                    "bool((there.sum() - (a @ a).sum()).abs() < 1e-3)",
                    "False",
                    "in the wrong places",
                ),
                (
                    "torch.ones(4, 4)",
                    "torch.equal(there, a @ a)",
                    "False",
                    "multiply matrices whose numbers differ",
                ),
                (
                    "torch.rand(4, 4)",
                    "torch.equal(there.diag(), (a @ a).diag())",
                    "False",
                    "Compare all of them",
                ),
                (
                    "torch.rand(4, 4)",
                    "print(torch.equal(there, a @ a))",
                    "False",
                    "a function without `return`",
                ),
                (
                    "torch.rand(4, 4)",
                    "torch.equal(there, a @ torch.rand(3))",
                    "False",
                    "hide an error of yours",
                ),
                ("torch.eye(4)", "torch.equal(there, a)", "False", "only copies may pass"),
                ("torch.zeros(4, 4)", "torch.equal(there, a @ a)", "False", "You multiply zeros"),
                (
                    "torch.rand(4, 4)",
                    "torch.equal(there, a * a)",
                    "False",
                    "This processor is right, and you say no",
                ),
                (
                    "torch.rand(4, 4)",
                    "torch.equal(there, a @ a)",
                    "True",
                    "raised an error instead of multiplying",
                ),
                ("torch.rand(4, 4)", "there == a @ a", "False", "one True or False"),
            )
        ),
    ],
}
