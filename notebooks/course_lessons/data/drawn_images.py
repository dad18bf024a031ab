"""Draw small images of ten shapes, the same on every machine, from a seed and integers alone."""

import torch

SHAPES = (
    "disc", "ring", "square", "frame", "diamond",
    "plus", "cross", "rows", "columns", "checks",
)  # fmt: skip
SIDE = 32
NOISE = 40  # of 255, either way


def draw_shapes(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw shapes of random position, size and colours on plain backgrounds, with noise.

    The seed decides everything. Each class occurs equally often, in shuffled order.

    Returns:
        The pixels, (count, 3, 32, 32), uint8, and the index of each one's shape in `SHAPES`,
        (count,), int64.
    """
    generator = torch.Generator().manual_seed(seed)

    def random(low: int, high: int, *shape: int) -> torch.Tensor:
        return torch.randint(low, high, shape, generator=generator, dtype=torch.int16)

    labels = torch.randperm(count, generator=generator) % len(SHAPES)
    drawn = _masks(
        labels, radius=random(7, 13, count), x=random(11, 21, count), y=random(11, 21, count)
    )
    background = random(0, 256, count, 3, 1, 1)
    # At least 80 of 256 away in each colour, going round at the top.
    foreground = (background + random(80, 177, count, 3, 1, 1)) % 256
    pixels = torch.where(drawn.unsqueeze(1), foreground, background)  # (count, 3, 32, 32)
    pixels += random(-NOISE, NOISE + 1, *pixels.shape)
    return pixels.clamp_(0, 255).to(torch.uint8), labels


def _masks(
    labels: torch.Tensor, radius: torch.Tensor, x: torch.Tensor, y: torch.Tensor
) -> torch.Tensor:
    """Return which pixels belong to each image's shape, (count, 32, 32)."""
    masks = torch.zeros(len(labels), SIDE, SIDE, dtype=torch.bool)
    line = torch.arange(SIDE, dtype=torch.int16)
    for label, name in enumerate(SHAPES):
        ours = labels == label
        across = line.view(1, 1, SIDE) - x[ours].view(-1, 1, 1)  # (images of this shape, 1, 32)
        down = line.view(1, SIDE, 1) - y[ours].view(-1, 1, 1)  # (images of this shape, 32, 1)
        masks[ours] = _mask(name, across, down, radius[ours].view(-1, 1, 1))
    return masks


def _mask(
    name: str, across: torch.Tensor, down: torch.Tensor, radius: torch.Tensor
) -> torch.Tensor:
    a, d = across.abs(), down.abs()
    squared, largest = across**2 + down**2, torch.maximum(a, d)
    box = largest <= radius
    return {
        "disc": squared <= radius**2,
        "ring": (squared <= radius**2) & (squared > (radius - 3) ** 2),
        "square": box,
        "frame": box & (largest > radius - 3),
        "diamond": a + d <= radius,
        "plus": box & (torch.minimum(a, d) <= 2),
        "cross": box & ((a - d).abs() <= 2),
        "rows": box & (down % 6 < 3),
        "columns": box & (across % 6 < 3),
        "checks": box & ((across % 8 < 4) == (down % 8 < 4)),
    }[name]
