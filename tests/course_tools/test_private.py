"""What a report shows to strangers: no key, no inner address, no other user's folder."""

import pytest

from course_tools.private import (
    code_without_keys,
    everything_without_secrets,
    without_secrets,
)


@pytest.fixture(autouse=True)
def al(monkeypatch):
    """The user al, with the home folder /home/al."""
    monkeypatch.setenv("HOME", "/home/al")
    monkeypatch.setenv("LOGNAME", "al")
    monkeypatch.setenv("MY_TOKEN", "the-value-of-a-variable")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")


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
        ("env--token secret99", "secret99"),
        ("at /x/ada.king@uni.example", "ada"),
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
        ("train.py --api-key 'not this' --epochs 3", "not this"),
        ('{"password": "not this"}', "not this"),
        ("https://x.blob.example/c?sv=1&sig=abc%3D", "abc"),
        ("https://hooks.slack.com/services/T0/B0/x12", "x12"),
        ("https://discord.com/api/webhooks/12/x_12", "x_12"),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\nbnNz\n-----END OPENSSH PRIVATE KEY-----",
            "bnNz",
        ),
        ("the proxy bob:hunter2@proxy.example:3128", "hunter2"),
        ("git@code.example:team/project.git", "project"),
        ("ada@uni.example", "ada"),
        ("100.64.10.20", "100.64"),
        ("02:42:ac:11:00:02", "ac:11"),
        ("/lustre/work/frank/envs/a/lib", "frank"),
        ("/afs/cern.example/user/g/grace/x", "grace"),
        ("what the user calls the-value-of-a-variable", "the-value-of-a-variable"),
        (r"C:\\Users\\Erin\\torch.py", "Erin"),
        (r"C:\Users\Jane Doe\torch.py", "Doe"),
        ("MYSQL_PWD=hunter22", "hunter22"),
        ("mysql --user x; pwd=hunter22", "hunter22"),
        ("https://user:p@ss@host.example/x", "ss@"),
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
        "PWD=/content OLDPWD=/opt",
        "/usr/local/cuda/lib64/stubs",
        "libcurand.so.10.3.0.86 and nvidia-curand-cu12==10.3.0.86",
        "GPU-feee0c61-26ec-5616-bb59-b6d777cc4f34",
        "driver 570.86.15, CUDA 12.8",
        "http://[::]:8353",
        "python -m uv pip install --torch-backend cu128 torch",
        "torch.cuda.is_available() is false: torch 2.9.0+cu128, Python 3.11.7 at 12:08:15",
        "signal: SIGSEGV",
        "PCI 00000000:65:00.0, sm_90, cuda@12.8",
    ],
)
def test_what_a_maintainer_needs_stays(text):
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    "key",
    ["hf_abcdefghij", "ghp_0123456789abcdef", "AKIAIOSFODNN7EXAMPLE", "the-value-of-a-variable"],
)
@pytest.mark.parametrize(
    "code",
    [
        "logger = WandbLogger(project='air', key='{}')",
        'os.environ["HF_TOKEN"] = "{}"',
        'model = load(name, "{}").cuda()',
        "Trainer(gpus=2, headers={{'Authorization': 'Bearer {}'}})",
        "urlopen('https://al:{}@packages.example/x')",
    ],
)
def test_a_line_of_a_program_is_shown_without_its_keys(code, key):
    line = code.format(key)
    assert "'<hidden>'" in code_without_keys("password='6chars'")
    assert "'<hidden>'" in code_without_keys("password_of_the_data_base = 'hunter2'")
    assert key in line and key not in code_without_keys(line)


@pytest.mark.parametrize(
    "code",
    [
        "scores = self.attention(query, key, value, key_padding_mask=padding)",
        "tokens = tokenizer('the first sentence', return_tensors='pt').to('cuda')",
        "tokenizer='bert-base-uncased', accelerator='gpu', devices=[0, 1]",
        "weights = torch.load('/home/bob/model.pt', map_location='cuda:0')",
        "pad_token='<pad>', password='5char'",
    ],
)
def test_the_rest_of_a_line_stays(code):
    assert code_without_keys(code) == code


@pytest.mark.parametrize("unit", ["a.", "a:", "-a", "key", "key-", "a+", "eyJa-", "\\", "' "])
def test_a_long_text_takes_no_longer_than_its_length_asks_for(unit):
    text = unit * 20_000  # a pattern that goes back for each letter takes minutes
    assert without_secrets(text) and code_without_keys("'" + text)


def test_the_home_folder_is_short_and_that_of_a_longer_name_is_not_cut():
    assert without_secrets("/home/al/lib") == "~/lib"
    assert without_secrets("/home/alice/lib") == "/home/<hidden>/lib"


def test_every_text_in_a_report_for_scripts_is_read():
    report = {"findings": [{"why": "at 10.0.0.1", "usable": True}], "devices": ("/home/bob/x",)}
    assert everything_without_secrets(report) == {
        "findings": [{"why": "at <hidden>", "usable": True}],
        "devices": ["/home/<hidden>/x"],
    }
