"""Ten classes of 3 x 32 x 32 images: CIFAR-10 where it is available, else shapes that are drawn on
the spot.
"""

import hashlib
import io
import socket
import tarfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

import torch

from course_utils.data.shapes import SHAPES, draw_shapes
from course_utils.progress_bars import open_bar

# A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009), in its binary
# version: a record is one byte for the class and 3072 for the red, green and blue 32 x 32 pixels.
# Nothing in it is pickled.
CIFAR_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
CIFAR_ARCHIVE = "cifar-10-binary.tar.gz"
CIFAR_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
CIFAR_FILES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
CIFAR_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
HOME = Path.home() / ".cache" / "accelerator-course"
PATIENCE_S = 5.0  # for the name server, for the server, and for each piece that it sends


@dataclass(frozen=True, eq=False)
class Images:
    """Images to train on and images held out, each in one of ten classes."""

    name: str  #: what the images are
    origin: str  #: where they came from, and why not from elsewhere
    classes: tuple[str, ...]  #: the names of the classes
    train: torch.Tensor  #: pixels to train on, (images, 3, 32, 32), uint8
    train_labels: torch.Tensor  #: their classes, (images,), int64
    test: torch.Tensor  #: pixels held out
    test_labels: torch.Tensor  #: their classes

    def __repr__(self) -> str:
        return (
            f"{self.name}: {len(self.train):,} images of 3 x 32 x 32 pixels to train on, {len(self.test):,} held out, "
            f"{len(self.classes)} classes ({self.origin})"
        )


def load_images(
    folder: str | Path = HOME, *, download: bool = True, url: str = CIFAR_URL
) -> Images:
    """Return CIFAR-10 from a folder or from the internet, or the offline shapes where it is in
    neither.

    Args:
        folder: where `cifar-10-binary.tar.gz` is looked for and a download is kept, by default in
            the user's cache.
        download: whether to download it (170 MB) when it is not in the folder.
        url: where to download it from, such as a copy in the classroom's own network.

    Raises:
        ValueError: a file was found or downloaded, but it is not CIFAR-10, or not all of it.
        ModuleNotFoundError: a download was requested without the package pooch.
    """
    archive, origin = Path(folder) / CIFAR_ARCHIVE, f"found in {folder}"
    if not archive.exists():
        if not download:
            return offline_images(f"CIFAR-10 is not in {folder}, and no download was requested")
        try:
            _download(url, archive)
        except OSError as error:
            return offline_images(f"CIFAR-10 could not be downloaded: {error}")
        origin = f"downloaded to {folder}"
    data = archive.read_bytes()
    if hashlib.sha256(data).hexdigest() != CIFAR_SHA256:
        raise ValueError(
            f"{archive} is not CIFAR-10, or not all of it: its SHA-256 differs. Delete it and try again."
        )
    # read in place: nothing is unpacked to the disk
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        files = {
            Path(member.name).name: file.read()
            for member in tar
            if (file := tar.extractfile(member))
        }
    *batches, test = [_records(files[name]) for name in CIFAR_FILES]
    pixels, labels = map(torch.cat, zip(*batches, strict=True))
    return Images("CIFAR-10", origin, CIFAR_CLASSES, pixels, labels, *test)


def offline_images(why: str = "drawn here", *, train: int = 10_000, test: int = 2_000) -> Images:
    """Return images of ten shapes, the same ones on every machine, in place of CIFAR-10; `why` is
    their origin.
    """
    return Images(
        "Offline shapes", why, SHAPES, *draw_shapes(train, seed=42), *draw_shapes(test, seed=43)
    )


def _download(url: str, path: Path) -> None:
    """Download CIFAR-10; the file appears only when it is complete and correct."""
    import pooch

    # whose own texts are chains of objects with their addresses
    from requests import ConnectionError, Timeout

    server = urlsplit(url)
    # A name server that does not answer blocks for longer than any limit of a socket. A proxy asks
    # its own.
    host = urlsplit(getproxies().get(server.scheme) or url).hostname

    def look_up() -> None:
        with suppress(OSError, UnicodeError):  # the download meets it again, and says so
            socket.getaddrinfo(host, None)

    lookup = threading.Thread(target=look_up, daemon=True)
    lookup.start()
    lookup.join(PATIENCE_S)
    if lookup.is_alive():
        raise TimeoutError(f"the name server did not answer within {PATIENCE_S:g} s")
    pooch.get_logger().setLevel("WARNING")
    try:
        # pooch sets the real total
        with open_bar(1, "B", unit_scale=True, desc="download", leave=False) as bar:
            downloader = pooch.HTTPDownloader(
                progressbar=bar, chunk_size=1 << 20, timeout=PATIENCE_S
            )
            pooch.retrieve(url, CIFAR_SHA256, path.name, path.parent, downloader=downloader)
    except Timeout:
        raise TimeoutError(f"{server.hostname} did not answer within {PATIENCE_S:g} s") from None
    except ConnectionError:
        raise OSError(f"the connection to {server.hostname} failed") from None


def _records(data: bytes) -> tuple[torch.Tensor, torch.Tensor]:
    records = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(-1, 1 + 3 * 32 * 32)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].long()
