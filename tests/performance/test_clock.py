"""The clock a power-limited chip sustains: a faster chip is never slower."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.registry import FORMULA
from tests.shipped import attribute

BOUNDS = attribute("performance", "clock_exponent", "")


@given(
    st.floats(50, 3000),
    st.floats(1e13, 1e17),
    st.floats(1, 10),
    st.floats(1e-14, 1e-11),
    st.floats(BOUNDS.minimum, BOUNDS.maximum),
)
def test_a_faster_chip_is_never_slower(power, peak, more, knee, exponent):
    """At fixed watts its clock falls by no more than its peak rises, over all of what the exponent may be."""
    slow, fast = (at * FORMULA.sustained_clock(power, at, knee, exponent) for at in (peak, peak * more))
    assert fast >= slow * (1 - 1e-12)
