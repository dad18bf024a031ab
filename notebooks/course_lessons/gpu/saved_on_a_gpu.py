"""A checkpoint as a GPU writes it, made on any machine."""

import io
import zipfile

import torch

# How pickle stores the name of a device: a letter, the length in four bytes, the text.
CPU, GPU = b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0"


def saved_on_a_gpu(state: dict[str, torch.Tensor]) -> io.BytesIO:
    """Return the file that `torch.save` would write if these tensors were on the first GPU."""
    plain, changed = io.BytesIO(), io.BytesIO()
    torch.save(state, plain)
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(CPU, GPU))
    changed.seek(0)
    return changed
