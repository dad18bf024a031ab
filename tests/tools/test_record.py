import gc
import os
import weakref
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest
import torch

from course_utils.compare.comparison import Contestant
from course_utils.compare.results import recorded
from course_utils.compare.workloads import ELEMENTWISE
from course_utils.copy_speed import Copy
from course_utils.devices import Device, pick_device
from tools import record as module
from tools.record import as_cuda_graph, main, measured_as_graph, precisions, record


def test_the_command_measures_this_cpu_and_the_file_can_be_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(module, "CPU_BATCHES", (2, 4))
    monkeypatch.setattr(module, "CPU_SIDE", 64)
    main(["--device", "cpu", "--threads", "1", "--seconds", "0.01", "--out", str(tmp_path / "new")])
    (found,) = recorded(tmp_path / "new").values()
    cpu = pick_device("cpu").name
    assert (
        found.origin == "measured"
        and found.date
        and found.versions["torch"]
        and found.machine["cpu"] == cpu
    )
    assert found.command == "python tools/record.py --device cpu --threads 1 --seconds 0.01"
    assert {(one.device, one.kind, one.threads) for one in found.measurements} == {(cpu, "cpu", 1)}
    cnn = [(one.precision, one.size) for one in found.select("CNN step").measurements]
    assert cnn == [("fp32", 2), ("fp32", 4), ("bf16", 2), ("bf16", 4)]
    works = {"RNN step", "CNN step", "Matrix product", "Copy in memory"}
    assert {one.workload for one in found.measurements} == works
    assert "wrote " in capsys.readouterr().out


def test_a_copy_counts_bytes():
    found = module.copied(
        Contestant(Device("cuda", 0, "a gpu"), 1),
        Copy("to the device", True, 2**20, 1e-3, ("No.",)),
    )
    assert (found.workload, found.size_name, found.unit) == (
        "Copy to the device, pinned",
        "bytes",
        "B",
    )
    assert found.rate == pytest.approx(2**20 * 1e3) and found.warnings == ("No.",)


def test_a_rehearsal_is_not_recorded():
    with pytest.raises(
        ValueError, match="is a rehearsal on this machine's CPU, not a device to record"
    ):
        record(Device("xla", 0, "XLA on a CPU", rehearsal=True))


@pytest.mark.parametrize("name", ["cuda:77", "banana"])
def test_the_command_names_a_device_that_is_not_here_and_fails(name, tmp_path):
    with pytest.raises(SystemExit, match=f"tools/record.py: device '{name}' was requested"):
        main(["--device", name, "--out", str(tmp_path)])
    assert not list(tmp_path.iterdir())


def test_a_cpu_has_no_tf32():
    assert precisions(pick_device("cpu")) == ("fp32", "bf16")


@pytest.mark.process
@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("1980, 412.50", {"sm_clock_mhz": 1980.0, "power_w": 412.5}),
        ("[N/A], [N/A]", {}),
        ("No devices were found", {}),
    ],
)
def test_clock_and_power_are_what_the_driver_says_or_nothing(tmp_path, monkeypatch, said, found):
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\necho '{said}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(
        "torch.cuda.get_device_properties", lambda device: SimpleNamespace(uuid="8f6d")
    )
    assert module.read_sensors(Device("cuda", 0, "a card")) == found
    assert module.read_sensors(pick_device("cpu")) == {}


def test_a_cuda_graph_warms_up_apart_then_records_once_and_holds_the_step(monkeypatch):
    # The CUDA calls are stubs that write down their order; what they do on a GPU is the next test's
    # business.
    log = []

    class Stream:
        def __init__(self, name="side"):
            self.name = name

        def wait_stream(self, other):
            log.append(f"{self.name} waits for {other.name}")

    class Graph:
        def replay(self):
            log.append("replay")

    @contextmanager
    def inside(name):
        log.append(f"into {name}")
        yield
        log.append(f"out of {name}")

    stubs = {
        "Stream": Stream,
        "current_stream": lambda: Stream("main"),
        "stream": lambda stream: inside(stream.name),
        "CUDAGraph": Graph,
        "graph": lambda graph: inside(type(graph).__name__),
    }
    for name, stub in stubs.items():
        monkeypatch.setattr(torch.cuda, name, stub)

    def step():
        log.append("step")

    held = weakref.ref(step)
    replay = as_cuda_graph(step)
    del step
    gc.collect()
    replay()
    assert held() is not None
    warm = [
        "side waits for main",
        "into side",
        "step",
        "step",
        "step",
        "out of side",
        "main waits for side",
    ]
    assert log == [*warm, "into Graph", "step", "out of Graph", "replay"]


def test_a_workload_as_a_graph_is_the_same_work_under_its_own_name(monkeypatch):
    launched = []
    monkeypatch.setattr(module, "as_cuda_graph", lambda step: lambda: launched.append(step()))
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    found = measured_as_graph(pick_device("cpu"), ELEMENTWISE, 10, "fp32", max_s=0.01)
    assert (found.workload, found.size, found.items) == ("Elementwise as a CUDA graph", 10, 10.0)
    assert launched[0].shape == (10,)
