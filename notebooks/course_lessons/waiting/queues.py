"""A device whose queues can be watched: a CUDA device, or a simulation of one."""

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import torch
from torch.profiler import record_function

from course_tools.timeline.record import Timeline, timeline
from course_utils.devices import Device, as_device
from course_utils.timing import time_call

STEP_S = 8e-3  # of the simulation, and at least so long a step on a GPU takes
COPY_SHARE = 0.6  # the copy of a batch takes so much of a step


class SimulatedDevice:
    """A simulation of a GPU: a thread in place of each queue, and jobs that sleep for their time.

    A launch costs what handing a job to a thread does, which is more than on CUDA.
    """

    def __init__(self):
        self.device = as_device("cpu")
        self.step_s = STEP_S
        self._compute: Any = ThreadPoolExecutor(1, thread_name_prefix="device (simulation)")
        self._copies: Any = ThreadPoolExecutor(1, thread_name_prefix="copies (simulation)")

    def prepare(self) -> None:
        """Occupy the host for as long as a step takes, as the preparation of a batch does."""
        _sleep("prepare", self.step_s)

    def copy(self, own_queue: bool = True) -> Any:
        """Put the copy of a batch into the queue for copies, or into the one of the steps."""
        queue = self._copies if own_queue else self._compute
        return queue.submit(_sleep, "copy", COPY_SHARE * self.step_s)

    def step(self) -> Any:
        """Put a training step into the queue, and return at once with a promise of its loss."""
        return self._compute.submit(_sleep, "step", self.step_s)

    def read(self, loss: Any) -> None:
        """Wait for a loss, as `.item()` does."""
        with record_function("wait"):
            loss.result()

    def wait(self) -> None:
        """Wait until both queues are empty, as `torch.cuda.synchronize()` does."""
        with record_function("wait"):
            self._compute.submit(int).result()
            self._copies.submit(int).result()

    def record(self, fn: Callable[..., None], **arguments: Any) -> Timeline:
        """Run `fn(self, ...)` and return what host and device did, and when."""
        return timeline(partial(fn, self, **arguments), device=self.device)


class CudaDevice(SimulatedDevice):
    """The queues of an NVIDIA or AMD GPU, with the verbs of the simulation. Its step is so many
    products that it can be seen, and the host's work and the copy are sized to it.
    """

    def __init__(self, device: Device):
        self.device = device
        self._compute = torch.cuda.current_stream()
        self._copies = torch.cuda.Stream()
        self._matrix = torch.randn(2048, 2048, device="cuda")
        product_s = time_call(lambda: self._matrix @ self._matrix, device=device).median_s
        self._products = math.ceil(STEP_S / product_s)
        self.step_s = self._products * product_s
        probe = torch.ones(2**23).pin_memory()  # 32 MiB
        probe_s = time_call(lambda: probe.to("cuda", non_blocking=True), device=device).median_s
        numbers = int(probe.numel() * COPY_SHARE * self.step_s / probe_s)
        self._source = torch.ones(numbers).pin_memory()
        self._target = torch.empty_like(self._source, device="cuda")

    def copy(self, own_queue: bool = True) -> None:
        """Put the copy of a batch into the stream for copies, or into the one of the steps."""
        with torch.cuda.stream(self._copies if own_queue else self._compute):
            self._target.copy_(self._source, non_blocking=True)

    def step(self) -> torch.Tensor:
        """Launch a training step, and return its loss, which is not there yet."""
        for _ in range(self._products):
            result = self._matrix @ self._matrix
        return result[0, 0]

    def read(self, loss: Any) -> None:
        """Wait for a loss with `.item()`."""
        with record_function("wait"):
            loss.item()

    def wait(self) -> None:
        """Wait for the device."""
        with record_function("wait"):
            torch.cuda.synchronize()


def open_device() -> SimulatedDevice:
    """Return the queues of this machine's GPU if CUDA drives one, else a simulation."""
    device = as_device(None)
    return CudaDevice(device) if device.kind == "cuda" else SimulatedDevice()


def train(gpu: SimulatedDevice, read: bool) -> None:
    """Prepare three batches and launch a step on each; read every loss at once, or none."""
    for _ in range(3):
        gpu.prepare()
        loss = gpu.step()
        if read:
            gpu.read(loss)
    gpu.wait()


def _sleep(name: str, seconds: float) -> None:
    with record_function(name):
        time.sleep(seconds)
