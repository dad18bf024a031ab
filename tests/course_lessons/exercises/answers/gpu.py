"""Answers to the exercises of lesson 2."""

CONTEXT = """
import torch
from torch import nn

from course_utils.moves import to_device
"""

PREDICT = """
def my_predict(model, x, device):
    {lines}
"""

RIGHT = {
    "work": [
        "my_work = [2 * 8192.0**3, 6 * 8192.0**2]",
        "my_work = ((2 * 8192 - 1) * 8192**2, 3 * torch.empty(8192, 8192, dtype=torch.bfloat16, device='meta').nbytes)",
        "my_work = torch.tensor(2.0) * 8192**3, torch.tensor(402653184)",
        "my_work = (1.1e12, 4.03e8)",
    ],
    "predict": [
        "my_predict = lambda model, x, device: model.to(device)(x.to(device))",
        PREDICT.format(lines="model, x = to_device((model, x), device); return model(x)"),
        PREDICT.format(
            lines="model = model.to(device); x = x.to(device)\n    with torch.no_grad():\n        return model(x)"
        ),
        PREDICT.format(
            lines="torch.set_default_device(device); return model.to(device)(x.to(device))"
        ),
        PREDICT.format(lines="import copy; return copy.deepcopy(model).to(device)(x.to(device))"),
        """
class Predict:
    @torch.inference_mode()
    def __call__(self, model, x, device):
        x = torch.empty_like(x, device=device).copy_(x)
        return model.eval().to(device).forward(x)


my_predict = Predict()
""",
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
    "predict": [
        (
            PREDICT.format(lines="model.to(device); x.to(device); return model(x)"),
            ".to returns a copy",
        ),
        (PREDICT.format(lines="x = x.to(device); return model(x)"), "left on the CPU"),
        (PREDICT.format(lines="return model(x).to(device)"), "Move what goes in"),
        (PREDICT.format(lines="return model(x)"), "Nothing moved"),
        (
            PREDICT.format(lines="return model.to(device)(x.to(device)).cpu()"),
            "leave it on the device",
        ),
        (
            PREDICT.format(lines="return model.to(device)(x.to(device)).tolist()"),
            "leave it on the device",
        ),
        (
            PREDICT.format(lines="return model.to(device)(x.to(device)).detach().numpy()"),
            "leave it on the device",
        ),
        (
            PREDICT.format(lines="return model.to(device)(x.to(device)).softmax(dim=1)"),
            "The model gives other numbers",
        ),
        (PREDICT.format(lines="return x.to(device)"), "never called the model"),
        (
            PREDICT.format(lines="return model.to(device)(x.to(device)).sum()"),
            "has the shape (2, 1)",
        ),
        (PREDICT.format(lines="return model.to('meta')(x.to('meta'))"), "no name of your own"),
        (PREDICT.format(lines="return model.to('cuda')(x.to('cuda'))"), "Use `device`"),
        (
            PREDICT.format(lines="model.to(device)(x.to(device)); return torch.zeros(2, 1)"),
            "came back on cpu",
        ),
    ],
    "loss_scale": [
        ("my_scale = 1", "it underflows"),
        ("my_scale = 65536", "it became infinite"),
        ("my_scale = 6000", "1e-8 x 6000 survives, but coarsely"),
        ("my_scale = -8192", "a positive number"),
        ("my_scale = float('inf')", "no finite number"),
    ],
}
