"""Train on every XLA device of this process with SPMD: `python -m course_lessons.tpu.spmd
result.pt`.

SPMD stands for single program, multiple data: one process writes one program, and XLA splits its
tensors over a mesh of devices. With CPU_NUM_DEVICES=8 in the environment, XLA's CPU compiler plays
eight devices; a TPU brings its own.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from course_utils.data import AirRNN, Scale, ShuffledBatches, air_passengers, make_windows
from course_utils.xla import import_torch_xla, run_recorded, start_xla, xla_counters

STEPS = 12
WINDOW = 6  # months; short, because each of them is one more stretch of program to compile
SHAPE = (16, 8)  # of the tensor that shows what a mesh does


def train(device: torch.device, mesh: Any = None) -> tuple[AirRNN, torch.Tensor]:
    """Return the RNN after STEPS full batches, and the inputs of the last one, (16, WINDOW, 1), on
    the device.

    Full batches have one shape and so one program. Each is spread over the mesh, if there is one.
    """
    series, _ = air_passengers()
    windows, targets = make_windows(Scale.fit(series).apply(series), WINDOW)
    torch.manual_seed(42)
    model = AirRNN().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = ShuffledBatches(len(windows), 16)
    full = [index for _ in range(2) for index in batches if len(index) == 16]
    for index in full[:STEPS]:
        inputs, wanted = windows[index].to(device), targets[index].to(device)
        if mesh is not None:
            spread(inputs, mesh)
            spread(wanted, mesh)
        torch.nn.functional.mse_loss(model(inputs), wanted).backward()
        optimizer.step()
        optimizer.zero_grad()
        run_recorded(device)
    return model, inputs


def mesh_of_all_devices(columns: int = 1) -> Any:
    """Return a mesh with all devices that XLA has: the axis "data", and the axis "model" with this
    many devices.
    """
    import numpy as np
    from torch_xla import runtime
    from torch_xla.distributed import spmd

    count = runtime.global_runtime_device_count()
    return spmd.Mesh(np.arange(count), (count // columns, columns), ("data", "model"))


def spread(batch: torch.Tensor, mesh: Any) -> None:
    """Have the first dimension of a batch split over the axis "data" of the mesh, and the others
    left whole.
    """
    from torch_xla.distributed import spmd

    spmd.mark_sharding(batch, mesh, ("data", *[None] * (batch.ndim - 1)))


def parts(device: torch.device, mesh: Any) -> list[list[int]]:
    """Return the rows and columns of a tensor that each device holds, once both of its dimensions
    are split.
    """
    split = import_torch_xla().distributed.spmd.mark_sharding(
        torch.zeros(SHAPE).to(device), mesh, ("data", "model")
    )
    slices = [shard.indices for shard in split.local_shards]
    return [
        [end for one, size in zip(pair, SHAPE, strict=True) for end in one.indices(size)[:2]]
        for pair in slices
    ]


def gradient_program(device: torch.device, mesh: Any, dump: Path) -> list[str]:
    """Return the lines of a compiled program that multiply or exchange: the gradient of one layer
    on a split batch.
    """
    batch = torch.ones(SHAPE).to(device)
    spread(batch, mesh)
    weight = torch.rand(SHAPE[1], 4).to(device).requires_grad_()
    loss = (batch @ weight).square().mean()
    loss.backward()
    run_recorded(device)
    xla_counters()  # waits, and the loss was held until here
    texts = [file.read_text() for file in sorted(dump.glob("*after_optimizations.txt"))]
    lines = texts[-1].partition("ENTRY")[2].splitlines() if texts else []
    kept = (
        line.strip() for line in lines if re.search(r"= \S+ (parameter|dot|all-reduce)\(", line)
    )
    return [
        re.sub(r"\{[\d,]*\}|, (channel_id|metadata|to_apply|lhs_contracting).*", "", line)
        for line in kept
    ]


def on_eight_devices() -> tuple[str, dict[str, Any]]:
    """Run this module where XLA's CPU compiler plays eight devices, and return what it printed and
    what it saved.

    Raises:
        RuntimeError: it failed; the end of what it said.
    """
    # XLA reads them when it starts
    settings = {**os.environ, "PJRT_DEVICE": "CPU", "CPU_NUM_DEVICES": "8"}
    with TemporaryDirectory() as folder:
        file = Path(folder, "result.pt")
        command = [sys.executable, "-m", "course_lessons.tpu.spmd", str(file)]
        if (
            done := subprocess.run(command, env=settings, capture_output=True, text=True)
        ).returncode:
            raise RuntimeError(done.stderr[-2000:])
        return done.stdout, torch.load(file)


def main(path: str) -> None:
    """Train on all devices, say where things were, and save the weights, the parts and a program to
    `path`.
    """
    with TemporaryDirectory() as dump:
        # XLA reads it when it starts
        os.environ["XLA_FLAGS"] = f"--xla_dump_to={dump} --xla_dump_hlo_as_text"
        torch_xla = import_torch_xla()
        # before XLA starts: later, the first step ends in a segmentation fault
        torch_xla.runtime.use_spmd()
        device, mesh = start_xla(), mesh_of_all_devices()
        before = xla_counters()
        model, batch = train(device, mesh)
        count = torch_xla.runtime.global_runtime_device_count()
        print(f"{count} devices in {torch_xla.runtime.process_count()} process")
        for name, tensor in (("batch", batch), ("weight", model.head.weight)):
            split = torch_xla.distributed.spmd.XLAShardedTensor(tensor).sharding_spec
            print(f"a {name} of shape {tuple(tensor.shape)} is split as {split}")
        print(xla_counters() - before)
        sizes = (k for k in (1, 2) if count % k == 0)
        shown = {f"mesh {count // k} x {k}": parts(device, mesh_of_all_devices(k)) for k in sizes}
        program = gradient_program(device, mesh, Path(dump))
        torch.save({"weights": model.cpu().state_dict(), "parts": shown, "program": program}, path)


if __name__ == "__main__":
    main(sys.argv[1])
