import hashlib

import pytest
import torch
from course_lessons.data.drawn_images import NOISE, SHAPES, _masks, draw_shapes

DIGEST = "4f24325864ced043bb038cc7735a2172f80fbfdfdec07f157e17191867df7437"


def test_the_images_are_the_same_on_every_machine():
    pixels, labels = draw_shapes(1000, seed=42)
    # Whole numbers and torch's own generator leave no room for rounding.
    assert hashlib.sha256(pixels.numpy().tobytes() + labels.numpy().tobytes()).hexdigest() == DIGEST


def test_another_seed_draws_other_images():
    assert not torch.equal(draw_shapes(20, seed=1)[0], draw_shapes(20, seed=2)[0])


def test_images_have_the_shape_and_type_of_cifar_10_and_classes_of_one_size():
    pixels, labels = draw_shapes(500, seed=1)
    assert pixels.shape == (500, 3, 32, 32)
    assert pixels.dtype == torch.uint8
    assert labels.dtype == torch.int64
    assert labels.bincount().tolist() == [50] * 10


# How many pixels a shape of radius 9 covers, counted by hand or by a formula for its lattice
# points.
AREAS = {
    "square": 19**2,
    "frame": 19**2 - 13**2,
    "diamond": 2 * 9 * 10 + 1,
    "plus": 2 * 19 * 5 - 5**2,
    "rows": 19 * sum((y % 6) < 3 for y in range(-9, 10)),
    "columns": 19 * sum((x % 6) < 3 for x in range(-9, 10)),
    "disc": sum(x * x + y * y <= 81 for x in range(-9, 10) for y in range(-9, 10)),
    "ring": sum(36 < x * x + y * y <= 81 for x in range(-9, 10) for y in range(-9, 10)),
    "cross": sum(abs(abs(x) - abs(y)) <= 2 for x in range(-9, 10) for y in range(-9, 10)),
    "checks": sum((x % 8 < 4) == (y % 8 < 4) for x in range(-9, 10) for y in range(-9, 10)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_covers_as_many_pixels_as_geometry_says(name):
    place = torch.tensor([16], dtype=torch.int16)
    mask = _masks(
        torch.tensor([SHAPES.index(name)]), torch.tensor([9], dtype=torch.int16), place, place
    )
    assert mask.sum().item() == AREAS[name]


def test_a_shape_differs_from_its_background_by_more_than_the_noise():
    pixels, labels = draw_shapes(200, seed=3)
    squares = pixels[labels == SHAPES.index("square")].float()
    # The corner is background and the middle, 16 or less from every centre but more than 4 inside,
    # is often shape.
    middle, corner = squares[:, :, 14:18, 14:18].mean((2, 3)), squares[:, :, :3, :3].mean((2, 3))
    assert ((middle - corner).abs().amax(1) > NOISE).float().mean() > 0.9
