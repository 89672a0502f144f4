"""Supplier rebates: equity a buyer earns by buying. A line of its own, never a lower part price."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.foundation.dates import period
from tco.foundation.errors import DataError, unknown
from tco.foundation.formula import formula, normal_cdf, total
from tco.foundation.provenance import worst
from tco.foundation.trace import scope
from tco.foundation.units import USD, Pure, Share, USDPerShare, Watt, Year
from tco.foundation.values import Values
from tco.hardware.bill import BillLine

KINDS = {
    "share-of-spend": ("share_of_spend",),
    "warrant-spend": ("shares", "strike", "spend_threshold", "vested"),
    "warrant-power": ("shares", "strike", "power_threshold", "vested"),
}


@formula(unit="USD", source="tco-model")
def rebate_by_share(spend: USD, share_of_spend: Pure) -> Any:
    """Rebate as a stated share of the spend on covered parts: R = x S."""
    return spend * share_of_spend


@formula(unit="USD", source="formulas-warrants")
def warrant_rebate_on_spend(spend: USD, shares: Share, share_price: USDPerShare, strike: USDPerShare, spend_threshold: USD, vested: Pure) -> Any:
    """Intrinsic value a purchase vests: R = S / S_full x N max(P - K, 0) (1 - vested). Nothing is left once all has vested."""
    return spend / spend_threshold * shares * np.maximum(share_price - strike, 0 * strike) * (1 - vested)


@formula(unit="USD", source="formulas-warrants")
def warrant_rebate_on_power(power: Watt, shares: Share, share_price: USDPerShare, strike: USDPerShare, power_threshold: Watt, vested: Pure) -> Any:
    """Intrinsic value a delivery of power vests: R = P / P_full x N max(P_share - K, 0) (1 - vested), vesting taken as linear."""
    return power / power_threshold * shares * np.maximum(share_price - strike, 0 * strike) * (1 - vested)


@formula(unit="USD/share", source="black-scholes1973")
def black_scholes_call(share_price: USDPerShare, strike: USDPerShare, riskless_rate: Pure, volatility: Pure, life: Year, period: Year = 1) -> Any:
    """Value of a right to buy a share: C = S N(d1) - K exp(-r T) N(d2), d1,2 = (ln(S/K) + (r +- s^2/2) T) / (s sqrt T)."""
    years = life / period
    spread = volatility * np.sqrt(years)
    first = (np.log(share_price / strike) + (riskless_rate + volatility**2 / 2) * years) / spread
    return share_price * normal_cdf(first) - strike * np.exp(-riskless_rate * years) * normal_cdf(first - spread)


@formula(unit="", source="formulas-warrants")
def warrant_discount(value: USDPerShare, shares: Share, spend_threshold: USD) -> Any:
    """What a warrant gives back of the spend that vests it: x = N v / S, v being the value of one share's right."""
    return value * shares / spend_threshold


@formula(unit="USD/share", source="formulas-warrants")
def intrinsic_value(share_price: USDPerShare, strike: USDPerShare) -> Any:
    """Value of exercising a right now: max(P - K, 0)."""
    return np.maximum(share_price - strike, 0 * strike)


@formula(unit="USD/share", source="formulas-warrants")
def price_for_rebate(strike: USDPerShare, share_of_spend: Pure, spend_threshold: USD, shares: Share) -> Any:
    """Share price at which a warrant gives back a share of the spend: P = K + x S / N."""
    return strike + share_of_spend * spend_threshold / shares


class Agreement(NamedTuple):
    """One agreement between a supplier and a buyer."""

    id: str
    supplier: str
    holder: str
    kind: str
    parts: tuple[str, ...]
    company: str
    begins: str
    ends: str
    note: str

    def in_force(self, date: str) -> bool:
        """Say whether purchases on the last day of a date (a year, quarter, month or day) fall under the agreement."""
        return period(self.begins).first <= period(date).last <= period(self.ends).last


def load_agreement(catalogue: Catalogue, name: str) -> Agreement:
    """Read `data/rebates/<name>.toml`; a missing key or an unknown kind raises `DataError`."""
    path, document = catalogue.document("rebates", name, "rebate")
    for key in ("supplier", "holder", "kind", "parts", "company", "from", "until"):
        if key not in document:
            raise DataError(f"{path}: the key {key!r} is missing")
    if document["kind"] not in KINDS:
        raise unknown("kind of rebate", str(document["kind"]), KINDS, str(path))
    for key in ("from", "until"):
        period(str(document[key]), f"{path}: {key}")
    return Agreement(
        name,
        document["supplier"],
        document["holder"],
        document["kind"],
        tuple(document["parts"]),
        document["company"],
        str(document["from"]),
        str(document["until"]),
        document.get("note", ""),
    )


class Rebate(NamedTuple):
    """What one agreement gives back on one world."""

    path: str
    supplier: str
    value: Any
    kind: str
    sources: tuple[str, ...]
    inputs: tuple[str, ...]
    note: str
    spend: Any = None  # on the covered parts


def rebate_of(agreement: Agreement, lines: list[BillLine], facility_power: Any, values: Values) -> Rebate:
    """Return the rebate of an agreement on the covered parts of a bill, or on the power it delivers."""
    with scope("rebates", agreement.id):
        return value_of(agreement, lines, facility_power, values)


def value_of(agreement: Agreement, lines: list[BillLine], facility_power: Any, values: Values) -> Rebate:
    """Return the rebate of an agreement, its cells named in the place that is open."""
    path = f"rebates.{agreement.id}"
    names = KINDS[agreement.kind]
    terms = {name: f"{path}.{name}" for name in names}
    paths = [*terms.values(), *([] if agreement.kind == "share-of-spend" else [f"shares.{agreement.company}.price"])]
    spend = total("covered_spend", [line.extended for line in lines if line.part in agreement.parts and line.extended is not None])
    if agreement.kind == "share-of-spend":
        value = rebate_by_share(spend, values[terms["share_of_spend"]])
    else:
        price = values[f"shares.{agreement.company}.price"]
        vest = warrant_rebate_on_spend if agreement.kind == "warrant-spend" else warrant_rebate_on_power
        base = spend if agreement.kind == "warrant-spend" else facility_power
        value = vest(base, values[terms["shares"]], price, values[terms["strike"]], values[terms[names[2]]], values[terms["vested"]])
    given = [values.input(p) for p in paths]
    sources = tuple(dict.fromkeys(g.source for g in given))
    return Rebate(path, agreement.supplier, value, worst([g.kind for g in given]), sources, tuple(paths), agreement.note, spend)


class Worth(NamedTuple):
    """What a right under an agreement is worth at a date."""

    share_price: Any
    vested: Any
    intrinsic: Any  # of one share's right
    option: Any  # the same by Black and Scholes, with the life it had at its grant
    intrinsic_discount: Any  # of the spend that vests the whole
    option_discount: Any


def worth_of(agreement: Agreement, values: Values) -> Worth | None:
    """Return what a warrant's right is worth; None for an agreement that is no warrant."""
    if agreement.kind == "share-of-spend":
        return None
    path = f"rebates.{agreement.id}"
    price, strike = values[f"shares.{agreement.company}.price"], values[f"{path}.strike"]
    now = intrinsic_value(price, strike)
    option = black_scholes_call(price, strike, *(values[f"{path}.{name}"] for name in ("riskless_rate", "volatility", "life")))
    discounts = [None, None]
    if agreement.kind == "warrant-spend":
        terms = values[f"{path}.shares"], values[f"{path}.spend_threshold"]
        discounts = [warrant_discount(value, *terms) for value in (now, option)]
    return Worth(price, values[f"{path}.vested"], now, option, *discounts)
