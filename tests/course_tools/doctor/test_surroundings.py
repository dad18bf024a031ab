"""What is read from another machine's files for the doctor."""

import pytest
from stand_ins import machine_with

from course_tools.doctor import surroundings
from course_tools.doctor.packages import Package, read_package


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_network_card_of_a_graphics_maker_is_no_graphics_card(root):
    network, h200 = (
        (surroundings.NVIDIA, "0x1017", "0x020000"),
        (surroundings.NVIDIA, "0x2335", "0x030200"),
    )
    mi300x = (surroundings.AMD, "0x74a1", "0x120000")  # a processing accelerator
    machine_with(root, network, h200, mi300x)
    nvidia, amd = (surroundings.NVIDIA, "0x2335"), (surroundings.AMD, "0x74a1")
    assert surroundings.graphics_cards() == [nvidia, amd]


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
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")  # of Kubernetes, which leaves no file
    assert surroundings.in_container()
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    assert not surroundings.in_container()
    write(root / mark, "")
    assert surroundings.in_container()


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
    (tmp_path / "some_torch").mkdir()
    (tmp_path / "some_torch/__init__.py").write_text("raise ImportError('it is not imported')")
    (tmp_path / "some_torch/version.py").write_text(file)
    monkeypatch.syspath_prepend(str(tmp_path))
    package = read_package("some_torch")
    assert package.xpu is xpu and package.shadow == ""


def test_a_file_of_ones_own_stands_in_the_way_of_a_package_and_has_no_release(
    tmp_path, monkeypatch
):
    (tmp_path / "some_torch.py").write_text("raise ImportError('it is not imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = read_package("some_torch")
    assert (found.version, found.shadow) == ("0.0 (unknown)", str(tmp_path / "some_torch.py"))
    assert read_package("no_such_package_here") == Package()


def test_a_release_is_known_by_two_numbers_whatever_follows():
    versions = ("2.9.1+cu128", "2.10.0a0+git123", "2.9", "")
    assert [Package(each).minor for each in versions] == [(2, 9), (2, 10), (2, 9), ()]


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"etc/nv_tegra_release": "# R36 (release), REVISION: 3.0, GCID: 1"}, "Jetson (R36)"),
        ({"proc/version": "Linux version 5.15.136-tegra (buildbrain@b)"}, "Jetson"),
        ({"proc/device-tree/model": "NVIDIA Jetson AGX Orin Developer Kit\0"}, "Jetson"),
        ({"proc/device-tree/model": "NVIDIA Jetson AGX Thor Developer Kit\0"}, ""),
        ({"proc/version": "Linux version 6.8.0-nvidia (buildd@b)"}, ""),
    ],
)
def test_a_jetson_is_known_by_its_release_its_board_or_its_kernel(files, found, root):
    for name, text in files.items():
        write(root / name, text)
    assert surroundings.jetson() == found
