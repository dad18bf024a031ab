"""What lesson 0 alone needs: who initialised CUDA, and machines that are not this one."""

from course_utils.doctor.cases import other_machines
from course_utils.lessons.progress import progress
from course_utils.lessons.start.cuda_watch import CudaWatch, is_cuda_initialised

__all__ = ["CudaWatch", "is_cuda_initialised", "other_machines", "progress"]
