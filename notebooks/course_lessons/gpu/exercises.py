"""The exercises of lesson 2: a loop that keeps a GPU busy, the work in a product, a loss scale."""

from typing import Any, ClassVar
from unittest.mock import patch

import torch

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import expect_pair, number_of, quote, same

# What makes the host wait until the device has done everything that was launched before.
READS = {"item", "tolist", "numpy", "cpu", "__float__", "__int__", "__bool__", "__format__"}
READS |= {"__repr__", "nonzero", "__array__"}
BATCHES = 4
# The pixels of a batch stay bytes until they are on the device: the network converts them there.
PIXELS = (8, 3, 4, 4)


class _Watched(torch.Tensor):
    """A tensor that notes what is asked of it, and of all that is computed from it."""

    notes: ClassVar[list[tuple[str, torch.dtype, bool]]] = []  # name, type, non_blocking

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        first = next((each for each in args if isinstance(each, torch.Tensor)), None)
        if first is not None and (name in READS or name in ("to", "cuda")):
            beside = kwargs.get("non_blocking", args[-1] is True)
            cls.notes.append((name, first.dtype, bool(beside)))
        with torch._C.DisableTorchFunctionSubclass():
            result = function(*args, **kwargs)
        return result.as_subclass(cls) if isinstance(result, torch.Tensor) else result


class _Bytes(torch.nn.Module):
    """A network that takes bytes and converts them itself."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(48, 3)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Map bytes, (batch, 3, 4, 4), to scores, (batch, 3)."""
        return self.layer(pixels.float().flatten(1) / 255)


def _small_training() -> tuple[_Bytes, list, torch.optim.Optimizer]:
    generator = torch.Generator().manual_seed(1)
    batches = []
    for _ in range(BATCHES):
        pixels = torch.randint(0, 256, PIXELS, generator=generator, dtype=torch.uint8)
        labels = torch.randint(0, 3, (len(pixels),), generator=generator)
        batches.append((pixels.as_subclass(_Watched), labels.as_subclass(_Watched)))
    torch.manual_seed(1)
    network = _Bytes()
    return network, batches, torch.optim.SGD(network.parameters(), lr=0.1)


def _train_plainly() -> tuple[float, torch.Tensor]:
    network, batches, optimizer = _small_training()
    losses = []
    for pixels, labels in batches:
        plain = pixels.as_subclass(torch.Tensor)
        scores = network(plain)
        loss = torch.nn.functional.cross_entropy(scores, labels.as_subclass(torch.Tensor))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses), network.layer.weight


@exercise(
    "Copy bytes, copy while the device works, read once, and let PyTorch manage its memory.",
    "`.to(device, non_blocking=True)` without `.float()`, `total += loss.detach()`, and no call of "
    "torch.cuda in the loop.",
    solution="""
        def my_epoch(network, loader, optimizer, device):
            total = 0.0
            for pixels, labels in loader:
                pixels = pixels.to(device, non_blocking=True)
                labels = labels.to(device, non_blocking=True)
                loss = F.cross_entropy(network(pixels), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.detach()
            return float(total) / len(loader)
    """,
    right="The host now runs ahead of the device and waits once an epoch. Lesson 6 shows it as a "
    "picture, and finds such places in your own loop.",
)
def busy(answer: Any) -> Mistakes:
    """Repair my_epoch: remove four mistakes that keep a GPU waiting, and return the mean loss."""
    network, batches, optimizer = _small_training()
    _Watched.notes.clear()
    cuda = torch.cuda
    with patch.object(cuda, "empty_cache") as emptied, patch.object(cuda, "synchronize") as waited:
        said = answer(network, batches, optimizer, torch.device("cpu"))
        calls = emptied.call_count, waited.call_count
    notes = list(_Watched.notes)
    moves = [note for note in notes if note[0] in ("to", "cuda")]
    reads = [note for note in notes if note[0] in READS]
    loss, weight = _train_plainly()
    yield (
        not same(network.layer.weight, weight),
        "The network did not learn what it should: keep zero_grad, backward and step.",
    )
    yield (
        len(moves) < 2 * BATCHES,
        "Pixels and labels of every batch have to be moved to `device`.",
    )
    yield (
        any(kind == torch.float32 for _, kind, _ in moves),
        "The pixels become float32 before they are copied: four times the bytes. Copy the bytes; "
        "the network converts them on the device.",
    )
    code = getattr(answer, "__code__", None)
    by_course = code and "to_device" in code.co_names  # which drops the argument on a CPU
    yield (
        not by_course and not all(beside for _, _, beside in moves),
        "The copies block: the host waits for each. The loader's memory is pinned, so pass "
        "non_blocking=True.",
    )
    yield (
        calls[0] > 0,
        "empty_cache gives the memory back to the driver, and the next step asks for it again, "
        "which waits. PyTorch reuses it by itself.",
    )
    yield calls[1] > 0, "synchronize waits until the device has nothing left to do. Leave it out."
    yield (
        len(reads) > 2,
        f"Values leave the device {len(reads)} times, and each time the host waits. Add "
        "`loss.detach()` and read the sum once.",
    )
    yield (
        not same(torch.as_tensor(number_of(said, "the mean loss")), torch.tensor(loss)),
        "That is not the mean loss of the epoch.",
    )


SIDE = 8192


@exercise(
    "Each of n x n results takes n multiplications and n additions. Which matrices are read, and "
    "which written?",
    "2 n^3 operations. Three matrices of n^2 numbers, and a 16-bit number takes 2 bytes.",
    solution="my_work = (2 * 8192**3, 3 * 8192**2 * 2)",
    right="Divide: 2,731 operations a byte. An H200 can do 989,000 / 4,800 = 206 (data sheet) "
    "while it fetches one, so arithmetic is the limit. Adding two such matrices takes only 1 / 6 "
    "of an operation a byte.",
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


@exercise(
    "The table of formats says what float16 can hold: its largest number, and its smallest normal "
    "one.",
    "1e-8 times the scale must be 6.1e-05 or more, and 2 times the scale 65,504 or less.",
    solution="my_scale = 8192",
    right="GradScaler begins with 65,536 and halves it at each overflow: here it would skip two "
    "steps and go on with 16,384, which is right as well. bfloat16 needs no scale.",
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
