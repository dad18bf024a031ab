"""The pictures of the GPU lesson."""

from typing import Any

from matplotlib.patches import Rectangle

from course_tools.figures import (
    LOOKS,
    Picture,
    lecture_axes,
    picture,
)

# The T4: NVIDIA Turing Architecture Whitepaper (2018) for the multiprocessors and their lanes. Its
# memory's bandwidth and its bus, 16 GB/s each way for PCIe 3.0 x16, are those of its data sheet.
MULTIPROCESSORS, LANES, GPU_MEMORY_GB_PER_S, BUS_GB_PER_S = 40, 64, 320, 16


def draw_memories() -> Picture:
    """Draw a CPU and a T4, each with its cores and its memory, and the bus between them."""
    axes = lecture_axes("Two memories with a narrow bus between them")
    cpu, gpu = LOOKS["cpu"]["color"], LOOKS["cuda"]["color"]
    _draw_box(axes, (0, 4.2), (3.6, 4.4), cpu)
    _draw_box(axes, (8.4, 4.2), (5.6, 4.4), gpu)
    for core in range(4):
        left, bottom = 0.3 + 1.55 * (core % 2), 4.5 + 1.55 * (core // 2)
        _draw_box(axes, (left, bottom), (1.4, 1.4), cpu, full=True)
    for number in range(MULTIPROCESSORS):
        left, bottom = 8.65 + 0.64 * (number % 8), 4.5 + 0.62 * (number // 8)
        _draw_box(axes, (left, bottom), (0.5, 0.48), gpu, full=True)
    axes.text(1.8, 8.1, "CPU: a few fast cores", ha="center", va="center", color=cpu)
    words = f"GPU (T4): {MULTIPROCESSORS} multiprocessors"
    axes.text(11.2, 8.1, words, ha="center", va="center", color=gpu)
    _draw_box(axes, (0, 0), (3.6, 2.4), cpu)
    axes.text(1.8, 1.2, "host memory\nyour data", ha="center", va="center", color=cpu)
    _draw_box(axes, (8.4, 0), (5.6, 2.4), gpu)
    words = "GPU memory\nmodel and batch, once moved"
    axes.text(11.2, 1.2, words, ha="center", va="center", color=gpu)
    _draw_box(axes, (1.7, 2.4), (0.2, 1.8), cpu, full=True)
    _draw_box(axes, (10.9, 2.4), (0.6, 1.8), gpu, full=True)
    axes.text(11.8, 3.3, f"{GPU_MEMORY_GB_PER_S} GB/s", va="center", color=gpu)
    arrow = {"arrowstyle": "<->", "color": "black", "linewidth": 2, "mutation_scale": 30}
    axes.annotate("", (8.3, 1.2), (3.7, 1.2), arrowprops=arrow)
    axes.text(6, 1.7, ".to(device)", ha="center", va="center", family="monospace")
    axes.text(6, 0.7, f"bus: {BUS_GB_PER_S} GB/s", ha="center", va="center")
    axes.set(xlim=(-0.2, 14.2), ylim=(-0.2, 8.8))
    axes.axis("off")
    return picture(
        axes,
        f"On the left a CPU with four cores and its memory. On the right a GPU, a T4, with "
        f"{MULTIPROCESSORS} multiprocessors of {LANES} lanes, and its own memory, which it reads "
        f"at {GPU_MEMORY_GB_PER_S} GB/s. Between the memories a bus of {BUS_GB_PER_S} GB/s, which "
        f".to(device) crosses.",
        colors=16,
    )


def _draw_box(
    axes: Any,
    corner: tuple[float, float],
    size: tuple[float, float],
    color: str,
    full: bool = False,
) -> None:
    fill = color if full else "none"
    axes.add_patch(Rectangle(corner, *size, facecolor=fill, edgecolor=color, linewidth=2))
