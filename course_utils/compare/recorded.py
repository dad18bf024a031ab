"""What was measured elsewhere, in the form of a comparison: to stand beside a live one, never in it."""

import math

from course_utils.compare.record import Recording, load_recordings
from course_utils.compare.results import Comparison, Row
from course_utils.compare.suite import CNN_STEP, PRODUCT, RNN_STEP, Workload
from course_utils.devices import find_devices

WORKLOADS = {"rnn": RNN_STEP, "cnn": CNN_STEP, "product": PRODUCT}
CALL_S = {  # seconds of one call from a figure in its unit
    "steps/s": lambda work, size, value: 1 / value,
    "samples/s": lambda work, size, value: size / value,
    "TFLOP/s": lambda work, size, value: work.items(size) / (value * 1e12),
}


def machines_elsewhere() -> list[Comparison]:
    """Return what is recorded of devices that are not in this machine, one comparison for each workload of each.

    Raises:
        ValueError: as `load_recordings` does.
    """
    here = {device.name for device in find_devices()}
    elsewhere = (recording for recording in load_recordings() if recording.device not in here)
    return [comparison for recording in elsewhere for comparison in as_comparisons(recording)]


def as_comparisons(recording: Recording) -> list[Comparison]:
    """Return a recording's workloads and precisions as comparisons of one contestant, which says where it is from."""
    pairs = dict.fromkeys((result.workload, result.precision) for result in recording.results)
    return [_comparison(recording, WORKLOADS[name], name, precision) for name, precision in pairs if name in WORKLOADS]


def _comparison(recording: Recording, work: Workload, name: str, precision: str) -> Comparison:
    rows = tuple(
        Row(
            size=result.size,
            label=f"{recording.device} ({recording.label})",
            kind=recording.kind,
            device=recording.device,
            threads=recording.threads,
            first_s=math.nan,
            rounds_s=(CALL_S[result.unit](work, result.size, result.value),),
            items=work.items(result.size),
            error=math.nan,
        )
        for result in recording.find(name, precision)
    )
    made = {"date": recording.date, "made by": recording.command or recording.source, **recording.versions}
    return Comparison(work.name, work.size_name, work.unit, precision, precision == "tf32", rows, made)
