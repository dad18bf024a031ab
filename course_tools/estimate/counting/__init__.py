"""Counting: operations, bytes and kernels of a step, without its data."""
