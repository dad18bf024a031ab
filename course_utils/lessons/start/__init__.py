"""What lesson 0 alone needs: its picture, who initialized CUDA, and machines that are not this one."""

from course_utils.lessons.progress import progress
from course_utils.lessons.start.cases import other_machines
from course_utils.lessons.start.cuda_watch import CudaWatch, is_cuda_initialized
from course_utils.lessons.start.pictures import draw_times

__all__ = ["CudaWatch", "draw_times", "is_cuda_initialized", "other_machines", "progress"]
