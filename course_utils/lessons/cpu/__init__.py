"""Lesson parts: cpu."""
