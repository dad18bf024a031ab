"""Answers to the exercises of lesson 7."""

CONTEXT = "import torch"

PEAK = "my_peak = lambda parameters, activation_bytes, batch: {}"
STEP = """
def my_step(model, inputs, targets, most):
    {before}
    for start in range(0, len(inputs), {stride}):
        x, y = inputs[start : start + {size}], targets[start : start + {size}]
        loss = torch.nn.functional.mse_loss(model(x), y){scale}
        {between}
        loss.backward()
    {after}
"""
AT_THE_END = """
def my_step(model, inputs, targets, most):
    loss = 0
    for x, y in zip(inputs.split(most), targets.split(most)):
        loss = loss + torch.nn.functional.mse_loss(model(x), y) * len(x) / len(inputs)
    loss.backward()
"""
EVALUATION = """
def my_evaluation(model, batches):
    losses = []
    for inputs, targets in batches:
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        losses.append({kept})
    return losses
"""


def step(**parts):
    plain = {
        "before": "pass",
        "stride": "most",
        "size": "most",
        "scale": "",
        "between": "pass",
        "after": "pass",
    }
    return STEP.format(**plain | parts)


RIGHT = {
    "peak": [PEAK.format("parameters * 12 + max(4 * parameters, batch * activation_bytes)")],
    "budget": [step(stride="1", size="1", scale=" / len(inputs)")],
    "leak": [
        "@torch.no_grad()" + EVALUATION.format(kept="loss"),
        "@torch.no_grad()" + EVALUATION.format(kept="round(loss.item(), 4)"),
        "@torch.inference_mode()" + EVALUATION.format(kept="float(loss)"),
    ],
}

WRONG = {
    "peak": [
        (PEAK.format("16 * parameters + activation_bytes * batch"), "not there together"),
        (PEAK.format("4 * parameters + activation_bytes * batch"), "Adam's two moments"),
        (PEAK.format("8 * parameters + activation_bytes * batch"), "Adam's two moments"),
        (PEAK.format("12 * parameters + activation_bytes * batch"), "Look at its end"),
        (PEAK.format("activation_bytes * batch"), "6.06 GB"),
        (
            PEAK.format("max(12 * parameters + activation_bytes * batch, 16 * parameters) / 1e9"),
            "Return bytes",
        ),
        (PEAK.format("'much'"), "a number"),
        ("my_peak = 6e9", "This should be a function"),
    ],
    "budget": [
        (step(stride="len(inputs)", size="len(inputs)"), "does not fit"),
        (step(), "2 times as large"),
        (step(scale=" * most / len(inputs)"), "short last"),
        (
            step(scale=" / len(inputs)"),
            "0.25 times as large as they should be. A mean is divided by its own",
        ),
        (step(scale=" / most"), "0.5 times as large"),
        (
            step(scale=" * len(x) / len(inputs)", between="model.zero_grad()"),
            "set them to zero between",
        ),
        (step(scale=" * len(x) / len(inputs)", after="model.zero_grad()"), "no gradients"),
        (step(stride="2 * most"), "of 8 samples"),
        (AT_THE_END, "activations of 8 samples waited"),
        ("@torch.no_grad()" + step(scale="; loss.requires_grad_()"), "no gradients"),
        (step(scale=".mul(y.numel() / len(inputs))"), "and by the outputs of each"),
        (
            "my_step = lambda model, inputs, targets, most: 1",
            "has not called the model as `model(x)`",
        ),
    ],
    "leak": [
        (EVALUATION.format(kept="loss"), "grad_fn"),
        (EVALUATION.format(kept="loss.item()"), "still saves activations"),
        ("@torch.no_grad()" + EVALUATION.format(kept="loss.sqrt()"), "not the mean squared errors"),
        (
            "@torch.no_grad()"
            + EVALUATION.format(kept="loss").replace("return losses", "return losses[:1]"),
            "There are 3 batches, but the length of your list is 1",
        ),
        ("my_evaluation = lambda model, batches: 0.1", "a list of losses"),
        ("my_evaluation = lambda model: []", "but yours takes"),
    ],
}
