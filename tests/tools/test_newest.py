"""What `make newest` says when it could not try the lessons."""

import pytest

from tools import newest


def test_lessons_that_could_not_be_written_have_not_passed(tmp_path, monkeypatch):
    monkeypatch.setattr(newest, "python", lambda *words, **options: 1)
    with pytest.raises(SystemExit, match="none was executed"):
        newest.failed_lessons(tmp_path)
