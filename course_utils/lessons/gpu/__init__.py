"""Lesson parts: gpu."""
