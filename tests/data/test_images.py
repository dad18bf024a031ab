import hashlib
import io
import tarfile

import pytest
import torch
from test_download import server

from course_utils.data import images, load_images, offline_images

RECORDS = 6  # in each file of a tiny CIFAR-10


def pixel(file, record, channel, row, column):
    return (7 * file + 31 * record + 64 * channel + 3 * row + column) % 256


def tiny_file(number):
    """Return records as the format's description has them: a class, then red, green and blue, row by row."""
    data = bytearray()
    for record in range(RECORDS):
        data.append((number + record) % 10)
        for channel in range(3):
            data.extend(pixel(number, record, channel, row, column) for row in range(32) for column in range(32))
    return bytes(data)


TINY = {name: tiny_file(number) for number, name in enumerate(images.CIFAR_FILES)}


def archive_of(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(f"{images.CIFAR_FOLDER}/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def tiny(monkeypatch):
    """Let a CIFAR-10 of six images a file be the right one, and return its archive."""
    archive = archive_of(TINY)
    monkeypatch.setattr(images, "CIFAR_SHA256", hashlib.sha256(archive).hexdigest())
    for name, data in TINY.items():
        monkeypatch.setitem(images.CIFAR_FILES, name, hashlib.sha256(data).hexdigest())
    return archive


def assert_is_tiny(found):
    assert found.name == "CIFAR-10" and found.classes[3] == "cat"
    assert found.train.shape == (5 * RECORDS, 3, 32, 32) and found.test.shape == (RECORDS, 3, 32, 32)
    assert found.train.dtype == torch.uint8 and found.train_labels.dtype == torch.int64
    # Image 2 of the second file and image 4 of the last one, each at one place.
    assert found.train_labels[RECORDS + 2] == 3 and found.train[RECORDS + 2, 1, 5, 9] == pixel(1, 2, 1, 5, 9)
    assert found.test_labels[4] == 9 and found.test[4, 2, 30, 1] == pixel(5, 4, 2, 30, 1)


def test_an_archive_in_the_folder_is_read(tmp_path, tiny):
    (tmp_path / images.CIFAR_ARCHIVE).write_bytes(tiny)
    found = load_images(tmp_path, download=False)
    assert_is_tiny(found)
    assert f"found in {tmp_path}" in repr(found)
    assert [file.name for file in tmp_path.iterdir()] == [images.CIFAR_ARCHIVE]  # nothing was unpacked


def test_an_unpacked_folder_is_read(tmp_path, tiny):
    (tmp_path / images.CIFAR_FOLDER).mkdir()
    for name, data in TINY.items():
        (tmp_path / images.CIFAR_FOLDER / name).write_bytes(data)
    assert_is_tiny(load_images(tmp_path, download=False))


def test_a_download_is_kept_and_found_the_next_time(tmp_path, tiny):
    with server(content=tiny) as url:
        assert "downloaded to" in repr(load_images(tmp_path / "new", url=url))
    assert_is_tiny(load_images(tmp_path / "new", url="http://127.0.0.1:9/never-asked"))


def test_a_torn_archive_in_the_folder_is_an_error(tmp_path, tiny):
    (tmp_path / images.CIFAR_ARCHIVE).write_bytes(tiny[:-100])
    with pytest.raises(ValueError, match=r"cifar-10-binary\.tar\.gz: this is not the file that was expected"):
        load_images(tmp_path)


def test_a_wrong_file_in_an_unpacked_folder_is_an_error(tmp_path, tiny):
    (tmp_path / images.CIFAR_FOLDER).mkdir()
    for name, data in TINY.items():
        (tmp_path / images.CIFAR_FOLDER / name).write_bytes(data if name != "data_batch_3.bin" else data[:-1])
    with pytest.raises(ValueError, match=r"data_batch_3\.bin: this is not the file that was expected"):
        load_images(tmp_path)


def test_a_missing_file_in_an_unpacked_folder_is_an_error(tmp_path, tiny):
    (tmp_path / images.CIFAR_FOLDER).mkdir()
    with pytest.raises(ValueError, match=r"holds no data_batch_1\.bin, so this is not all of CIFAR-10"):
        load_images(tmp_path)


@pytest.mark.parametrize("content", [b"wrong", b""])
def test_a_wrong_download_is_an_error_and_leaves_no_folder(tmp_path, tiny, content):
    with server(content=content) as url, pytest.raises(ValueError, match="not the file that was expected"):
        load_images(tmp_path / "new", url=url)
    assert not (tmp_path / "new").exists()


def test_records_of_the_wrong_length_are_an_error():
    with pytest.raises(ValueError, match="test holds 3,074 bytes, which is no whole number of 3073-byte records"):
        images._records(bytes(3074), "test")


def test_without_an_answer_the_offline_images_say_why(tmp_path):
    found = load_images(tmp_path / "new", url="http://127.0.0.1:9/nothing-listens-here")
    assert found.name == "Offline shapes" and "could not be downloaded: " in repr(found)
    assert found.train.shape == (10_000, 3, 32, 32) and found.test.shape == (2_000, 3, 32, 32)
    assert not (tmp_path / "new").exists()


def test_without_a_download_the_offline_images_say_so(tmp_path):
    found = load_images(tmp_path, download=False)
    assert found.name == "Offline shapes" and "no download was asked for" in found.origin


def test_offline_images_to_train_on_and_held_out_are_not_the_same():
    found = offline_images(train=300, test=200)
    seen = {image.numpy().tobytes() for image in found.train}
    assert not any(image.numpy().tobytes() in seen for image in found.test)
    assert torch.equal(found.train, offline_images(train=300, test=10).train)


def test_the_published_checksum_is_that_of_all_files():
    # 50,000 + 10,000 images of the real set; the checksums are long enough to be SHA-256 and all differ.
    checksums = [images.CIFAR_SHA256, *images.CIFAR_FILES.values()]
    assert len(set(checksums)) == 7 and all(len(bytes.fromhex(text)) == 32 for text in checksums)
