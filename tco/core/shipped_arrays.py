"""Arrays that ship with the program, each under a hash of the content it was computed from.

A key names neither the release nor the machine. What has changed since the file was written has
another key, and is computed anew.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from tco.core.array_cache import cached_arrays, content_hash, pack_arrays, unpack_arrays
from tco.core.disk_cache import SHIPPED_ARRAYS
from tco.core.files import data_directory
from tco.core.provenance import making
from tco.core.types import AnyArray, FloatArray

ROUNDED = 16  # last bits of a number that processors may compute differently
STAND_IN_ARRAYS = 32  # keys whose arrays the makings of a process share
PackedArrays = dict[str, bytes]
_stand_in_arrays: dict[bytes, list[AnyArray]] = {}
_collected: ContextVar[PackedArrays | None] = ContextVar("collected arrays", default=None)


def shipped_or_cached_arrays(
    code: bytes, parts: Sequence[bytes], make_arrays: Callable[[], Sequence[AnyArray]]
) -> list[AnyArray]:
    """Return the shipped arrays of a key, or those that are cached or made.

    Nothing shipped is read while a user's own values are withheld, as nothing else is. The
    makings of a process share arrays in its memory: an own price changes none of them.

    Args:
        code: Hash of the code that makes the arrays from `parts`.
        parts: All that the arrays rest on beside this code.
        make_arrays: Makes the arrays where none are known.

    """
    collected = _collected.get()
    digest = content_hash(code, parts)
    if collected is not None:
        arrays = [*make_arrays()]
        collected[digest.hex()] = pack_arrays(digest, arrays)
        return arrays
    if making.get() is not None:
        return _arrays_of_stand_ins(digest, make_arrays)
    arrays_or_none = _shipped_arrays(digest)
    return cached_arrays(parts, make_arrays) if arrays_or_none is None else arrays_or_none


def _arrays_of_stand_ins(
    digest: bytes, make_arrays: Callable[[], Sequence[AnyArray]]
) -> list[AnyArray]:
    """Return copies of the arrays that another making made, or make them and drop the oldest."""
    arrays = _stand_in_arrays.pop(digest, None) or [*make_arrays()]
    _stand_in_arrays[digest] = arrays
    for oldest in list(_stand_in_arrays)[:-STAND_IN_ARRAYS]:
        del _stand_in_arrays[oldest]
    return [array.copy() for array in arrays]


def _shipped_arrays(digest: bytes) -> list[AnyArray] | None:
    try:
        with (data_directory() / SHIPPED_ARRAYS).open("rb") as stream:
            archive = np.load(stream, allow_pickle=False)
            return unpack_arrays(digest, archive[digest.hex()].tobytes())
    except (OSError, EOFError, KeyError, ValueError, BadZipFile, zlib.error):
        return None


@contextmanager
def collected_arrays() -> Iterator[PackedArrays]:
    """Make anew all arrays that may ship, and collect them by key."""
    collected: PackedArrays = {}
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)


def archive_of(packed_arrays: Mapping[str, bytes]) -> bytes:
    """Return the bytes of a file of arrays, the same for the same arrays."""
    stream = io.BytesIO()
    members = {
        key: np.frombuffer(packed_arrays[key], dtype=np.uint8) for key in sorted(packed_arrays)
    }
    np.savez_compressed(stream, **members)  # type: ignore[arg-type]
    return stream.getvalue()


def rounded_bytes(numbers: FloatArray) -> bytes:
    """Return the bytes of numbers without their last bits: about eleven digits."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.int64)
    return ((bits + (1 << ROUNDED - 1)) >> ROUNDED).tobytes()


def code_hash(files: Sequence[Path]) -> bytes:
    """Return a hash of source files."""
    digest = sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.digest()
