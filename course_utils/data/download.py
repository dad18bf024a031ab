"""Download one file: give up on a silent server within seconds, check every byte, and leave no half of it behind."""

import hashlib
import os
import tempfile
import threading
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from course_utils.display.bars import open_bar

CHUNK_BYTES = 1 << 20
PATIENCE_S = 5.0  # for the first answer, and for each later piece


class Unreachable(OSError):
    """The file cannot be had here: no network, no answer, or no place to keep it."""


def download(url: str, path: Path, *, sha256: str, patience_s: float = PATIENCE_S) -> None:
    """Download `url` to `path`, with a progress bar. The file appears only when it is whole and right.

    Args:
        url: what to download.
        path: where to keep it; its folder is made if need be.
        sha256: the checksum that it must have.
        patience_s: how long to wait for an answer.

    Raises:
        Unreachable: there was no answer, an answer that refuses, or no place to write to.
        ValueError: the download broke off, or what came is not the file with this checksum.
    """
    response = _open(url, patience_s)
    new_folder = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
    except OSError as error:
        response.close()
        raise Unreachable(f"nothing can be written to {path.parent} ({error.strerror})") from error
    try:
        with response, os.fdopen(handle, "wb") as file:
            size_bytes = _stream(response, file)
        check_file(Path(part), sha256, f"{size_bytes:,} bytes from {url}")
        os.replace(part, path)
    except BaseException:  # an interrupt too
        Path(part).unlink(missing_ok=True)
        if new_folder and not any(path.parent.iterdir()):
            path.parent.rmdir()
        raise


def check_file(path: Path, sha256: str, name: str) -> None:
    """Raise ValueError unless the file at `path`, called `name` in the message, has this checksum."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    if digest.hexdigest() != sha256:
        raise ValueError(
            f"{name}: this is not the file that was expected, or not all of it. Its SHA-256 begins with "
            f"{digest.hexdigest()[:12]}, the expected one with {sha256[:12]}. Remove it if it is still there, and "
            f"try again; load_images(download=False) does without it."
        )


def _open(url: str, patience_s: float):
    """Return the response of the server, or raise Unreachable after `patience_s`.

    A name server that does not answer blocks for longer than any limit of a socket, hence the thread.
    """
    answers: list = []
    given_up = threading.Event()

    def ask():
        try:
            answers.append(urlopen(url, timeout=patience_s))
            if given_up.is_set():
                answers[0].close()
        except (OSError, HTTPException) as error:
            answers.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(patience_s)
    if not answers:
        given_up.set()
        raise Unreachable(f"no answer within {patience_s:g} s")
    if isinstance(answers[0], HTTPError):
        answers[0].close()  # it holds the server's page that explains the refusal
    if isinstance(answers[0], Exception):
        raise Unreachable(str(getattr(answers[0], "reason", answers[0]))) from answers[0]
    return answers[0]


def _stream(response, file) -> int:
    total = int(response.headers.get("Content-Length") or 0)
    with open_bar(total or None, "B", unit_scale=True, desc="download") as bar:
        while True:
            try:
                chunk = response.read(CHUNK_BYTES)
            except (OSError, HTTPException) as error:
                raise ValueError(_broken(bar.n, total, error)) from error
            if not chunk:
                break
            file.write(chunk)
            bar.update(len(chunk))
        received = int(bar.n)
    if total and received < total:
        raise ValueError(_broken(received, total, "the connection was closed"))
    return received


def _broken(received: int, total: int, reason: object) -> str:
    return (
        f"the download broke off after {received:,} of {total:,} bytes: {reason}. Nothing was kept. "
        f"Try again; load_images(download=False) does without it."
    )
