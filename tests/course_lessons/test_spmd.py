import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from course_lessons.scripts import FOLDER
from course_lessons.scripts.train_cpu import Network, load_data

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
LINE = re.compile(r"devices: (\d+)  images on each: (\d+) of (\d+)  losses: (.*)")


def run_on(devices: int, folder: Path) -> tuple[list[int], list[float]]:
    """Run the script as the lesson does, and return the three numbers and the losses it prints."""
    for name in ("train_xla.py", "spmd_xla.py"):
        shutil.copy(FOLDER / name, folder)
    variables = {
        **os.environ,
        "PJRT_DEVICE": "CPU",
        "CPU_NUM_DEVICES": str(devices),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "spmd_xla.py"]
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = LINE.search(done.stdout)
    return [int(each) for each in found.groups()[:3]], [float(each) for each in found[4].split()]


def losses_on_the_cpu() -> list[float]:
    """The same training, computed by PyTorch alone on the whole batches."""
    torch.manual_seed(0)
    network = Network()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    losses = []
    train, _ = load_data(600)
    pixels, labels = train[:]
    for start in range(0, 512, 128):
        batch = slice(start, start + 128)
        loss = torch.nn.functional.cross_entropy(network(pixels[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.process
@pytest.mark.usefixtures("needs_xla")
def test_eight_devices_and_one_print_the_losses_of_the_cpu(tmp_path):
    expected = pytest.approx(losses_on_the_cpu(), abs=1e-3)
    assert run_on(8, tmp_path) == ([8, 16, 128], expected)
    assert run_on(1, tmp_path) == ([1, 128, 128], expected)


def test_the_cell_that_writes_the_script_holds_the_script():
    lesson = json.loads((NOTEBOOKS / "05_tpu.ipynb").read_text(encoding="utf-8"))
    sources = ["".join(cell["source"]) for cell in lesson["cells"]]
    script = (FOLDER / "spmd_xla.py").read_text(encoding="utf-8")
    assert "%%writefile spmd_xla.py\n" + script.rstrip("\n") in sources
