"""Write a file that is whole at every moment: it holds the old content or the new one."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: str | Path, data: str | bytes) -> None:
    """Write `data`, text as UTF-8, in place of the file at `path`.

    A write that fails or is interrupted, such as on a full disk, leaves the file as it was and
    nothing beside it. A link stays a link, and a file keeps its mode. Of several processes that
    write the file at once, the last one to end has its content there.

    Raises:
        OSError: the file cannot be written.
    """
    with open_atomically(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


@contextmanager
def open_atomically(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file as `write_atomically` does, for content that is written piece by piece.

    It takes its place when the block ends, unless the block raises an error.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # /dev/stdout or a pipe must not be replaced
        with target.open("wb") as file:
            yield file
        return
    # Of this process alone; one that is killed leaves it.
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, part)
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def refuse_foreign(path: Path, mark: str) -> None:
    """Raise FileExistsError if a file at `path` does not hold `mark`, as each of ours does."""
    if path.is_file() and (there := path.read_bytes()) and mark.encode() not in there:
        raise FileExistsError(f"{path} holds something else, which would be lost")


def file_identity(path: Path) -> tuple[int, int] | None:
    """Return what differs after every `write_atomically`, or None where there is no file."""
    if not path.exists():
        return None
    facts = path.stat()
    return facts.st_ino, facts.st_mtime_ns
