"""Where the program is."""

import dataclasses
import functools
import os
from pathlib import Path

import torch

from course_tools.rehearsal.rehearse import rehearse


@dataclasses.dataclass
class Running:
    mean: torch.Tensor = dataclasses.field(
        default_factory=functools.partial(torch.ones, 256, device="cuda")
    )


def test_code_that_a_package_wrote_is_no_line_of_the_program():
    with rehearse("cuda") as rehearsal:
        held = Running()
        report = str(rehearsal.report)
    assert held.mean.nbytes == 1024 and "<string>" not in report
    source = Path(__file__).read_text(encoding="utf-8")
    line = source[: source.index("held = Running()")].count("\n") + 1
    assert f"test_lines.py:{line}: held = Running()" in report, report


def test_a_line_of_a_package_is_named_without_the_folders_of_this_machine(tmp_path, monkeypatch):
    package = tmp_path / "packages" / "package_of_theirs"
    package.mkdir(parents=True)
    code = 'import torch\n\n\ndef load():\n    return torch.ones(3, device="cuda")\n'
    (package / "data.py").write_text(code)
    monkeypatch.syspath_prepend(str(package.parent))
    import package_of_theirs.data

    with rehearse() as rehearsal:
        package_of_theirs.data.load()
    monkeypatch.chdir(tmp_path)
    below = os.path.join("packages", "package_of_theirs", "data.py")
    assert rehearsal.report.peak_by[0].where.startswith(f"{below}:5: return torch.ones(3")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert rehearsal.report.peak_by[0].where.startswith(
        os.path.join("package_of_theirs", "data.py:5: ")
    )
