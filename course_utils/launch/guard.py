"""The first process of a launch: it starts the training, and ends it when the launcher has ended.

The launcher holds the other end of this process's standard input, and never writes to it. The pipe
closes when the launcher ends, even if it was killed. This process imports neither torch nor
Lightning, so nothing can keep it from noticing.
"""

import os
import signal
import subprocess
import sys
import threading
import time


def main() -> int:
    """Run the training with this process's arguments and return its exit status."""
    # A handler, since a signal that is ignored here would also be ignored by the ranks.
    signal.signal(signal.SIGTERM, lambda *_: None)
    command = [sys.executable, "-m", "course_utils.launch.train", *sys.argv[1:]]
    training = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    threading.Thread(target=end_with_the_launcher, daemon=True).start()
    status = training.wait()
    if status < 0:  # it was killed, and could not end its ranks
        end_group()
        return 128 - status
    return status


def end_with_the_launcher() -> None:
    """Wait until the launcher has ended, then end every process of this group."""
    sys.stdin.read()
    end_group()
    os.killpg(0, signal.SIGKILL)


def end_group() -> None:
    """Ask every process of this group to end, and give it a second.

    multiprocessing's resource tracker ignores the signal: it uses the second to remove what the
    others have left in shared memory.
    """
    os.killpg(0, signal.SIGTERM)
    time.sleep(1)


if __name__ == "__main__":
    sys.exit(main())
