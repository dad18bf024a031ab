"""Lesson parts: start."""
