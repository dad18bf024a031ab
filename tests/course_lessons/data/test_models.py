"""The two networks of the lessons."""

import pytest
import torch
from course_lessons.data.models import AirRNN, ImageCNN, ResNet50, count_parameters
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


def test_the_rnn_has_481_parameters():
    assert count_parameters(AirRNN()) == 481


def test_a_forecast_is_the_model_reading_its_own_answers():
    torch.manual_seed(0)
    model = AirRNN()
    history = torch.rand(20)
    known = history.tolist()
    for _ in range(5):  # without the remembered state: read everything again for each answer
        known.append(model(torch.tensor(known).view(1, -1, 1))[0, -1, 0].item())
    torch.testing.assert_close(model.forecast(history, 5), torch.tensor(known[20:]))


@pytest.mark.parametrize(
    ("history", "steps"), [(torch.zeros(0), 3), (torch.zeros(2, 3), 3), (torch.zeros(5), 0)]
)
def test_a_forecast_of_nothing_is_refused(history, steps):
    with pytest.raises(ValueError, match=rf"got shape .*{history.shape[0]}.* and {steps} steps"):
        AirRNN().forecast(history, steps)
    assert len(AirRNN().forecast(torch.zeros(1), 1)) == 1


def test_the_parameters_add_up():
    convolutions = (3 * 25 + 1) * 6 + (6 * 25 + 1) * 16 + (16 * 9 + 1) * 16
    assert (
        count_parameters(ImageCNN())
        == convolutions + (400 + 1) * 120 + (120 + 1) * 84 + (84 + 1) * 10
        == 64_326
    )


def test_resnet50_has_the_size_and_the_work_that_are_published():
    # torchvision's documentation of resnet50: 25,557,032 parameters, 4.09 billion multiply-adds
    with torch.device("meta"):
        model, image = ResNet50(), torch.empty(1, 3, 224, 224)
    with FlopCounterMode(display=False) as counter:
        scores = model(image)
    assert count_parameters(model) == 25_557_032 and scores.shape == (1, 1000)
    assert counter.get_total_flops() / 2 == pytest.approx(4.09e9, rel=0.001)
    model.layers[0].weight.requires_grad_(False)
    assert count_parameters(model) == 25_557_032 - 64 * 3 * 7 * 7  # of what is trained


def test_bytes_and_floats_of_the_same_pixels_get_the_same_scores():
    model, pixels = ImageCNN(), torch.randint(256, (4, 3, 32, 32), dtype=torch.uint8)
    assert torch.equal(model(pixels), model(pixels.float()))


def test_the_pixels_are_scaled_to_minus_one_to_one():
    model, seen = ImageCNN(), []
    model.conv1.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model(torch.linspace(0, 255, 3 * 32 * 32).reshape(1, 3, 32, 32))
    torch.testing.assert_close(seen[0], torch.linspace(-1, 1, 3 * 32 * 32).reshape(1, 3, 32, 32))


def test_each_image_is_scored_by_itself():
    model, pixels = ImageCNN(), torch.randint(256, (5, 3, 32, 32), dtype=torch.uint8)
    torch.testing.assert_close(model(pixels)[2:3], model(pixels[2:3]))


def test_a_training_step_stays_on_its_device():
    # "meta" keeps no numbers, but obeys the rules of a second device and refuses to mix with the
    # CPU.
    model = ImageCNN().to("meta")
    scores = model(torch.zeros(8, 3, 32, 32, dtype=torch.uint8, device="meta"))
    nn.functional.cross_entropy(scores, torch.zeros(8, dtype=torch.int64, device="meta")).backward()
    assert {parameter.grad.device.type for parameter in model.parameters()} == {"meta"}
    with pytest.raises(RuntimeError, match="device"):
        model(torch.zeros(8, 3, 32, 32, dtype=torch.uint8))
