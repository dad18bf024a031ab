"""Whether a hosted image has moved, told from what its maker publishes."""

from tools.images import moved, versions

FREEZE = "# Do not modify\ntorch==2.11.0+cu128\nIPython==7.34.0\ngoogle-colab @ file:///x.tar.gz\ntorch_xla==2.9.0\n"


def test_a_freeze_is_read_whatever_the_case_and_the_build():
    assert versions(FREEZE) == {"torch": "2.11.0", "ipython": "7.34.0", "torch-xla": "2.9.0"}


def test_a_wheel_that_was_installed_from_its_address_counts_too():
    """As Colab's TPU image lists torch."""
    wheels = "https://download.pytorch.org/whl/cpu/torch-2.9.0%2Bcpu-cp313-cp313-manylinux_2_28_x86_64.whl"
    xla = "https://storage.googleapis.com/wheels/tpuvm/torch_xla-2.9.0-cp313-cp313-manylinux_2_28_x86_64.whl"
    found = versions(f"torch @ {wheels}\ntorch-xla @ {xla}\nthing @ git+https://github.com/a/thing@b134e9\n")
    assert found == {"torch": "2.9.0", "torch-xla": "2.9.0"}


def test_an_image_that_holds_the_same_has_not_moved_and_what_a_set_leaves_open_may():
    assert moved("torch==2.11.0 ipython==7.34.0 lightning", FREEZE) == []


def test_another_version_and_a_missing_package_are_named_with_both_sides():
    assert moved("torch==2.9.0 tqdm==4.67.3 torch_xla==2.9.0", FREEZE) == [
        "- torch: 2.9.0 in our set, 2.11.0 in the image",
        "- tqdm: 4.67.3 in our set, absent in the image",
    ]
