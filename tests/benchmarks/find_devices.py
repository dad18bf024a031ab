"""How long find_devices() takes after torch is imported (limit: 50 ms), in new processes: python
find_devices.py.

The first call of a process counts, since that is the one that a lesson makes.
"""

import argparse
import json
import statistics
import subprocess
import sys

LIMIT_S = 0.05
CODE = """
import time, torch, course_utils
start = time.perf_counter(); course_utils.find_devices(); first = time.perf_counter() - start
start = time.perf_counter(); course_utils.find_devices(); print(first, time.perf_counter() - start)
"""


def main() -> int:
    """Measure, print and return 1 when the median of the first calls is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--json", help="write the seconds of every call to this file")
    asked = parser.parse_args()
    pairs = []
    for _ in range(asked.processes):
        said = subprocess.run(
            [sys.executable, "-c", CODE], capture_output=True, text=True, check=True
        ).stdout
        pairs.append([float(word) for word in said.split()])
    first, later = ([pair[which] for pair in pairs] for which in (0, 1))
    median = statistics.median(first)
    print(
        f"first call: median {median * 1e3:.1f} ms, slowest {max(first) * 1e3:.1f} ms "
        f"of {len(first)} processes"
    )
    print(f"second call: median {statistics.median(later) * 1e3:.1f} ms")
    print(f"limit {LIMIT_S * 1e3:.0f} ms: {median / LIMIT_S:.0%} of it")
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump({"limit_s": LIMIT_S, "first_s": first, "second_s": later}, file, indent=1)
    return int(median > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
