"""Figures that others measured and published, with which lessons and tests compare the estimate."""
