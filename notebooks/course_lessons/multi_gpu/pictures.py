"""The pictures of the multi-GPU lesson."""

from matplotlib.patches import Rectangle

from course_lessons.diagrams import DARK, draw_arrow, draw_box, draw_canvas
from course_lessons.evidence.published import published
from course_tools.figures import (
    BLUE,
    GREEN,
    MUTED,
    ORANGE,
    PINK,
    SKY,
    Picture,
    lecture_axes,
    picture,
)

FORMATS = {"fp16": "16 bits\n(mixed precision)", "tf32": "TF32"}
RANKS = 4
COLORS = (BLUE, SKY, GREEN, PINK)  # one for each rank
MOMENTS = {
    "own gradients": "each rank has\nits own gradients",
    "reduce-scatter": "reduce-scatter:\neach has one sum",
    "all-gather": "all-gather:\nall have all sums",
}
# When rank 3 of eight A100 40 GB computed and exchanged in a step of a recommender, with gaps of
# less than 0.4 ms closed. Read off a trace of August 2022: facebookresearch/HolisticTraceAnalysis
# at f4d0062c, tests/data/trace_diff/control/control.json.gz.
CALCULATES_MS = ((1.7, 3.5), (4.6, 10.9), (19.9, 31.2), (34.1, 76.7))
EXCHANGES_MS = ((8.4, 19.8), (25.4, 27.2), (27.9, 31.0), (55.9, 69.2))


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


def sums_of(moment: str, ranks: int = RANKS) -> list[list[int]]:
    """Return, for each rank and each piece of its gradients, from how many ranks it is the sum.

    What a rank needs no longer is 0.
    """
    if moment == "own gradients":
        return [[1] * ranks for _ in range(ranks)]
    if moment == "reduce-scatter":
        return [[ranks if piece == rank else 0 for piece in range(ranks)] for rank in range(ranks)]
    return [[ranks] * ranks for _ in range(ranks)]


def draw_collectives() -> Picture:
    """Draw the two halves of an all-reduce between four ranks."""
    axes = draw_canvas("An all-reduce has two halves")
    axes.text(-0.1, 4.25, "pieces", ha="right", va="center", color=DARK, rotation="vertical")
    for panel, (moment, words) in enumerate(MOMENTS.items()):
        left = 0.1 + 4.4 * panel
        axes.text(left + 1.85, 7.9, words, ha="center", va="center", color=DARK, fontweight="bold")
        for rank, pieces in enumerate(sums_of(moment)):
            x = left + 0.95 * rank
            for piece, count in enumerate(pieces):
                y = 5.6 - 1.3 * piece
                color = {0: "white", 1: COLORS[rank]}.get(count, ORANGE)
                axes.add_patch(Rectangle((x, y), 0.85, 1.2, facecolor=color, edgecolor=MUTED))
                if count == RANKS:
                    axes.text(x + 0.42, y + 0.6, "sum", ha="center", va="center", fontsize=19)
            axes.text(x + 0.42, 1.15, str(rank), ha="center", color=DARK)
        axes.text(left + 1.85, 0.3, "rank", ha="center", color=DARK)
        if panel:
            draw_arrow(axes, (left - 0.55, 4.2), (left - 0.05, 4.2))
    alt = f"{RANKS} ranks, each with its gradients cut into {RANKS} pieces. After a reduce-scatter "
    alt += "each rank has the sum of one piece; after an all-gather all ranks have all the sums."
    return picture(axes, alt, colors=32)


def draw_step() -> Picture:
    """Draw when a recorded GPU calculates and when it exchanges, in one step."""
    axes = lecture_axes("One exchange is hidden, another is not", "ms of one step (recorded)")
    first, *short, last = EXCHANGES_MS
    for y, spans, color, alpha in (
        (1, CALCULATES_MS, ORANGE, 1),
        (0, [first, last], GREEN, 1),
        (0, short, GREEN, 0.35),
    ):
        lengths = [(start, end - start) for start, end in spans]
        axes.broken_barh(lengths, (y - 0.2, 0.4), color=color, alpha=alpha)
    axes.text(8.4, -0.52, "the GPU has to wait\nfor this one", color=DARK, va="center")
    words = "this one is hidden\nbehind the backward pass"
    axes.text(last[1], -0.52, words, color=DARK, va="center", ha="right")
    axes.text(short[0][0], 0.34, "two short ones, partly hidden", color=DARK, va="center")
    axes.set_yticks([1, 0], ["calculates", "exchanges"])
    axes.set(ylim=(-0.85, 1.5), xlim=(0, 78))
    alt = "A step of 77 ms on one of eight A100. An exchange of 11 ms in the forward pass leaves "
    alt += "the GPU idle; one of 13 ms runs while the backward pass calculates. Recorded by "
    alt += "others on A100 40 GB, August 2022. Source: github.com/facebookresearch/"
    alt += "HolisticTraceAnalysis at f4d0062c."
    return picture(axes, alt, colors=16)
