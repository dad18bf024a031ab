"""Draw snippets of old code from git repositories, for a person to judge what `explain` makes of them.

    python tests/benchmarks/draw_old_code.py REPOSITORIES OUT --seed 3 --count 110 [--skip old.json]

REPOSITORIES is a folder of repositories, with or without a work tree, named OWNER+NAME. OUT gets a text for each
snippet, what `explain` says of it beside it, and `facts.json` with where it is from. How to judge, and what was found,
is in `tests/old_guides/real_code.json`. The snippets are other people's code: they stay out of this repository.
"""

import argparse
import json
import random
import re
import subprocess
from pathlib import Path

from course_utils.old_guides import Unreadable, explain

BEFORE = "2023-02-01"  # Lightning 2.0 came in March 2023
AROUND, PER_REPOSITORY = 12, 4
OLD = re.compile(
    r"gpus ?=|tpu_cores|distributed_backend|_epoch_end\(|progress_bar_refresh_rate|weights_summary|torch\.cuda\.amp"
    r"|resume_from_checkpoint|xrt_world_size|xmp\.spawn|checkpoint_callback ?="
    r"|pytorch_lightning\.(metrics|logging|core)"
    r"|volatile=True|async=True|torch\.distributed\.launch|--gpus|\.next\(\)|auto_lr_find|add_argparse_args"
)


def git(folder: Path, *arguments: str) -> str:
    place = folder / ".git" if (folder / ".git").is_dir() else folder
    command = ["git", f"--git-dir={place}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout


def files_with_old_code(folder: Path) -> list[tuple[str, str]]:
    """Return commit and path of the files with an old marker, in the last and the middle commit before `BEFORE`."""
    commits = git(folder, "rev-list", f"--before={BEFORE}", "--all").split()
    found = []
    for commit in dict.fromkeys([*commits[:1], *commits[len(commits) // 2 :][:1]]):
        names = git(folder, "grep", "-lE", OLD.pattern, commit).splitlines()
        paths = [name.partition(":")[2] for name in names]
        found += [(commit, path) for path in paths if path.endswith((".py", ".ipynb", ".md", ".rst", ".sh"))]
    return found


def snippet(text: str, path: str, chance: random.Random) -> tuple[str, list[int]] | None:
    """Return the lines around one marker, of a notebook's code, with the first and the last line."""
    if path.endswith(".ipynb"):
        try:
            cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        except (ValueError, LookupError, TypeError):
            return None
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    lines = text.split("\n")
    marked = [number for number, line in enumerate(lines) if OLD.search(line) and len(line) < 300]
    if not marked:
        return None
    at = chance.choice(marked)
    first, last = max(0, at - AROUND + 1), min(len(lines), at + AROUND + 1)
    return "\n".join(lines[first:last]), [first + 1, last]


def draw(folders: list[Path], chance: random.Random, count: int) -> list[dict]:
    """Draw one snippet after the other from the repositories in turn."""
    pools = {}
    for folder in folders:
        pools[folder] = files_with_old_code(folder)
        chance.shuffle(pools[folder])
    taken = dict.fromkeys(folders, 0)
    drawn: dict[str, dict] = {}
    while len(drawn) < count and any(pools.values()):
        for folder in [each for each in folders if pools[each]]:
            commit, path = pools[folder].pop()
            found = snippet(git(folder, "show", f"{commit}:{path}"), path, chance)
            if found and found[0] not in drawn and taken[folder] < PER_REPOSITORY and len(drawn) < count:
                owner, _, name = (
                    folder.parent.name.partition("+") if folder.name == "repo" else folder.name.partition("+")
                )
                drawn[found[0]] = {"source": [f"{owner}/{name}", commit, path, found[1]]}
                taken[folder] += 1
    return [{"text": text, **fact} for text, fact in drawn.items()]


def said(text: str) -> str:
    """Return what `explain` says of a snippet, with the lines that it adds."""
    try:
        found = explain(text)
    except Unreadable as refusal:
        return f"REFUSED: {refusal}"
    added = [line for line in found.diff().splitlines() if line[:1] == "+" and line[:3] != "+++"]
    return "\n".join([repr(found), *added])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=110)
    parser.add_argument("--only", type=Path, help="a JSON list of the repositories to draw from, as OWNER/NAME")
    options = parser.parse_args()
    folders = sorted(
        each / "repo" if (each / "repo").is_dir() else each for each in options.repositories.iterdir() if each.is_dir()
    )
    if options.only:
        names = {name.replace("/", "+") for name in json.loads(options.only.read_text(encoding="utf-8"))}
        folders = [each for each in folders if names & {each.name, each.parent.name}]
    chance = random.Random(options.seed)
    chance.shuffle(folders)
    options.out.mkdir(parents=True, exist_ok=True)
    drawn = draw(folders, chance, options.count)
    for number, each in enumerate(drawn):
        text = each.pop("text")
        (options.out / f"{number:03}.txt").write_text(text, encoding="utf-8")
        (options.out / f"{number:03}.said").write_text(said(text), encoding="utf-8")
    (options.out / "facts.json").write_text(json.dumps(drawn, indent=1), encoding="utf-8")
    print(f"{len(drawn)} snippets of {len({each['source'][0] for each in drawn})} repositories")


if __name__ == "__main__":
    main()
