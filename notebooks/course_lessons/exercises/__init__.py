"""The frame of the exercises: read an answer, name the mistake, give hints, show a solution."""
