import hashlib
import http.server
import socket
import threading
import time
from contextlib import contextmanager

import pytest

from course_utils.data.download import Unreachable, check_file, download

CONTENT = bytes(range(256)) * 10_000  # 2.56 MB: several pieces
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@contextmanager
def server(status=200, content=CONTENT, promised=None, pause_s=0.0):
    """Serve one file over real HTTP, or less of it than was promised, or an error."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.send_header("Content-Length", str(promised or len(content)))
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()
            time.sleep(pause_s)

        def log_message(self, *arguments):
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}/file"
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new folder" / "file.bin"


def assert_nothing_is_left(path):
    assert not path.parent.exists()


def test_a_whole_and_right_file_is_kept(path):
    with server() as url:
        download(url, path, sha256=SHA256)
    assert path.read_bytes() == CONTENT and [file.name for file in path.parent.iterdir()] == ["file.bin"]


def test_a_file_that_was_there_is_replaced_only_by_a_right_one(path):
    path.parent.mkdir()
    path.write_bytes(b"old")
    with server(content=b"wrong") as url, pytest.raises(ValueError, match="not the file that was expected"):
        download(url, path, sha256=SHA256)
    assert path.read_bytes() == b"old" and len(list(path.parent.iterdir())) == 1
    with server() as url:
        download(url, path, sha256=SHA256)
    assert path.read_bytes() == CONTENT


def test_a_wrong_file_is_refused_with_both_checksums(path):
    with server(content=b"<html>Please log in</html>") as url, pytest.raises(ValueError) as error:
        download(url, path, sha256=SHA256)
    found = hashlib.sha256(b"<html>Please log in</html>").hexdigest()
    for part in ("26 bytes from http://127.0.0.1", found[:12], SHA256[:12], "load_images(download=False)"):
        assert part in str(error.value)
    assert_nothing_is_left(path)


def test_a_torn_download_says_how_much_came(path):
    with server(content=CONTENT[:1_000_000], promised=len(CONTENT)) as url, pytest.raises(ValueError) as error:
        download(url, path, sha256=SHA256)
    assert "broke off after 1,000,000 of 2,560,000 bytes" in str(error.value)
    assert_nothing_is_left(path)


def test_a_download_that_stops_in_the_middle_is_given_up(path):
    with (
        server(content=CONTENT[:1_000_000], promised=len(CONTENT), pause_s=2) as url,
        pytest.raises(ValueError, match=r"broke off after [\d,]+ of 2,560,000 bytes: .*timed out"),
    ):
        download(url, path, sha256=SHA256, patience_s=0.3)
    assert_nothing_is_left(path)


@pytest.mark.parametrize("status", [404, 503])
def test_a_refusal_means_unreachable(path, status):
    with server(status=status, content=b"no") as url, pytest.raises(Unreachable, match=r"Not Found|Unavailable"):
        download(url, path, sha256=SHA256)
    assert_nothing_is_left(path)


def test_no_server_means_unreachable(path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Unreachable, match="refused"):
        download(f"http://127.0.0.1:{port}/file", path, sha256=SHA256)
    assert_nothing_is_left(path)


def test_a_server_that_accepts_and_says_nothing_is_given_up(path):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/file"
        with pytest.raises(Unreachable, match=r"no answer within 0\.2 s|timed out"):
            download(url, path, sha256=SHA256, patience_s=0.2)
    assert_nothing_is_left(path)


def test_a_name_server_that_never_answers_does_not_hold_the_reader_up(path, monkeypatch):
    answered = threading.Event()

    def lookup(*arguments, **switches):  # the system's own look-up, which no socket's limit reaches
        answered.wait(10)
        raise OSError("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    with pytest.raises(Unreachable, match=r"no answer within 0\.2 s"):
        download("http://nowhere.invalid/file", path, sha256=SHA256, patience_s=0.2)
    answered.set()
    assert_nothing_is_left(path)


def test_a_place_that_cannot_be_written_to_means_unreachable(tmp_path):
    (tmp_path / "file").write_text("a file where a folder should be")
    with server() as url, pytest.raises(Unreachable, match="nothing can be written to"):
        download(url, tmp_path / "file" / "file.bin", sha256=SHA256)


def test_an_interrupt_leaves_nothing_behind(path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("course_utils.data.download.check_file", interrupted)
    with server() as url, pytest.raises(KeyboardInterrupt):
        download(url, path, sha256=SHA256)
    assert_nothing_is_left(path)


def test_a_right_file_passes_the_check(tmp_path):
    (tmp_path / "file").write_bytes(CONTENT)
    check_file(tmp_path / "file", SHA256, "file")
