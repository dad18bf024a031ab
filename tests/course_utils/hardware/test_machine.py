"""What is read from another machine's files."""

import os
from types import SimpleNamespace

import pytest
from stand_ins import machine_with, needs_linux

from course_tools.estimate.chips import find_chip
from course_utils.hardware import machine

GIB = 2**30


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_tpu_is_found_on_the_pci_bus_and_other_google_devices_are_not(root):
    v5e, network = ("0x1ae0", "0x0063", "0x088000"), ("0x1ae0", "0x0042", "0x020000")
    machine_with(root, v5e, network, v5e)
    assert machine.tpu_chips() == ["0x0063", "0x0063"]


def test_a_tpu_has_the_memory_of_its_data_sheet_shared_by_the_devices_of_a_chip():
    for name, devices, memory_gib in machine.TPU_CHIPS.values():
        if memory_gib:
            assert devices * memory_gib == find_chip(name).memory_gb


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


def test_windows_is_asked_for_its_memory_as_its_documentation_says(monkeypatch):
    """MEMORYSTATUSEX: its own length of 64 bytes, a percentage, and then all memory in bytes."""

    def answer(pointer):
        status = pointer._obj
        assert bytes(status)[:4] == (64).to_bytes(4, "little")
        status[1] = 16 * GIB

    monkeypatch.delattr(os, "sysconf")
    windll = SimpleNamespace(kernel32=SimpleNamespace(GlobalMemoryStatusEx=answer))
    monkeypatch.setattr(machine.ctypes, "windll", windll, raising=False)
    assert machine._physical_memory_bytes() == 16 * GIB


# Where a limit of control groups stands, as the kernel's documentation of both versions says, with
# what /proc/self/cgroup says of the group: in a container, for a job of SLURM, in one of Docker's.
GROUPS = {
    "version 2": ("0::/", "sys/fs/cgroup"),
    "version 2, a job": ("0::/system.slice/job_7/step_0", "sys/fs/cgroup/system.slice/job_7"),
    "version 1": ("4:memory:/\n3:cpu,cpuacct:/", "sys/fs/cgroup/{}"),
    "version 1, a job": (
        "4:memory:/slurm/7\n3:cpu,cpuacct:/slurm/7\n2:cpuset:/",
        "sys/fs/cgroup/{}/slurm/7",
    ),
    "version 1, outside": ("4:memory:/docker/1f2e\n3:cpu:/docker/1f2e", "sys/fs/cgroup/{}"),
    "a group that is not shown": ("0::/../../other", "sys/fs/cgroup"),
}


@needs_linux
@pytest.mark.parametrize(("groups", "folder"), GROUPS.values(), ids=GROUPS)
def test_the_limits_of_a_container_or_a_job_count(root, groups, folder):
    all_memory, all_cores = machine.host_memory_bytes(), machine.usable_cores()
    assert all_memory == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert all_cores == len(os.sched_getaffinity(0))
    write(root / "proc/self/cgroup", f"{groups}\n")
    memory, cpu = (root / folder.format(name) for name in ("memory", "cpu"))

    def limit(bytes_, quota):
        if "{}" in folder:
            write(memory / "memory.limit_in_bytes", bytes_)
            write(cpu / "cpu.cfs_quota_us", quota)
            write(cpu / "cpu.cfs_period_us", "100000\n")
        else:
            write(memory / "memory.max", bytes_)
            write(cpu / "cpu.max", f"{quota} 100000\n")
        return machine.host_memory_bytes(), machine.usable_cores()

    assert limit(f"{GIB // 4}\n", "100000") == (GIB // 4, 1)
    assert limit(f"{GIB // 8}\n", "50000") == (GIB // 8, 1)  # half a core is one thread
    assert limit(f"{GIB // 8}\n", "7500000") == (GIB // 8, all_cores)
    no_limit = ("9223372036854771712", "-1") if "{}" in folder else ("max", "max")
    assert limit(*no_limit) == (all_memory, all_cores)
