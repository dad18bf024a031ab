"""The work of a step of fine-tuning, from the shape of a language model: a closed form, no torch.

With T tokens in a step, n in a sample, and the shape's weights, in operations and bytes:

    passes     = 2 forward and backward through frozen weights, 3 where the weights are trained;
                 1 more with checkpointing, but not through the head
    products   = 2 * T * (passes * linear + passes * head) + 2 * T * adapters * (3, with
                 checkpointing 4)
    unaligned  = those of the head, where the vocabulary is odd
    attention  = 2 * T * n * layers * query * (3.5, with checkpointing 4.5)      causal, fused
    other      = T * layers * (a * hidden + b * query + c * kv + d * intermediate)
                 + T * vocabulary * e                     what lies between the products, eager
    weights    = read once a pass, and cast from 32 bits first where all are trained in 32 bits;
                 in 4 bits, `dequantized` more bytes for each weight and pass
    optimizer  = bytes_each * trained * (3 + 2 * state)

a to e and the kernels of a layer are those that `count_work` finds for such a network, and
`dequantized` and `launch_s` are fitted on published fine-tunings; all are in finetuning.json.
With experts, `linear` is what a token meets: an even share is assumed.
"""

from collections.abc import Mapping
from typing import Any

from course_tools.estimate.counting.work import Sums, Work
from course_tools.estimate.language.language_model import LanguageModel

MASTER = 8  # bytes of a weight that is kept in 32 bits: read, written and read again in 16


def finetuning_step(
    shape: LanguageModel,
    method: str,
    numbers: Mapping[str, Any],
    *,
    batch: int,
    length: int,
    trained: int,
    checkpointing: bool = True,
    trained_bytes: int = 4,
    state: float = 2,
) -> Work:
    """Return the work of one step: forward, backward and the optimizer's update.

    Args:
        shape: of the model.
        method: "full", "lora" or "4-bit".
        numbers: "step" of finetuning.json.
        batch, length: samples, and tokens of each.
        trained: numbers that are trained.
        checkpointing: whether each block is computed again.
        trained_bytes: of a number that is trained.
        state: copies of it that the optimizer keeps.
    """
    full, tokens, again = method == "full", batch * length, int(checkpointing)
    head_passes = 3 if full else 2
    passes = head_passes + again
    adapters = 0 if full else trained
    products = passes * shape.linear_used + head_passes * shape.head + (3 + again) * adapters
    reads = 2 + again  # the pass that makes the gradients of weights reads none
    each = MASTER if full and trained_bytes == 4 else 2
    weights = reads * each * shape.linear + 2 * each * shape.head
    if method == "4-bit":
        weights += reads * numbers["dequantized"] * shape.linear
    update = trained_bytes * trained * (3 + 2 * state)
    of_layer = numbers["full" if full else "adapted"]
    between = shape.intermediate * shape.experts_used
    between *= 1 if shape.gated else numbers["without_gate"]
    width = of_layer["hidden"] * shape.hidden + of_layer["query"] * shape.query
    width += of_layer["kv"] * shape.kv + of_layer["intermediate"] * between
    moved = tokens * shape.layers * width * (1 if checkpointing else numbers["kept"])
    moved += tokens * shape.vocabulary * numbers["logits"]
    kernels = of_layer["kernels"] * shape.layers * (1 if checkpointing else numbers["kept"])
    attention = 2 * tokens * length * shape.layers * shape.query * (3.5 + again)
    odd = shape.vocabulary % 2  # rows with a number of 16 bits for each word are not aligned
    return Work(
        batch=batch,
        parameters=shape.parameters,
        training=True,
        precision="fp16",
        matrix=Sums(2.0 * tokens * products, weights),
        attention=Sums(attention),
        other=Sums(0.0, moved + update, kernels),
        unaligned=2.0 * tokens * head_passes * shape.head * odd,
        loss_counted=True,
    )
