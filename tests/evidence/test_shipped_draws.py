"""The shipped file of drawn plans is of today's program and data.

Where it is not, `python -m tco.evidence.shipped_draws` writes it anew.
"""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest

from tco.core.array_cache import unpack_arrays
from tco.core.disk_cache import SHIPPED_ARRAYS
from tco.core.files import data_directory

LARGEST = 3 * 2**20  # bytes: what a download may grow by
COMPUTE = (
    "import sys; from tco.core.shipped_arrays import archive_of; "
    "from tco.evidence.shipped_draws import shipped_draws; "
    "sys.stdout.buffer.write(archive_of(shipped_draws()))"
)


def test_shipped_file_is_small():
    assert (data_directory() / SHIPPED_ARRAYS).stat().st_size < LARGEST


@pytest.mark.thorough
def test_shipped_draws_are_those_of_today():
    """A process of its own computes them: what other tests computed is remembered in this one."""
    done = subprocess.run([sys.executable, "-c", COMPUTE], capture_output=True, check=True)
    with (
        np.load(data_directory() / SHIPPED_ARRAYS) as shipped,
        np.load(io.BytesIO(done.stdout)) as computed,
    ):
        assert set(shipped.files) == set(computed.files)
        for key in shipped.files:
            digest = bytes.fromhex(key)
            shipped_arrays, computed_arrays = (
                unpack_arrays(digest, archive[key].tobytes()) for archive in (shipped, computed)
            )
            for array, expected in zip(shipped_arrays, computed_arrays, strict=True):
                np.testing.assert_allclose(array, expected, rtol=1e-9)
