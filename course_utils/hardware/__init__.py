"""The devices of this machine, counted by torch and described without starting any."""

# The kinds of device, by the names that PyTorch gives them. "cuda" also stands for ROCm, and "xla"
# for a TPU or its rehearsal through torch_xla.
KINDS = ("cpu", "cuda", "mps", "xpu", "xla")
