"""Pictures of real GPUs, from the recordings of others."""

from dataclasses import replace

from course_lessons.recordings import Recording, load
from course_tools.figures import BLUE, ORANGE, PINK, YELLOW, Picture, lecture_axes, picture
from course_tools.timeline.drawing import draw_runs
from course_tools.timeline.lanes import Lane, Span

MEMORY_KINDS = ("parameters", "optimizer", "gradients", "activations", "other")
MEMORY_COLORS = (BLUE, PINK, ORANGE, YELLOW, "#BBBBBB")  # Okabe and Ito's, and a grey


def draw_copy_and_work() -> Picture:
    """Draw 20 ms of ResNet-50 on a V100: the batch is loaded, copied and then worked on."""
    recording = load("v100_copy")
    gpu = _lane(recording, "device")
    idle = replace(gpu, waits=(Span("idle", 0.0, gpu.work[0].start_s),))
    host = _lane(recording, "host")
    loader, *later = host.named  # most of the loading comes before
    late = replace(host, named=(loader._replace(name="loader's end"), *later))
    lanes = [{"device": idle, "host": late}.get(lane.kind, lane) for lane in recording.lanes]
    step_ms = 1000 * max(lane.end_s for lane in load("v100_no_worker").lanes)
    name = f"part of a step of {step_ms:.0f} ms, recorded on {recording.card}"
    drawn = draw_runs({name: lanes}, "The GPU is idle until the batch arrives")
    return replace(drawn, alt=f"{drawn.alt} {recording.caption}")


def draw_idle_gpu() -> Picture:
    """Draw a step of ResNet-50 on a V100 that waits for its loader."""
    recording = load("v100_no_worker")
    return _draw(f"This V100 has work for {_busy(recording)} of its step", {"one step": recording})


def draw_workers() -> Picture:
    """Draw a step of ResNet-50 on a V100 without a worker, and with four."""
    without, four = load("v100_no_worker"), load("v100_four_workers")
    title = f"GPU busy: {_busy(without)} without workers, {_busy(four)} with 4"
    return _draw(title, {"no worker": without, "four workers": four})


def draw_launches() -> Picture:
    """Draw three milliseconds of ResNet-50 on an A100 whose host is too slow for it."""
    recording = load("a100_launches")
    title = f"Launched too slowly: this A100 is {_busy(recording)} busy"
    return _draw(title, {"part of a step": recording})


def memory_over_time() -> tuple[list[float], dict[str, list[float]]]:
    """Return the milliseconds and the gigabytes by kind of the recorded step of ResNet-50."""
    rows = load("memory").rows
    gigabytes = {kind: [int(row[kind]) / 1e9 for row in rows] for kind in MEMORY_KINDS}
    return [float(row["ms"]) for row in rows], gigabytes


def draw_memory() -> Picture:
    """Draw the memory of a training step of ResNet-50 on a GPU, by what it is for."""
    times_ms, gigabytes = memory_over_time()
    totals = [sum(parts) for parts in zip(*gigabytes.values(), strict=True)]
    peak = totals.index(max(totals))
    most = gigabytes["activations"][peak]
    title = f"At the peak, {most:.1f} of {totals[peak]:.1f} GB are activations"
    axes = lecture_axes(title, "ms of one step (recorded)", "GB of tensors")
    axes.stackplot(times_ms, *gigabytes.values(), colors=MEMORY_COLORS, labels=list(gigabytes))
    axes.margins(x=0)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1], labels[::-1], loc="upper right", frameon=False
    )  # as they are stacked
    axes.set_ylim(0, 1.35 * totals[peak])  # room for the names
    held = ", ".join(f"{kind} {sizes[peak]:.2f} GB" for kind, sizes in gigabytes.items())
    alt = f"Memory of a training step of ResNet-50, by kind. At the peak: {held}."
    return picture(axes, f"{alt} {load('memory').caption}")


def _draw(title: str, runs: dict[str, Recording]) -> Picture:
    lanes = {}
    for name, recording in runs.items():
        lanes[f"{name}, recorded on {recording.card}"] = recording.lanes
    drawn = draw_runs(lanes, title)
    captions = dict.fromkeys(recording.caption for recording in runs.values())
    return replace(drawn, alt=" ".join([drawn.alt, *captions]))


def _lane(recording: Recording, kind: str) -> Lane:
    (lane,) = [lane for lane in recording.lanes if lane.kind == kind]
    return lane


def _busy(recording: Recording) -> str:
    """Return in percent for how much of the time the GPU computes."""
    end_s = max(lane.end_s for lane in recording.lanes)
    return f"{_lane(recording, 'device').busy_s / end_s:.0%}"
