"""Lesson 7, Which device should I rent?: its pictures and its exercises."""
