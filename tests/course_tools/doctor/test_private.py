"""What a report shows to strangers: no key, no inner address, no other user's folder."""

import pytest

from course_tools.doctor.private import everything_without_secrets, without_secrets


@pytest.fixture(autouse=True)
def al(monkeypatch):
    """The user al, with the home folder /home/al."""
    monkeypatch.setenv("HOME", "/home/al")
    monkeypatch.setenv("LOGNAME", "al")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("NVIDIA_API_KEY: nvapi-SECRET123", "SECRET123"),
        ("HF_TOKEN='abc'", "abc"),
        ("db_password = hunter2", "hunter2"),
        ("found hf_abcdefghij in the cache", "hf_abcdefghij"),
        ("ghp_0123456789abcdef", "ghp_0123456789abcdef"),
        ("AKIAIOSFODNN7EXAMPLE", "EXAMPLE"),
        ("Authorization: Bearer abcdefgh12345", "abcdefgh12345"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "eyJ"),
        ("https://al:hunter2@packages.example/simple", "hunter2"),
        ("0123456789abcdef0123456789abcdef01234567", "89abcdef"),
        ("TPU_WORKER: 10.1.2.3,192.168.0.7", "10.1.2.3"),
        ("tcp://172.20.3.4:29500", "172.20.3.4"),
        ("fd00:1234::1", "1234"),
        ("node7.cluster.internal", "node7"),
        ("/home/bob/lib:/usr/lib", "bob"),
        ("/gpfs/home/carol/x", "carol"),
        ("/scratch/dave/cuda/lib64", "dave"),
        ("/data/al/lib", "/al/"),
        (r"C:\\Users\\Erin\\torch.py", "Erin"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text, secret):
    assert secret in text
    shown = without_secrets(text)
    assert secret not in shown and "<hidden>" in shown


@pytest.mark.parametrize(
    "text",
    [
        "/opt/conda/lib/python3.11/site-packages/torch",
        "/usr/local/cuda/lib64/stubs",
        "libcurand.so.10.3.0.86 and nvidia-curand-cu12==10.3.0.86",
        "GPU-feee0c61-26ec-5616-bb59-b6d777cc4f34",
        "driver 570.86.15, CUDA 12.8",
        "http://[::]:8353",
        "python -m uv pip install --torch-backend cu128 torch",
    ],
)
def test_what_a_maintainer_needs_stays(text):
    assert without_secrets(text) == text


def test_the_home_folder_is_short_and_that_of_a_longer_name_is_not_cut():
    assert without_secrets("/home/al/lib") == "~/lib"
    assert without_secrets("/home/alice/lib") == "/home/<hidden>/lib"


def test_every_text_in_a_report_for_scripts_is_read():
    report = {"findings": [{"why": "at 10.0.0.1", "usable": True}], "devices": ("/home/bob/x",)}
    assert everything_without_secrets(report) == {
        "findings": [{"why": "at <hidden>", "usable": True}],
        "devices": ["/home/<hidden>/x"],
    }
