import os
import subprocess
import sys

import torch

from course_utils.lessons.tpu import spmd


def train_on_one_device() -> dict[str, torch.Tensor]:
    model, _ = spmd.train(torch.device("xla", 0))
    return {name: value.cpu() for name, value in model.state_dict().items()}


def test_eight_devices_end_with_the_weights_of_one_and_of_the_cpu(in_xla, tmp_path):
    file = tmp_path / "weights.pt"
    eight_devices = {**os.environ, "CPU_NUM_DEVICES": "8"}
    command = [sys.executable, "-m", "course_utils.lessons.tpu.spmd", file]
    done = subprocess.run(command, env=eight_devices, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert "8 devices in 1 process" in done.stdout
    assert "(16, 6, 1) is split as {devices=[8,1,1]0,1,2,3,4,5,6,7}" in done.stdout
    assert "(1, 20) is split as {replicated}" in done.stdout
    assert f"{spmd.STEPS} executed" in done.stdout
    eight, one, cpu = torch.load(file), in_xla(train_on_one_device), spmd.train(torch.device("cpu"))[0].state_dict()
    torch.manual_seed(42)
    start = spmd.AirRNN().state_dict()
    for name, value in eight.items():
        assert torch.allclose(value, one[name], atol=1e-6) and torch.allclose(value, cpu[name], atol=1e-6)
        assert not torch.allclose(value, start[name], atol=1e-4)
