"""Time: from what was counted to seconds, and how far that may be off."""
