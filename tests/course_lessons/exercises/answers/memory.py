"""Answers to the exercises of lesson 9."""

CONTEXT = "import torch"

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
PLAN = """
def my_plan():
    layer = torch.nn.Linear({inputs}, {outputs}, device='meta')
    model = torch.nn.Sequential(torch.nn.Flatten(), layer)
    return {returned}
"""
EXAMPLE = "model, torch.empty(1, 100), "


def plan(returned, inputs=100, outputs=1000):
    return PLAN.format(returned=returned, inputs=inputs, outputs=outputs)


def step(**parts):
    plain = dict.fromkeys(("before", "between", "after"), "pass")
    plain |= {"stride": "most", "size": "most", "scale": ""}
    return STEP.format(**plain | parts)


RIGHT = {
    "budget": [step(stride="1", size="1", scale=" / len(inputs)")],
    "plan": [plan(EXAMPLE + "2_000_000"), plan(EXAMPLE + "1e6"), plan(EXAMPLE + "256")],
}

WRONG = {
    "budget": [
        (step(stride="len(inputs)", size="len(inputs)"), "does not fit"),
        (step(), "multiply each loss by its share"),
        (step(scale=" * most / len(inputs)"), "short last batch"),
        (
            step(scale=" / len(inputs)"),
            "0.25 times as large as they should be. A mean is divided by its own",
        ),
        (step(scale=" / most"), "0.5 times as large"),
        (
            step(scale=" * len(x) / len(inputs)", between="model.zero_grad()"),
            "gradients of the last small batch are left",
        ),
        (step(scale=" * len(x) / len(inputs)", after="model.zero_grad()"), "no gradients"),
        (step(stride="2 * most"), "of 8 samples"),
        (AT_THE_END, "activations of 8 samples waited"),
        (step(scale=".mul(y.numel() / len(inputs))"), "by the 3 outputs of each"),
        (
            "my_step = lambda model, inputs, targets, most: 1",
            "has not called the model as `model(x)`",
        ),
    ],
    "plan": [
        (plan(EXAMPLE + "10**9"), "Take fewer, and accumulate"),
        (plan(EXAMPLE + "8"), "most of the card stays empty"),
        (plan(EXAMPLE + "0"), "trains nothing"),
        (plan("model, torch.empty(1, 64), 8"), "could not be followed"),
        (plan("model, torch.empty(1, 60_000), 8", 60_000, 60_000), "Not one sample fits a T4"),
        (plan("model"), "a model, an example of its input, and a batch"),
    ],
}
