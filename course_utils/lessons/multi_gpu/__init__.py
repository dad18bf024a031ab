"""Lesson parts: multi_gpu."""
