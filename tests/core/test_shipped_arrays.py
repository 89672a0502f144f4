"""Arrays that ship: taken under the hash of their content, and never believed beyond it."""

from __future__ import annotations

import numpy as np
import pytest

from tco.core import shipped_arrays
from tco.core.disk_cache import SHIPPED_ARRAYS
from tco.core.provenance import making
from tco.core.shipped_arrays import (
    archive_of,
    collected_arrays,
    rounded_bytes,
    shipped_or_cached_arrays,
)

CODE = b"solver of today"


def numbers_of(seed: float) -> list[float]:
    """Return arrays under a key of today, made from a seed where none are shipped."""
    (numbers,) = shipped_or_cached_arrays(CODE, [b"draws"], lambda: [np.array([seed, np.inf])])
    return numbers.tolist()


@pytest.fixture
def shipped_file(tmp_path, monkeypatch):
    """Ship arrays that are made from a seed of 0.73."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(shipped_arrays, "data_directory", lambda: tmp_path)
    with collected_arrays() as collected:
        numbers_of(0.73)
    path = tmp_path / SHIPPED_ARRAYS
    path.write_bytes(archive_of(collected))
    return path


def test_shipped_arrays_are_taken_and_not_made(shipped_file):
    assert numbers_of(0.5) == [0.73, np.inf]
    assert not (shipped_file.parent / "cache").exists()


def test_arrays_of_other_code_are_made_anew(shipped_file, monkeypatch):
    monkeypatch.setitem(globals(), "CODE", b"solver of tomorrow")
    assert numbers_of(0.5) == [0.5, np.inf]


@pytest.mark.parametrize("position", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_damaged_file_is_passed_over(shipped_file, position):
    content = bytearray(shipped_file.read_bytes())
    index = int(position * len(content))
    content[index] ^= 0xFF
    shipped_file.write_bytes(content)
    assert numbers_of(0.73) == [0.73, np.inf]


@pytest.mark.parametrize("content", [b"", b"[]", b"PK\x03\x04"])
def test_file_of_another_kind_is_passed_over(shipped_file, content):
    shipped_file.write_bytes(content)
    assert numbers_of(0.5) == [0.5, np.inf]


def test_arrays_under_the_key_of_others_are_not_believed(shipped_file):
    with np.load(shipped_file) as archive:
        (key,) = archive.files
        content = archive[key].tobytes()
    shipped_file.write_bytes(archive_of({key: content[:-1] + bytes([content[-1] ^ 1])}))
    assert numbers_of(0.5) == [0.5, np.inf]


@pytest.fixture
def withheld(monkeypatch):
    """Withhold own values, as the first making of a process does."""
    monkeypatch.setattr(shipped_arrays, "_stand_in_arrays", {})
    token = making.set(object())
    yield
    making.reset(token)


@pytest.mark.usefixtures("withheld")
def test_nothing_shipped_is_read_while_values_are_withheld(shipped_file):
    assert numbers_of(0.5) == [0.5, np.inf]


@pytest.mark.usefixtures("withheld")
def test_makings_share_arrays_of_the_same_content_and_of_no_other(shipped_file, monkeypatch):
    def make(seed, content):
        return shipped_or_cached_arrays(CODE, [content], lambda: [np.array([seed])])[0]

    make(0.5, b"draws")[:] = 0.0  # whoever changes them has a copy
    assert make(0.6, b"draws") == 0.5
    assert make(0.7, b"draws at another bandwidth") == 0.7
    monkeypatch.setattr(shipped_arrays, "STAND_IN_KEYS", 2)
    assert make(0.8, b"draws at a third") == 0.8
    assert make(0.9, b"draws") == 0.9
    assert not (shipped_file.parent / "cache").exists()
    making.set(None)
    assert make(1.0, b"draws").tolist() == [0.73, np.inf]  # what ships


def test_rounded_bytes_tell_eleven_digits_apart():
    number = np.array([0.7312345678901])
    assert rounded_bytes(number) == rounded_bytes(np.nextafter(number, 1))
    assert rounded_bytes(number) != rounded_bytes(number * (1 + 1e-10))
