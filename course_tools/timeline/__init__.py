"""Timelines of the host and the device, and what limits a training loop."""
