"""Lesson 8, Does it fit?: its measurements, its pictures and its exercises."""
