"""What is read from another machine's files for the doctor."""

import pytest
from stand_ins import FOREIGN, machine_with

from course_tools.doctor import surroundings


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    for variable in FOREIGN:
        monkeypatch.delenv(variable, raising=False)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_network_card_of_a_graphics_maker_is_no_graphics_card(root):
    network, h200 = (
        (surroundings.NVIDIA, "0x1017", "0x020000"),
        (surroundings.NVIDIA, "0x2335", "0x030200"),
    )
    machine_with(root, network, h200)
    assert surroundings.graphics_cards() == [(surroundings.NVIDIA, "0x2335")]


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
    assert surroundings.host_kind() == "computer"
    monkeypatch.setenv(variable, "1")
    assert surroundings.host_kind() == host_kind


def test_a_machine_with_a_tpu_is_a_tpu_vm(root):
    machine_with(root, ("0x1ae0", "0x005e", "0x088000"))
    assert surroundings.host_kind() == "tpu-vm"


def test_linux_inside_of_windows_is_known_by_its_kernel(root):
    assert not surroundings.in_wsl()
    write(root / "proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2\n")
    assert surroundings.in_wsl()


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv", ".singularity.d/Singularity"])
def test_a_container_is_known_by_what_its_maker_puts_into_it(root, monkeypatch, mark):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert not surroundings.in_container()
    write(root / mark, "")
    assert surroundings.in_container()
