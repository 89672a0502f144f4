"""Samples of a trace, stretched to other quantiles and another reuse, by hand."""

from pathlib import Path

import numpy as np
import pytest

from tco.core.errors import DataError
from tco.performance.service.length_samples import LENGTHS, stretched_sample

TRACED = dict(zip(LENGTHS, (100.0, 1000.0, 10_000.0, 10.0, 100.0, 1000.0), strict=True))
REQUESTS = [[100, 10, 40], [1000, 100, 900], [10_000, 1000, 0]]
PATH = Path("mine.toml")


def stretched(values=None, requests=REQUESTS, **table):
    sample = TRACED | {"correlation": 0.5, "reuse": 0.5, "requests": requests} | table
    set_values = TRACED | {"correlation": 0.5, "reuse": 0.5} | (values or {})
    return stretched_sample(PATH, {"sample": sample}, set_values)


def test_a_document_without_a_sample_has_none():
    assert stretched_sample(PATH, {}, TRACED) is None


def test_a_sample_at_its_own_quantiles_stays_as_it_is():
    assert stretched().tolist() == REQUESTS
    assert stretched(requests=[row[:2] for row in REQUESTS]).tolist() == [
        row[:2] for row in REQUESTS
    ]


def test_lengths_move_with_their_quantiles_and_prefixes_with_their_prompts():
    doubled = {name: 2 * TRACED[name] for name in LENGTHS if name.startswith("input")}
    assert stretched(doubled).tolist() == [[200, 10, 80], [2000, 100, 1800], [20_000, 1000, 0]]
    longer = {name: 3 * TRACED[name] for name in LENGTHS if name.startswith("output")}
    assert stretched(longer).tolist() == [[100, 30, 40], [1000, 300, 900], [10_000, 3000, 0]]
    pairs = stretched(doubled, [row[:2] for row in REQUESTS])
    assert pairs[:, 0].tolist() == [200, 2000, 20_000]


def test_between_quantiles_logarithms_lie_on_a_line():
    """Between two quantiles lengths grow by the geometric mean of their factors.

    Beyond the quantiles they grow as at the nearest.
    """
    values = {"input_p50": 100.0, "input_p90": 4000.0, "input_p99": 40_000.0}
    requests = [[int(100 * 10**0.5), 10], [5, 1], [10**6, 1]]
    lengths = stretched(values, requests)
    middle = requests[0][0]
    between = middle * 4 ** (np.log10(middle / 100))
    assert lengths[:, 0].tolist() == [round(between), 5, 4 * 10**6]
    assert lengths[:, 1].tolist() == [10, 1, 1]


def test_more_reuse_lengthens_prefixes_up_to_the_prompt():
    assert stretched({"reuse": 1.0})[:, 2].tolist() == [80, 1000, 0]
    assert stretched({"reuse": 0.25})[:, 2].tolist() == [20, 450, 0]
    assert stretched({"reuse": 0.0})[:, 2].tolist() == [0, 0, 0]


def test_no_length_falls_below_a_token():
    tiny = {name: 1e-3 * TRACED[name] for name in LENGTHS}
    assert stretched(tiny)[0].tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"requests": []}, "expected lists of two or three numbers"),
        ({"requests": "many"}, "expected lists of two or three numbers"),
        ({"requests": [[1]]}, "expected lists of two or three numbers"),
        ({"requests": [[1, 2], [1, 2, 1]]}, "expected lists of two or three numbers"),
        ({"requests": [[1, 2], 3]}, "expected lists of two or three numbers"),
        ({"requests": [[5, 5], [0, 5]]}, "request 2 is"),
        ({"requests": [[5, 0]]}, "request 1 is"),
        ({"requests": [[5, 5, 6]]}, "a prefix no longer than the prompt"),
        ({"requests": [[5, 5, -1]]}, "a prefix no longer than the prompt"),
        ({"requests": [["5", 5]]}, "is '5', expected a number"),
        ({"requests": [[1e12, 5]]}, "expected a number"),
        ({"input_p50": None}, "sample.input_p50: is None, expected a number"),
        ({"correlation": 0.4}, "correlation is 0.5, and its"),
        ({"length": 3}, "length"),
    ],
)
def test_a_broken_sample_is_refused(table, message):
    with pytest.raises(DataError, match=message):
        stretched(**table)


def test_a_sample_that_lacks_a_figure_is_refused():
    with pytest.raises(DataError, match="sample: expected a table with input_p50"):
        stretched_sample(PATH, {"sample": TRACED}, TRACED)
    with pytest.raises(DataError, match="sample: expected a table with input_p50"):
        stretched_sample(PATH, {"sample": 3}, TRACED)


def test_a_request_may_begin_wholly_with_what_was_read():
    assert stretched(requests=[[5, 1, 5], [1, 1, 0]]).tolist() == [[5, 1, 5], [1, 1, 0]]
    assert stretched(requests=[[1e11, 1]])[0, 0] == 1e11
