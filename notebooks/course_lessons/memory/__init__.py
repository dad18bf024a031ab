"""Lesson 8, Does it fit?: its measurement, its pictures, its panel and its exercises."""
