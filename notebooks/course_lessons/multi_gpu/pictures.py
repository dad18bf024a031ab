"""The pictures of the multi-GPU lesson."""

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_lessons.boxes import DARK, draw_arrow, draw_box, draw_canvas
from course_lessons.evidence.published import published
from course_tools.figures import BLUE, MUTED, ORANGE, SKY, Picture, lecture_axes, picture

PALE = "#F7D9C4"
FORMATS = {"fp16": "16 bits\n(mixed precision)", "tf32": "TF32"}
RANKS = 4  # of the ring
# After how many sends a panel shows the ring, and what there is to see.
MOMENTS = {
    0: "start: no sums yet",
    1: "1 send: a sum of two",
    3: "3 sends: one whole sum",
    6: "6 sends: all have it",
}


def draw_published_scaling() -> Picture:
    """Draw the images per second of eight GPUs beside eight times those of one (published)."""
    speeds_of = {}
    for precision in FORMATS:
        same = {"model": "resnet50", "device": "A100 80GB", "precision": precision}
        found = [published(**same, training=True, count=count)[0] for count in (1, 8)]
        speeds_of[precision] = [row.samples_per_s for row in found]
    gains = [eight / one for one, eight in speeds_of.values()]
    axes = lecture_axes(
        f"Eight GPUs train {min(gains):.1f} to {max(gains):.1f} times as fast",
        "ResNet-50 on eight A100, images/s (published)",
    )
    words = []
    for position, (precision, (one, eight)) in enumerate(speeds_of.items()):
        gain = gains[position]
        axes.barh(position, 8 * one, 0.5, facecolor="white", edgecolor=MUTED, linestyle=":")
        axes.barh(position, eight, 0.5, color=ORANGE)
        axes.text(200, position, f"{eight:,.0f}: {gain:.1f} times one", color=DARK, va="center")
        speeds = f"{one:,.0f} images/s -> {eight:,.0f} images/s"
        words.append(f"{precision}: {speeds}, {gain:.1f} times")
    most = 8 * max(one for one, _ in speeds_of.values())
    axes.text(most, 0.4, "dotted: eight times one GPU", color=MUTED, ha="right")
    axes.set_yticks(range(len(FORMATS)), list(FORMATS.values()))
    axes.set_xticks(range(0, 20_001, 5000))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set(ylim=(-0.5, 1.5), xlim=(0, 1.05 * most))
    return picture(axes, f"Bars for eight A100 GPUs that train ResNet-50. {'; '.join(words)}.")


def draw_ddp() -> Picture:
    """Draw one step of DDP with two ranks, from left to right."""
    axes = draw_canvas("DDP: same model, different samples, one mean")
    for y, rank, samples, color in ((6.3, 0, "0, 2, 4, 6 ...", BLUE), (1.3, 1, "1, 3, 5 ...", SKY)):
        draw_box(axes, 0.1, y, 2.5, f"rank {rank}\nsamples\n{samples}", color)
        draw_box(axes, 3.3, y, 2.2, "copy of\nthe model", MUTED)
        draw_box(axes, 6.2, y, 2.3, "gradient of\nits samples", color)
        draw_box(axes, 10.4, y, 2.3, "same step,\nsame weights", MUTED)
        for start, end in ((2.6, 3.3), (5.5, 6.2)):
            draw_arrow(axes, (start, y + 1), (end, y + 1))
    draw_box(axes, 8.0, 3.8, 2.8, "all-reduce:\nmean of both", ORANGE)
    for y, edge in ((6.3, 5.8), (3.3, 3.8)):
        draw_arrow(axes, (7.6, y), (8.4, edge))
        draw_arrow(axes, (10.4, edge), (11.2, y))
    alt = "Two ranks, each with a copy of the model and with samples of its own. Each computes the "
    alt += "gradient of its samples; an all-reduce takes the mean; both make the same step."
    return picture(axes, alt)


def follow_piece(sends: int, ranks: int = RANKS) -> list[int]:
    """Return from how many ranks each rank has the sum of one piece, which rank 0 sends first."""
    summed = [1] * ranks
    for send in range(sends):
        sender, receiver = send % ranks, (send + 1) % ranks
        whole = summed[sender] == ranks
        summed[receiver] = ranks if whole else summed[sender] + 1
    return summed


def draw_ring() -> Picture:
    """Draw the way of one piece of the gradients around a ring of four ranks."""
    axes = draw_canvas("A ring: each rank sends only to the next")
    words = []
    for panel, (sends, title) in enumerate(MOMENTS.items()):
        left, bottom = 0.3 + 6.6 * (panel % 2), 4.9 - 4.7 * (panel // 2)
        summed = follow_piece(sends)
        _draw_moment(axes, left, bottom, title, summed)
        words.append(f"{title}: {', '.join(map(str, summed))}")
    alt = f"{RANKS} ranks, each with its gradients cut into {RANKS} pieces. One piece is coloured, "
    alt += f"with the number of ranks whose gradients are in it. {'; '.join(words)}."
    return picture(axes, alt, colors=24)


def _draw_moment(axes: Axes, left: float, bottom: float, title: str, summed: list[int]) -> None:
    axes.text(left, bottom + 3.5, title, fontweight="bold", color=DARK)
    for rank, count in enumerate(summed):
        x = left + 1.5 * rank
        for piece in range(RANKS):
            y = bottom + 0.7 + 0.62 * (RANKS - 1 - piece)
            color = "white" if piece else ORANGE if count == RANKS else PALE
            axes.add_patch(Rectangle((x, y), 1.1, 0.62, facecolor=color, edgecolor=MUTED))
        axes.text(x + 0.55, bottom + 2.87, str(count), ha="center", va="center", color=DARK)
        axes.text(x + 0.55, bottom, f"rank {rank}", ha="center", color=DARK)
        if rank < RANKS - 1:
            draw_arrow(axes, (x + 1.1, bottom + 2.87), (x + 1.5, bottom + 2.87))
