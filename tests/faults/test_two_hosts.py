"""Two hosts for real: two network namespaces with a cable between them, torchrun on both, and one side killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid

import psutil
import pytest
import torch
from launches import CLASSROOM, PATIENCE_S

EPOCHS = 12


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@pytest.fixture
def two_hosts():
    """Two network namespaces, 10.77.0.1 and 10.77.0.2, that see each other and nothing else."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("two hosts are made of network namespaces, which needs root and the command ip")
    name = uuid.uuid4().hex[:6]
    hosts = [f"host-{name}-{side}" for side in (0, 1)]
    cable = [f"v{name}{side}" for side in (0, 1)]
    try:
        ip("netns", "add", hosts[0])
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
    try:
        ip("netns", "add", hosts[1])
        ip("link", "add", cable[0], "type", "veth", "peer", "name", cable[1])
        for side in (0, 1):
            ip("link", "set", cable[side], "netns", hosts[side])
            ip("-n", hosts[side], "addr", "add", f"10.77.0.{side + 1}/24", "dev", cable[side])
            ip("-n", hosts[side], "link", "set", cable[side], "up")
            ip("-n", hosts[side], "link", "set", "lo", "up")
        yield [(hosts[side], cable[side], f"10.77.0.{side + 1}") for side in (0, 1)]
    finally:
        for host in hosts:
            subprocess.run(["ip", "netns", "del", host], capture_output=True)


def start(classroom, host, device, address, log):
    command = ["ip", "netns", "exec", host, sys.executable, "-m", "torch.distributed.run"]
    command += ["--nnodes=2", "--nproc-per-node=1", "--max-restarts=3"]
    command += ["--rdzv-id=lesson", "--rdzv-backend=c10d", "--rdzv-endpoint=10.77.0.1:29400"]
    # Both hosts have the name of this machine, so that torchrun cannot tell by itself which one the endpoint means.
    command += [f"--rdzv-conf=is_host={int(address == '10.77.0.1')}", f"--local-addr={address}"]
    lesson = f"{CLASSROOM}:lesson_that_rank_0_starts_late"
    command += ["-m", "course_utils.launch", "--lesson", lesson, "--accelerator", "cpu", "--epochs", str(EPOCHS)]
    command += ["--global-batch", "8", "--timeout", "60", "--out", str(classroom.out), "--resume"]
    environment = classroom.environment(FAULT="slow", GLOO_SOCKET_IFNAME=device)
    # As in lesson 3: torchrun keeps one store for the ranks to find each other in, also when it restarts them, and a
    # rank that is back early reads in it where rank 0 was before (pytorch/pytorch issue 135712; torch 2.6 to 2.9).
    environment |= {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    with log.open("w") as file:
        return subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT)


def test_two_hosts_train_lose_a_process_restart_and_end_at_the_same_step(classroom, two_hosts, tmp_path):
    logs = [tmp_path / f"host-{side}.log" for side in (0, 1)]
    processes = [start(classroom, *host, log) for host, log in zip(two_hosts, logs, strict=True)]
    try:
        victim = int(classroom.wait_for_note("pid-1", processes))  # the rank of whichever host became the second
        environment = psutil.Process(victim).environ()
        assert environment["TORCHELASTIC_RESTART_COUNT"] == "0" and environment["WORLD_SIZE"] == "2"
        os.kill(victim, signal.SIGKILL)
        for process in processes:
            process.wait(timeout=PATIENCE_S)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    output = [log.read_text() for log in logs]
    both = "\n".join(output)
    assert [process.returncode for process in processes] == [0, 0], both
    assert "rank 1 was killed by signal 9" in both and "continuing after step" in both
    assert "connectFullMesh failed" not in both and "torchrun keeps" not in both
    assert all("torchrun (TORCHELASTIC_RUN_ID=lesson)" in text for text in output)
    result = json.loads((classroom.out / "result.json").read_text())
    assert result["steps"] == EPOCHS * 4 and len(result["losses"]) == EPOCHS and result["ranks"] == 2
    assert result["samples_per_rank"] == [16, 16]
    state = torch.load(classroom.out / "checkpoints" / "last.ckpt", weights_only=True)
    assert state["global_step"] == EPOCHS * 4
    deadline = time.monotonic() + 10
    while classroom.family() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert classroom.left_behind() == []
