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


@pytest.mark.process
@needs_linux
def test_the_cpus_name_is_its_makers(root):
    write(root / "proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 7B13\nflags\t: fpu\n")
    assert machine.cpu_name() == "AMD EPYC 7B13"
    (root / "proc/cpuinfo").unlink()
    assert machine.cpu_name() not in ("", "AMD EPYC 7B13")


@needs_linux
def test_a_containers_memory_limit_counts(root):
    file = "memory.max"
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
