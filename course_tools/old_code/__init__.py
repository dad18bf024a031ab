"""Old code: which arguments and calls are outdated, and what to write today."""
