"""`python -m course_utils.launch`."""

from course_utils.launch.cli import main

raise SystemExit(main())
