"""The start of `python -m course_tools.doctor`."""

import sys

from course_tools.doctor import shadows

shadows.leave_folder()  # before any import that a file of the working folder could answer

from course_tools.doctor.command import main  # noqa: E402

sys.exit(main())
