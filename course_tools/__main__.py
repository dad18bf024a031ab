"""List the commands of the course: `python -m course_tools`."""

from course_utils.__main__ import COMMANDS

if __name__ == "__main__":
    print(COMMANDS)
