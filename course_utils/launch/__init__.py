"""Train in several processes outside the notebook: `python -m course_utils.launch --help`."""
