"""What is read from another machine's files."""

import os

import pytest
from stand_ins import FOREIGN, machine_with, needs_linux

from course_utils.hardware import machine

GIB = 2**30


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    for variable in FOREIGN:
        monkeypatch.delenv(variable, raising=False)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_tpu_is_found_on_the_pci_bus_and_other_google_devices_are_not(root):
    v5e, network = ("0x1ae0", "0x0063", "0x088000"), ("0x1ae0", "0x0042", "0x020000")
    machine_with(root, v5e, network, v5e)
    assert machine.tpu_chips() == ["0x0063", "0x0063"]


def test_a_tpu_is_found_by_its_device_files_where_the_bus_cannot_be_read(root):
    write(root / "dev/accel0", "")
    write(root / "dev/accel1", "")
    write(root / "dev/accel/accel0", "")  # the kernel's folder for accelerators of other makers
    assert machine.tpu_chips() == ["", ""]


def test_a_network_card_of_a_graphics_maker_is_no_graphics_card(root):
    network, h200 = (machine.NVIDIA, "0x1017", "0x020000"), (machine.NVIDIA, "0x2335", "0x030200")
    machine_with(root, network, h200)
    assert machine.graphics_cards() == [(machine.NVIDIA, "0x2335")]


@pytest.mark.process
@needs_linux
def test_the_cpus_name_is_its_makers(root):
    write(root / "proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 7B13\nflags\t: fpu\n")
    assert machine.cpu_name() == "AMD EPYC 7B13"
    (root / "proc/cpuinfo").unlink()
    assert machine.cpu_name() not in ("", "AMD EPYC 7B13")


@needs_linux
@pytest.mark.parametrize("file", ["memory.max", "memory/memory.limit_in_bytes"])
def test_a_containers_memory_limit_counts(root, file):
    all_memory = machine.host_memory_bytes()
    assert all_memory == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    write(root / "sys/fs/cgroup" / file, f"{GIB // 4}\n")
    assert machine.host_memory_bytes() == GIB // 4
    write(root / "sys/fs/cgroup" / file, "max\n")
    assert machine.host_memory_bytes() == all_memory


@needs_linux
def test_a_containers_cpu_quota_counts(root):
    free = machine.usable_cores()
    assert free == len(os.sched_getaffinity(0))
    write(root / "sys/fs/cgroup/cpu.max", "100000 100000\n")
    assert machine.usable_cores() == 1
    write(root / "sys/fs/cgroup/cpu.max", "max 100000\n")
    assert machine.usable_cores() == free


@pytest.mark.parametrize(
    ("variable", "host_kind"),
    [
        ("COLAB_RELEASE_TAG", "colab"),
        ("KAGGLE_KERNEL_RUN_TYPE", "kaggle"),
        ("BINDER_SERVICE_HOST", "binder"),
        ("BINDER_LAUNCH_HOST", "binder"),
        ("CI", "ci"),
    ],
)
def test_a_host_is_known_by_its_variable(root, monkeypatch, variable, host_kind):
    assert machine.host_kind() == "computer"
    monkeypatch.setenv(variable, "1")
    assert machine.host_kind() == host_kind


def test_a_machine_with_a_tpu_is_a_tpu_vm(root):
    machine_with(root, ("0x1ae0", "0x005e", "0x088000"))
    assert machine.host_kind() == "tpu-vm"


def test_linux_inside_of_windows_is_known_by_its_kernel(root):
    assert not machine.in_wsl()
    write(root / "proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2\n")
    assert machine.in_wsl()


@pytest.mark.parametrize(
    ("file", "xpu"),
    [  # torch 2.6 has no line for XPU (huggingface/kernels 163)
        ("__version__ = '2.9.0'\ncuda: Optional[str] = '12.8'\nxpu: Optional[str] = None\n", False),
        (
            "__version__ = '2.9.0'\ncuda: Optional[str] = None\nxpu: Optional[str] = '20250101'\n",
            True,
        ),
        ("__version__ = '2.6.0+xpu'\ncuda: Optional[str] = None\n", True),
    ],
)
def test_whether_torch_was_built_for_xpu_is_read_from_its_files(tmp_path, monkeypatch, file, xpu):
    write(tmp_path / "some_torch/__init__.py", "raise ImportError('it is not imported')")
    write(tmp_path / "some_torch/version.py", file)
    monkeypatch.syspath_prepend(str(tmp_path))
    package = machine.read_package("some_torch")
    assert package.xpu is xpu and package.shadow == ""


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv", ".singularity.d/Singularity"])
def test_a_container_is_known_by_what_its_maker_puts_into_it(root, monkeypatch, mark):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert not machine.in_container()
    write(root / mark, "")
    assert machine.in_container()
