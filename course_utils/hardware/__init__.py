"""The devices of this machine, read from files and driver libraries without starting any."""

# The kinds of device, by the names that PyTorch gives them. "cuda" also stands for ROCm, "xla" for
# a TPU or its rehearsal through torch_xla, and "tpu" for TorchTPU. A kind that `torch.accelerator`
# knows needs no more than its name here.
KINDS = ("cpu", "cuda", "mps", "xpu", "xla", "tpu")
