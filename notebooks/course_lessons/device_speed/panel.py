"""A panel to play with: choose work, devices, sizes and precision, and see who is faster."""

import asyncio
import html
from collections.abc import Callable, Sequence
from dataclasses import replace

import ipywidgets as widgets
from IPython.display import HTML, DisplayHandle, display

from course_lessons.device_speed.image_step import SUITE
from course_lessons.progress_bars import display_widget
from course_tools.compare.comparison import compare_devices
from course_tools.compare.contestants import Devices, find_contestants
from course_tools.compare.results import Result
from course_tools.compare.workloads import Workload

# What the list of sizes offers; all but the last one are chosen at first.
USUAL_SIZES = {
    "batch": (16, 64, 256, 1024, 4096),
    "side": (64, 128, 256, 512, 1024, 4096),
    "elements": (1024, 32_768, 2**20, 2**25),
    "size": (10, 100, 1000, 10_000),
}
PICTURE_WIDTH = 680  # pixels of the picture: with the controls it fits a screen of 1280 x 800
NO_WIDGETS = "[The panel: it appears when this cell runs in a notebook that shows widgets.]"
HINT = HTML("<small>No controls above? They need a running kernel: run this cell.</small>")
EMPTY = HTML("<em>The picture and the table appear here.</em>"), HTML("")


class SpeedLab:
    """The panel over `compare_devices`.

    Controls are widgets. The picture and the table are ordinary outputs, so that they stay in the
    saved notebook. Each size is checked and timed in a thread, so that Stop and the bar answer
    meanwhile; widgets are changed outside of it only. `result` is the latest one, and None before
    the first.

    Args:
        workloads: what can be chosen, workloads or functions of your own.
        devices: which devices, or their names, can be chosen; "all" for all that are here.
        max_s: seconds to spend on each size, about.

    Raises:
        ValueError: there is no workload or no device to choose.
    """

    def __init__(
        self,
        workloads: Sequence[Workload | Callable] = SUITE,
        devices: Devices = "all",
        max_s: float = 1.0,
    ):
        self.result: Result | None = None
        self.max_s = max_s
        self._stopped = False
        self._outputs = DisplayHandle(), DisplayHandle()  # for the picture and the table
        works = [Workload.of(work) for work in workloads]
        here = dict.fromkeys(one.device for one in find_contestants(devices))
        if not works or not here:
            raise ValueError("a panel needs at least one workload and one device.")
        names = [(f"{device} ({device.name})", device) for device in here]

        self.workload = widgets.Dropdown(
            description="Work", options=[(work.name, work) for work in works]
        )
        self.precision = widgets.Dropdown(description="Precision", options=works[0].precisions)
        self.sizes = widgets.SelectMultiple(description="Sizes", rows=4)
        self.devices = widgets.SelectMultiple(
            description="Devices", options=names, value=[names[0][1]], rows=4
        )
        self.devices.layout.width = "min(100%, 45em)"  # a rehearsal names its CPU too
        self.run_button = widgets.Button(description="Run", button_style="primary")
        self.stop_button = widgets.Button(description="Stop", disabled=True)
        self.progress = widgets.IntProgress(description="Progress")
        self.status = widgets.HTML("Choose, then press Run.")
        self.controls = self._lay_out()

        self.workload.observe(lambda change: self._offer(), names="value")
        self.run_button.on_click(lambda button: self._start())
        self.stop_button.on_click(lambda button: self._stop())
        self._offer()

    def _lay_out(self) -> widgets.VBox:
        """Put the controls into three rows above the status, each with a class of its own."""
        rows = [
            widgets.HBox([self.workload, self.precision]),
            widgets.HBox([self.devices, self.sizes]),
            widgets.HBox([self.run_button, self.stop_button, self.progress]),
        ]
        for row in rows:
            row.layout.flex_flow = "row wrap"  # on a phone
        names = ("workload", "precision", "devices", "sizes", "progress", "status")
        for name in (*names, "run_button", "stop_button"):
            getattr(self, name).add_class(f"speedlab-{name.removesuffix('_button')}")
        panel = widgets.VBox([*rows, self.status])
        panel.add_class("speedlab")
        return panel

    def _offer(self) -> None:
        """Offer the sizes and precisions of the chosen work."""
        work = self.workload.value
        sizes = USUAL_SIZES.get(work.size_name, USUAL_SIZES["size"])
        self.sizes.options = [(f"{size:,}", size) for size in sizes]
        self.sizes.value = sizes[:-1]
        self.precision.options = work.precisions

    def _ipython_display_(self) -> None:
        display_widget(self.controls, NO_WIDGETS)
        display(HINT)
        for output, empty in zip(self._outputs, EMPTY, strict=True):
            output.display(empty)

    def _start(self) -> None:
        if not self.run_button.disabled:  # two clicks can arrive before the first has locked it
            self._lock(True)
            self._task = asyncio.get_running_loop().create_task(self._run())

    def _stop(self) -> None:
        self._stopped = self.stop_button.disabled = True
        self._say("Stopping after the size in progress ...")

    async def _run(self) -> None:
        self.result, self._stopped = None, False
        self.progress.value, self.progress.max = 0, len(self.sizes.value)
        for output, empty in zip(self._outputs, EMPTY, strict=True):
            output.update(empty)
        try:
            await self._measure_each(self.sizes.value)
        # whatever went wrong belongs in the panel: a handler's traceback shows nowhere
        except BaseException as error:
            self._say(f"{type(error).__name__}: {error}".partition("\n")[0])
        finally:
            self._lock(False)

    async def _measure_each(self, sizes: Sequence[int]) -> None:
        if not sizes or not self.devices.value:
            self._say("Choose at least one device and one size.")
            return
        for done, size in enumerate(sizes):
            if self._stopped:
                self._say(f"Stopped after {done} of {len(sizes)} sizes.")
                return
            self._say(f"{done} of {len(sizes)} sizes measured. Checking and timing {size:,} ...")
            await asyncio.get_running_loop().run_in_executor(None, self._measure, size)
            self.progress.value = done + 1
            self._show()
        self._say("Done.")

    def _measure(self, size: int) -> None:
        work, precision = self.workload.value, self.precision.value
        devices = self.devices.value
        new = compare_devices(work, [size], devices, precision=precision, max_s=self.max_s)
        before = self.result.measurements if self.result else ()
        self.result = replace(new, measurements=before + new.measurements)

    def _lock(self, running: bool) -> None:
        for control in (self.workload, self.devices, self.sizes, self.precision, self.run_button):
            control.disabled = running
        self.stop_button.disabled = not running

    def _say(self, text: str) -> None:
        self.status.value = html.escape(text)

    def _show(self) -> None:
        if self.result:
            data, metadata = self.result.plot()._repr_mimebundle_()
            metadata["image/png"]["width"] = PICTURE_WIDTH
            self._outputs[0].update(data, metadata=metadata, raw=True)
            table = self.result.to_frame().round(3).to_html(index=False)  # which escapes
            self._outputs[1].update(HTML(table))
