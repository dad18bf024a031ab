"""Pictures of real GPUs, from the recordings of others."""

from dataclasses import replace

from course_lessons.recordings import Recording, load
from course_tools.figures import BLUE, ORANGE, PINK, YELLOW, Picture, lecture_axes, picture
from course_tools.timeline.drawing import draw_runs
from course_tools.timeline.lanes import Lane, Span, union
from course_tools.timeline.timeline import Timeline

# The numbers of torch.profiler's categories, from below to above in the picture.
MEMORY_KINDS = {
    "parameters": (0,),
    "optimizer": (1,),
    "gradients": (5,),
    "activations": (4,),
    "other": (2, 3, 6, 7),
}
MEMORY_COLORS = (BLUE, PINK, ORANGE, YELLOW, "#BBBBBB")  # Okabe and Ito's, and a grey
COPY_S = (40e-3, 60e-3)  # of the step without a worker: the copy of the batch, and what follows it
FIRST_S = (0.0, 2.1e-3)  # of the step on the MI250, before the call that takes 6.5 ms


def draw_copy_and_work() -> Picture:
    """Draw 20 ms of ResNet-50 on a V100: the batch is loaded, copied and then worked on."""
    recording = load("resnet50_no_worker")
    part = Timeline.of_trace(recording.trace).between(*COPY_S)
    return _draw("First the copy, then 88 kernels in turn", {"Part of a step": part}, [recording])


def draw_exchange() -> Picture:
    """Draw a step of one of eight A100, with the exchange that is hidden and that which is not."""
    recording = load("eight_a100")
    step = Timeline.of_trace(recording.trace)
    work = [span for lane in _of_kind(step, "device") for span in lane.work]
    exchange = [span for lane in _of_kind(step, "exchange") for span in lane.work]
    alone_s = _seconds(work + exchange) - _seconds(work)
    whole_s = _seconds(exchange)
    hidden_ms, whole_ms = 1e3 * (whole_s - alone_s), 1e3 * whole_s
    title = f"{hidden_ms:.0f} of {whole_ms:.0f} ms of exchange are hidden"
    return _draw(title, {"one step, rank 3 of 8": step}, [recording])


def draw_workers() -> Picture:
    """Draw a step of ResNet-50 on a V100 without a worker, and with four."""
    return _compare(
        {"no worker": "resnet50_no_worker", "four workers": "resnet50_four_workers"},
        "GPU busy: {} without workers, {} with 4",
    )


def draw_launches() -> Picture:
    """Draw a step of ResNet-50 on a V100 that is busy, and on an A100 whose host is too slow."""
    return _compare(
        {"V100": "resnet50_v100", "A100, one of two": "resnet50_two_a100"},
        "One network: V100 {} busy, A100 {}",
    )


def draw_first_launches() -> Picture:
    """Draw the first two milliseconds of a step of a tiny network on an AMD MI250."""
    recording = load("tiny_mi250")
    part = Timeline.of_trace(recording.trace).between(*FIRST_S)
    title = f"A tiny network: the MI250 is {_busy(part):.0%} busy"
    return _draw(title, {"2 ms of a step": part}, [recording])


def draw_waiting() -> Picture:
    """Draw a step of one of sixteen A100 that waits for most of it."""
    recording = load("sixteen_a100")
    step = Timeline.of_trace(recording.trace)
    title = f"This A100 computes for {_busy(step):.0%} of its step"
    return _draw(title, {"one step, rank 0 of 16": step}, [recording])


def memory_over_time() -> tuple[list[float], dict[str, list[float]]]:
    """Return the milliseconds and the gigabytes by kind of the recorded step of ResNet-50."""
    trace = load("resnet50_memory").trace
    held = list(trace["before_bytes"])
    start_ns = trace["events"][0][0]
    times_ms, rows = [], []
    for time_ns, _, size_bytes, category in trace["events"]:
        held[category] += size_bytes
        times_ms.append((time_ns - start_ns) / 1e6)
        rows.append(list(held))
    gigabytes = {}
    for kind, categories in MEMORY_KINDS.items():
        gigabytes[kind] = [sum(row[number] for number in categories) / 1e9 for row in rows]
    return times_ms, gigabytes


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
    return picture(axes, f"{alt} {load('resnet50_memory').caption}")


def _compare(names: dict[str, str], title: str) -> Picture:
    recordings = [load(name) for name in names.values()]
    steps = [Timeline.of_trace(recording.trace) for recording in recordings]
    shares = [f"{_busy(step):.0%}" for step in steps]
    return _draw(title.format(*shares), dict(zip(names, steps, strict=True)), recordings)


def _draw(title: str, runs: dict[str, Timeline], recordings: list[Recording]) -> Picture:
    lanes = {}
    for (name, step), recording in zip(runs.items(), recordings, strict=True):
        lanes[f"{name}, recorded on {recording.card}"] = step.lanes
    drawn = draw_runs(lanes, title)
    captions = dict.fromkeys(recording.caption for recording in recordings)
    return replace(drawn, alt=" ".join([drawn.alt, *captions]))


def _of_kind(step: Timeline, kind: str) -> list[Lane]:
    return [lane for lane in step.lanes if lane.kind == kind]


def _busy(step: Timeline) -> float:
    """Return the share of the time in which at least one stream of the GPU computes."""
    work = [span for lane in _of_kind(step, "device") for span in lane.work]
    return _seconds(work) / step.end_s


def _seconds(spans: list[Span]) -> float:
    return sum(span.seconds for span in union(spans))
