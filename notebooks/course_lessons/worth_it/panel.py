"""A panel: choose chips, batch, precision, prices and a deadline, and see hours and money at
once.
"""

import html
from functools import lru_cache
from typing import Any

import ipywidgets as widgets
from IPython.display import HTML, display
from torch import nn

from course_lessons.worth_it.pictures import draw_money
from course_utils.estimate.chips import all_chips
from course_utils.estimate.prices import read_prices
from course_utils.estimate.question import estimate
from course_utils.estimate.result import Estimate
from course_utils.progress_bars import display_widget

CHOSEN = ("T4", "L4", "A100 80GB", "RTX 4090", "H100 SXM")


class RentalPanel:
    """The panel over `estimate`. Each change of a control asks anew; a sentence says what was wrong
    with the request.

    Args:
        model: what is to be trained.
        inputs: one example input, the batch first.
        samples: in an epoch.
        epochs: of the training.
        prices: of an hour, by chip; the text field starts with them.

    Attributes:
        result: the latest estimate; None where the last request could not be met.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Any,
        *,
        samples: int,
        epochs: int,
        prices: dict[str, float],
        deadline: float = 24.0,
    ):
        self.samples, self.epochs = samples, epochs
        self.result: Estimate | None = None
        self._estimate = lru_cache(maxsize=64)(
            lambda prices, **asked: estimate(model, inputs, prices=dict(prices), **asked)
        )
        self._shown: Any = None
        names = [chip.name for chip in all_chips()]
        chosen = [name for name in names if name in CHOSEN]
        said = ", ".join(f"{name}={price:g}" for name, price in prices.items())
        self.chips = widgets.SelectMultiple(
            options=names, value=chosen, description="Chips", rows=6
        )
        self.batch = widgets.Dropdown(
            options=[2**k for k in range(11)], value=64, description="Batch"
        )
        self.precision = widgets.Dropdown(options=["amp", "fp32"], description="Precision")
        self.prices = widgets.Text(value=said, description="Prices/h", continuous_update=False)
        self.deadline = widgets.FloatText(
            value=deadline, description="Deadline, h", continuous_update=False
        )
        self.status = widgets.HTML("")
        controls = {
            name: getattr(self, name)
            for name in ("chips", "batch", "precision", "prices", "deadline")
        }
        for name, control in controls.items():
            control.add_class(f"rentalpanel-{name}")
            control.observe(lambda change: self.update(), names="value")
        self.status.add_class("rentalpanel-status")
        self.prices.layout.width = self.chips.layout.width = "34em"
        self.controls = widgets.VBox([*controls.values(), self.status])
        self.controls.add_class("rentalpanel")

    def update(self) -> None:
        """Estimate what the controls ask for and show it, or in a sentence why that cannot be."""
        try:
            asked = {
                "devices": tuple(self.chips.value),
                "batch": self.batch.value,
                "precision": self.precision.value,
            }
            prices = read_prices(self.prices.value)
            if not asked["devices"]:
                raise ValueError("choose at least one chip.")
            found = self._estimate(**asked, prices=prices, samples=self.samples, epochs=self.epochs)
            deadline = max(0.0, self.deadline.value) or None
            shown: Any = draw_money(found, deadline)
            best = found.cheapest(deadline)
        except (ValueError, TypeError, RuntimeError, OverflowError) as error:
            self.result, shown = None, HTML("")
            self.status.value = f"<b>Not estimated:</b> {html.escape(str(error))}"
        else:
            self.result = found
            what = "Cheapest within the deadline" if deadline else "Cheapest"
            self.status.value = f"{what}: {html.escape(best.device if best else 'none of these')}"
        if self._shown:
            self._shown.update(shown)

    def _ipython_display_(self) -> None:
        display_widget(
            self.controls, "[panel: chips, batch, precision, prices and deadline of an estimate]"
        )
        self._shown = display(HTML(""), display_id=True)
        self.update()
