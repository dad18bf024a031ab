"""What is in this machine, read from files and driver libraries without starting a device."""

# Kinds of device: "cuda" also stands for ROCm, "xla" for a TPU or the rehearsal through torch_xla,
# "tpu" for TorchTPU.
KINDS = ("cpu", "cuda", "mps", "xpu", "xla", "tpu")
