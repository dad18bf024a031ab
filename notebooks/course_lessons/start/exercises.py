"""The exercises of lesson 0: what a faster processor buys, choosing a device, and what proves that
one works.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from course_lessons.exercises import Mistakes, exercise
from course_lessons.exercises.read_answer import Wrong, number_of, quote, truth_of


@exercise(
    "The loading takes as long as before, and only the computing becomes shorter. How long is the whole job now?",
    "Divide the seconds before, `load_s + compute_s`, by the seconds after, where `compute_s` is divided by `times`.",
    solution="""
        def my_speed_up(load_s, compute_s, times):
            return (load_s + compute_s) / (load_s + compute_s / times)
    """,
    right="This is Amdahl's law. `my_speed_up(60, 540, 200)` is 9.6: the rest is mostly loading. Lesson 2 shortens it.",
)
def speed_up(answer: Any) -> Mistakes:
    """Write my_speed_up(load_s, compute_s, times): how many times as fast the whole job is when
    only its computing becomes `times` times as fast.
    """
    for load, compute, times in ((60.0, 540.0, 200.0), (1.0, 3.0, 2.0), (0.0, 7.0, 5.0)):
        said = number_of(answer(load, compute, times), "how many times as fast the job is")
        before, after = load + compute, load + compute / times
        near = partial(math.isclose, said, rel_tol=0.005)  # 9.6 is right as well
        if near(before / after):
            continue
        yield (
            near(times),
            f"{times:g} times holds for the computing alone: {load:g} s of loading stay as they are.",
        )
        yield (
            near(after),
            f"{said:g} is how many seconds the job takes on the GPU. Compare with the seconds before.",
        )
        yield (
            near(after / before),
            f"{said:g} is the time after divided by the time before. Turn it round.",
        )
        yield near(before / times), "You made the loading faster as well."
        yield (
            True,
            f"With {compute:g} of {before:g} s cut {times:g}-fold, the job is not {said:g} times as fast.",
        )


@exercise(
    "Three cases: nothing was asked for, the name is in the list, the name is not in the list.",
    'The last line is `raise RuntimeError(f"{asked} was asked for, but this machine has {here}")`.',
    solution="""
        def my_choose(asked, here):
            if asked is None:
                return here[0]
            if asked in here:
                return asked
            raise RuntimeError(f"{asked} was asked for, but this machine has {here}")
    """,
    right="A missing device stops the program at once: no night is lost to slow training. Compare with section 4.",
)
def choose(answer: Any) -> Mistakes:
    """Write my_choose(asked, here): the name that was asked for if it is in the list, an error if
    it is not, and for None the first of the list.
    """
    here = ["cuda:0", "cuda:1", "cpu"]
    try:
        second = answer("cuda:1", list(here))
    except (RuntimeError, ValueError, LookupError, StopIteration) as error:
        raised = f"{type(error).__name__}: {quote(error)}"
        raise Wrong(
            f"'cuda:1' is in `here`, which is not this machine, but your function raised {raised}."
        ) from None
    yield (
        str(second) != "cuda:1",
        f"'cuda:1' is in `here`: return that whole name, not {quote(second)}.",
    )
    try:
        instead = answer("cuda:7", list(here))
    except Exception as error:
        said = str(error)
    else:
        yield (
            instead is None,
            "'cuda:7' is missing, and you returned None: the error comes later and elsewhere.",
        )
        yield (
            True,
            f"'cuda:7' is missing, and your function returned {quote(instead)!r} all the same: use `raise`.",
        )
    missing, error_says = (
        [name for name in here if name not in said],
        f"Your error says {quote(said)!r}",
    )
    yield "cuda:7" not in said, f"{error_says}, but not what was asked for: put 'cuda:7' into it."
    yield missing, f"{error_says}, but not what is here: name the devices one could ask for."
    best, only = answer(None, list(here)), answer(None, ["cpu"])
    yield str(best) != "cuda:0", f"For None, take the first of the list, not {quote(best)}."
    yield str(only) != "cpu", f"On a machine with nothing but a CPU, you take {quote(only)}."


@exercise(
    "Who else can compute the same product? And what happens when a GPU is too old for its PyTorch?",
    "Inside `try`, compare `multiply(a, b)` with `a @ b`, number by number. Then `except RuntimeError: return False`.",
    solution="""
        def my_works(multiply):
            a = torch.arange(16.0).reshape(4, 4)
            try:
                return torch.equal(multiply(a, a + 1), a @ (a + 1))
            except RuntimeError:
                return False
    """,
    right="That is what the doctor does: a kernel, and a comparison. It says nothing about speed: right can be slow.",
)
def works(answer: Any) -> Mistakes:
    """Write my_works(multiply): True if a processor works, else False, where multiply(a, b) is its
    product.
    """
    given: list = []

    def says_yes(fault: Callable | None) -> bool:
        def multiply(a: Any, b: Any) -> torch.Tensor:
            given.append((a, b))
            if fault is None:  # this processor raises an error
                raise RuntimeError(
                    "CUDA error: no kernel image is available for execution on the device"
                )
            return fault(torch.as_tensor(a @ b))

        return truth_of(answer(multiply))

    said = says_yes(lambda product: product)
    yield not given, 'You answered without giving the processor any work. That is only "available".'
    yield (
        not said,
        "This processor is right, and you say no. Compare with a @ b. Does `except` hide an error of yours?",
    )
    try:
        fooled = says_yes(None)
    except RuntimeError:
        raise Wrong(
            "A processor that raises an error instead of answering does not work: return False."
        ) from None
    yield (
        fooled,
        "This processor raised an error instead of multiplying, and you say that it works.",
    )
    copied = all(
        torch.as_tensor(a @ b).tolist() in (torch.as_tensor(one).tolist() for one in (a, b))
        for a, b in given
    )
    yield (
        copied,
        "You multiply zeros, or by the identity: a processor that only copies may pass. Use other numbers.",
    )
    sevens = says_yes(lambda product: product * 0 + 7)
    yield sevens, "This processor gives 7 for every number. You only checked that it answers."
    one_wrong = says_yes(
        lambda product: (
            product
            + (torch.arange(product.numel()) == max(0, product.numel() - 2)).view_as(product)
        )
    )
    yield (
        one_wrong,
        "Only one number of this product is wrong, and you say that it works. Compare all of them.",
    )
    moved = says_yes(lambda product: product.flatten().roll(1).reshape(product.shape))
    yield (
        moved,
        "Right numbers in the wrong places: compare one by one, and multiply matrices whose numbers differ.",
    )
