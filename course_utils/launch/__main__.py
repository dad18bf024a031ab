"""`python -m course_utils.launch`."""

import sys

from course_utils.launch.cli import main

sys.exit(main())
