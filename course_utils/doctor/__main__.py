"""`python -m course_utils.doctor`."""

import sys

from course_utils.doctor import main

sys.exit(main())
