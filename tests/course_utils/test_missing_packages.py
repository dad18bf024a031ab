"""Tools in a Python that has torch and none of the lessons' packages."""

import subprocess
from importlib.metadata import PackageNotFoundError
from unittest.mock import Mock

import pytest
from start_python import python

from course_utils import missing_packages

ABSENT = ("matplotlib", "PIL", "parso", "lightning", "pytorch_lightning", "pandas")


def run_without(code: str) -> subprocess.CompletedProcess:
    """Run code in a Python that finds none of the packages `ABSENT`."""
    hidden = f"import sys; sys.modules.update(dict.fromkeys({ABSENT}))\n"
    return python("-c", hidden + code, fresh=True)


@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "package"),
    [
        ("import course_tools.figures", "matplotlib"),
        ("from course_tools.compare.charts import plot_rates", "matplotlib"),
        ("import course_utils.lightning", "pytorch_lightning"),
        ("import course_tools.old_code.explanation", "parso"),
    ],
)
def test_what_a_tool_lacks_is_named_with_the_command_that_installs_it(code, package):
    last = run_without(code).stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: This needs {package}, which is not installed")
    assert 'pip install "' in last and "accelerator-course" not in last


@pytest.mark.parametrize(
    ("module", "required", "package"),
    [
        ("parso", ["torch>=2.6", 'parso>=0.8.3; extra == "all"'], "parso>=0.8.3"),
        ("parso", ["torch>=2.6"], "parso"),
        ("parso", None, "parso"),
        ("parso", PackageNotFoundError("accelerator-course"), "parso"),
        ("torch", ["torch-xla==2.9.0", "torch>=2.6"], "torch>=2.6"),
        (
            "pytorch_lightning",
            ["lightning>=2.6", "PyTorch-Lightning>=2.6"],
            "PyTorch-Lightning>=2.6",
        ),
        ("PIL", ["pillow-simd", "pillow>=10"], "pillow>=10"),
        ("accelerator_course", ["accelerator-course[darts]==1"], "accelerator-course[darts]==1"),
    ],
)
def test_the_command_asks_for_a_version_that_fits(monkeypatch, module, required, package):
    monkeypatch.setattr(missing_packages, "requires", Mock(side_effect=[required]))
    assert missing_packages.install_command(module) == f'pip install "{package}"'


@pytest.mark.process
def test_the_launcher_refuses_before_it_starts_a_process(tmp_path):
    code = (
        "import importlib.util; importlib.util.find_spec = lambda name: None\n"
        "from course_utils.launch.__main__ import main\n"
        f"sys.exit(main(['--training', 'mine.py:make', '--out', {str(tmp_path)!r}]))"
    )
    done = run_without(code)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("launch: Lightning is not installed: pip install")
