"""Ten classes of 3 x 32 x 32 images: CIFAR-10 when it can be had, else shapes that are drawn on the spot."""

import tarfile
from dataclasses import dataclass
from pathlib import Path

import torch

from course_utils.data.download import Unreachable, check_file
from course_utils.data.download import download as download_file
from course_utils.data.shapes import SHAPES, draw_shapes

# A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009), in its binary version: a record is one
# byte for the class and 3072 for the red, green and blue 32 x 32 pixels. Nothing in it is pickled.
CIFAR_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
CIFAR_ARCHIVE = "cifar-10-binary.tar.gz"
CIFAR_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
CIFAR_FOLDER = "cifar-10-batches-bin"
CIFAR_FILES = {  # name: SHA-256; the last one holds the images to test on
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
CIFAR_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
RECORD_BYTES = 1 + 3 * 32 * 32
HOME = Path.home() / ".cache" / "accelerator-course"


@dataclass(frozen=True, eq=False)
class Images:
    """Images to train on and images held out, each in one of ten classes.

    Attributes:
        name: what the images are.
        origin: where they came from, and why not from elsewhere.
        classes: the names of the classes.
        train: pixels to train on, (images, 3, 32, 32), uint8.
        train_labels: their classes, (images,), int64.
        test: pixels held out.
        test_labels: their classes.
    """

    name: str
    origin: str
    classes: tuple[str, ...]
    train: torch.Tensor
    train_labels: torch.Tensor
    test: torch.Tensor
    test_labels: torch.Tensor

    def __repr__(self) -> str:
        return (
            f"{self.name}: {len(self.train):,} images of 3 x 32 x 32 pixels to train on, {len(self.test):,} held out, "
            f"{len(self.classes)} classes ({self.origin})"
        )


def load_images(folder: str | Path | None = None, *, download: bool = True, url: str = CIFAR_URL) -> Images:
    """Return CIFAR-10 from a folder or from the internet, or the offline shapes where it is in neither.

    Args:
        folder: where `cifar-10-binary.tar.gz`, or the folder `cifar-10-batches-bin` out of it, is looked for and
            where a download is kept; None takes a folder in the user's cache.
        download: whether to download it (170 MB) when it is not in the folder.
        url: where to download it from, such as a copy in the classroom's own network.

    Raises:
        ValueError: a file was found or downloaded, but it is not CIFAR-10, or not all of it.
    """
    folder = HOME if folder is None else Path(folder)
    archive, unpacked = folder / CIFAR_ARCHIVE, folder / CIFAR_FOLDER
    if unpacked.is_dir():
        return _cifar(_unpacked_files(unpacked), f"found in {unpacked}")
    origin = f"found in {folder}"
    if not archive.exists():
        if not download:
            return offline_images(f"CIFAR-10 is not in {folder}, and no download was asked for")
        try:
            download_file(url, archive, sha256=CIFAR_SHA256)
        except Unreachable as reason:
            return offline_images(f"CIFAR-10 could not be downloaded: {reason}")
        origin = f"downloaded to {folder}"
    check_file(archive, CIFAR_SHA256, str(archive))
    return _cifar(_archived_files(archive), origin)


def offline_images(why: str = "drawn here", *, train: int = 10_000, test: int = 2_000) -> Images:
    """Return images of ten shapes, the same ones on every machine, as a stand-in for CIFAR-10.

    Args:
        why: what to say about their origin.
        train: how many images to train on.
        test: how many to hold out.
    """
    return Images("Offline shapes", why, SHAPES, *draw_shapes(train, seed=42), *draw_shapes(test, seed=43))


def _cifar(files: dict[str, bytes], origin: str) -> Images:
    parts = [_records(files[name], name) for name in CIFAR_FILES]
    pixels = torch.cat([pixels for pixels, _ in parts[:-1]])
    labels = torch.cat([labels for _, labels in parts[:-1]])
    return Images("CIFAR-10", origin, CIFAR_CLASSES, pixels, labels, *parts[-1])


def _unpacked_files(folder: Path) -> dict[str, bytes]:
    for name, sha256 in CIFAR_FILES.items():
        if not (folder / name).exists():
            raise ValueError(f"{folder} holds no {name}, so this is not all of CIFAR-10. Unpack its archive again.")
        check_file(folder / name, sha256, str(folder / name))
    return {name: (folder / name).read_bytes() for name in CIFAR_FILES}


def _archived_files(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:  # read in place: nothing is unpacked to the disk
        return {name: tar.extractfile(f"{CIFAR_FOLDER}/{name}").read() for name in CIFAR_FILES}


def _records(data: bytes, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    if not data or len(data) % RECORD_BYTES:
        raise ValueError(f"{name} holds {len(data):,} bytes, which is no whole number of {RECORD_BYTES}-byte records.")
    records = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(-1, RECORD_BYTES)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].long()
