"""Lesson parts: device_speed."""
