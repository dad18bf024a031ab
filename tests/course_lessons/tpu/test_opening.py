"""The picture that lesson 5 opens with, where a CPU stands for the XLA device."""

import sys
from types import SimpleNamespace

import torch
from course_lessons.tpu import opening
from torch.utils.data import TensorDataset


def test_six_training_steps_of_64_images_are_drawn(monkeypatch):
    networks, steps = [], []

    def network():
        networks.append(torch.nn.Linear(2, 3))
        return networks[0]

    def load_data(count):
        return TensorDataset(torch.rand(count, 2), torch.zeros(count, dtype=torch.long)), None

    def time_steps(step, batches):
        before = networks[0].weight.detach().clone()
        for pixels, labels in batches:
            step(pixels, labels)
            steps.append((len(pixels), len(labels), networks[0].weight.grad))
        assert not torch.equal(before, networks[0].weight)
        return "their times"

    script = SimpleNamespace(Network=network, load_data=load_data)
    monkeypatch.setitem(sys.modules, "course_lessons.scripts.train_xla", script)
    monkeypatch.setattr(opening, "xla_problem", lambda: None)
    monkeypatch.setattr(opening, "start_xla", lambda: torch.device("cpu"))
    monkeypatch.setattr(opening, "time_steps", time_steps)
    monkeypatch.setattr(opening, "draw_steps", lambda times: times)
    assert opening.draw_own_steps() == "their times"
    assert steps == [(64, 64, None)] * 6


def test_without_xla_a_sentence_stands_in_its_place(monkeypatch, capsys):
    monkeypatch.setattr(opening, "xla_problem", lambda: "it is not here.")
    assert opening.draw_own_steps() is None
    assert capsys.readouterr().out == "The first picture needs XLA, but it is not here.\n"
