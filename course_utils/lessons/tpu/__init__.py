"""What lesson 4 alone needs: its pictures, its exercises, its counting, and training on a mesh of devices (`spmd`)."""

from course_utils.lessons.needs import what_cells_need as what_cells_need
from course_utils.lessons.progress import progress as progress
from course_utils.lessons.tpu.counting import compare as compare
from course_utils.lessons.tpu.counting import counted as counted
from course_utils.lessons.tpu.pictures import calls_until_xla_pays as calls_until_xla_pays
from course_utils.lessons.tpu.pictures import draw_cache as draw_cache
from course_utils.lessons.tpu.pictures import draw_graph as draw_graph
from course_utils.lessons.tpu.pictures import draw_payoff as draw_payoff
from course_utils.lessons.tpu.pictures import draw_shards as draw_shards
from course_utils.timeline import Timeline as Timeline
