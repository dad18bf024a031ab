"""What host and device did, and when, and what holds a training loop back."""

from course_utils.lazy_names import lazy_names

_HOMES = {
    "Timeline": "timeline",
    "record_timeline": "timeline",
    "find_bottleneck": "bottleneck",
    "bottleneck_of": "bottleneck",
}

__all__ = [*_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
