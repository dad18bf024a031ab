"""What a run that went out of memory would have needed, to stand beside the error."""

from course_utils.estimate.memory import estimate_memory
from course_utils.launch.lessons import load_lesson
from course_utils.launch.options import Options, batch_per_rank, count_ranks


def memory_note(options: Options, arguments: dict) -> str:
    """Return what a step of the lesson needs in each rank, estimated, or why that is not known. It
    never raises.
    """
    try:
        (module, data), ranks = load_lesson(options.lesson), count_ranks(arguments)
        batch = batch_per_rank(options.global_batch or data.batch_size, ranks)
        sample = data.collate_fn([data.dataset[0]])
        inputs = sample[0] if isinstance(sample, (tuple, list)) else sample
        # A LightningModule may have its network in an attribute, and no `forward` of its own.
        network = (
            module if "forward" in vars(type(module)) else next(iter(module.children()), module)
        )
        precision = {
            "16-mixed": "fp16",
            "bf16-mixed": "bf16",
            "bf16-true": "bf16-true",
            "16-true": "fp16-true",
        }
        found = estimate_memory(
            network,
            inputs,
            batch=batch,
            precision=precision.get(options.precision, "fp32"),
            shards=ranks if options.strategy == "fsdp" else 1,
        )
    except Exception as error:
        return f"What a step needs could not be estimated: {(str(error) or type(error).__name__).splitlines()[0]}"
    total = f"{found.tensors_bytes / 1e6:,.0f} MB of tensors"
    parts = f"{found.peak.activations / 1e6:,.0f} MB of activations at {batch} sample{'s' * (batch != 1)} in each rank"
    advice = "A smaller --global-batch needs less" + ", and so does --strategy fsdp" * (
        options.strategy != "fsdp"
    )
    return f"Estimated need of a step: {total} with Adam, including {parts}. {advice}."
