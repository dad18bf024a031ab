"""Lesson 8, Which device should I rent?: its pictures and its exercises."""
