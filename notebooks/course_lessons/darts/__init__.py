"""Lesson 10, Forecasting with Darts: its forecasters, its picture and its exercises."""
