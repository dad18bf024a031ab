"""A panel to play with: choose work, devices, sizes and precision, and see who is faster."""

import asyncio
import html
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import ipywidgets as widgets
from IPython.display import HTML, DisplayHandle, display

from course_utils.compare.comparison import Devices, compare_devices, contestants
from course_utils.compare.results import Result, machines_elsewhere
from course_utils.compare.workloads import SUITE, Workload
from course_utils.figures import Picture
from course_utils.hardware.machine import host_memory_bytes
from course_utils.progress_bars import display_widget
from course_utils.text import format_bytes

# in torch's words
NO_MEMORY = "out of memory|can't allocate memory|bad_alloc|size calculation overflowed"
USUAL_SIZES = {
    "batch": "16 64 256 1024",
    "side": "64 128 256 512 1024",
    "elements": "1024 32768 1048576",
}
HEIGHT = 400  # pixels of the picture: with the controls it fits a screen of 1280 x 800
NO_WIDGETS = "[The panel: it appears when this cell runs in a notebook that shows widgets.]"


class SpeedLab:
    """The panel over `compare_devices`.

    Controls are widgets. The picture and the table are ordinary outputs, so that they stay in the
    saved notebook. Each size is checked and timed in a thread, so that Stop and the bar answer
    meanwhile; widgets are changed outside of it only. `comparison` is the latest result, and None
    before the first.

    Args:
        workloads: what can be chosen, workloads or functions of your own; None for all of
            `workloads.SUITE`.
        devices: which devices, or their names, can be chosen; "all" for all that are here.
        recordings: results to show dashed; None for what the course has recorded of devices that
            are not here.
        max_s: seconds to spend on each size, about.
    """

    def __init__(
        self,
        workloads: Sequence[Workload | Callable] | None = None,
        devices: Devices = "all",
        recordings: Sequence[Result] | None = None,
        max_s: float = 1.0,
    ):
        self.comparison: Result | None = None
        self.recordings = machines_elsewhere() if recordings is None else recordings
        self.max_s = max_s
        self._outputs = [DisplayHandle(), DisplayHandle()]  # for the picture and the table
        works = [Workload.of(work) for work in (SUITE.values() if workloads is None else workloads)]
        here = dict.fromkeys(one.device for one in contestants(devices))

        self.workload = widgets.Dropdown(options=[(work.name, work) for work in works])
        self.precision = widgets.Dropdown(options=works[0].precisions)
        self.sizes = widgets.Text()
        names = [(f"{device} ({device.name})", device) for device in here]
        self.devices = widgets.SelectMultiple(options=names, value=[names[0][1]], rows=2)
        self.run_button = widgets.Button(description="Run", button_style="primary")
        self.stop_button = widgets.Button(description="Stop", disabled=True)
        self.progress = widgets.IntProgress(min=0, max=1)
        self.status = widgets.HTML("Choose, then press Run.")
        self.controls = self._lay_out()

        self.workload.observe(lambda change: self._suit_workload(), names="value")
        self.run_button.on_click(lambda button: self._start())
        self.stop_button.on_click(lambda button: self.stop())
        self._suit_workload()

    def _lay_out(self) -> widgets.VBox:
        """Describe the controls, and put them into three rows above the status."""
        described = {
            "workload": "Work",
            "precision": "Precision",
            "sizes": "Sizes",
            "devices": "Devices",
            "progress": "Progress",
        }
        for name, words in described.items():
            getattr(self, name).description = words
        classes = ("workload", "precision", "sizes", "devices", "progress", "status")
        for name in (*classes, "run_button", "stop_button"):
            getattr(self, name).add_class(f"speedlab-{name.removesuffix('_button')}")
        self.devices.layout.width = "32em"
        rows = [
            widgets.HBox([self.workload, self.precision]),
            widgets.HBox([self.devices, self.sizes]),
            widgets.HBox([self.run_button, self.stop_button, self.progress]),
        ]
        for row in rows:
            row.layout.flex_flow = "row wrap"  # on a phone
        panel = widgets.VBox([*rows, self.status])
        panel.add_class("speedlab")
        return panel

    def _suit_workload(self) -> None:
        self.sizes.value = USUAL_SIZES.get(self.workload.value.size_name, "1 10 100")
        self.precision.options = self.workload.value.precisions

    def _ipython_display_(self) -> None:
        display_widget(self.controls, NO_WIDGETS)
        words = "No controls above? They need a running kernel: run this cell."
        display(HTML(f"<small>{words}</small>"))
        for output, what in zip(self._outputs, self._results(), strict=True):
            output.display(what)

    def run(self) -> Result | None:
        """Run what is chosen to its end, show the result under the cell that calls this, and return
        it.

        The panel stays as it is. An interrupt of the kernel stops the run and keeps the sizes that
        were measured.

        Raises:
            ValueError, RuntimeError, TypeError: as `compare_devices` does.
        """
        self.comparison = None
        with suppress(KeyboardInterrupt):
            for size in read_sizes(self.sizes.value, self.workload.value.size_name):
                self._measure(size)
        if self.comparison:
            display(*self._results())
        return self.comparison

    def stop(self) -> None:
        """Stop after the size in progress."""
        if not self.stop_button.disabled:
            self.stop_button.disabled = True  # `_run_live` looks at this before each size
            self._say("Stopping after the size in progress ...")

    def _start(self) -> None:
        # a second click may be under way before the first has locked the button
        if not self.run_button.disabled:
            self._lock(True)
            self._task = asyncio.get_running_loop().create_task(self._run_live())

    async def _run_live(self) -> None:
        self.comparison, self.progress.value = None, 0
        try:
            sizes = read_sizes(self.sizes.value, self.workload.value.size_name)
            await self._measure_each(sizes)
        # whatever went wrong belongs in the panel: a handler's traceback shows nowhere
        except BaseException as error:
            self._say(in_a_sentence(error), alarm=True)
            self.comparison = None
            self._update()
        finally:
            self._lock(False)

    async def _measure_each(self, sizes: list[int]) -> None:
        self.progress.max = len(sizes)
        for done, size in enumerate(sizes):
            if self.stop_button.disabled:
                self._say(f"Stopped after {done} of {len(sizes)} sizes.")
                return
            self._say(f"{done} of {len(sizes)} sizes measured. Checking and timing {size:,} ...")
            await asyncio.get_running_loop().run_in_executor(None, self._measure, size)
            self.progress.value = done + 1
            self._update()
        result = self.comparison
        several = result is not None and len(result.labels) > 1
        self._say(f"Done. {result.crossover()}." if result and several else "Done.")

    def _measure(self, size: int) -> None:
        chosen = {"precision": self.precision.value, "max_s": self.max_s}
        found = compare_devices(self.workload.value, [size], self.devices.value, **chosen)
        before = self.comparison.measurements if self.comparison else ()
        self.comparison = replace(found, measurements=before + found.measurements)

    def _lock(self, running: bool) -> None:
        for control in (self.workload, self.devices, self.sizes, self.precision, self.run_button):
            control.disabled = running
        self.stop_button.disabled = not running

    def _say(self, text: str, alarm: bool = False) -> None:
        # The text keeps the theme's own colour, light or dark, and the bar beside it is seen on
        # both.
        look = ' style="border-left: 4px solid #D93A2B; padding-left: 6px"' if alarm else ""
        self.status.value = f"<span{look}>{html.escape(text)}</span>"

    def _results(self) -> list:
        if self.comparison is None:
            words = "The {} appears here when the panel has run."
            return [HTML(f"<em>{words.format(name)}</em>") for name in ("picture", "table")]
        table = self.comparison.to_frame().round(3).to_html(index=False)  # which escapes
        return [Small(self.comparison.plot(self.recordings)), HTML(table)]

    def _update(self) -> None:
        for output, what in zip(self._outputs, self._results(), strict=True):
            output.update(what)


class Small:
    """A picture at a height that leaves room for the controls above it."""

    def __init__(self, picture: Picture):
        self.picture = picture

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        data, metadata = self.picture._repr_mimebundle_()
        metadata["image/png"]["height"] = HEIGHT
        return data, metadata


def in_a_sentence(error: BaseException) -> str:
    """Return what a person should read of an error: of a lack of memory, nothing of the allocator's
    own words.
    """
    words = str(error)
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted."
    if isinstance(error, MemoryError) or re.search(NO_MEMORY, words):
        return "There is not enough memory for this size. Choose a smaller one."
    return f"{type(error).__name__}: {words.partition(chr(10))[0]}"


def read_sizes(text: str, size_name: str) -> list[int]:
    """Return the sizes in a text such as "16, 64 256", smallest first.

    Raises:
        ValueError: a part is no positive integer, there is none, or one number of four bytes a
            unit, or three for each of a square, do not fit into this machine's memory.
    """
    parts = text.replace(",", " ").split()
    odd = [part for part in parts if not re.fullmatch(r"[1-9]\d{0,30}", part)]
    if odd or not parts:
        wrong = (odd or [text])[0]
        raise ValueError(
            f"sizes are positive integers, such as 16 64 256, but {wrong!r:.60} is not one."
        )
    sizes, memory = sorted({int(part) for part in parts}), host_memory_bytes()
    needed = 12 * sizes[-1] ** 2 if size_name == "side" else 4 * sizes[-1]
    if memory and needed > memory:
        largest = f"{size_name} {sizes[-1]:,} does not fit into {format_bytes(memory)} of memory"
        raise ValueError(f"{largest}. Choose a smaller one.")
    return sizes
