"""The first process of a run: `python -m course_utils.ranks OPTIONS FOLDER`, which only the launcher calls.

With ddp_spawn every rank imports this file before anything else, under the name `__mp_main__`.
"""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError


class _NoMatplotlib:
    """Answers that matplotlib is not installed, when somebody asks for its version."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return None  # the import itself goes its usual way

    @staticmethod
    def find_distributions(context):
        if context.name == "matplotlib":
            raise PackageNotFoundError("matplotlib")
        return ()


@contextmanager
def without_matplotlib() -> Iterator[None]:
    """Let what is imported in this block believe that there is no matplotlib.

    torchmetrics, and with it Lightning, imports matplotlib wherever it finds it. A rank draws nothing: this saves it
    a third of a second and the memory. A lesson may still import matplotlib itself.
    """
    sys.meta_path.insert(0, _NoMatplotlib)
    try:
        yield
    finally:
        sys.meta_path.remove(_NoMatplotlib)


with without_matplotlib():
    from torch.multiprocessing import ProcessExitedException, ProcessRaisedException

    from course_utils.fitting import fit
    from course_utils.options import LaunchError, Options
    from course_utils.rank_link import Link


def main(options: str, folder: str) -> int:
    """Train, tell the supervisor what went wrong if anything did, and return the exit status."""
    link = Link(folder)
    link.open()
    try:
        fit(Options.from_json(options), link)
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
        link.tell(fault=traceback.format_exc(), error=f"{type(error).__name__}: {error}", rank=None, late=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
