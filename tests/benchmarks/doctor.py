"""How long the doctor takes on this machine (limit on a CPU machine: 15 s): python doctor.py."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

LIMIT_S = 15.0


def main() -> int:
    """Measure, print and return 1 when the median is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", help="write the seconds of every run to this file")
    asked = parser.parse_args()
    seconds = []
    for _ in range(asked.runs):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "course_utils.doctor"], stdout=subprocess.DEVNULL, check=False
        )
        seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    print(f"doctor: median {median:.1f} s, slowest {max(seconds):.1f} s of {len(seconds)} runs")
    print(
        f"limit {LIMIT_S:.0f} s: {median / LIMIT_S:.0%} of it; load average {os.getloadavg()[0]:.1f}"
    )
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump({"limit_s": LIMIT_S, "seconds": seconds}, file, indent=1)
    return int(median > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
