"""Train on every XLA device of this process with SPMD: `python -m course_utils.lessons.tpu.spmd weights.pt`.

SPMD stands for single program, multiple data: one process writes one program, and XLA splits its tensors over a mesh
of devices. With CPU_NUM_DEVICES=8 in the environment, XLA's CPU compiler plays eight devices; a TPU brings its own.
"""

import sys
from typing import Any

import torch

from course_utils.data import AirRNN, Scale, ShuffledBatches, air_passengers, make_windows
from course_utils.xla import import_torch_xla, run_recorded, start_xla, xla_counters

STEPS = 12
WINDOW = 6  # months; short, because each of them is one more stretch of program to compile


def train(device: torch.device, mesh: Any = None) -> tuple[AirRNN, torch.Tensor]:
    """Train the RNN for two epochs of six full batches, which have one shape and so one program.

    Args:
        device: "cpu" or an XLA device.
        mesh: from `mesh_of_all_devices`; each batch is spread over it. None leaves all on one device.

    Returns:
        The model, on its device, and the inputs of the last batch, (16, WINDOW, 1).
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
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        run_recorded(device)
    return model, inputs


def mesh_of_all_devices() -> Any:
    """Return a mesh of one axis, "data", with all devices that XLA has."""
    import numpy as np
    from torch_xla import runtime
    from torch_xla.distributed import spmd

    count = runtime.global_runtime_device_count()
    return spmd.Mesh(np.arange(count), (count,), ("data",))


def spread(batch: torch.Tensor, mesh: Any) -> None:
    """Have the first dimension of a batch split over the axis "data" of the mesh, and the others left whole."""
    from torch_xla.distributed import spmd

    spmd.mark_sharding(batch, mesh, ("data", *[None] * (batch.ndim - 1)))


def main(path: str) -> None:
    """Train on all devices, say where things were, and save the weights to `path`."""
    torch_xla = import_torch_xla()
    split_of = torch_xla._XLAC._get_xla_sharding_spec  # as PyTorch/XLA's SPMD guide reads it: there is no public name
    torch_xla.runtime.use_spmd()  # before XLA starts: switched on later, the first step ends in a segmentation fault
    device = start_xla()
    before = xla_counters()
    model, batch = train(device, mesh_of_all_devices())
    print(f"{torch_xla.runtime.global_runtime_device_count()} devices in {torch_xla.runtime.process_count()} process")
    print(f"a batch of shape {tuple(batch.shape)} is split as {split_of(batch)}")
    print(f"a weight of shape {tuple(model.head.weight.shape)} is split as {split_of(model.head.weight)}")
    print(xla_counters() - before)
    torch.save(model.cpu().state_dict(), path)


if __name__ == "__main__":
    main(sys.argv[1])
