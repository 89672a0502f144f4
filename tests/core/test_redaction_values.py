"""Stand-ins for own values: side of the shipped value, distance, and what they keep."""

from __future__ import annotations

import math

import pytest

from tco.core.provenance import Input, making
from tco.core.redaction_values import (
    DIRECTIONS,
    WITHHELD,
    Making,
    figures_apart,
    made_with,
    placeholder_value,
)

SHIPPED = 100.0
PATHS = [f"parts.part-{number}.price" for number in range(400)]


def stand_in(
    number=0,
    usual=SHIPPED,
    minimum=0.0,
    maximum=math.inf,
    *,
    path=PATHS[0],
    span=1.1,
    **fields,
):
    """Return the stand-in of an own input in a making."""
    own_input = Input(path, fields.pop("value", 321.0), fields.pop("unit", "USD"), **fields)
    with made_with(Making(number, set(), span)):
        return placeholder_value(own_input, usual, minimum, maximum)


def factor(path=PATHS[0], span=1.1):
    """Return the factor of a path, by a making that puts stand-ins above."""
    return stand_in(path=path, span=span).value / SHIPPED


def test_stand_ins_rest_on_path_date_and_shipped_value_and_not_on_the_own_value():
    assert stand_in(value=321.0) == stand_in(value=5.0)
    factors = [factor(path) for path in PATHS]
    assert len(set(factors)) == len(PATHS)
    assert stand_in(as_of="2026-01").value != stand_in(as_of="2026-02").value
    assert stand_in(usual=2 * SHIPPED).value == pytest.approx(2 * stand_in().value, rel=1e-15)


@pytest.mark.parametrize("span", [1.1, 40.0])
def test_factors_fill_the_span_to_half_again_as_much(span):
    factors = [factor(path, span) / span for path in PATHS]
    assert 1 <= min(factors) < 1.01
    assert 1.49 < max(factors) < 1.5


def test_a_making_stands_near_unless_it_is_told_otherwise():
    assert 1.1 <= min(factor(path) for path in PATHS) < 1.11
    with made_with(Making(0, set())):
        near = placeholder_value(Input(PATHS[0], 3.0, "USD"), SHIPPED, 0.0, math.inf)
    assert near == stand_in(value=3.0)


def test_makings_stand_above_below_and_on_either_side():
    sides = [[stand_in(number, path=path).value > SHIPPED for path in PATHS] for number in range(5)]
    assert all(sides[0])
    assert not any(sides[1])
    assert all(sides[2])
    assert sides[3] == [not is_above for is_above in sides[4]]
    assert 150 < sum(sides[3]) < 250
    # the same factor in every making: a product of two gives nothing away
    assert stand_in(0).value * stand_in(1).value == pytest.approx(SHIPPED**2, rel=1e-12)


def test_traffic_is_scaled_by_little_however_far_a_making_goes():
    factors = [factor(f"traffic.{path}", 40.0) for path in PATHS]
    assert 1.5 <= min(factors) < 1.52
    assert max(factors) < 2.25
    assert factor("traffic.rate", 1.1) < 1.65


@pytest.mark.parametrize(
    ("minimum", "maximum", "middle"),
    [
        (0.0, math.inf, 1.0),
        (0.25, math.inf, 1.0),
        (5.0, math.inf, 5.0),
        (2.0, 200.0, 20.0),  # the geometric mean
        (0.0, 400.0, 20.0),
        (0.0, 1.0, 0.5),
        (0.0, 0.5, 0.25),
        (-3.0, 400.0, 20.0),
    ],
)
@pytest.mark.parametrize("usual", [None, 0.0])
def test_without_a_shipped_value_the_middle_of_the_bounds_is_scaled(
    usual, minimum, maximum, middle
):
    assert stand_in(0, usual, minimum, maximum).value == pytest.approx(middle * factor(), rel=1e-12)


def test_a_shipped_value_out_of_bounds_is_none():
    assert stand_in(0, 300.0, 2.0, 200.0).value == pytest.approx(20 * factor(), rel=1e-12)
    assert stand_in(0, 2.0, 2.0, 200.0).value == pytest.approx(20 * factor(), rel=1e-12)
    # the greatest value that is allowed is a shipped value as any other
    assert stand_in(1, 200.0, 2.0, 200.0).value == pytest.approx(200 / factor(), rel=1e-12)


def test_a_stand_in_beyond_a_bound_moves_a_part_of_the_way_to_it():
    part = 1 - 1 / factor()
    assert stand_in(0, 99.0, 0.0, 100.0).value == pytest.approx(99 + part, rel=1e-12)
    assert stand_in(1, 10.0, 9.9, 100.0).value == pytest.approx(10 - 0.1 * part, rel=1e-12)
    # nothing lies above the greatest value
    assert stand_in(0, 100.0, 0.0, 100.0).value == pytest.approx(100 * (1 - part), rel=1e-12)
    # and a bound itself is within bounds
    bound = SHIPPED * factor()
    assert stand_in(0, SHIPPED, 0.0, bound).value == bound
    bound = SHIPPED / factor()
    assert stand_in(1, SHIPPED, bound, math.inf).value == bound


def test_counts_stay_whole_and_no_count_is_nought():
    for path in PATHS[:40]:
        count = stand_in(0, 10.0, path=path, unit="count").value
        assert count == round(10 * factor(path))
        assert isinstance(count, float)
    assert stand_in(1, 0.5, unit="count").value == 1
    # what is rounded stays within the bounds
    assert stand_in(1, 2.4, 2.3, 100.0, unit="count").value == 3
    assert stand_in(0, 10.0, unit="ratio").value != round(10 * factor())


def test_ranges_stay_ranges_and_points_stay_points():
    assert stand_in(low=None, high=None)[3:5] == (None, None)
    point = stand_in(value=7.0, low=7.0, high=7.0)
    assert (point.low, point.high) == (point.value, point.value)
    spread = stand_in(value=7.0, low=1.0, high=50.0)
    assert (spread.low, spread.high) == pytest.approx((0.9 * spread.value, 1.1 * spread.value))
    near_bounds = stand_in(0, 95.0, 94.0, 100.0, low=94.5, high=96.0)
    assert (near_bounds.low, near_bounds.high) == (94.0, 100.0)


def test_a_stand_in_keeps_what_names_the_input_and_nothing_that_tells_it():
    fields = {
        "as_of": "2026-03",
        "kind": "vendor",
        "source": "own-quote",
        "note": "from a friend",
        "stated_quantity": (0.321, "kUSD"),
        "overlay": True,
    }
    value = stand_in(**fields)
    assert (value.path, value.unit, value.as_of, value.kind, value.source) == (
        PATHS[0],
        "USD",
        "2026-03",
        "vendor",
        "own-quote",
    )
    assert value.note == WITHHELD
    assert value.overlay
    assert value.stated_quantity == (pytest.approx(value.value / 1000, rel=1e-12), "kUSD")
    bare = stand_in()
    assert bare.note == ""
    assert not bare.stated_quantity


def test_a_making_notes_the_paths_and_ends_with_its_block():
    current = Making(0, set())
    assert not current.is_printed
    assert current.typed_settings == set()

    def fail_in_making():
        with made_with(current):
            assert making.get() is current
            placeholder_value(Input("site.pue", 1.2, "ratio"), 1.1, 1.0, 10.0)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_in_making()
    assert making.get() is None
    assert current.own_paths == {"site.pue"}


def test_figures_on_own_values_differ_between_any_two_makings():
    figures = {"racks": 7, "idle": 0, "share": 0.25, "name": "trn3", "plan": {"chips": 64}}
    own_paths = {"traffic.rate"}
    assert figures_apart(figures, "traffic") is figures
    answers = []
    for number in range(len(DIRECTIONS)):
        with made_with(Making(number, own_paths)):
            # a group that only begins alike is another group
            assert figures_apart(figures, "traf") is figures
            answers.append(figures_apart(figures, "traffic"))
    assert all(answer["name"] == "trn3" for answer in answers)
    for values in (
        *([answer[name] for answer in answers] for name in ("racks", "idle", "share")),
        [answer["plan"]["chips"] for answer in answers],
    ):
        assert len(set(values)) == len(DIRECTIONS)
