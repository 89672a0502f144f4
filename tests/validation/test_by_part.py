"""An accelerator that lacks something costs only its own rows."""

import numpy as np
import pandas as pd
import pytest

from tco import DataError
from tests.validation.today import VALUES
from tests.validation.today import scored as scored_file

ROW = {
    "op": "all_reduce",
    "n_gpus": 8,
    "nodes": 1,
    "message_size_bytes": 2**20,
    "time_us": 30,
    "library": "NCCL",
}


def scored(tmp_path, *accelerators):
    path = tmp_path / "rows.csv"
    pd.DataFrame([{"accelerator": name, **ROW} for name in accelerators]).to_csv(path, index=False)
    return scored_file(path).rows


def test_rows_of_other_accelerators_are_scored_all_the_same(tmp_path):
    plain_rows, mixed_rows = (
        scored(tmp_path, "H100", "A100 SXM"),
        scored(tmp_path, "Inferentia2", "H100", "B9000", "A100 SXM"),
    )
    assert mixed_rows.skipped[0] == "unsupported accelerator: " + lacking("inf2")
    assert mixed_rows.skipped[2] == "unknown-accelerator: 'B9000'"
    for name in ("predicted", "measured", "error"):
        np.testing.assert_array_equal(mixed_rows[name][[1, 3]], plain_rows[name])


def lacking(part):
    with pytest.raises(DataError, match=f"parts.{part}") as error:
        VALUES[f"parts.{part}.scale_up_domain"]
    return str(error.value)


def test_what_every_row_lacks_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"parts\.inf2\.scale_up_domain is missing"):
        scored(tmp_path, "Inferentia2")
