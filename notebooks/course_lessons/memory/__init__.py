"""Lesson 9, Does it fit?: its measurements, its pictures and its exercises."""
