"""Published speeds, in the form of a comparison's result."""

import pandas as pd

from course_tools.compare.measurement import Measurement
from course_tools.compare.results import Result
from course_tools.estimate.time.published import published


def published_curve(device: str, precision: str, model: str, workload: str) -> Result:
    """Return what others published of a forward pass over the batch, to be drawn beside one's own
    `workload`.

    Args:
        device: a chip, by its name in the published table.
        precision: such as "fp32".
        model: the network, by the name that pytorch-image-models gives it.
        workload: the name of one's own work, to which the curve belongs.
    """
    asked = {"device": device, "precision": precision, "model": model}
    rows = published(**asked, training=False, compiled=False)
    found = []
    for row in sorted(rows, key=lambda row: row.batch):
        one = Measurement(
            workload=workload,
            precision=precision,
            size=row.batch,
            size_name="batch",
            unit="images",
            items=row.batch,
            label=f"{device.split()[0]}, {precision}",
            kind="cuda",
            device=device,
            rounds_s=(row.step_s,),
        )
        found.append(one)
    return Result(tuple(found), origin="published", source=f"{rows[0].source}, {rows[0].file}")


def unlike_rows() -> pd.DataFrame:
    """Return two published speeds of EfficientNet-B0 that somebody might compare."""
    cpu = published(device="Core i9-10940X", model="efficientnet_b0", image=224)[0]
    card = {"device": "V100 SXM2 16GB", "model": "efficientnet_b0", "precision": "fp32"}
    gpu = min(published(**card, training=False), key=lambda row: row.batch)
    rows = []
    for row in (cpu, gpu):
        line = {
            "device": row.device,
            "batch": row.batch,
            "images/s": row.samples_per_s,
            "torch.compile": "yes" if row.compiled else "no",
            "PyTorch": row.torch or "not said",
        }
        rows.append(line)
    return pd.DataFrame(rows).set_index("device")
