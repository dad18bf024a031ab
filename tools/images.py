"""Say whether Colab's images still hold what `make test-matrix` takes them to hold: `python tools/images.py`.

Colab publishes what `pip freeze` says in each of its images. A scheduled workflow runs this, and opens an issue with
what it prints when a version has moved: then the sets in tests/matrix/run.py are to be changed, and run.
"""

import re
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from matrix.run import SETS

FREEZES = "https://raw.githubusercontent.com/googlecolab/backend-info/main/"
IMAGES = {"hosted": "pip-freeze.gpu.txt", "hosted-tpu": "pip-freeze.tpu.txt"}


def versions(text: str) -> dict[str, str]:
    """Return what a list of `name==version`, or of `name @ address of a wheel`, holds, without the build's tag."""
    entries = "\n".join(re.sub(" @ ", "@", text).split())
    pairs = re.findall(r"^([\w.-]+)(?:==|@\S+/[\w.]+-)(\d[\w.]*)", entries, re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pairs}


def moved(packages: str, freeze: str) -> list[str]:
    """Return a line for each package of a set that the image has in another version, or not at all."""
    there = versions(freeze)
    return [
        f"- {name}: {version} in our set, {there.get(name, 'absent')} in the image"
        for name, version in versions(packages).items()
        if there.get(name) != version
    ]


def main() -> None:
    """Compare each image, and print a report in Markdown if something moved, else nothing."""
    for name, file in IMAGES.items():
        with urllib.request.urlopen(FREEZES + file, timeout=30) as reply:
            found = moved(SETS[name][1], reply.read(4_000_000).decode())
        if found:
            print(f"`{name}` ({FREEZES}{file}):\n", *found, "", sep="\n")


if __name__ == "__main__":
    main()
