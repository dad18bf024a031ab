"""Verdicts that need no process: a decision is a function of the evidence."""

import pytest

from course_utils.doctor.causes import find_cause
from course_utils.doctor.children import Outcome
from course_utils.doctor.evidence import Evidence, Package

TORCH = Package("2.9.0", "13.0")
RAN = ({"device": "xla:0"},)


def on_mac(place, error):
    """What GitHub's macOS runners answer: MPS is available, and the first bytes are refused."""
    kernel = {"device": "mps", "failed": "a copy", "error": f"RuntimeError: {error}", "kind": "RuntimeError"}
    probes = {
        "cpu": Outcome("well", {"mps_built": True, "xpu_built": False}, ({"device": "cpu"},)),
        "mps": Outcome("well", {"available": True}, (kernel,)),
    }
    return find_cause("mps", Evidence(place=place, torch=Package("2.9.0"), system="Darwin", probes=probes))


@pytest.mark.parametrize(
    ("place", "error"),
    [  # as reported in actions/runner-images 11899 and 9918
        ("ci", "MPS backend out of memory (MPS allocated: 1024.00 MB). Tried to allocate 256 bytes on shared pool."),
        ("computer", "MPS backend out of memory (MPS allocated: 0 bytes, other allocations: 0 bytes, max 7.93 GB)."),
    ],
)
def test_a_virtual_mac_that_lists_mps_and_refuses_its_first_bytes_has_no_mps(place, error):
    found = on_mac(place, error)
    assert (found.cause, found.usable) == ("mps-unavailable", False) and "out of memory" in found.why
    assert "virtual Mac" in found.fix and "nvidia-smi" not in found.fix


def test_a_real_mac_whose_memory_is_taken_is_out_of_memory():
    found = on_mac("computer", "MPS backend out of memory (MPS allocated: 0 bytes, other allocations: 17.35 GB).")
    assert found.cause == "out-of-memory" and "Activity Monitor" in found.fix


@pytest.mark.parametrize(
    ("variables", "cause"),
    [
        ({"TPU_PROCESS_ADDRESSES": "local"}, "works"),  # Kaggle's TPU image sets it itself
        ({"TPU_PROCESS_ADDRESSES": "localhost:8476"}, "tpu-variables-left-over"),
        ({"TPU_PROCESS_ADDRESSES": "local", "COLAB_TPU_ADDR": "10.0.0.2:8470"}, "tpu-variables-left-over"),
    ],
)
def test_what_kaggles_tpu_image_sets_itself_is_not_left_over(variables, cause):
    probes = {"xla": Outcome("well", {"hardware": "TPU"}, RAN)}
    evidence = Evidence("kaggle", TORCH, probes, torch_xla=TORCH, variables=variables, tpu_chips=8)
    found = find_cause("xla", evidence)
    assert found.cause == cause and found.usable


def test_an_old_driver_of_a_data_centre_gpu_is_pointed_to_nvidias_compatibility_package():
    """NVIDIA, CUDA Compatibility: cuda-compat-13-0 holds what a torch built for CUDA 13.0 needs."""
    told = {"count": 0, "said": "The NVIDIA driver on your system is too old (found version 12080)."}
    found = find_cause("cuda", Evidence("computer", TORCH, {"cuda": Outcome("well", told)}))
    assert found.cause == "driver-too-old" and "cuda-compat-13-0" in found.fix and "data-centre" in found.fix


@pytest.mark.parametrize("place", ["computer", "colab", "kaggle", "binder", "ci", "tpu-vm"])
def test_what_is_not_installed_promises_nothing_that_is_not_there(place):
    evidence = Evidence(place, TORCH, {})
    assert "recorded" not in find_cause("xla", evidence).fix
    assert "Python 3.12" in find_cause("tpu", evidence).fix


def test_a_family_whose_probe_never_started_gets_a_finding_all_the_same():
    for family in ("cpu", "cuda", "mps", "xpu", "xla", "tpu"):
        assert not find_cause(family, Evidence("computer", TORCH, {}, torch_xla=TORCH, torch_tpu=TORCH)).usable
