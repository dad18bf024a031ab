"""The first process of a run, which only the launcher starts: `python -m course_utils.launch.ranks ...`.

With ddp_spawn every rank imports this file before anything else, under the name `__mp_main__`.
"""

import json
import sys

from course_utils.launch.hiding import without

with without("matplotlib"):  # a rank draws nothing
    from torch.multiprocessing import ProcessExitedException, ProcessRaisedException

    from course_utils.launch.fitting import fit
    from course_utils.launch.options import LaunchError, Options
    from course_utils.launch.rank_link import Link
    from course_utils.launch.tracebacks import short_traceback


def main(options: str, arguments: str, folder: str) -> int:
    """Train, tell the supervisor what went wrong if anything did, and return the exit status."""
    link = Link(folder)
    link.open()
    try:
        fit(Options.from_json(options), json.loads(arguments), link)
    except LaunchError as error:
        link.tell(refusal=str(error))
        return 2
    except ProcessExitedException as error:  # a spawned rank that ended without raising anything
        link.tell(killed=error.error_index, status=error.exit_code)
        return 1
    except ProcessRaisedException as error:  # the rank has told it, unless it failed before it had a line
        link.tell(
            fault=str(error).strip(), error=str(error).strip().splitlines()[-1], rank=error.error_index, late=True
        )
        return 1
    except Exception as error:
        link.tell(fault=short_traceback(error), error=f"{type(error).__name__}: {error}", rank=None, late=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
