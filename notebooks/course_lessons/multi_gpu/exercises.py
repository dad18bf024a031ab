"""The exercises of lesson 3: a script to repair, and a second card for one's own model."""

from typing import Any

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import Wrong, expect, expect_pair, quote
from course_lessons.exercises.two_ranks import run_two_ranks
from course_tools.estimate.time.parallel import Scaling

BROKEN = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(42)
x = torch.arange(32.0).unsqueeze(1) / 32
data = TensorDataset(x, 3 * x)
network = torch.nn.Linear(1, 1)
model = DistributedDataParallel(network)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=4, shuffle=True)
seen = []  # the samples of each epoch
for epoch in range(2):
    seen.append([])
    for inputs, targets in loader:
        loss = torch.nn.functional.mse_loss(network(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen[-1] += inputs.flatten().tolist()
dist.destroy_process_group()
"""


@exercise(
    "Print in each rank which samples it sees in both epochs, and its weights at the end. "
    "Which of these should differ between the ranks?",
    "The loader needs a `DistributedSampler`, which has to know the epoch, "
    "and the loss needs `model`.",
    solution="""
        my_script = (
            ex.BROKEN.replace("shuffle=True", "sampler=(sampler := DistributedSampler(data))")
            .replace("    seen.append([])", "    seen.append([])\\n    sampler.set_epoch(epoch)")
            .replace("(network(inputs)", "(model(inputs)")
        )
    """,
    right="None of the three mistakes raises an error: the script trains, the loss falls, and the "
    "second rank is wasted. Look at the samples and the weights of each rank whenever you write "
    "such a script.",
)
def repair(answer: Any) -> Mistakes:
    """Set `my_script` to the text of `ex.BROKEN` with its three mistakes repaired. Two ranks will
    run it.
    """
    expect(answer, str, "the text of the script")
    yield (
        answer == BROKEN,
        "This is the script as it was. Two ranks run it, and nobody complains: what do they do?",
    )
    try:
        one, other = run_two_ranks(answer)
    except RuntimeError as error:
        raise Wrong(f"With your repairs a rank failed: {quote(error)}") from None
    yield (
        not one["weights"] or len(one["seen"]) != 2,
        "At its end your script should have `model`, and both epochs in `seen`: "
        "keep the lines that fill them.",
    )
    first, second = one["seen"][0], other["seen"][0]
    both = sorted(round(32 * x) for x in first + second)
    yield (
        sorted(first) == sorted(second),
        "Both ranks see the same samples in an epoch: the work is not shared.",
    )
    yield (
        both != list(range(32)),
        "Together the ranks do not see each of the 32 samples once in an epoch.",
    )
    yield (
        one["weights"] != other["weights"],
        "The ranks end with different weights: they never averaged a gradient. "
        "DDP does so only for what its own `forward` has calculated.",
    )
    yield (
        first == one["seen"][1] and first == sorted(first),
        "Both epochs have the samples in the order of the data: let the sampler shuffle them, as "
        "it does by default, and tell it the epoch.",
    )
    yield (
        first == one["seen"][1],
        "Both epochs have the same samples in the same order: tell the sampler the epoch.",
    )


WORTH = 1.5  # so many times as fast as one card, two are worth their price
CHOICES = ("second card", "more work")


@exercise(
    "`scaling(count_work(model, batch), card, link=link, counts=(1, 2))`, as in section 3, where "
    "a T4 gets `precision='fp16'`. Its `speedups` hold what two cards bring.",
    f"Where `found.speedups[1]` is {WORTH} or more, rent the second card. Below that, or where "
    "`found.limit` is 'launches', first give each card more work.",
    solution=f"""
        work = count_work(ResNet50(), torch.rand(64, 3, 224, 224))
        found = scaling(work, "A100 80GB", link="PCIe 4.0 x16", counts=(1, 2))
        worth = found.speedups[1] >= {WORTH} and found.limit != "launches"
        my_plan = found, "second card" if worth else "more work"
    """,
    right="Which batch, or which link, would reverse your decision? Before you pay for a month, "
    "rent two cards for ten minutes and time both.",
)
def second_card(answer: Any) -> Mistakes:
    """Set `my_plan` to what `scaling` returns for one and two cards with your own model, and to
    your decision, "second card" or "more work".
    """
    expect_pair(answer, "what `scaling` returned, and your decision")
    found, choice = answer
    expect(found, Scaling, "what `scaling` returned")
    yield found.counts[:2] != (1, 2), "Compare one card with two: `counts=(1, 2)`."
    yield choice not in CHOICES, f'Decide for "second card" or "more work", not {quote(choice)}'
    gain = found.speedups[1]
    share = found.exchanges_s[1] / found.steps_s[0]
    estimate = (
        f"Two devices are estimated to be {gain:.2f} times as fast as one; the exchange takes "
        f"{share:.2g} of a step."
    )
    idle = found.limit == "launches"
    yield (
        gain >= WORTH and not idle and choice == "more work",
        f"{estimate} They have enough work.",
    )
    yield (
        gain < WORTH and choice == "second card",
        f"{estimate} A larger batch, or several batches between two exchanges, comes first.",
    )
    yield (
        idle and choice == "second card",
        f"{estimate} But one card waits for launches most of the time: with a larger batch its "
        "step takes hardly longer, and that costs nothing.",
    )
    return f"{estimate} But not even one card is busy: launches limit it." if idle else estimate
