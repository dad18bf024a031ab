"""The course's training scripts, from `train_cpu.py` to `train_lightning.py`, and their diffs."""
