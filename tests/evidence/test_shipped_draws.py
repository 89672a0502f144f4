"""The shipped file of drawn plans is of today's program and data.

Where it is not, `python -m tco.evidence.shipped_draws` writes it anew.
"""

from __future__ import annotations

import numpy as np
import pytest

from tco.core.array_cache import unpack_arrays
from tco.core.disk_cache import SHIPPED_ARRAYS
from tco.core.files import data_directory
from tco.evidence.shipped_draws import shipped_draws

LARGEST = 3 * 2**20  # bytes: what a download may grow by


def test_shipped_file_is_small():
    assert (data_directory() / SHIPPED_ARRAYS).stat().st_size < LARGEST


@pytest.mark.thorough
def test_shipped_draws_are_those_of_today():
    """`python -m tco.evidence.shipped_draws` writes the file anew."""
    computed = shipped_draws()
    with np.load(data_directory() / SHIPPED_ARRAYS) as archive:
        shipped = {key: archive[key].tobytes() for key in archive.files}
    assert shipped.keys() == computed.keys()
    for key, content in shipped.items():
        digest = bytes.fromhex(key)
        for array, expected in zip(
            unpack_arrays(digest, content), unpack_arrays(digest, computed[key]), strict=True
        ):
            np.testing.assert_allclose(array, expected, rtol=1e-9)
