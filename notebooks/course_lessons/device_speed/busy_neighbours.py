"""Other programs that keep the cores busy, for a lesson that shows what they do to a timing."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from course_utils.hardware.machine import usable_cores

# It ends with its standard input, and so with the process that started it, however that ends.
BUSY = """
import os, threading
threading.Thread(target=lambda: os._exit(len(os.read(0, 1)))).start()
while True: pass
"""


@contextmanager
def busy_neighbours() -> Iterator[None]:
    """Keep every core busy with another process until the block or this process ends."""
    command = [sys.executable, "-c", BUSY]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(usable_cores())]
    try:
        yield
    finally:
        for neighbour in started:
            neighbour.communicate()  # ends its input
