"""Compare the same work on several devices: first whether they agree on the answer, then how fast they find it."""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from course_utils.devices import Device, find_devices, pick_device, wait_for
from course_utils.paired import Ratio, Work, ratio_of_rounds, time_together
from course_utils.suite import Workload, build_seeded
from course_utils.timing import using_threads
from course_utils.workloads import using_tf32
from course_utils.xla import start_xla

# The largest difference that rounding explains, as a share of the largest value: many times the rounding of one
# number (2^-24, 2^-11, 2^-9, 2^-11), since products and losses add up many.
TOLERANCE = {"fp32": 2e-5, "tf32": 1e-2, "bf16": 4e-2, "fp16": 1e-2}
CALLS_TO_CHECK = 2  # a training step shows only in its next loss whether its gradients were right


@dataclass(frozen=True)
class Row:
    """What one contestant did with one size.

    Attributes:
        size: of the work.
        label: the contestant, such as "cpu, 1 thread".
        kind: of its device, such as "cpu".
        device: what a person calls the device.
        threads: CPU threads that one operation could use.
        first_s: seconds of the first call.
        rounds_s: seconds a call in each round; the same rounds for all contestants of a size.
        items: how many samples, FLOP or elements one call does.
        error: the largest difference from the CPU's fp32 answer, as a share of its largest value.
        warnings: why the figure is not to be trusted.
    """

    size: int
    label: str
    kind: str
    device: str
    threads: int
    first_s: float
    rounds_s: tuple[float, ...]
    items: float
    error: float
    warnings: tuple[str, ...] = ()

    @property
    def median_s(self) -> float:
        """Median seconds of one call."""
        return statistics.median(self.rounds_s)

    @property
    def rate(self) -> float:
        """Items a second."""
        return self.items / self.median_s

    @property
    def rate_quartiles(self) -> tuple[float, float]:
        """The rates between which the middle half of the rounds lies."""
        if len(self.rounds_s) < 2:
            return self.rate, self.rate
        low, _, high = statistics.quantiles(self.rounds_s, n=4, method="inclusive")
        return self.items / high, self.items / low


@dataclass(frozen=True)
class Crossover:
    """From which size on one contestant is faster than another.

    Attributes:
        winner: the contestant in question.
        loser: the one it is compared with.
        size: the smallest measured size from which it wins at every larger one; None when it does not.
        sizes: those that were measured.
        doubts: how many of the figures behind it are not to be trusted.
    """

    winner: str
    loser: str
    size: int | None
    sizes: tuple[int, ...]
    doubts: int = 0

    def __repr__(self) -> str:
        measured = f"measured: {min(self.sizes):,} to {max(self.sizes):,}"
        if self.doubts:
            measured += f"; {self.doubts} of the figures are not to be trusted"
        if self.size is None:
            return f"{self.winner} does not beat {self.loser} for good at any size ({measured})"
        return f"{self.winner} beats {self.loser} from {self.size:,} on ({measured})"


@dataclass(frozen=True)
class Comparison:
    """The same work in several sizes on several devices.

    Attributes:
        workload: its name.
        size_name: what a size counts.
        unit: what a rate counts.
        precision: of the numbers.
        tf32: whether float32 products on NVIDIA GPUs could round to TF32.
        rows: the measurements, size by size.
        made: date, versions and machine.
    """

    workload: str
    size_name: str
    unit: str
    precision: str
    tf32: bool
    rows: tuple[Row, ...]
    made: dict[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> list[str]:
        """The contestants."""
        return list(dict.fromkeys(row.label for row in self.rows))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes, smallest first."""
        return tuple(sorted({row.size for row in self.rows}))

    def rows_of(self, label: str) -> list[Row]:
        """Return the rows of one contestant, smallest size first.

        Raises:
            ValueError: there is no such contestant.
        """
        if label not in self.labels:
            raise ValueError(f"{label!r} was requested, but this comparison has {', '.join(map(repr, self.labels))}.")
        return sorted((row for row in self.rows if row.label == label), key=lambda row: row.size)

    def speedup(self, this: str, that: str, size: int) -> Ratio:
        """Return how many times as fast `this` is as `that` at a size, from the rounds that they shared.

        Raises:
            ValueError: there is no such contestant or size.
        """
        found = {row.size: row for row in self.rows_of(this)}, {row.size: row for row in self.rows_of(that)}
        if any(size not in rows for rows in found):
            raise ValueError(f"size {size} was requested, but measured were {', '.join(map(str, self.sizes))}.")
        return ratio_of_rounds(found[1][size].rounds_s, found[0][size].rounds_s)

    def crossover(self, this: str | None = None, that: str | None = None) -> Crossover:
        """Return from which size on `this` is faster than `that`, by more than the noise.

        Args:
            this: a contestant; None for the first that is not the CPU, or the CPU with the most threads.
            that: another; None for the CPU with whatever number of threads is faster.

        Raises:
            ValueError: there are not two to compare.
        """
        cpus = [row.label for row in self.rows if row.kind == "cpu"]
        others = [label for label in self.labels if label not in cpus]
        this = this or next(iter([*others, *reversed(self.labels)]), None)
        rivals = [that] if that else [label for label in dict.fromkeys(cpus or self.labels) if label != this]
        if this is None or not rivals:
            raise ValueError(f"a crossover needs two contestants, but this has {', '.join(self.labels) or 'none'}.")
        wins = None
        for size in reversed(self.sizes):
            if any(self.speedup(this, rival, size).interval[0] <= 1 for rival in rivals):
                break
            wins = size
        doubts = sum(bool(row.warnings) for label in (this, *rivals) for row in self.rows_of(label))
        return Crossover(this, " and ".join(rivals), wins, self.sizes, doubts)

    def to_frame(self):
        """Return a pandas DataFrame with one line for each size and contestant."""
        import pandas as pd

        base = self.labels[0]
        lines = []
        for row in self.rows:
            faster = self.speedup(row.label, base, row.size)
            lines.append(
                {
                    self.size_name: row.size,
                    "device": row.label,
                    "median ms": row.median_s * 1e3,
                    f"{self.unit}/s": row.rate,
                    f"times {base}": faster.median,
                    "95 % interval": f"{faster.interval[0]:.2f} to {faster.interval[1]:.2f}",
                    "first call ms": row.first_s * 1e3,
                    "largest error": row.error,
                    "trusted": not row.warnings,
                }
            )
        return pd.DataFrame(lines)

    def plot(self, recordings: Sequence = ()):
        """Return the picture of the rates against the sizes; see `charts.plot_rates`."""
        from course_utils.charts import plot_rates

        return plot_rates(self, recordings)

    def save(self, path) -> None:
        """Write it as JSON; see `results_file.save`."""
        from course_utils import results_file

        results_file.save(self, path)

    @staticmethod
    def load(path) -> "Comparison":
        """Read what `save` wrote; see `results_file.load`."""
        from course_utils import results_file

        return results_file.load(path)

    def __repr__(self) -> str:
        doubts = sum(bool(row.warnings) for row in self.rows)
        return (
            f"{self.workload} in {self.precision}{' with TF32 allowed' if self.tf32 else ''}: {len(self.sizes)} sizes, "
            f"{len(self.labels)} contestants ({'; '.join(self.labels)}), "
            + (f"{doubts} of {len(self.rows)} figures not to be trusted" if doubts else "all figures trusted")
        )


class WrongAnswer(RuntimeError):
    """A device computes something else than the CPU does."""


@dataclass(frozen=True)
class Contestant:
    """A device, with a number of CPU threads."""

    device: Device
    threads: int

    @property
    def label(self) -> str:
        """The name in tables and pictures."""
        if self.device.kind == "cpu":
            return f"cpu, {self.threads} thread{'s' if self.threads > 1 else ''}"
        return f"{self.device}{' (rehearsal)' if self.device.rehearsal else ''}"


def contestants(devices: Sequence[Device | str] | None = None) -> list[Contestant]:
    """Return who takes part: the CPU once with one thread and once with all that are set, and each accelerator.

    Args:
        devices: devices or their names; None for all that are here.

    Raises:
        ValueError, RuntimeError: as `pick_device` does.
    """
    found = reversed(find_devices()) if devices is None else devices
    chosen = [device if isinstance(device, Device) else pick_device(device) for device in found]
    if any(device.kind == "xla" for device in chosen):
        start_xla()
    threads = torch.get_num_threads()
    return [
        Contestant(device, number)
        for device in dict.fromkeys(chosen)
        for number in sorted({1, threads} if device.kind == "cpu" else {threads})
    ]


def compare_devices(
    workload: Workload | Callable,
    sizes: Sequence[int],
    devices: Sequence[Device | str] | None = None,
    *,
    precision: str = "fp32",
    tf32: bool = False,
    max_s: float = 2.0,
) -> Comparison:
    """Check that every device computes the same, then time them in turn.

    Args:
        workload: one of `suite.SUITE`, or a function of your own; see `Workload.of`.
        sizes: of the work, each at least 1.
        devices: devices or their names; None for all that are here.
        precision: one of the workload's.
        tf32: whether float32 products on NVIDIA GPUs may round to TF32, in precision "fp32" too.
        max_s: seconds to spend on timing each size, about.

    Raises:
        ValueError, RuntimeError, TypeError: a request that cannot be met; nothing was timed.
        WrongAnswer: a device computes something else than the CPU; nothing was timed.
    """
    *_, last = compare_steps(workload, sizes, devices, precision=precision, tf32=tf32, max_s=max_s)
    return last


def compare_steps(
    workload: Workload | Callable,
    sizes: Sequence[int],
    devices: Sequence[Device | str] | None = None,
    *,
    precision: str = "fp32",
    tf32: bool = False,
    max_s: float = 2.0,
) -> Iterator[Comparison]:
    """As `compare_devices`, yielding what is there so far: once after the check, and once after each size."""
    work, sizes = Workload.of(workload), sorted(dict.fromkeys(sizes))
    _check_request(work, sizes, precision, max_s)
    who = contestants(devices)
    if not who:
        raise ValueError("a comparison needs a device, but none was named. Name 'cpu', or pass None for all.")
    from course_utils.results_file import made_here

    tf32 = tf32 or precision == "tf32"
    result = Comparison(work.name, work.size_name, work.unit, precision, tf32, (), made_here())
    with using_tf32(tf32):
        errors = {(size, one): error for size in sizes for one, error in _errors(work, size, who, precision, tf32)}
    yield result
    for size in sizes:
        with using_tf32(tf32):
            rows = _time_size(work, size, who, precision, max_s, errors)
        result = replace(result, rows=(*result.rows, *rows))
        yield result


def _check_request(work: Workload, sizes: list[int], precision: str, max_s: float) -> None:
    if not sizes or any(not isinstance(size, int) or isinstance(size, bool) or size < 1 for size in sizes):
        raise ValueError(f"a comparison needs sizes that are whole numbers from 1 on, but got {sizes}.")
    if precision not in work.precisions:
        raise ValueError(
            f"{work.name!r} was requested in precision {precision!r}, but it knows {', '.join(work.precisions)}."
        )
    if not max_s > 0:
        raise ValueError(f"a comparison needs a positive time for each size, but got max_s={max_s}.")


def _errors(work: Workload, size: int, who: list[Contestant], precision: str, tf32: bool):
    """Yield each contestant with its error, and stop at the first that is wrong."""
    cpu, exact = Contestant(pick_device("cpu"), 1), "fp32" if "fp32" in work.precisions else precision
    with using_threads(1):
        right = _answers(work, size, cpu.device, exact)
    allowed = TOLERANCE["tf32" if tf32 and precision == "fp32" else precision]
    for one in who:
        with using_threads(one.threads):
            found = right if (one, precision) == (cpu, exact) else _answers(work, size, one.device, precision)
        error = _largest_error(found, right)
        if not error <= allowed:  # NaN is wrong too
            raise WrongAnswer(
                f"{one.label} computes something else than the CPU for {work.name!r} with {work.size_name} {size}: "
                f"they differ by {error:.2g} of the largest value, and {precision} explains {allowed:.2g}. "
                "Nothing was timed."
            )
        yield one, error


def _answers(work: Workload, size: int, device: Device, precision: str) -> list[torch.Tensor]:
    call, answers = build_seeded(work, size, device, precision), []
    for _ in range(CALLS_TO_CHECK):
        answer = call()
        wait_for(device)  # on XLA this cuts the recording as the timer does, so that both share their programs
        answers.append(torch.as_tensor(answer).detach().to("cpu", torch.float64, copy=True))
    return answers


def _largest_error(found: list[torch.Tensor], right: list[torch.Tensor]) -> float:
    worst = 0.0
    for this, that in zip(found, right, strict=True):
        if this.shape != that.shape:
            return math.inf
        if that.numel():
            error = float((this - that).abs().max() / that.abs().max().clamp_min(1e-30))
            worst = math.nan if math.isnan(error) or math.isnan(worst) else max(worst, error)
    return worst


def _time_size(work: Workload, size: int, who, precision: str, max_s: float, errors) -> list[Row]:
    works = {one.label: Work(build_seeded(work, size, one.device, precision), one.device, one.threads) for one in who}
    together = time_together(works, max_s=max_s)
    return [
        Row(
            size=size,
            label=one.label,
            kind=one.device.kind,
            device=one.device.name,
            threads=one.threads,
            first_s=together.timings[one.label].first_s,
            rounds_s=together.rounds_s[one.label],
            items=work.items(size),
            error=errors[size, one],
            warnings=together.timings[one.label].warnings,
        )
        for one in who
    ]
