"""Lesson parts: tpu."""
