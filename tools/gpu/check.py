"""Check a recording that somebody sent: `python tools/gpu/check.py FILE`.

Nothing in the file is executed or believed: it is read as data of the course's one format, and the
rates of products and additions are held against the data sheet of the chip that it names.
"""

import argparse
import re
import sys
from pathlib import Path

from course_utils.compare.results import Result
from course_utils.estimate.chips import Chip, all_chips

# words that make another chip of a name
OTHERS = {"ti", "super", "d", "laptop", "mobile", "nvl", "mig"}
SLACK = 1.1  # boost clocks and a bandwidth in decimal units


def chip_of(device: str) -> Chip | None:
    """Return the chip whose name's words are among those of a device, the longest such name; None
    when there is none.

    "NVIDIA H100 80GB HBM3" is an "H100", but an "RTX 4090 Laptop GPU" is no "RTX 4090".
    """
    said = words(device)
    known = [(words(name), chip) for chip in all_chips() for name in (chip.name, *chip.also)]
    fits = [(name, chip) for name, chip in known if name <= said and not OTHERS & (said - name)]
    return max(fits, key=lambda fit: len(fit[0]))[1] if fits else None


def words(name: str) -> set[str]:
    """Return the words and numbers in a name."""
    return set(re.findall("[a-z0-9]+", name.casefold()))


def implausible(result: Result) -> list[str]:
    """Return what no such device can have done, one sentence for each figure."""
    found = [] if result.measurements else ["There is no measurement in it."]
    for one in result.measurements:
        chip = chip_of(one.device)
        if chip is None:
            found.append(f"{one.device!r} is not a chip that the course knows.")
            continue
        if one.unit == "FLOP" and one.precision in chip.peak_tflop_per_s:
            limit, unit = chip.peak_tflop_per_s[one.precision] * 1e12, "FLOP/s"
        elif one.unit == "elements":
            # bytes: two numbers are read, and one is written
            moved = 12 if one.precision == "fp32" else 6
            limit, unit = chip.bandwidth_gb_per_s * 1e9 / moved, "elements/s"
        else:
            continue
        # What fits into a cache goes faster than memory, and small products are no claim about the
        # peak.
        if one.rate > SLACK * limit and (one.unit == "FLOP" or one.size >= 10**8):
            found.append(
                f"{one.workload}, {one.precision}, {one.size:,}: {one.rate:.3g} {unit}, above {limit:.3g}."
            )
    return list(dict.fromkeys(found))


def main(words: list[str] | None = None) -> int:
    """Print what is wrong with the file; return 0 when nothing is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    asked = parser.parse_args(words)
    try:
        result = Result.load(asked.file)
    except (OSError, ValueError) as error:
        print(error)
        return 1
    wrong = implausible(result)
    print("\n".join(wrong) or f"{asked.file.name}: {result!r}. Nothing in it is implausible.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
