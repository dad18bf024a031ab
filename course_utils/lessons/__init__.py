"""What belongs to one lesson: its exercises, pictures and plumbing."""
