"""Every shipped file of measurements is judged in every form."""

from __future__ import annotations

import pytest

from tests.cli import tco

FILES = ["kernels", "collectives", "trainium_kernels", "trainium_collectives", "trainium_inference", "trainium_training"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("form", ["table", "md"])
def test_a_shipped_file_is_judged(name, form):
    done = tco("validate", f"data/measured/{name}.csv.gz", "--format", form)
    assert done.exit_code == 0, done.stderr
    assert " scored" in done.stdout.splitlines()[0]
