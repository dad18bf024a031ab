"""Watch which functions of PyTorch an answer calls."""

from typing import Any

from torch.overrides import TorchFunctionMode

# What Python calls to get the value of a tensor.
READS = ("item", "tolist", "numpy", "cpu", "__float__", "__int__", "__bool__", "__format__")


class TorchCalls(TorchFunctionMode):
    """Notes every function of PyTorch that is called on a tensor inside its `with` block."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, function, types, args=(), kwargs=None) -> Any:
        self.names.append(getattr(function, "__name__", ""))
        return function(*args, **(kwargs or {}))

    def count(self, names: tuple[str, ...]) -> int:
        """Return how often functions of these names were called."""
        return sum(name in names for name in self.names)
