"""The exercises of lesson 2: the work in a product, a model and its input on one device, and a scale for the loss."""

from collections.abc import Callable

import torch

from course_utils.exercises.answers import number_of
from course_utils.exercises.exercise import Wrong, exercise, expect, expect_function, quote

SIDE = 8192
HALF_BYTES = 2  # of a number in bfloat16


@exercise(
    hints=(
        "Each of n x n results takes n multiplications and n additions. Which matrices are read, and which written?",
        "2 n^3 operations. Three matrices of n^2 numbers, and a 16-bit number takes 2 bytes.",
    ),
    solution="my_work = (2 * 8192**3, 3 * 8192**2 * 2)",
)
def work(answer: object) -> str:
    """Give (operations, bytes) of one product of two bfloat16 matrices of side 8192."""
    expect(answer, tuple | list, "a pair, (operations, bytes)")
    if len(answer) != 2:
        raise Wrong(f"This should be a pair, (operations, bytes), but it has {len(answer)} parts.")
    operations, size = (number_of(part, "operations and bytes") for part in answer)
    products, numbers = SIDE**3, SIDE**2
    if _near(size, 2 * products) or _near(size, products):
        raise Wrong("The order is the other way round: operations first, then bytes.")
    if _near(operations, products):
        raise Wrong("You counted the multiplications. Each comes with an addition: a multiply-add is two operations.")
    if not _near(operations, 2 * products):
        raise Wrong(f"A product takes 2 n^3 operations, which for this n are not {operations:.3g}.")
    if _near(size, 3 * numbers):
        raise Wrong("These are the numbers in three matrices. How many bytes does each take?")
    if _near(size, 3 * numbers * 4):
        raise Wrong("That is for 32-bit numbers. bfloat16 has 16 bits: half the bytes.")
    if _near(size, 2 * numbers * HALF_BYTES):
        raise Wrong("You read two matrices, and forgot to write the result.")
    if _near(size, numbers * HALF_BYTES):
        raise Wrong("That is one matrix. Two are read, and one is written.")
    if not _near(size, 3 * numbers * HALF_BYTES):
        raise Wrong(f"Three matrices of n^2 numbers of 2 bytes are not {size:.3g} bytes.")
    return (
        "Divide: 2,731 operations for each byte. By its data sheet an H200 can do 989,000 / 4,800 = 206 while it "
        "fetches one, so here the arithmetic is the limit. The addition of two such matrices has 1 / 6 a byte."
    )


def _near(value: float, right: float) -> bool:
    return abs(value - right) <= 1e-3 * right


class Watched(torch.nn.Linear):
    """A layer that notes, at each call, where its weights and its input were."""

    def __init__(self):
        super().__init__(3, 1)
        self.seen: list[tuple[str, str]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute the layer's answer."""
        self.seen.append((self.weight.device.type, x.device.type))
        return super().forward(x)


@exercise(
    hints=(
        "A model moves in place. What does a tensor's .to do instead (mistake 1)?",
        "`model.to(device)` on one line, `x = x.to(device)` on the next. Then call the model.",
    ),
    solution="""
        def my_predict(model, x, device):
            model.to(device)
            x = x.to(device)
            return model(x)
    """,
)
def predict(answer: object) -> str:
    """Write my_predict(model, x, device): what the model says of x, computed on the device and left there."""
    expect_function(answer, "model", "x", "device")
    for target in (torch.device("meta"), torch.device("cpu")):  # every machine has these two, and meta has the rules
        _check_places(answer, target)
    return (
        "Your function never says cuda: on a machine with a GPU it runs there without a change. The check used "
        "the meta device; look at mistake 3 again for what the message of a real GPU would be."
    )


def _check_places(answer: Callable, target: torch.device) -> None:
    model, x = Watched(), torch.ones(2, 3)
    try:
        said = answer(model, x, target)
    except NotImplementedError:
        raise Wrong("Your function brings the answer back to the CPU: leave it on the device.") from None
    except (RuntimeError, AssertionError) as error:
        weights, data = model.seen[-1] if model.seen else ("", "")
        if weights == data and ("CUDA" in str(error) or "NVIDIA" in str(error)):
            raise Wrong("You named a device yourself. Use `device`, and it runs on every machine.") from None
        if weights == data:
            raise
        if data == "cpu":
            raise Wrong(
                "The model moved and the input did not: x.to(device) returns a copy and leaves the old name where it "
                "was. Write x = x.to(device)."
            ) from None
        raise Wrong("The input moved, and the model was left on the CPU: model.to(device).") from None
    if not model.seen:
        raise Wrong("Your function never called the model.")
    expect(said, torch.Tensor, "a tensor that your function returns")
    weights, _ = model.seen[-1]
    if weights != target.type and said.device.type == target.type:
        raise Wrong("The model computed on the CPU, and you moved its answer. Move what goes in, not what comes out.")
    if weights == "cpu" and target.type != "cpu":
        raise Wrong("Nothing moved: model and input met on the CPU, where both were born.")
    if weights != target.type:
        raise Wrong(f"Asked for {target}, your function computed on {weights}. Use `device` and no name of your own.")
    if said.device.type != target.type:
        raise Wrong(f"The answer came back on {said.device}. Leave it on the device.")
    if said.shape != (2, 1):
        raise Wrong(f"For 2 inputs the model says 2 numbers, but you return the shape {tuple(said.shape)}.")


GRADIENTS = torch.tensor([1e-8, 2.0])


@exercise(
    hints=(
        "The table of formats says what float16 can hold: its largest number, and its smallest normal one.",
        "1e-8 times the scale must be 6.1e-05 or more, and 2 times the scale 65,504 or less.",
    ),
    solution="my_scale = 8192",
)
def loss_scale(answer: object) -> str:
    """Choose a number to multiply the loss by, so that gradients of 1e-8 and of 2 both survive in float16."""
    scale = number_of(answer, "the scale")
    if scale <= 0:
        raise Wrong("A scale is a positive number: gradients keep their direction.")
    small, large = ((GRADIENTS * scale).half().float() / scale).tolist()
    if large == float("inf"):
        raise Wrong(f"2 x {quote(answer)} is above 65,504, where float16 ends: it became infinite.")
    if small == 0:
        raise Wrong(f"1e-8 x {quote(answer)} is still nothing in float16: it underflows, as in the lesson.")
    if scale * 1e-8 < torch.finfo(torch.float16).tiny:
        raise Wrong(
            f"1e-8 comes back as {small:.4g}: something survives, but coarsely, for the product is below the smallest "
            "normal number of float16."
        )
    return (
        "GradScaler begins with 65,536 and halves it whenever a gradient overflows. With these two it would skip two "
        "steps and stay at 16,384, which is right as well. bfloat16 needs no scale."
    )
