"""Why an accelerator is missing or unusable, and the fix: `python -m course_utils.doctor`.

It reads files and variables first, then tries a kernel on every device in child processes with a time limit, so
that nothing here can hang or die with a driver. It starts without torch, since torch may be what is broken.
"""

from course_utils.doctor.examine import diagnose
from course_utils.doctor.report import Diagnosis

__all__ = ["Diagnosis", "diagnose"]
