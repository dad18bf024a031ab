import io

from course_lessons.gpu import pictures
from PIL import Image

from course_tools.estimate.chips import find_chip


def test_the_picture_is_opaque_on_white_and_of_lecture_size(drawn):
    image = Image.open(io.BytesIO(pictures.draw_memories().png)).convert("RGBA")
    assert image.size == (1280, 720)
    full = [box for box in drawn[0].patches if box.get_facecolor()[3]]
    assert len(full) == 4 + 40 + 2  # cores, multiprocessors, and a bus to each memory
    assert image.getextrema()[3] == (255, 255) and image.getpixel((2, 716)) == (255, 255, 255, 255)


def test_the_memory_of_the_picture_is_as_fast_as_the_data_sheet_says():
    assert find_chip("T4").bandwidth_gb_per_s == pictures.GPU_MEMORY_GB_PER_S
