"""`python -m course_utils.launch`."""

from course_utils.launch import main

raise SystemExit(main())
