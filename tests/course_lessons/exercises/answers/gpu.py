"""Answers to the exercises of lesson 2."""

CONTEXT = """
import torch
import torch.nn.functional as F

from course_utils.moves import to_device
"""

BUSY = """
def my_epoch(network, loader, optimizer, device):
    total = 0.0
    for pixels, labels in loader:
        {moves}
        loss = F.cross_entropy(network(pixels), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += {loss}
        {after}
    return {result}
"""
BESIDE = """pixels = pixels.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)"""


def busy(**changes):
    """The right answer, with some of its lines changed."""
    result = "float(total) / len(loader)"
    right = {"moves": BESIDE, "loss": "loss.detach()", "after": "", "result": result}
    return BUSY.format(**right | changes)


RIGHT = {
    "work": [
        "my_work = [2 * 8192.0**3, 6 * 8192.0**2]",
        "one = torch.empty(8192, 8192, dtype=torch.bfloat16, device='meta')\n"
        "my_work = ((2 * 8192 - 1) * 8192**2, 3 * one.nbytes)",
        "my_work = torch.tensor(2.0) * 8192**3, torch.tensor(402653184)",
        "my_work = (1.1e12, 4.03e8)",
    ],
    "busy": [
        busy(result="(total / len(loader)).item()"),
        busy(moves="pixels, labels = (part.to(device, None, True) for part in (pixels, labels))"),
        busy(moves="pixels, labels = to_device((pixels, labels), device, non_blocking=True)"),
    ],
    "loss_scale": [
        "my_scale = 2**14",
        "my_scale = torch.tensor(10_000.0)",
        "my_scale = 6.2e3",
        "my_scale = 6.1e-5 / 1e-8",
    ],
}

WRONG = {
    "work": [
        ("my_work = (8192**3, 3 * 8192**2 * 2)", "a multiply-add is two operations"),
        ("my_work = (2 * 8192**3, 3 * 8192**2 * 4)", "half the bytes"),
        ("my_work = (2 * 8192**3, 3 * 8192**2)", "How many bytes"),
        ("my_work = (2 * 8192**3, 2 * 8192**2 * 2)", "forgot to write the result"),
        ("my_work = (2 * 8192**3, 8192**2 * 2)", "That is one matrix"),
        ("my_work = (3 * 8192**2 * 2, 2 * 8192**3)", "the other way round"),
        ("my_work = (2 * 8192**2, 3 * 8192**2 * 2)", "takes 2 n^3 operations"),
        ("my_work = (2 * 8192**3, 2 * 8192**3 * 2)", "count each matrix once"),
        ("my_work = (2 * 8192**3, ...)", "This should be the number of bytes, a number"),
        ("my_work = (1.0e12, 4.03e8)", "which for this n are not 1e+12"),
        ("my_work = (2 * 8192**3, 7)", "are not 7 bytes"),
        ("my_work = 2 * 8192**3 / (3 * 8192**2 * 2)", "should be a pair"),
    ],
    "busy": [
        (busy(moves=BESIDE.replace("pixels.to", "pixels.float().to")), "four times the bytes"),
        (busy(moves="pixels, labels = pixels.to(device), labels.to(device)"), "non_blocking=True"),
        (busy(loss="loss.item()", result="total / len(loader)"), "read the sum once"),
        (busy(after="torch.cuda.empty_cache()"), "reuses it by itself"),
        (busy(after="torch.cuda.synchronize()"), "Leave it out"),
        (busy(moves="pass"), "have to be moved"),
        (busy(result="float(total)"), "not the mean loss"),
    ],
    "loss_scale": [
        ("my_scale = 1", "it underflows"),
        ("my_scale = 65536", "it became infinite"),
        ("my_scale = 6000", "1e-8 x 6000 survives, but coarsely"),
        ("my_scale = -8192", "a positive number"),
        ("my_scale = float('inf')", "type float: inf"),
    ],
}
