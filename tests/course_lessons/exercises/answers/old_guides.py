"""Answers to the exercises of lesson 9."""

CONTEXT = """
from course_lessons.old_guides import exercises as ex
from course_utils.old_code import CannotTranslate, explain, modernize
"""

WRONG = {
    "outdated": [
        ("my_lines = [4]", "Line 4 runs today. `devices=[0, 1]` is right"),
        ("my_lines = [1, 6, 8]", "Line 1 runs today. `pytorch_lightning` is the older name"),
        ("my_lines = [5, 6]", "Line 5 runs today"),
        ("my_lines = [6]", "there is one more. It has to do with resuming a training"),
        ("my_lines = [8]", "It has to do with a sampler"),
        ("my_lines = [5, 7]", "Line 5 runs today. `strategy='ddp'`"),
        ("my_lines = []", "raise TypeError today"),
        ("my_lines = ['6', '8']", "not all in it are whole numbers"),
        ("my_lines = 6", "a list of line numbers"),
    ],
    "core": [
        (
            "my_arguments = {'tpu_cores': [4], 'precision': 16, 'max_epochs': 3}",
            "`tpu_cores` has left the Trainer",
        ),
        (
            "my_arguments = {'accelerator': 'tpu', 'devices': 4, 'precision': 'bf16-true', 'max_epochs': 3}",
            "Yours has devices=4",
        ),
        (
            "my_arguments = {'accelerator': 'tpu', 'devices': [4], 'precision': 'bf16-true', 'max_epochs': 3}",
            "[4] is the fifth one now",
        ),
        (
            "my_arguments = {'accelerator': 'tpu', 'devices': 'auto', 'precision': 'bf16-true', 'max_epochs': 3}",
            "named one core, the fourth",
        ),
        (
            "my_arguments = {'accelerator': 'tpu', 'devices': 3, 'precision': 'bf16-true', 'max_epochs': 3}",
            "a list says which cores, a number how many",
        ),
        (
            "my_arguments = {'accelerator': 'tpu', 'devices': [5], 'precision': 'bf16-true', 'max_epochs': 3}",
            "Yours has devices=[5]",
        ),
        (
            "my_arguments = {'devices': [3], 'precision': 'bf16-true', 'max_epochs': 3}",
            "asks for a TPU",
        ),
        (
            "my_arguments = {'accelerator': 'tpu', 'devices': [3], 'precision': 16, 'max_epochs': 3}",
            "refuses precision=16",
        ),
        (
            "my_arguments = {'accelerator': 'tpu', 'devices': [3], 'precision': '16-true', 'max_epochs': 3}",
            "sets a variable that torch_xla 2.9 does not read",
        ),
        (
            "my_arguments = {'accelerator': 'tpu', 'devices': [3], 'max_epochs': 3}",
            "trains in 32 bits",
        ),
        (
            "my_arguments = {'accelerator': 'tpu', 'devices': [3], 'precision': '64-true', 'max_epochs': 3}",
            "a bfloat16, but yours is 64-true",
        ),
        (
            "my_arguments = {'accelerator': 'tpu', 'devices': [3], 'precision': 'bf16-true'}",
            "has got lost",
        ),
        (
            "my_arguments = modernize({'tpu_cores': [4], 'precision': 16, 'max_epochs': 3, 'logger': False})",
            "was not told logger",
        ),
    ],
    "gpus": [
        (
            "def my_translation(old):\n    new = dict(modernize(old).kwargs)\n"
            "    return {**new, 'devices': old['gpus']}",
            "Yours has accelerator='cpu', devices=0. (A CPU has one.)",
        ),
        ("def my_translation(old):\n    return old", "`gpus` is still there"),
        (
            "def my_translation(old):\n    new = dict(old)\n    new['accelerator'] = 'gpu'\n"
            "    new['devices'] = new.pop('gpus')\n    return new",
            "`distributed_backend` is still there",
        ),
        (
            "def my_translation(old):\n    new = dict(old)\n    gpus = new.pop('gpus')\n"
            "    if 'distributed_backend' in new:\n        new['strategy'] = new.pop('distributed_backend')\n"
            "    return {**new, 'accelerator': 'gpu', 'devices': gpus}",
            "so it meant the CPU",
        ),
        (
            "def my_translation(old):\n    new = dict(old)\n    gpus = new.pop('gpus')\n"
            "    if 'distributed_backend' in new:\n        new['strategy'] = new.pop('distributed_backend')\n"
            "    return {**new, 'accelerator': 'gpu', 'devices': gpus} if gpus else new",
            "takes the best device",
        ),
        (
            "def my_translation(old):\n    old['devices'] = old.pop('gpus')\n    old['accelerator'] = 'gpu'\n"
            "    return old",
            "changes the dictionary",
        ),
        (
            "def my_translation(old):\n    gpus = old['gpus']\n"
            "    return {'max_epochs': old['max_epochs'], 'accelerator': 'gpu',\n"
            "            'devices': len(gpus) if isinstance(gpus, list) else gpus}",
            "Yours has devices=1",
        ),
        (
            "def my_translation(old):\n    return {'accelerator': 'gpu', 'devices': old['gpus']}",
            "`max_epochs` is missing",
        ),
        (
            "def my_translation(old):\n"
            "    return {'accelerator': 'gpu', 'devices': [old['gpus']], 'max_epochs': old.get('max_epochs')}",
            "a list says which GPUs, a number how many",
        ),
        (
            "def my_translation(old):\n    return {**modernize(old).kwargs, 'logger': False}",
            "is {'max_epochs': 3, 'accelerator': 'gpu', 'devices': 2} today",
        ),
        (
            "def my_translation(old):\n    return {'accelerator': 'cpu', 'max_epochs': 3}",
            "it asked for GPUs",
        ),
    ],
}

RIGHT = {
    "outdated": [
        "my_lines = (6, 8)",
        "my_lines = {8, 6}",
        "import torch\nmy_lines = torch.tensor([6, 8])",
        "my_lines = range(6, 9, 2)",
        "my_lines = (finding.line for finding in explain(ex.SNIPPET))",
    ],
    "core": [
        "my_arguments = modernize({'tpu_cores': [4], 'precision': 16, 'max_epochs': 3})",
        "my_arguments = modernize(dict(tpu_cores=[4], precision=16, max_epochs=3)).kwargs",
        "my_arguments = dict(max_epochs=3, accelerator='tpu', devices=(3,), precision='bf16-true')",
    ],
    "gpus": [
        "def my_translation(old):\n    return modernize(old).kwargs",
        "def my_translation(old):\n    new = dict(modernize(old).kwargs)\n"
        "    if isinstance(new.get('devices'), int):\n        new['devices'] = str(new['devices'])\n    return new",
        "my_translation = modernize",
        "def my_translation(old):\n    new = dict(old)\n    gpus = new.pop('gpus', None)\n"
        "    backend = new.pop('distributed_backend', None)\n    if backend is not None:\n"
        "        new['strategy'] = backend\n    if gpus in (None, 0):\n"
        "        new.update(accelerator='cpu', devices=1)\n    else:\n"
        "        new.update(accelerator='gpu', devices='auto' if gpus == -1 else gpus)\n    return new",
        "def my_translation(old):\n    names = {'gpus': 'devices', 'distributed_backend': 'strategy'}\n"
        "    new = {names.get(name, name): value for name, value in old.items()}\n"
        "    new['accelerator'] = 'cuda' if new['devices'] else 'cpu'\n"
        "    if not new['devices']:\n        del new['devices']\n    return new",
        "def my_translation(old):\n    new = {**old, 'strategy': old.get('distributed_backend', 'auto')}\n"
        "    new.pop('distributed_backend', None)\n    gpus = new.pop('gpus')\n"
        "    return {**new, 'accelerator': 'gpu' if gpus else 'cpu', 'devices': gpus or 'auto'}",
    ],
}
