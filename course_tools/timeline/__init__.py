"""What host and device did, and when, and what holds a training loop back."""

from typing import TYPE_CHECKING

from course_utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from course_tools.timeline.bottleneck import bottleneck_of as bottleneck_of
    from course_tools.timeline.bottleneck import find_bottleneck as find_bottleneck
    from course_tools.timeline.timeline import Timeline as Timeline

_HOMES = {
    "Timeline": "timeline",
    "find_bottleneck": "bottleneck",
    "bottleneck_of": "bottleneck",
}

__all__ = [*_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
