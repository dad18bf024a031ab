"""Answers to the exercises of lesson 3."""

CONTEXT = """
import torch

from course_lessons.multi_gpu import exercises as ex
from course_lessons.data.models import ResNet50
from course_tools.estimate.counting.count_work import count_work
from course_tools.estimate.time.parallel import scaling

layers = [torch.nn.Linear(4096, 4096) for _ in range(4)]
work = count_work(torch.nn.Sequential(*layers), torch.rand(8, 4096))
link = "PCIe 4.0 x16"
slow = scaling(work, "A100 80GB", link=link, counts=(1, 2))
little = count_work(torch.nn.Linear(10, 10), torch.rand(4, 10))
idle = scaling(little, "A100 80GB", link=link, counts=(1, 2))

shared = ex.BROKEN.replace("shuffle=True", "sampler=(sampler := DistributedSampler(data))")
exchanged = shared.replace("(network(inputs)", "(model(inputs)")
line = "    seen.append([])"
told = exchanged.replace(line, line + "\\n    sampler.set_epoch(epoch)")
"""

WRONG = {
    "repair": [
        ("my_script = ex.BROKEN", "This is the script as it was"),
        (
            "my_script = ex.BROKEN.replace('(network(inputs)', '(model(inputs)')",
            "Both ranks see the same samples",
        ),
        ("my_script = shared", "different weights"),
        ("my_script = exchanged", "Both epochs have the same samples"),
        (
            "my_script = told.replace('DistributedSampler(data)', "
            "'DistributedSampler(data, shuffle=False)')",
            "let the sampler shuffle",
        ),
        ("my_script = told.replace('lr=0.1)', 'lr=0.1')", "a rank failed: SyntaxError"),
        ("my_script = told.replace('seen', 'samples')", "keep the lines that fill them"),
        ("my_script = 3", "the text of the script"),
    ],
    "second_card": [
        ("my_plan = slow, 'second card'", "A larger batch"),
        ("my_plan = slow, 'two'", "Decide for"),
        ("my_plan = idle, 'second card'", "waits for launches"),
        ("my_plan = 1.9, 'second card'", "what `scaling` returned"),
        (
            "my_plan = scaling(work, 'A100 80GB', link=link, counts=(1, 4)), 'more work'",
            "`counts=(1, 2)`",
        ),
    ],
}

RIGHT = {
    "repair": [
        "my_script = told",
        "my_script = told.replace('network = torch.nn.Linear(1, 1)\\nmodel', 'model')"
        ".replace('(network)', '(torch.nn.Linear(1, 1))')",
    ],
    "second_card": [
        "my_plan = [slow, 'more work']",
        "my_plan = idle, 'more work'",
        "my_plan = scaling(work, 'A100 80GB', link=link), 'more work'",
    ],
}
