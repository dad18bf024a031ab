"""Leave everything as it was before an answer ran."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def everything_restored() -> Iterator[None]:
    """Undo on leaving what an answer or a check changed for the whole process.

    That is PyTorch's threads, default device and type, gradients on or off, and the random numbers of Python and of
    PyTorch on the CPU: a lesson gives the same results whether its exercises are tried or not.
    """
    threads, grad, dtype = torch.get_num_threads(), torch.is_grad_enabled(), torch.get_default_dtype()
    device = torch.empty(0).device  # torch.get_default_device() fails once a default was set and taken back (2.9)
    seeds = random.getstate(), torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(seeds[0])
        torch.set_rng_state(seeds[1])
        torch.set_num_threads(threads)
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        if torch.empty(0).device != device:
            torch.set_default_device(None if device.type == "cpu" else device)
        _forget_that_a_default_was_taken_back()


def _forget_that_a_default_was_taken_back() -> None:
    # After set_default_device(None), torch 2.9's get_default_device fails, and with it every LightningModule: it finds
    # the place of the default, and None in it.
    context = getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None)
    if getattr(context, "device_context", ...) is None:
        del context.device_context
