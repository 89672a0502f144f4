"""Arrays that ship with the program, each under a hash of everything that decides its numbers.

A key does not depend on the release or the machine. If the code or an input has changed since the
file was written, the key differs, and the arrays are computed again.
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

ROUNDED_BITS = 16  # last bits of a number that processors may compute differently
STAND_IN_KEYS = 32  # keys whose arrays the makings of a process share
PackedArrays = dict[str, bytes]
_stand_in_arrays: dict[bytes, list[AnyArray]] = {}
_collected: ContextVar[PackedArrays | None] = ContextVar("collected arrays", default=None)


def shipped_or_cached_arrays(
    code: bytes, parts: Sequence[bytes], make_arrays: Callable[[], Sequence[AnyArray]]
) -> list[AnyArray]:
    """Return the shipped arrays of a key, or cached arrays, or compute them.

    No shipped or cached arrays are read while a user's own values are withheld. The makings of a
    process then share arrays in its memory, since own prices do not change them.

    Args:
        code: Hash of the code that computes the arrays from `parts`.
        parts: Everything else that decides the arrays.
        make_arrays: Computes the arrays where none are known.

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
    """Return copies of the arrays of another making, or compute them and drop the oldest."""
    arrays = _stand_in_arrays.pop(digest, None) or [*make_arrays()]
    _stand_in_arrays[digest] = arrays
    for oldest in list(_stand_in_arrays)[:-STAND_IN_KEYS]:
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
    """Compute all arrays that may ship while the block runs, and collect them by key."""
    collected: PackedArrays = {}
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)


def archive_of(packed_arrays: Mapping[str, bytes]) -> bytes:
    """Return the bytes of a file of arrays; equal arrays give equal bytes."""
    stream = io.BytesIO()
    members = {
        key: np.frombuffer(packed_arrays[key], dtype=np.uint8) for key in sorted(packed_arrays)
    }
    np.savez_compressed(stream, **members)  # type: ignore[arg-type]
    return stream.getvalue()


def rounded_bytes(numbers: FloatArray) -> bytes:
    """Return the bytes of numbers without their last bits, which leaves about eleven digits."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.int64)
    return ((bits + (1 << ROUNDED_BITS - 1)) >> ROUNDED_BITS).tobytes()


def code_hash(files: Sequence[Path]) -> bytes:
    """Return a hash of source files."""
    digest = sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.digest()
