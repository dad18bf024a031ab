import hashlib
import http.server
import io
import runpy
import tarfile
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pooch
import pytest
import torch
from course_lessons.data import images
from course_lessons.data.images import load_images, offline_images

RECORDS = 6  # in each file of a tiny CIFAR-10


@contextmanager
def server(status=200, content=b"", promised=None):
    """Serve one file over real HTTP, or less of it than was promised, or an error."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.send_header("Content-Length", str(promised or len(content)))
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()

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


def pixel(file, record, channel, row, column):
    return (7 * file + 31 * record + 64 * channel + 3 * row + column) % 256


def tiny_file(number):
    """Return records as the format's description has them: a class, then red, green and blue, row
    by row.
    """
    data = bytearray()
    for record in range(RECORDS):
        data.append((number + record) % 10)
        for channel in range(3):
            data.extend(
                pixel(number, record, channel, row, column)
                for row in range(32)
                for column in range(32)
            )
    return bytes(data)


TINY = {name: tiny_file(number) for number, name in enumerate(images.CIFAR_FILES)}


def archive_of(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def tiny(monkeypatch):
    """Let a CIFAR-10 of six images a file be the right one, and return its archive."""
    archive = archive_of(TINY)
    monkeypatch.setattr(images, "CIFAR_SHA256", hashlib.sha256(archive).hexdigest())
    return archive


def assert_is_tiny(found):
    assert found.name == "CIFAR-10" and found.classes[3] == "cat"
    assert found.train.shape == (5 * RECORDS, 3, 32, 32)
    assert found.test.shape == (RECORDS, 3, 32, 32)
    assert found.train.dtype == torch.uint8 and found.train_labels.dtype == torch.int64
    # Image 2 of the second file and image 4 of the last one, each at one place.
    assert found.train_labels[RECORDS + 2] == 3
    assert found.train[RECORDS + 2, 1, 5, 9] == pixel(1, 2, 1, 5, 9)
    assert found.test_labels[4] == 9 and found.test[4, 2, 30, 1] == pixel(5, 4, 2, 30, 1)


def test_an_archive_in_the_folder_is_read(tmp_path, tiny):
    (tmp_path / images.CIFAR_ARCHIVE).write_bytes(tiny)
    found = load_images(tmp_path, download=False)
    assert_is_tiny(found)
    assert f"found in {tmp_path}" in repr(found)
    # nothing was unpacked
    assert [file.name for file in tmp_path.iterdir()] == [images.CIFAR_ARCHIVE]


def test_a_download_is_kept_and_found_the_next_time(tmp_path, tiny):
    with server(content=tiny) as url:
        assert "downloaded to" in repr(load_images(tmp_path / "new", url=url))
    assert_is_tiny(load_images(tmp_path / "new", url="http://127.0.0.1:9/never-asked"))


def test_a_torn_archive_in_the_folder_is_an_error(tmp_path, tiny):
    (tmp_path / images.CIFAR_ARCHIVE).write_bytes(tiny[:-100])
    with pytest.raises(
        ValueError, match=r"cifar-10-binary\.tar\.gz is not CIFAR-10, or not all of it"
    ):
        load_images(tmp_path)


@pytest.mark.parametrize("content", [b"wrong", b"<html>Please log in</html>"])
def test_a_wrong_download_is_an_error_with_both_checksums_and_leaves_no_file(
    tmp_path, tiny, content
):
    with server(content=content) as url, pytest.raises(ValueError) as error:
        load_images(tmp_path / "new", url=url)
    assert images.CIFAR_SHA256 in str(error.value)
    assert hashlib.sha256(content).hexdigest() in str(error.value)
    assert files_in(tmp_path) == []


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("served", "reason"),
    [
        ({"status": 404, "content": b"no"}, "HTTPError at 127.0.0.1"),
        ({"status": 503, "content": b"no"}, "HTTPError at 127.0.0.1"),
        ({"content": b"x" * 1000, "promised": 9999}, ""),  # it breaks off
        (None, ""),  # nothing listens there
    ],
)
def test_without_a_whole_answer_the_offline_images_say_why_and_no_file_is_left(
    tmp_path, tiny, served, reason
):
    with server(**served or {}) as url:
        found = load_images(tmp_path / "new", url=url if served else "http://127.0.0.1:9/nothing")
    assert found.name == "Offline shapes" and f"could not be downloaded: {reason}" in found.origin
    # a sentence, and no chain of objects
    assert "0x" not in found.origin and "\n" not in found.origin and found.origin in repr(found)
    assert found.train.shape == (10_000, 3, 32, 32) and found.test.shape == (2_000, 3, 32, 32)
    assert files_in(tmp_path) == []


def test_without_a_download_the_offline_images_say_so(tmp_path):
    found = load_images(tmp_path, download=False)
    assert found.name == "Offline shapes" and "no download was requested" in found.origin


def test_offline_images_to_train_on_and_held_out_are_not_the_same():
    found = offline_images(train=200, test=200)
    seen = {image.numpy().tobytes() for image in found.train}
    assert not any(image.numpy().tobytes() in seen for image in found.test)
    assert torch.equal(found.train, offline_images(train=200, test=10).train)


def test_a_server_is_waited_for_five_seconds(tmp_path, monkeypatch):
    asked = {}
    monkeypatch.setattr(pooch, "HTTPDownloader", lambda **options: asked.update(options))
    monkeypatch.setattr(pooch, "retrieve", lambda *given, downloader: asked.update(given=given))
    images._download("http://a.server/x", tmp_path / "x")
    assert asked["timeout"] == 5
    assert asked["given"] == ("http://a.server/x", images.CIFAR_SHA256, "x", tmp_path)


def test_a_user_without_a_home_keeps_a_download_among_the_temporary_files(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")  # as Path.home says

    monkeypatch.setattr(Path, "home", nowhere)
    assert Path(tempfile.gettempdir()) in runpy.run_path(images.__file__)["HOME"].parents
