"""Arrays on disk: of the user's own, whole, and never of values that are withheld."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tco.core import array_cache
from tco.core.array_cache import cached_arrays
from tco.core.provenance import making


@pytest.fixture
def reading(tmp_path, monkeypatch):
    """Return a reader of two cached arrays, the folder, and a log of each making."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    log = []

    def read(key=b"four draws"):
        def make_arrays():
            log.append(key)
            return [np.array([0.73, np.inf]), np.array([True, False])]

        return [array.tolist() for array in cached_arrays([key], make_arrays)]

    return read, tmp_path / "tco" / "arrays", log


def test_arrays_are_made_once_for_each_key(reading):
    read, folder, log = reading
    assert read() == read() == [[0.73, np.inf], [True, False]]
    read(b"other draws")
    assert len(log) == len([*folder.iterdir()]) == 2
    assert {path.stat().st_mode & 0o077 for path in folder.iterdir()} == {0}


def test_arrays_of_any_shape_and_type_come_back_as_they_were(reading):
    arrays = [
        np.array(7.5),
        np.zeros((0, 4)),
        np.array([[True, False, True]]),
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.array([np.nan, -0.0]),
    ]
    for _ in range(2):
        cached = cached_arrays([b"shapes"], lambda: arrays)
        for array, cached_array in zip(arrays, cached, strict=True):
            assert (cached_array.dtype, cached_array.shape) == (array.dtype, array.shape)
            assert cached_array.tobytes() == array.tobytes()
            assert cached_array.flags.writeable


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: b"[]",
        lambda content: content[: len(content) // 2],
        lambda content: bytes(255 - byte for byte in content),
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    ],
)
def test_arrays_in_a_changed_file_are_computed_anew(reading, spoil):
    read, folder, log = reading
    before = read()
    (file,) = folder.iterdir()
    content = file.read_bytes()
    file.write_bytes(spoil(content))
    assert read() == before
    assert (len(log), file.read_bytes()) == (2, content)


@pytest.mark.parametrize("kind", ["link", "pipe", "writable by others"])
def test_cached_path_that_is_no_file_of_the_user_is_replaced_unfollowed(reading, tmp_path, kind):
    read, folder, log = reading
    before = read()
    (file,) = folder.iterdir()
    prize = tmp_path / "prize"
    prize.write_bytes(file.read_bytes())
    if kind == "writable by others":
        file.chmod(0o666)
    else:
        file.unlink()
        os.mkfifo(file) if kind == "pipe" else file.symlink_to(prize)
    assert read() == before
    assert len(log) == 2
    assert file.is_file()
    assert not file.is_symlink()


def test_nothing_is_kept_while_values_are_withheld(reading):
    read, folder, log = reading
    token = making.set(object())
    try:
        read()
        read()
    finally:
        making.reset(token)
    assert len(log) == 2
    assert not folder.exists()


def test_oldest_files_go_when_the_folder_is_full(reading, monkeypatch):
    read, folder, _ = reading
    read(b"oldest")
    (oldest,) = folder.iterdir()
    os.utime(oldest, (0, 0))
    monkeypatch.setattr(array_cache, "LARGEST_FOLDER", oldest.stat().st_size + 1)
    for number in range(array_cache.WRITES_PER_REMOVAL):
        read(b"newer %d" % number)
    assert not oldest.exists()


@pytest.mark.skipif(not hasattr(os, "umask"), reason="no masks of file modes")
def test_folder_of_the_first_arrays_is_the_users_alone(reading):
    read, folder, log = reading
    mask = os.umask(0o002)
    try:
        read()
        read()
    finally:
        os.umask(mask)
    assert {path.stat().st_mode & 0o077 for path in (folder, folder.parent)} == {0}
    assert len(log) == 1
