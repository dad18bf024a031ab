"""A menu for the batch, and below it what the training needs beside the memory of named chips."""

from typing import Any

import ipywidgets as widgets
from IPython.display import HTML, display

from course_lessons.memory.pictures import draw_chips
from course_utils.estimate.chips import find_chip
from course_utils.estimate.memory_model import capacity_bytes
from course_utils.estimate.memory_result import Memory
from course_utils.progress_bars import display_widget

CHIPS = ("T4", "RTX 4090", "RTX 5090", "A100 40GB", "H100 SXM", "H200")


class BatchPanel:
    """The panel over an estimate, which follows the menu without tracing the model again.

    Args:
        memory: an estimate at any batch.

    Attributes:
        memory: the estimate at the batch that was chosen.
    """

    def __init__(self, memory: Memory):
        self.memory = memory
        self.rooms = {name: capacity_bytes(find_chip(name)) for name in CHIPS}
        sizes = sorted({2**power for power in range(12)} | {memory.batch})
        # Not a slider: its handle has no name for a screen reader, which reads its place and not
        # the batch.
        self.batch = widgets.Dropdown(options=sizes, value=memory.batch, description="Batch")
        self.status = widgets.HTML("")
        for name, control in (("batch", self.batch), ("status", self.status)):
            control.add_class(f"batchpanel-{name}")
        self.controls = widgets.VBox([self.batch, self.status])
        self.controls.add_class("batchpanel")
        self.batch.observe(lambda change: self.update(), names="value")
        self._shown: Any = None

    def update(self) -> None:
        """Show what the batch that was chosen needs."""
        self.memory = self.memory.at(self.batch.value)
        best = ", ".join(f"{name} {self.memory.largest_batch(name):,}" for name in self.rooms)
        self.status.value = f"Largest batch: {best}"
        if self._shown:
            self._shown.update(draw_chips(self.memory, self.rooms))

    def _ipython_display_(self) -> None:
        display_widget(self.controls, "[menu: the batch of the training]")
        self._shown = display(HTML(""), display_id=True)
        self.update()
