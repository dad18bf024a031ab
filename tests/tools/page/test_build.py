"""The page as one file, looked at as text."""

import base64
import hashlib
import re
import runpy
import sys

import pytest
from stand_ins import REPOSITORY

from tools.page import build


@pytest.fixture(scope="module")
def page():
    return build.page('https://example.org/?a="b"&c')


def test_its_policy_allows_its_own_script_and_style_and_nothing_else(page):
    (policy,) = re.findall(r'Content-Security-Policy"\s+content="([^"]*)"', page)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    parts = {"script-src": r'<script type="module">(.*?)</script>', "style-src": "<style>(.*?)</s"}
    for kind, part in parts.items():
        text = re.findall(part, page, re.DOTALL)[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules.pop(kind) == f"'sha256-{digest}'"
    assert rules == dict.fromkeys(("default-src", "base-uri", "form-action"), "'none'")


def test_no_text_of_its_data_or_its_address_ends_a_tag(page):
    (data,) = re.findall(
        r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL
    )
    assert "<" not in data
    assert 'href="https://example.org/?a=&quot;b&quot;&amp;c/08_worth_it.html"' in page
    assert "(08_worth_it.ipynb)" in build.page() and "<a href=" not in build.page()[-600:]


def test_its_modules_are_one_script_without_imports_exports_and_comments():
    files = {path.stem: path for path in (REPOSITORY / "tools" / "page").glob("*.js")}
    assert {*build.MODULES, "eslint.config"} == files.keys()
    texts = "".join(files[name].read_text(encoding="utf-8") for name in build.MODULES)
    script = build.joined_modules()
    functions = re.findall(r"^export (?:async )?function (\w+)", texts, re.MULTILINE)
    assert len(functions) > 50 and all(f"function {name}(" in script for name in functions)
    assert not re.search(r"^(import|export) |^\s*(//|/\*)|^ ", script, re.MULTILINE)


def test_a_file_of_somebody_else_stays_and_the_size_of_a_page_is_said(
    tmp_path, monkeypatch, capsys
):
    target = tmp_path / "page.html"
    monkeypatch.setattr(sys, "argv", ["build.py", str(target)])
    for _ in range(2):  # our own is replaced
        runpy.run_path(build.__file__, run_name="__main__")
        size_kb = target.stat().st_size / 1000
        assert capsys.readouterr().out.endswith(f"{target} ({size_kb:.0f} kB)\n")
    target.write_text("my work")
    with pytest.raises(SystemExit):
        runpy.run_path(build.__file__, run_name="__main__")
    assert target.read_text() == "my work" and "would be lost" in capsys.readouterr().err
