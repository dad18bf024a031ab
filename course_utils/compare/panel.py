"""A panel to play with: choose work, devices, sizes and precision, and see who is faster."""

import asyncio
import html
from collections.abc import Callable, Iterator, Sequence

import ipywidgets as widgets
from IPython.display import HTML, display

from course_utils.compare.comparison import compare_steps, cpu_first
from course_utils.compare.recorded import machines_elsewhere
from course_utils.compare.results import Comparison
from course_utils.compare.suite import ALL, SUITE, Workload
from course_utils.devices import Device
from course_utils.display.widget_view import display_widget

USUAL_SIZES = {
    "RNN step": "16 64 256 1024",
    "CNN step": "16 64 256 1024",
    "CNN step and copy": "16 64 256 1024",
    "Matrix product": "64 128 256 512 1024",
    "Elementwise": "1024 32768 1048576",
    "Copy to the device": "1024 32768 1048576",
}


class SpeedLab:
    """The panel over `compare_devices`.

    Controls are widgets. The picture and the table are ordinary outputs, so that they stay in the saved notebook.
    Run works between two messages of the browser, without a thread: Stop takes effect after the size in progress.

    Args:
        workloads: what can be chosen, workloads or functions of your own; None for all of `suite.SUITE`.
        devices: which devices can be chosen; None for all that are here.
        recordings: comparisons to show dashed; None for what the course has recorded of devices that are not here.
        max_s: seconds to spend on each size, about.

    Attributes:
        comparison: the latest result; None before the first.
    """

    def __init__(
        self,
        workloads: Sequence[Workload | Callable] | None = None,
        devices: Sequence[Device] | None = None,
        recordings: Sequence[Comparison] | None = None,
        max_s: float = 1.0,
    ):
        self.comparison: Comparison | None = None
        self.recordings = machines_elsewhere() if recordings is None else recordings
        self.max_s = max_s
        works = list(SUITE.values()) if workloads is None else [Workload.of(work) for work in workloads]
        self._stopping = self._running = False
        self._outputs: dict[str, object] = {}
        self._make_controls({work.name: work for work in works}, cpu_first() if devices is None else devices)

    def _make_controls(self, works: dict[str, Workload], devices: Sequence[Device]) -> None:
        names = [(f"{device} ({device.name})", device) for device in devices]
        self.workload = widgets.Dropdown(options=list(works.items()), description="Work")
        self.devices = widgets.SelectMultiple(options=names, value=[names[0][1]], description="Devices", rows=4)
        self.sizes = widgets.Text(description="Sizes")
        self.precision = widgets.Dropdown(options=ALL, description="Precision")
        self.run_button = widgets.Button(description="Run", button_style="primary")
        self.stop_button = widgets.Button(description="Stop", disabled=True)
        self.progress = widgets.IntProgress(min=0, max=1, description="Sizes")
        self.status = widgets.HTML("Choose, then press Run.")
        for name in ("workload", "devices", "sizes", "precision", "run_button", "stop_button", "progress", "status"):
            getattr(self, name).add_class(f"speedlab-{name.removesuffix('_button')}")
        self.devices.layout.width = "32em"
        self.workload.observe(lambda change: self._suit_workload(), names="value")
        self.run_button.on_click(lambda button: self._start())
        self.stop_button.on_click(lambda button: self.stop())
        self._suit_workload()
        buttons = widgets.HBox([self.run_button, self.stop_button, self.progress])
        choices = [self.workload, self.devices, self.sizes, self.precision]
        self.controls = widgets.VBox([*choices, buttons, self.status])
        self.controls.add_class("speedlab")

    def _suit_workload(self) -> None:
        self.sizes.value = USUAL_SIZES.get(self.workload.value.name, "1 10 100")
        self.precision.options = self.workload.value.precisions

    def _ipython_display_(self) -> None:
        display_widget(self.controls, "[The panel: it appears when this cell runs in a notebook that shows widgets.]")
        self._outputs = {
            "picture": display(HTML("<em>The picture appears here.</em>"), display_id=True),
            "table": display(HTML("<em>The table appears here.</em>"), display_id=True),
        }
        if self.comparison and self.comparison.rows:
            self._show_results()

    def run(self) -> Comparison | None:
        """Run what is chosen to its end, show the result under the cell that calls this, and return it.

        An interrupt of the kernel stops it and keeps the sizes that were measured.
        """
        for _ in self._steps(live=False):
            pass
        if self.comparison and self.comparison.rows:
            display(*self._results().values())
        return self.comparison

    def stop(self) -> None:
        """Stop after the size in progress."""
        if self._running:
            self._stopping = True
            self._say("Stopping after the size in progress ...")

    def _start(self) -> None:
        if self._running:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no loop to give time to: run to the end
            self.run()
            return
        self._task = loop.create_task(self._run_between_messages())

    async def _run_between_messages(self) -> None:
        for _ in self._steps():
            await asyncio.sleep(0.1)  # the kernel reads its messages now, and with them a click on Stop

    def _steps(self, live: bool = True) -> Iterator[None]:
        self._set_running(True)
        try:
            yield from self._measure(live)
        except KeyboardInterrupt:
            self._say("Interrupted.")
        except Exception as error:  # whatever went wrong belongs in the panel: a handler's traceback shows nowhere
            self._say(f"{type(error).__name__}: {error}", alarm=True)
        finally:
            self._set_running(False)

    def _measure(self, live: bool) -> Iterator[None]:
        self.comparison, self.progress.value = None, 0
        sizes = parse_sizes(self.sizes.value)
        self.progress.max = len(sizes)
        self._say("Checking that all devices compute the same ...")
        yield
        chosen = {"precision": self.precision.value, "max_s": self.max_s}
        for done, comparison in enumerate(compare_steps(self.workload.value, sizes, self.devices.value, **chosen)):
            self.comparison, self.progress.value = comparison, done
            if comparison.rows and live:
                self._show_results()
            self._say(f"{done} of {len(sizes)} sizes measured ...")
            yield
            if self._stopping:
                self._say(f"Stopped after {done} of {len(sizes)} sizes.")
                return
        self._say(f"Done. {comparison.crossover()}." if len(comparison.labels) > 1 else "Done.")

    def _set_running(self, running: bool) -> None:
        self._running, self._stopping = running, False
        self.run_button.disabled, self.stop_button.disabled = running, not running

    def _say(self, text: str, alarm: bool = False) -> None:
        color = "#B00020" if alarm else "inherit"
        self.status.value = f'<span style="color: {color}">{html.escape(text)}</span>'

    def _results(self) -> dict[str, object]:
        table = self.comparison.to_frame().round(3).to_html(index=False)  # pandas escapes every text
        return {"picture": self.comparison.plot(self.recordings), "table": HTML(table)}

    def _show_results(self) -> None:
        for name, what in self._results().items():
            if name in self._outputs:
                self._outputs[name].update(what)
            else:
                self._outputs[name] = display(what, display_id=True)


def parse_sizes(text: str) -> list[int]:
    """Return the sizes in a text such as "16, 64 256".

    Raises:
        ValueError: a part is no whole number from 1 on, or there is none.
    """
    parts = text.replace(",", " ").split()
    odd = [part for part in parts if not (part.isascii() and part.isdigit() and int(part) > 0)]
    if odd or not parts:
        raise ValueError(f"sizes are whole numbers from 1 on, such as 16 64 256, but {(odd or [text])[0]!r} is none.")
    return [int(part) for part in parts]
