"""What lesson 3 needs beside the helper package: its pictures, torchrun, the cores to share out, and the estimate."""

from course_utils.devices import usable_cores as usable_cores
from course_utils.estimate.counting import count_work as count_work
from course_utils.estimate.parallel import scaling as scaling
from course_utils.lessons.multi_gpu.pictures import draw_all_reduce as draw_all_reduce
from course_utils.lessons.multi_gpu.pictures import draw_gains as draw_gains
from course_utils.lessons.multi_gpu.scripts import OUT as OUT
from course_utils.lessons.multi_gpu.scripts import QUIET as QUIET
from course_utils.lessons.multi_gpu.scripts import set_up as set_up
from course_utils.lessons.multi_gpu.scripts import torchrun as torchrun
from course_utils.lessons.progress import progress as progress
from course_utils.timeline import Timeline as Timeline
