"""A report for a public issue tells nobody who or where somebody is."""

import pytest

from course_utils.doctor.evidence import Finding
from course_utils.doctor.report import Diagnosis, hide, private_names

PLANTED = {
    "USER": "ada.lovelace",
    "HOSTNAME": "engine-07.cam.ac.uk",
    "HF_TOKEN": "hf_PlantedPlantedPlanted1",
    "DB_PASSWORD": "correct horse",
    "SLURM_JOB_USER": "lovelace1",
    "TPU_WORKER_HOSTNAMES": "t1v-n-0a1b-w-0,t1v-n-0a1b-w-1",
}
SENTENCE = "ImportError: libcudart.so.12: cannot open shared object file"


@pytest.mark.parametrize(
    "planted",
    [
        "/home/ada/envs/x/lib.so",
        "/Users/Ada/x",
        "C:\\Users\\Ada\\torch\\lib.dll",
        "C:\\Users\\Ada Corp\\torch\\lib.dll",
        "C:/Users/Ada/torch",
        "/Users/Ada Corp/torch",
        "/scratch/lovelace1/lib",
        "t1v-n-0a1b-w-1",
        "engine-07",
        "engine-07.cam.ac.uk",
        "ada.lovelace",
        "ADA.Lovelace",
        "hf_PlantedPlantedPlanted1",
        "correct horse",
        "ghp_0123456789abcdefghij0123456789abcdef",
        "sk-proj-abcdefghijk1",
        "ada@corp.example",
        "10.11.12.13",
        "[fe80::1ff:fe23:4567:890a]",
        "02:42:ac:11:00:02",
        "tcp://10.0.0.2:8470",
        "https://ada:secret@pypi.corp.example/simple",
        "gpu-node.internal",
        "GPU-8f6d2c51-1b2a-4c3d-9e8f-0123456789ab",
    ],
)
def test_a_planted_name_is_hidden_and_the_sentence_around_it_stays(planted):
    hidden = hide(f"{SENTENCE} at {planted} (no such file)", private_names(PLANTED))
    kept = planted.strip("[]").lower()
    assert (
        kept not in hidden.lower()
        and hidden.startswith(f"{SENTENCE} at ")
        and hidden.endswith("(no such file)")
    )
    assert not any(
        part in hidden
        for part in ("ada", "corp", "engine", "secret", "8f6d2c51", "lovelace", "0a1b")
    )


def test_a_user_called_home_hides_no_less():
    assert hide("in /home/ada/envs/lib.so", private_names({"USER": "home"})) == "in ~/envs/lib.so"


@pytest.mark.parametrize(
    "text",
    [
        "torch 2.9.0+cu128 with CUDA 12.8, driver 575.57.08, NVIDIA H200",
        "undefined symbol: _ZN3c104cuda9SetDeviceEi in libtorch_cuda.so of c10::cuda",
        "choose one at https://pytorch.org/get-started/locally",
        "sm_75 sm_80 sm_120; cuda:0; 0x10de 0x2335",
        "Silent since 12:34 h; step: a copy on cuda:0",
    ],
)
def test_what_helps_stays(text):
    assert hide(text, {}) == text


def test_the_report_is_folded_and_nothing_in_it_ends_its_block():
    hostile = Finding("cuda", False, "no-driver", "~~~\n</details>\n@everyone", "")
    text = Diagnosis(
        "computer", "torch 2.9.0", (), (hostile,), 1.0, {"nvidia-smi": "~~~\n# big"}
    ).to_markdown()
    lines = text.splitlines()
    assert (
        lines[0].startswith("<details><summary>")
        and lines[-1] == "</details>"
        and "cuda: no-driver" in lines[0]
    )
    assert [line for line in lines if line.startswith("~~~")] == ["~~~text", "~~~"]
    assert [line for line in lines if line.startswith(("</details>", "#"))] == ["</details>"]


def test_the_devices_that_were_listed_are_a_table_of_their_own():
    device = {
        "device": "cuda:0",
        "name": "NVIDIA H200",
        "memory_bytes": 150754820096,
        "detail": "in a test",
    }
    lines = repr(Diagnosis("computer", "torch 2.9.0", (device,), (), 1.0)).splitlines()
    assert (
        "device  name         memory  detail" in lines
        and "cuda:0  NVIDIA H200  151 GB  in a test" in lines
    )


def test_a_user_whose_name_is_a_number_is_hidden_and_a_small_number_is_not():
    assert hide("/scratch/20231234/lib", private_names({"USER": "20231234"})) == "/scratch/USER/lib"
    assert hide("8 chips", private_names({"USER": "8"})) == "8 chips"
