"""Answers to the exercises of lesson 8."""

CONTEXT = """
import math

import torch

from course_utils.lightning import trainer_kwargs
"""

WRONG = {
    "device": [
        ("my_kwargs = {}", "Nothing in it names a device"),
        ("my_kwargs = {'accelerator': 'auto'}", "what holds when you say nothing"),
        ("my_kwargs = {'accelerator': 'gpu', 'devices': 0}", "asks for the GPUs"),
        ("my_kwargs = {'gpus': 0}", "`gpus=0` is of an older Lightning"),
        ("my_kwargs = {'device': 'cpu'}", "Did you mean 'devices'?"),
        ("my_kwargs = {'devices': 1}", "takes the GPUs"),
        ("my_kwargs = {'accelerator': 'cpu', 'devices': 0}", "at least 1"),
        ("my_kwargs = {'accelerator': 'cpu', 'devices': [0]}", "how many processes"),
        ("my_kwargs = {'accelerator': 'host'}", "Lightning wants the text 'cpu'"),
        ("my_kwargs = {'accelerator': torch.device('cpu')}", "Lightning wants the text 'cpu'"),
        (
            "from course_utils.lightning import pl\nmy_kwargs = {'accelerator': pl.accelerators.CPUAccelerator()}",
            "comes from `lightning.pytorch`",
        ),
        ("my_kwargs = 'cpu'", "a dictionary of arguments"),
    ],
    "mape": [
        (
            "def my_mape(forecast, truth):\n    return ((forecast - truth).abs() / truth).mean()",
            "a share of 1",
        ),
        (
            "def my_mape(forecast, truth):\n    return round(((forecast - truth).abs() / truth).mean().item(), 2)",
            "a share of 1",
        ),
        (
            "def my_mape(forecast, truth):\n    return 100 * ((truth - forecast) / truth).mean()",
            "cancel each other out",
        ),
        (
            "def my_mape(forecast, truth):\n    return 100 * ((forecast - truth) / truth).mean().abs()",
            "cancel each other out",
        ),
        (
            "def my_mape(forecast, truth):\n    return 100 * ((forecast - truth) / forecast).abs().mean()",
            "by the forecast, which favours high ones. Use the truth",
        ),
        (
            "def my_mape(forecast, truth):\n    return (forecast - truth).abs().mean()",
            "the mean error in passengers",
        ),
        (
            "def my_mape(forecast, truth):\n    return 100 * (forecast - truth).abs().mean() / truth.mean()",
            "compares the sums",
        ),
        (
            "def my_mape(forecast, truth):\n    return 100 * ((forecast - truth) / truth).abs().max()",
            "the worst month",
        ),
        (
            "def my_mape(forecast, truth):\n    return 100 * ((forecast - truth) / truth).square().mean()",
            "are off by",
        ),
        (
            "def my_mape(forecast, truth):\n    return 100 * (forecast - truth).abs() / truth",
            "the error in percent, a number",
        ),
    ],
    "put_back": [
        (
            "def my_put_back(weights, network):\n    network.load_state_dict(weights)",
            "The names do not fit",
        ),
        (
            "def my_put_back(weights, network):\n    network.load_state_dict(weights['state_dict'])",
            "Nothing is called 'state_dict' there. The names do not fit",
        ),
        (
            "def my_put_back(weights, network):\n    network.load_state_dict(weights, strict=False)",
            "`strict=False` skips every name",
        ),
        (
            "def my_put_back(weights, network):\n    for name, parameter in network.named_parameters():\n"
            "        parameter = weights['model.' + name]",
            "leaves the network as it was",
        ),
        (
            "def my_put_back(weights, network):\n"
            "    return {name.removeprefix('model.'): value for name, value in weights.items()}",
            "No weight of the network has changed",
        ),
        (
            "def my_put_back(weights, network):\n    named = {n.lstrip('model.'): v for n, v in weights.items()}\n"
            "    network.load_state_dict(named)",
            "`lstrip` takes letters",
        ),
        (
            "def my_put_back(weights, network):\n    named = {n.replace('model.', ''): v for n, v in weights.items()}\n"
            "    network.load_state_dict(named)",
            "and only that",
        ),
        (
            "def my_put_back(weights, network):\n    head = {'weight': weights['model.V.weight']}\n"
            "    network.V.load_state_dict(head, strict=False)",
            "Some weights have stayed as they were",
        ),
        (
            "def my_put_back(weights, network):\n    for parameter in network.parameters():\n"
            "        torch.nn.init.ones_(parameter)",
            "not those of the checkpoint",
        ),
    ],
}

RIGHT = {
    "device": [
        "my_kwargs = {'accelerator': 'cpu', 'devices': 1}",
        "my_kwargs = dict(accelerator='cpu', devices='auto', logger=False)",
        "my_kwargs = trainer_kwargs('cpu')",
        "my_kwargs = {**trainer_kwargs('cpu'), 'enable_progress_bar': False}",
        "my_kwargs = {'accelerator': 'cpu', 'devices': '1', 'callbacks': []}",
    ],
    "mape": [
        "my_mape = lambda forecast, truth: (100 * (1 - forecast / truth).abs()).mean().item()",
        "my_mape = lambda forecast, truth: round(100 * ((forecast - truth).abs() / truth).mean().item(), 2)",
        "def my_mape(forecast, truth):\n    total = 0\n    for f, t in zip(forecast, truth):\n"
        "        total += abs(f - t) / t\n    return 100 * total / len(truth)",
        "def my_mape(forecast, truth):\n"
        "    shares = [abs(f - t) / abs(t) for f, t in zip(forecast.tolist(), truth.tolist())]\n"
        "    return sum(shares) / len(shares) * 100",
        "import numpy as np\ndef my_mape(forecast, truth):\n"
        "    return np.mean(np.abs((truth.numpy() - forecast.numpy()) / truth.numpy())) * 100",
    ],
    "put_back": [
        "def my_put_back(weights, network):\n    named = {}\n    for name in weights:\n"
        "        named[name[len('model.') :]] = weights[name]\n    network.load_state_dict(named)\n    return network",
        "def my_put_back(weights, network):\n    with torch.no_grad():\n"
        "        for name, parameter in network.named_parameters():\n"
        "            parameter.copy_(weights[f'model.{name}'])",
        "def my_put_back(weights, network):\n    for name, parameter in network.named_parameters():\n"
        "        parameter.data = weights[f'model.{name}']",
        "def my_put_back(weights, network):\n    whole = torch.nn.Module()\n    whole.model = network\n"
        "    whole.load_state_dict(weights)",
        "my_put_back = lambda weights, network: network.load_state_dict(\n"
        "    {name.split('.', 1)[1]: value for name, value in weights.items()}\n)",
    ],
}
