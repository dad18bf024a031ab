"""Published speeds, in the form of a comparison's result."""

import pandas as pd

from course_lessons.evidence.published import published
from course_tools.compare.measurement import Measurement
from course_tools.compare.results import Result

# Images per second that ResNet-50 classifies in 32 bits (224 x 224 pixels), by the batch.
# T4: column "Throughput Avg" of NVIDIA/DeepLearningExamples at 729963d (BSD-3-Clause),
# PyTorch/Classification/ConvNets/resnet50v1.5/README.md. PyTorch 1.9, eager.
T4 = {1: 98, 2: 186, 4: 325, 8: 363, 16: 409, 32: 420, 64: 428, 128: 426, 256: 415}
# 16 cores of a server of CloudLab, 2022: single figures of msr-fiddle/packrat at 5c5afa6, in
# resnet/cloudlab/large-batches/resnet_throughput.csv (16 threads, "sequential"). TorchScript.
SIXTEEN_CORES = {1: 91.9, 4: 152.0, 16: 136.1, 64: 108.1, 256: 103.3}
SOURCES = "github.com/NVIDIA/DeepLearningExamples; github.com/msr-fiddle/packrat"
# of EfficientNet-B0 for one image in 32 bits on a V100: the same column of NVIDIA's, efficientnet/
V100_IMAGES_PER_S = 83


def resnet50_published() -> Result:
    """Return what others published of ResNet-50 over the batch, on CPU cores and on a T4."""
    curves = (("16 CPU cores", "cpu", SIXTEEN_CORES), ("T4, a GPU", "cuda", T4))
    found = []
    for label, kind, speeds in curves:
        for batch, images_per_s in speeds.items():
            one = Measurement(
                workload="ResNet-50",
                precision="fp32",
                size=batch,
                size_name="batch",
                unit="images",
                items=batch,
                label=label,
                kind=kind,
                device=label,
                rounds_s=(batch / images_per_s,),
            )
            found.append(one)
    return Result(tuple(found), origin="published", source=SOURCES)


def unlike_rows() -> pd.DataFrame:
    """Return two published speeds of EfficientNet-B0 that somebody might compare."""
    (cpu,) = published(device="Core i9-10940X", model="efficientnet_b0", image=224)
    rows = {
        "Core i9-10940X (CPU)": (1, round(cpu.samples_per_s), "yes", cpu.torch),
        "V100 (GPU)": (1, V100_IMAGES_PER_S, "no", "1.9.0a0"),
    }
    columns = ["batch", "images/s", "torch.compile", "PyTorch"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)
