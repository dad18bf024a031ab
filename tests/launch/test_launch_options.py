"""What the options of a launch mean for the Trainer, on this machine and on others."""

from contextlib import nullcontext

import pytest
import torch
from torch.torch_version import TorchVersion

from course_utils import devices as devices_module
from course_utils.devices import Device
from course_utils.launch import options as module
from course_utils.launch.clusters import Cluster
from course_utils.launch.messages import LaunchError
from course_utils.launch.options import Options, batch_per_rank, count_ranks, trainer_arguments
from course_utils.launch.sharded import make_sharded

CPU = Device("cpu", 0, "a CPU")
GPUS = [Device("cuda", index, "a GPU") for index in range(4)]


@pytest.fixture
def machine(monkeypatch):
    def make(*devices, cores=2):
        monkeypatch.delenv("COURSE_DEVICE", raising=False)
        monkeypatch.setattr(devices_module, "find_devices", lambda: list(devices))
        monkeypatch.setattr(module, "usable_cores", lambda: cores)

    return make


def arguments(cluster=None, **choice):
    return trainer_arguments(Options("air_rnn", **choice), cluster or Cluster())


def test_auto_takes_every_gpu_and_leaves_the_strategy_to_lightning(machine):
    machine(*GPUS, CPU)
    found = arguments()
    assert (found["accelerator"], found["devices"], found["strategy"]) == ("cuda", 4, "auto")


def test_auto_on_a_bare_cpu_is_one_process_even_where_the_rehearsal_is_installed(machine):
    machine(Device("xla", 0, "XLA on a CPU", rehearsal=True), CPU)
    found = arguments()
    assert (found["accelerator"], found["devices"]) == ("cpu", 1)


def test_a_tpu_is_refused_with_where_to_read_on(machine):
    machine(Device("xla", 0, "TPU v5e"), CPU)
    with pytest.raises(
        LaunchError, match=r"cannot be pointed at 'xla:0'\. Pass --accelerator cpu.*lesson 4"
    ):
        arguments()


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"global_batch": 0},
        {"epochs": -1},
        {"epochs": None},
        {"timeout_s": float("nan")},
    ],
)
def test_numbers_below_one_are_refused_also_from_a_cell(wrong):
    with pytest.raises(LaunchError, match="was requested, but it must be from 1 to"):
        Options("air_rnn", **wrong)


def test_gpu_is_another_word_for_cuda(machine):
    machine(*GPUS, CPU)
    assert arguments(accelerator="gpu", devices=2)["accelerator"] == "cuda"


def test_four_processes_are_allowed_on_the_smallest_cpu_and_more_where_there_are_cores(machine):
    machine(CPU, cores=1)
    assert arguments(devices=4)["devices"] == 4
    with pytest.raises(
        LaunchError, match=r"a CPU \(cores: 1\), and the launcher allows 4. Ask for 4 or fewer"
    ):
        arguments(devices=5)
    machine(CPU, cores=8)
    assert arguments(devices=8)["devices"] == 8


def test_more_gpus_than_there_are_is_refused(machine):
    machine(*GPUS, CPU)
    with pytest.raises(
        LaunchError, match="--devices 5 was requested, but this machine has cuda devices: 4"
    ):
        arguments(devices=5)


def test_a_number_of_devices_is_at_least_one(machine):
    machine(*GPUS, CPU)
    for number in (0, -1):
        with pytest.raises(LaunchError, match=f"'{number}' is not a number of devices"):
            arguments(devices=number)


def test_an_accelerator_that_is_missing_is_refused_and_never_replaced(machine):
    machine(CPU)
    with pytest.raises(
        LaunchError,
        match=r"'cuda' was requested, but this machine has cpu\. Leave --accelerator out",
    ):
        arguments(accelerator="gpu")


def test_a_kind_of_device_that_lightning_does_not_know_is_refused(machine):
    machine(Device("xpu", 0, "an Arc"), CPU)
    with pytest.raises(
        LaunchError, match=r"a launch cannot be pointed at 'xpu:0'\. Pass --accelerator cpu"
    ):
        arguments()


@pytest.mark.parametrize(
    "forced", [GPUS[0], GPUS[1], Device("xla", 0, "XLA on a CPU", rehearsal=True)]
)
def test_a_forced_device_that_a_launch_would_replace_by_others_is_refused(
    machine, monkeypatch, forced
):
    machine(*GPUS, CPU)
    monkeypatch.setenv("COURSE_DEVICE", str(forced))
    monkeypatch.setattr(devices_module, "pick_device", lambda name: forced)
    with pytest.raises(LaunchError, match=f"a launch cannot be pointed at '{forced}'"):
        arguments()


def test_the_only_gpu_may_be_forced_by_its_number(machine, monkeypatch):
    machine(GPUS[0], CPU)
    monkeypatch.setenv("COURSE_DEVICE", "cuda:0")
    assert arguments()["accelerator"] == "cuda"


def test_a_forced_device_that_is_missing_is_refused(monkeypatch):
    monkeypatch.setenv("COURSE_DEVICE", "cuda:77")
    with pytest.raises(LaunchError, match="requested by the variable COURSE_DEVICE"):
        arguments()


def test_half_precision_needs_a_gpu(machine):
    machine(CPU)
    with pytest.raises(LaunchError, match="--precision 16-mixed needs a GPU"):
        arguments(precision="16-mixed")


def test_a_strategy_for_processes_is_refused_on_a_single_mps_device(machine):
    machine(Device("mps", 0, "MPS"), CPU)
    with pytest.raises(LaunchError, match="--strategy ddp_spawn does not work on mps"):
        arguments(strategy="ddp_spawn")


@pytest.mark.parametrize("system", ["darwin", "linux"])
def test_on_a_mac_no_ranks_are_copies_of_a_process_and_others_start(machine, monkeypatch, system):
    machine(CPU)
    monkeypatch.setattr("sys.platform", system)
    assert arguments(strategy="ddp_spawn", devices=2)["strategy"] == "ddp_spawn"
    with pytest.raises(LaunchError, match="on a Mac") if system == "darwin" else nullcontext():
        arguments(strategy="ddp_notebook", devices=2)


def test_under_torchrun_the_processes_are_its_own_and_ddp_joins_them(machine):
    machine(CPU)
    cluster = Cluster("torchrun", 2, 1, 1, "TORCHELASTIC_RUN_ID=x")
    found = arguments(cluster, strategy="ddp_spawn")
    assert (found["num_nodes"], found["devices"], found["strategy"]) == (2, 1, "ddp")
    assert count_ranks(found) == 2
    with pytest.raises(
        LaunchError, match="--devices 3 was requested, but torchrun started 1 on this machine"
    ):
        arguments(cluster, devices=3)


def test_fsdp_stays_fsdp_whoever_starts_the_processes(machine):
    machine(CPU)
    torchrun = Cluster("torchrun", nodes=2, devices_per_node=1, rank=1)
    assert arguments(strategy="fsdp", accelerator="cpu", devices=2)["strategy"] == "fsdp"
    assert arguments(torchrun, strategy="fsdp", accelerator="cpu")["strategy"] == "fsdp"


def test_the_global_batch_is_shared_evenly_or_refused():
    assert batch_per_rank(16, 4) == 4
    with pytest.raises(
        LaunchError, match=r"16 cannot be shared evenly by 3 ranks. Pass --global-batch 18"
    ):
        batch_per_rank(16, 3)


def test_asking_for_the_cpu_asks_no_driver(monkeypatch):
    monkeypatch.setattr(
        devices_module,
        "find_devices",
        lambda: pytest.fail("a library of a driver may hang or crash"),
    )
    assert arguments(accelerator="cpu", devices=2)["accelerator"] == "cpu"


def test_fsdp_on_a_cpu_says_which_torch_it_needs(monkeypatch):
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.6.0+cpu"))
    with pytest.raises(
        LaunchError, match=r"fsdp needs torch 2\.7 or later on a CPU, but this is 2\.6\.0\+cpu"
    ):
        make_sharded(torch.nn.Linear(1, 1), "32-true", "cpu")


def test_a_precision_that_fsdp_does_not_train_in_is_refused():
    with pytest.raises(
        LaunchError, match="--strategy fsdp trains in 32-true or bf16-mixed, but got bf16-true"
    ):
        make_sharded(torch.nn.Linear(1, 1), "bf16-true", "cuda")
