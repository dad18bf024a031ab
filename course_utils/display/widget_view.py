"""The former place of `display_widget`, until compare/panel.py imports it from bars."""

from course_utils.display.bars import display_widget as display_widget
