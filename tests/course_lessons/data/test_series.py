import hashlib

import pytest
import torch
from course_lessons.data.series import (
    AIR_PASSENGERS,
    Scale,
    ShuffledBatches,
    air_passengers,
    make_windows,
)


def test_the_series_is_the_published_one_to_the_last_month():
    # The digest that Darts publishes for its file of the series
    # (darts.datasets.AirPassengersDataset).
    lines = [f"{1949 + i // 12}-{i % 12 + 1:02d},{value}" for i, value in enumerate(AIR_PASSENGERS)]
    file = "\n".join(["Month,#Passengers", *lines, ""])
    assert hashlib.md5(file.encode()).hexdigest() == "167ffa96204a2b47339c21eea25baf32"


def test_the_training_part_ends_with_january_1959():
    train, validation = air_passengers()
    assert (len(train), len(validation)) == (121, 23)
    assert (train[-1], validation[0]) == (360, 342)  # January and February 1959 in Box and Jenkins
    assert train.dtype == validation.dtype == torch.float32


def test_a_scale_maps_its_own_series_to_zero_and_one_and_back():
    train, validation = air_passengers()
    scale = Scale.fit(train)
    assert scale.apply(train).aminmax() == (0, 1)
    assert scale.apply(torch.tensor([104.0, 505.0, 906.0])).tolist() == [0, 1, 2]
    torch.testing.assert_close(scale.undo(scale.apply(validation)), validation)


def test_windows_are_every_stretch_of_the_series_and_the_step_after_each():
    inputs, targets = make_windows(torch.arange(6.0), 3)
    assert inputs.squeeze(-1).tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assert targets.squeeze(-1).tolist() == [[1, 2, 3], [2, 3, 4], [3, 4, 5]]
    assert inputs.is_contiguous() and targets.is_contiguous()
    shapes = [tuple(make_windows(torch.arange(6.0), length)[0].shape) for length in (1, 5)]
    assert shapes == [(5, 1, 1), (1, 5, 1)]


@pytest.mark.parametrize("length", [144, 143 + 1, 0, -1])
def test_a_window_that_does_not_fit_says_which_lengths_do(length):
    series = torch.arange(144.0)
    with pytest.raises(
        ValueError, match=f"windows of {length} steps .* series of 144.* length from 1 to 143"
    ):
        make_windows(series, length)


@pytest.mark.parametrize("use", [Scale.fit, lambda series: make_windows(series, 20)])
@pytest.mark.parametrize(("value", "written"), [(float("nan"), "nan"), (float("inf"), "inf")])
def test_a_value_that_is_no_number_is_named_with_its_position(use, value, written):
    series = air_passengers()[0].clone()
    series[7] = value
    with pytest.raises(ValueError, match=f"holds {written} at position 7. A single one"):
        use(series)
    series[9] = value
    with pytest.raises(ValueError, match=f"holds {written} at position 7. A single one"):
        use(series)


def test_a_constant_series_has_no_scale():
    with pytest.raises(ValueError, match="values that differ, but all 5 values are 3"):
        Scale.fit(torch.full((5,), 3.0))


def test_a_table_is_not_a_series():
    with pytest.raises(ValueError, match=r"one dimension, .* has shape \(5, 2\)"):
        make_windows(torch.zeros(5, 2), 2)


def test_an_epoch_holds_every_sample_once_and_the_next_one_in_another_order():
    batches = ShuffledBatches(101, 16, seed=42)
    first, second = list(batches), list(batches)
    assert [len(index) for index in first] == [16] * 6 + [5]
    assert len(batches) == 7
    assert (
        sorted(torch.cat(first).tolist()) == sorted(torch.cat(second).tolist()) == list(range(101))
    )
    assert torch.cat(first).tolist() != torch.cat(second).tolist()


def test_the_seed_decides_the_order_whatever_else_draws_random_numbers():
    one, two = ShuffledBatches(101, 16, seed=1), ShuffledBatches(101, 16, seed=1)
    for _ in range(2):
        expected = torch.cat(list(one)).tolist()
        torch.rand(5)
        assert torch.cat(list(two)).tolist() == expected
    assert (
        torch.cat(list(ShuffledBatches(101, 16, seed=2))).tolist()
        != torch.cat(list(ShuffledBatches(101, 16, seed=1))).tolist()
    )


@pytest.mark.parametrize(("samples", "size"), [(0, 16), (101, 0), (101, -3)])
def test_batches_of_nothing_are_refused(samples, size):
    with pytest.raises(ValueError, match=f"got {samples} samples in batches of {size}"):
        ShuffledBatches(samples, size)
    assert [index.tolist() for index in ShuffledBatches(1, 1)] == [[0]]


def test_the_order_of_the_batches_is_that_of_seed_42_unless_another_is_given():
    for seed, batches in ((42, ShuffledBatches(10, 4)), (7, ShuffledBatches(10, 4, seed=7))):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(2):
            expected = torch.randperm(10, generator=generator).split(4)
            assert [each.tolist() for each in batches] == [each.tolist() for each in expected]
