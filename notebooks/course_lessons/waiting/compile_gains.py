"""What torch.compile gained on published networks."""

import statistics

import pandas as pd

from course_lessons.evidence.published import published

# A family's networks are those whose name begins in one of these ways.
FAMILIES = {
    "vision transformers (vit, deit)": ("vit_", "deit"),
    "EfficientNet": ("efficientnet", "tf_efficientnet"),
    "MobileNet": ("mobilenet",),
    "ResNet": ("resnet",),
    "ConvNeXt": ("convnext_",),
    "Swin 2, XCiT": ("swinv2", "xcit"),
    "ConvNeXt 2": ("convnextv2",),
}


def gains(card: str) -> dict[str, float]:
    """Return how many times as fast torch.compile made each network's forward pass on a card.

    Pairs of rows with the same network, image, batch and version of PyTorch, in fp16; the network's
    name and the side of its image are the key.
    """
    rates: dict[tuple, dict[bool, float]] = {}
    for row in published(device=card, torch="2.9.1", precision="fp16", training=False):
        key = (row.model, row.image, row.batch)
        rates.setdefault(key, {})[row.compiled] = row.samples_per_s
    pairs = {key: pair for key, pair in rates.items() if len(pair) == 2}
    return {f"{key[0]} {key[1]}": pair[True] / pair[False] for key, pair in pairs.items()}


def gains_by_family(*cards: str) -> pd.DataFrame:
    """Return how many times as fast the median network of each family became on these cards, with
    how many networks there are and which share became slower.
    """
    columns: dict[str, dict[str, str]] = {}
    for card in cards:
        found = gains(card)
        slower = sum(gain < 1 for gain in found.values()) / len(found)
        column = {
            "networks measured": f"{len(found):,}",
            "slower when compiled": f"{slower:.1%}",
            "times as fast: median of all": f"{statistics.median(found.values()):.2f}",
        }
        for family, starts in FAMILIES.items():
            ours = [gain for name, gain in found.items() if name.startswith(starts)]
            column[f"median of {family}"] = f"{statistics.median(ours):.2f}"
        columns[card] = column
    return pd.DataFrame(columns)
