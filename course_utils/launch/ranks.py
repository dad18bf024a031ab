"""The first process of a run, which only the launcher starts: `python -m course_utils.launch.ranks ...`.

With ddp_spawn every rank imports this file before anything else, under the name `__mp_main__`.
"""

import json
import sys

from torch.multiprocessing import ProcessExitedException, ProcessRaisedException

from course_utils.launch.fitting import fit
from course_utils.launch.link import Link
from course_utils.launch.messages import LaunchError, short_traceback
from course_utils.launch.options import Options


def main(options: str, arguments: str, folder: str) -> int:
    """Train, tell the supervisor what went wrong if anything did, and return the exit status."""
    link = Link(folder)
    link.open()
    try:
        fit(Options(**json.loads(options)), json.loads(arguments), link)
    except LaunchError as error:
        link.send(refusal=str(error))
    except ProcessExitedException as error:  # a spawned rank that ended without raising anything
        link.send(died=error.error_index, status=error.exit_code)
    except ProcessRaisedException as error:  # the rank has reported it, unless it failed before it was connected
        text = str(error).strip()
        link.send(fault=text, error=text.splitlines()[-1], rank=error.error_index, indirect=True)
    except Exception as error:
        link.send(fault=short_traceback(error), error=f"{type(error).__name__}: {error}", rank=None, indirect=True)
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
