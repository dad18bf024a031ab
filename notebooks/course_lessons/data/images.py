"""Ten classes of 3 x 32 x 32 images: CIFAR-10 where it is available, else images drawn here."""

import hashlib
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import torch

from course_lessons.data.drawn_images import SHAPES, draw_shapes
from course_utils.missing_packages import explain_missing_package

# A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009), in its binary
# version: a record is one byte for the class and 3072 for the red, green and blue 32 x 32 pixels.
# Nothing in it is pickled.
CIFAR_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
CIFAR_ARCHIVE = "cifar-10-binary.tar.gz"
CIFAR_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
CIFAR_FILES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
CIFAR_CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer",
    "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
try:
    HOME = Path.home() / ".cache" / "accelerator-course"
except RuntimeError:  # of a user without a name, as a container may have
    HOME = Path(tempfile.gettempdir()) / "accelerator-course"
PATIENCE_S = 5.0  # for the server, and for each piece that it sends


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
            f"{self.name}: {len(self.train):,} images of 3 x 32 x 32 pixels to train on, "
            f"{len(self.test):,} held out, {len(self.classes)} classes ({self.origin})"
        )


def load_images(
    folder: str | Path = HOME, *, download: bool = True, url: str = CIFAR_URL
) -> Images:
    """Return CIFAR-10 from a folder or the internet, or drawn images where it is in neither.

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
        except OSError as error:  # its own text may be a chain of objects with their addresses
            reason = f"{type(error).__name__} at {urlsplit(url).hostname}"
            return offline_images(f"CIFAR-10 could not be downloaded: {reason}")
        origin = f"downloaded to {folder}"
    with open(archive, "rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != CIFAR_SHA256:
            raise ValueError(
                f"{archive} is not CIFAR-10, or not all of it: its SHA-256 differs. "
                "Delete it and try again."
            )
    *batches, test = _read(archive)
    pixels = torch.cat([images for images, _ in batches])
    labels = torch.cat([classes for _, classes in batches])
    return Images("CIFAR-10", origin, CIFAR_CLASSES, pixels, labels, *test)


def offline_images(why: str = "drawn here", *, train: int = 10_000, test: int = 2_000) -> Images:
    """Return images of ten shapes, the same on every machine; `why` is given as their origin."""
    drawn = (*draw_shapes(train, seed=42), *draw_shapes(test, seed=43))
    return Images("Offline shapes", why, SHAPES, *drawn)


def _download(url: str, path: Path) -> None:
    """Download CIFAR-10; the file appears only when it is complete and correct."""
    with explain_missing_package():
        import pooch

    pooch.get_logger().setLevel("WARNING")
    downloader = pooch.HTTPDownloader(progressbar=True, timeout=PATIENCE_S)
    pooch.retrieve(url, CIFAR_SHA256, path.name, path.parent, downloader=downloader)


def _read(archive: Path) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the pixels and the classes of each file of CIFAR-10, without unpacking to the disk."""
    contents = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            if file := tar.extractfile(member):
                contents[Path(member.name).name] = bytearray(file.read())
    batches = []
    for name in CIFAR_FILES:
        records = torch.frombuffer(contents[name], dtype=torch.uint8).view(-1, 1 + 3 * 32 * 32)
        batches.append((records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].long()))
    return batches
