"""Timelines: what the host and the device did, and when."""
