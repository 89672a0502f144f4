"""Claims on money."""

from __future__ import annotations

from tco.economics.rebates import intrinsic_value, warrant_discount
from tco.studies.claims.context import Context, computes


@computes("C190", "%")
def credo_warrant(c: Context) -> float:
    """Intrinsic value of all shares over the spend that vests them, at the date of the terms."""
    terms = {name: c.values[f"rebates.credo-2021.{name}"] for name in ("shares", "strike", "spend_threshold")}
    value = intrinsic_value(c.values["shares.credo.price"], terms["strike"])
    return float(warrant_discount(value, terms["shares"], terms["spend_threshold"]))


@computes("C195", "BUSD")
def anthropic_investment(c: Context) -> float:
    """Both rounds."""
    return c.given("first") + c.given("second")
