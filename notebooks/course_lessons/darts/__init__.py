"""Lesson 9, Forecasting with Darts: its forecasters, its picture and its exercises."""
