"""The picture that each lesson opens with. Its set-up cell draws it, above all other code.

The output of a cell shows wherever a notebook does; a picture attached to a text does not.
"""

from dataclasses import replace

from course_tools.figures import Picture
from course_utils.load_function import load_function

# By the lesson's name without its number: what draws the picture, and a sentence for readers who
# do not see it, if the picture's own words are longer than that.
OPENINGS = {
    "start_here": (
        "course_lessons.start.pictures:draw_published_times",
        "Bars: 50,000 photographs take half an hour on a laptop's CPU and 8 seconds on a new GPU.",
    ),
    "cpu": ("course_lessons.cpu.pictures:draw_own_batches", ""),
    "gpu": (
        "course_lessons.gpu.pictures:draw_memories",
        "A CPU and a GPU, each with its own memory, and between the memories a slow bus.",
    ),
    "multi_gpu": (
        "course_lessons.multi_gpu.pictures:draw_published_scaling",
        "Eight A100 GPUs train ResNet-50 6.7 times as fast as one in fp16, and 7.7 times in tf32.",
    ),
    "beyond_the_notebook": (
        "course_lessons.beyond_the_notebook.pictures:draw_starts",
        "Three ways to start a rank: fork copies this kernel, spawn and torchrun begin anew.",
    ),
    "tpu": ("course_lessons.tpu.opening:draw_own_steps", ""),
    "device_speed": (
        "course_lessons.device_speed.pictures:draw_published",
        "Images per second against batch: a CPU and a T4 are alike at 1, and 4 times apart at 256.",
    ),
    "waiting": (
        "course_lessons.recordings.pictures:draw_idle_gpu",
        "One training step on a V100: while the host loads the batch, the GPU has nothing to do.",
    ),
    "worth_it": (
        "course_lessons.worth_it.money:draw_imagenet",
        "Time against money for one training run on six devices, two of which are free.",
    ),
    "memory": (
        "course_lessons.memory.pictures:draw_resnet_step",
        "In the memory of one training step of ResNet-50, nearly all of the peak is activations.",
    ),
    "darts": (
        "course_lessons.darts.pictures:draw_published",
        "By default a GPU trains Darts' networks 0.78 to 10 times as fast as a CPU (published).",
    ),
}


def draw_opening(lesson: str) -> Picture | None:
    """Draw the picture of a lesson, or say why it cannot be drawn on this machine.

    Args:
        lesson: the name of its file without number and ending, such as "multi_gpu".
    """
    name, words = OPENINGS[lesson]
    drawn = load_function(name)()
    return replace(drawn, alt=words) if drawn and words else drawn
