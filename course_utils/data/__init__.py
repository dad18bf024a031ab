"""Data and models of the lessons: a short series, images, and the two networks that learn them."""

from course_utils.data.images import Images, load_images, offline_images
from course_utils.data.models import AirRNN, ImageCNN, ResNet50, count_parameters
from course_utils.data.series import (
    AIR_PASSENGERS,
    Scale,
    ShuffledBatches,
    air_passengers,
    make_windows,
)

__all__ = [
    "AIR_PASSENGERS",
    "AirRNN",
    "ImageCNN",
    "Images",
    "ResNet50",
    "Scale",
    "ShuffledBatches",
    "air_passengers",
]
__all__ += ["count_parameters", "load_images", "make_windows", "offline_images"]
