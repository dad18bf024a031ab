"""Files that are replaced as a whole, or not at all."""

import os
import sys

import pytest

from course_utils.atomic_write import (
    file_identity,
    open_atomically,
    refuse_foreign,
    write_atomically,
)

posix = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and limits of POSIX")


@pytest.fixture
def full_disk():
    """Let no file of this process grow beyond 4,096 bytes, as a full disk would."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_text_and_bytes_are_written(tmp_path):
    path = tmp_path / "żółw.txt"
    write_atomically(path, "zwölf\r\n")
    assert path.read_bytes() == "zwölf\r\n".encode()
    write_atomically(path, b"\xff")
    assert path.read_bytes() == b"\xff"
    assert list(tmp_path.iterdir()) == [path]


def test_the_content_is_on_the_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    done, sync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda number: done.append(os.fstat(number).st_size) or sync(number)
    )
    monkeypatch.setattr(os, "replace", lambda *paths: done.append("replace") or replace(*paths))
    write_atomically(tmp_path / "results.json", b"new")
    assert done == [len(b"new"), "replace"]


def test_a_file_knows_that_it_was_written_again_though_nothing_changed(tmp_path):
    path = tmp_path / "results.json"
    assert file_identity(path) is None
    write_atomically(path, b"same")
    before = file_identity(path)
    assert file_identity(path) == before
    write_atomically(path, b"same")
    os.utime(path, ns=(before[1], before[1]))  # as where the clock was set back
    assert file_identity(path) != before


@posix
def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(tmp_path, full_disk):
    path = tmp_path / "results.json"
    path.write_text("old")
    with pytest.raises(OSError, match="File too large"):
        write_atomically(path, b"n" * 40_112)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "results.json"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), open_atomically(path) as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_another_process_may_write_the_file_meanwhile(tmp_path, monkeypatch):
    path, theirs = tmp_path / "results.json", tmp_path / "results.json.part"
    theirs.write_text("of the reader")
    with open_atomically(path) as file:
        file.write(b"first, ")
        file.flush()
        with monkeypatch.context() as other:
            other.setattr(os, "getpid", lambda: 4)
            write_atomically(path, b"second")
        assert path.read_bytes() == b"second"
        file.write(b"but last")
    assert path.read_bytes() == b"first, but last"
    assert theirs.read_text() == "of the reader" and len(list(tmp_path.iterdir())) == 2


@posix
def test_a_link_stays_a_link_and_a_file_keeps_its_mode(tmp_path):
    path, link = tmp_path / "script.py", tmp_path / "link.py"
    path.write_text("old")
    path.chmod(0o750)
    link.symlink_to(path)
    write_atomically(link, "new")
    assert link.is_symlink() and path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o750


@posix
def test_a_pipe_is_written_and_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(path, "to the reader")
    assert os.read(reader, 100) == b"to the reader"
    os.close(reader)
    assert path.is_fifo()


def test_a_file_of_somebody_else_is_refused_and_an_empty_one_of_nobody_is_not(tmp_path):
    path = tmp_path / "page.html"
    refuse_foreign(path, "mark")  # there is none
    path.touch()
    refuse_foreign(path, "mark")
    path.write_text("with the mark of ours")
    refuse_foreign(path, "mark")
    path.write_bytes(b"\xff a thesis")
    with pytest.raises(FileExistsError, match="something else"):
        refuse_foreign(path, "mark")
