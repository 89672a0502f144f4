"""On-disk cache of arrays, each under a hash of everything that decides its numbers.

A change of the program, of a number or of the processor gives another key, so no entry is ever
invalid. The oldest files are removed when the folder is full.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from tco.core.disk_cache import LARGEST, cache_folder, read_own_file, stamp, write_own_file
from tco.core.errors import DataError
from tco.core.provenance import making
from tco.core.types import AnyArray

FOLDER = "arrays"
SUFFIX = ".bin"
LARGEST_FOLDER = 2**28  # bytes of all files
WRITES_PER_REMOVAL = 64  # old files are removed at the first of this many writes of a process
DIGEST_SIZE = sha256().digest_size  # bytes
SIZE_BYTES = 8  # bytes of the length of a block; blocks are padded to a multiple of this number
_writes = itertools.count()


def cached_arrays(
    parts: Sequence[bytes], make_arrays: Callable[[], Sequence[AnyArray]]
) -> list[AnyArray]:
    """Return the cached arrays of a key, or compute and cache them.

    Args:
        parts: Everything that decides the arrays, except the code, the data and the processor.
        make_arrays: Computes the arrays where none are cached.

    """
    arrays = read_arrays(parts)
    if arrays is None:
        arrays = [*make_arrays()]
        write_arrays(parts, arrays)
    return arrays


def read_arrays(parts: Sequence[bytes]) -> list[AnyArray] | None:
    """Return the cached arrays of a key.

    A file has a checksum, then the types and shapes of the arrays, then their numbers.

    Args:
        parts: Everything that decides the arrays, except the code, the data and the processor.

    Returns:
        The arrays. None where no file is cached, where the file fails its checksum or others may
        have written it, and while a user's own values are withheld.

    """
    if making.get() is not None:
        return None
    digest, path = _file_of(parts)
    try:
        return unpack_arrays(digest, read_own_file(path))
    except (OSError, DataError, ValueError):
        return None


def write_arrays(parts: Sequence[bytes], arrays: Sequence[AnyArray]) -> None:
    """Cache the arrays of a key, unless a user's own values are withheld."""
    if making.get() is not None:
        return
    digest, path = _file_of(parts)
    content = pack_arrays(digest, arrays)
    if len(content) < LARGEST // 4:
        write_own_file(path, content)
        if next(_writes) % WRITES_PER_REMOVAL == 0:
            _remove_oldest(path.parent)


def _file_of(parts: Sequence[bytes]) -> tuple[bytes, Path]:
    digest = content_hash(stamp().encode(), parts)
    return digest, cache_folder() / FOLDER / f"{digest.hex()[:32]}{SUFFIX}"


def content_hash(code: bytes, parts: Sequence[bytes]) -> bytes:
    """Return a hash of code and of the parts that decide a result."""
    digest = sha256(code)
    for part in parts:
        digest.update(len(part).to_bytes(SIZE_BYTES, "little") + part)
    return digest.digest()


def text_array(text: str) -> AnyArray:
    """Return the bytes of a text as an array."""
    return np.frombuffer(text.encode(), dtype=np.uint8)


def pack_arrays(cache_key: bytes, arrays: Sequence[AnyArray]) -> bytes:
    """Return a checksum of a key and arrays, followed by the arrays as bytes."""
    if any(array.dtype.hasobject for array in arrays):
        raise ValueError("an array of objects cannot be cached")
    header = json.dumps([(array.dtype.str, array.shape) for array in arrays]).encode()
    blocks = [len(header).to_bytes(SIZE_BYTES, "little"), header]
    blocks += [array.tobytes() for array in arrays]
    content = b"".join([block + bytes(-len(block) % SIZE_BYTES) for block in blocks])
    return sha256(cache_key + content).digest() + content


def unpack_arrays(cache_key: bytes, content: bytes) -> list[AnyArray]:
    """Return the arrays in the bytes of `pack_arrays`.

    Raises:
        ValueError: The checksum is wrong.

    """
    checksum = content[:DIGEST_SIZE]
    packed = bytearray(content[DIGEST_SIZE:])
    digest = sha256(cache_key)
    digest.update(packed)
    if digest.digest() != checksum:
        raise ValueError("not the arrays that were cached")
    offset = SIZE_BYTES + int.from_bytes(packed[:SIZE_BYTES], "little")
    arrays: list[AnyArray] = []
    for type_text, shape in json.loads(packed[SIZE_BYTES:offset]):
        offset += -offset % SIZE_BYTES
        arrays.append(np.ndarray(shape, np.dtype(type_text), packed, offset))
        offset += arrays[-1].nbytes
    return arrays


def _remove_oldest(folder: Path) -> None:
    """Remove the oldest files of a folder until it is no larger than `LARGEST_FOLDER`."""
    with contextlib.suppress(OSError):
        states = [(path.lstat(), path) for path in folder.glob(f"*{SUFFIX}")]
        size = sum(state.st_size for state, _ in states)
        for state, path in sorted(states, key=lambda entry: entry[0].st_mtime):
            if size <= LARGEST_FOLDER:
                return
            path.unlink(missing_ok=True)
            size -= state.st_size
