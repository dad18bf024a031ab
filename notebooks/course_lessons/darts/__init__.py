"""Lesson 10, Forecasting with Darts: its data, its pictures and its exercises."""
