"""The exercises of lesson 2: the work in a product, a model and its input on one device, and a
scale for the loss.
"""

from typing import Any

import torch

from course_lessons.exercises import Mistakes, exercise
from course_lessons.exercises.read_answer import expect, expect_pair, number_of, quote, same

SIDE = 8192


@exercise(
    "Each of n x n results takes n multiplications and n additions. Which matrices are read, and which written?",
    "2 n^3 operations. Three matrices of n^2 numbers, and a 16-bit number takes 2 bytes.",
    solution="my_work = (2 * 8192**3, 3 * 8192**2 * 2)",
    right="Divide: 2,731 operations a byte. An H200 can do 989,000 / 4,800 = 206 (data sheet) while it fetches one, so "
    "arithmetic is the limit. Adding two such matrices takes only 1 / 6 of an operation a byte.",
)
def work(answer: Any) -> Mistakes:
    """Give (operations, bytes) of one product of two bfloat16 matrices of side 8192."""
    expect_pair(answer, "(operations, bytes)")
    operations, size = map(number_of, answer, ("the number of operations", "the number of bytes"))
    # 1.1e12 and 4e8 are right as well
    products, numbers = round(operations / SIDE**3, 2), round(size / SIDE**2, 1)
    yield (
        numbers in (SIDE, 2 * SIDE),
        "The order is the other way round: operations first, then bytes.",
    )
    yield (
        products == 1,
        "You counted the multiplications. Each has an addition: a multiply-add is two operations.",
    )
    yield (
        products != 2,
        f"A product takes 2 n^3 operations, which for this n are not {operations:.3g}.",
    )
    yield (
        numbers > 2 * SIDE,
        "Each number is used many times, but has to be read only once: count each matrix once.",
    )
    yield numbers == 3, "These are the numbers in three matrices. How many bytes does each take?"
    yield numbers == 12, "That is for 32-bit numbers. bfloat16 has 16 bits: half the bytes."
    yield numbers == 4, "You read two matrices, and forgot to write the result."
    yield numbers == 2, "That is one matrix. Two are read, and one is written."
    yield numbers != 6, f"Three matrices of n^2 numbers of 2 bytes are not {size:.3g} bytes."


class _Watched(torch.nn.Linear):
    """A layer that notes where the weights and the input were when it, or a copy of it, was called
    last.
    """

    seen = ("", "")

    def forward(self, x):
        _Watched.seen = (self.weight.device.type, x.device.type)
        return super().forward(x)


@exercise(
    "A model moves in place. What does a tensor's .to do instead (mistake 1)?",
    "`model.to(device)` on one line, `x = x.to(device)` on the next. Then call the model.",
    solution="""
        def my_predict(model, x, device):
            model.to(device)
            x = x.to(device)
            return model(x)
    """,
    right="Your function never says cuda, so it runs on any GPU. The check used the meta device: see mistake 3.",
)
def predict(answer: Any) -> Mistakes:
    """Write my_predict(model, x, device): the model's output for x, computed on the device and left
    there.
    """
    # every machine has these two, and meta has the rules
    for target in (torch.device("meta"), torch.device("cpu")):
        model, x, _Watched.seen = (
            _Watched(3, 1, device="cpu"),
            torch.ones(2, 3, device="cpu"),
            ("", ""),
        )
        try:
            said = answer(model, x, target)
        except (RuntimeError, AssertionError, TypeError) as error:
            weights, data = _Watched.seen
            fetched = weights == data == "meta" and (
                "meta tensor" in str(error) or "meta device" in str(error)
            )
            yield (
                fetched,
                "Your function brings the answer back to the CPU: leave it on the device.",
            )
            named = weights == data and ("CUDA" in str(error) or "NVIDIA" in str(error))
            yield named, "You named a device yourself. Use `device`, and it runs on every machine."
            yield (
                weights != data and data == "cpu",
                "The input stayed: .to returns a copy. Write x = x.to(device).",
            )
            yield (
                weights != data,
                "The input moved, and the model was left on the CPU: model.to(device).",
            )
            raise
        yield _Watched.seen == ("", ""), "Your function never called the model."
        expect(said, torch.Tensor, "a tensor that your function returns")
        moved, weights = said.device.type == target.type, _Watched.seen[0]
        missed = weights != target.type
        yield (
            missed and moved,
            "The model computed on the CPU, and you moved its answer. Move what goes in instead.",
        )
        yield (
            missed and weights == "cpu",
            "Nothing moved: model and input stayed on the CPU, where both were created.",
        )
        yield (
            missed,
            f"Asked for {target}, your function computed on {weights}. Use `device` and no name of your own.",
        )
        yield not moved, f"The answer came back on {said.device}. Leave it on the device."
        yield (
            said.shape != (2, 1),
            f"The model's answer has the shape (2, 1), but yours has {tuple(said.shape)}.",
        )
        yield (
            target.type == "cpu" and not same(said.float(), model.float()(x)),
            "The model gives other numbers.",
        )


@exercise(
    "The table of formats says what float16 can hold: its largest number, and its smallest normal one.",
    "1e-8 times the scale must be 6.1e-05 or more, and 2 times the scale 65,504 or less.",
    solution="my_scale = 8192",
    right="GradScaler begins with 65,536 and halves it at each overflow: here it would skip two steps and go on with "
    "16,384, which is right as well. bfloat16 needs no scale.",
)
def loss_scale(answer: Any) -> Mistakes:
    """Choose a number to multiply the loss by, so that gradients of 1e-8 and of 2 both survive in
    float16.
    """
    scale = number_of(answer, "the scale")
    yield scale <= 0, "A scale is a positive number: gradients keep their direction."
    # which the table, and so the hint, rounds to 6.1e-05
    tiny = 0.999 * torch.finfo(torch.float16).tiny
    small, large = ((torch.tensor([1e-8, 2.0]) * scale).half().float() / scale).tolist()
    yield (
        large == float("inf"),
        f"2 x {quote(answer)} is above 65,504, where float16 ends: it became infinite.",
    )
    yield (
        small == 0,
        f"1e-8 x {quote(answer)} is still nothing in float16: it underflows, as in the lesson.",
    )
    yield (
        scale * 1e-8 < tiny,
        f"1e-8 x {quote(answer)} survives, but coarsely: it is below the normal numbers.",
    )
