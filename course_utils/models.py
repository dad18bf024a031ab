"""The models that the lessons train."""

import torch
from torch import nn


class AirRNN(nn.Module):
    """A vanilla RNN with a linear head that reads a series and says the next step at every step: 481 parameters.

    The RNN holds 20 x 1 + 20 x 20 weights and 2 x 20 biases, the head 20 weights and a bias.

    Args:
        hidden_size: how many numbers the RNN remembers from one step to the next.
    """

    def __init__(self, hidden_size: int = 20):
        super().__init__()
        self.rnn = nn.RNN(input_size=1, hidden_size=hidden_size, batch_first=True)
        self.head = nn.Linear(hidden_size, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Map values, (batch, steps, 1), to the values one step later, of the same shape."""
        hidden, _ = self.rnn(inputs)  # (batch, steps, hidden_size)
        return self.head(hidden)

    @torch.no_grad()
    def forecast(self, history: torch.Tensor, steps: int) -> torch.Tensor:
        """Continue a series by feeding the model its own answers.

        Args:
            history: (months,), on the model's scale and device.
            steps: how many steps to say, at least 1.

        Returns:
            The forecast, (steps,), on the model's scale.

        Raises:
            ValueError: the history is empty or not one-dimensional, or fewer than one step was requested.
        """
        if history.ndim != 1 or len(history) == 0 or steps < 1:
            raise ValueError(
                f"a forecast needs a history of shape (months,) and at least 1 step, "
                f"but got shape {tuple(history.shape)} and {steps} steps."
            )
        hidden, state = self.rnn(history.view(1, -1, 1))
        answers = [self.head(hidden[:, -1:])]
        for _ in range(steps - 1):
            hidden, state = self.rnn(answers[-1], state)
            answers.append(self.head(hidden))
        return torch.cat(answers, dim=1).flatten()


def count_parameters(model: nn.Module) -> int:
    """Return how many numbers of the model are trained."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
