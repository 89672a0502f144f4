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
PackedArrays = dict[str, bytes]
_collected: ContextVar[PackedArrays | None] = ContextVar("collected arrays", default=None)


def shipped_or_cached_arrays(
    code: bytes, parts: Sequence[bytes], make_arrays: Callable[[], Sequence[AnyArray]]
) -> list[AnyArray]:
    """Return the shipped arrays of a key, or those that are cached or made.

    Nothing shipped is read while a user's own values are withheld, as nothing else is.

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
    arrays_or_none = None if making.get() is not None else _shipped_arrays(digest)
    return cached_arrays(parts, make_arrays) if arrays_or_none is None else arrays_or_none


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
