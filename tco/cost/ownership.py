"""Perspectives and rebates: who owns a system, at which price, and what its suppliers give back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.catalog.system_tree import System
from tco.core.elementwise import elementwise_maximum, elementwise_minimum, exp, log, sqrt
from tco.core.errors import DataError, UnavailableError, refuse_unknown
from tco.core.formula import formula, normal_cdf, total
from tco.core.inputs import Values
from tco.core.memory import once_per_owner
from tco.core.provenance import Input, period
from tco.core.trace import scope
from tco.core.types import Quantity
from tco.core.units import USD, Chip, Pure, Share, USDPerShare, Watt, WattPerChip, Year
from tco.system.bill import BillLine, share_of_price

FOLDER = "perspectives"
# Bases of cost: what an owner or a renter pays for a system.
BUILT_UP = "built-up"
SELLING_PRICE = "selling-price"
RENT = "rent"
BASES = (BUILT_UP, SELLING_PRICE, RENT)
BASIS_DESCRIPTIONS = {  # completes a sentence that begins with the name of the system
    BUILT_UP: "is built by {builder} for its own use",
    SELLING_PRICE: "is sold at its vendor's price",
}


class Perspective(NamedTuple):
    """Perspective document without its values: buyer, cost bases and note."""

    id: str
    name: str
    owner: str  # buyer of systems that are for sale; empty for no particular buyer
    pays: tuple[str, ...]  # bases of cost
    note: str

    @property
    def rents(self) -> bool:
        """Return whether the perspective rents chips and owns none."""
        return self.pays == (RENT,)


@once_per_owner
def load_perspective(catalogue: Catalogue, perspective_id: str) -> Perspective:
    """Return the perspective of `data/perspectives/<name>.toml`.

    Args:
        catalogue: Holds the files; each is read once.
        perspective_id: Id of the perspective.

    Raises:
        DataError: The name or a basis of cost is unknown, a key is missing, or the date is wrong.

    """
    refuse_unknown("perspective", [perspective_id], catalogue.ids(FOLDER), "terms.perspective")
    path, document = catalogue.document(FOLDER, perspective_id, "perspective")
    for document_key in ("name", "as_of", "owner", "pays"):
        if document_key not in document:
            raise DataError(f"{path}: the key {document_key!r} is missing")
    period(str(document["as_of"]), f"{path}: as_of")
    refuse_unknown("basis of cost", map(str, document["pays"]), BASES, f"{path}: pays")
    return Perspective(
        id=perspective_id,
        name=str(document["name"]),
        owner=str(document["owner"]),
        pays=tuple(document["pays"]),
        note=str(document.get("note", "")),
    )


def owner_of(perspective: Perspective, system: System) -> str:
    """Return the owner of a system: its builder or the perspective's buyer.

    The builder owns a system that is built for the builder's own use. The perspective's buyer
    counts as the owner of every other system, and of all rented systems.

    Args:
        perspective: Buyer and bases of cost.
        system: The system, with a builder or without.

    """
    if perspective.rents:
        return perspective.owner
    return system.builder or perspective.owner


def refuse_misfit(
    catalogue: Catalogue, perspective: Perspective, system: System, owner: str
) -> None:
    """Refuse a system that its owner cannot have under a perspective.

    A rented system and a bare chip are never refused.

    Args:
        catalogue: Holds the perspectives; the error names those that fit.
        perspective: Buyer and bases of cost.
        system: The system in question.
        owner: Name of the owner.

    Raises:
        UnavailableError: The perspective does not pay on the system's basis of cost, or the system
            is built for the use of another owner.

    """
    if perspective.rents or system.bare:
        return
    if system.owner_pays not in perspective.pays:
        fitting_ids = [
            perspective_id
            for perspective_id in catalogue.ids(FOLDER)
            if {system.owner_pays, RENT} & set(load_perspective(catalogue, perspective_id).pays)
        ]
        description = _basis_description(system, system.owner_pays)
        raise UnavailableError(
            f"{system.id} {description}, so terms.perspective={perspective.id} has no price for "
            f"it; perspectives that have one: {', '.join(fitting_ids)}"
        )
    if system.builder and owner != system.builder:
        raise UnavailableError(
            f"terms.owner={owner}: {system.id} {_basis_description(system, BUILT_UP)}; "
            "others rent it (terms.perspective=renter)"
        )


def _basis_description(system: System, basis: str) -> str:
    return BASIS_DESCRIPTIONS[basis].format(builder=system.builder or "its owner")


@formula("USD")
def design_share(
    chips: Pure, design_cost: USD, software_cost: USD, design_volume: Pure
) -> Quantity:
    """A system's share of the cost to design a chip and its software: C = n (D + S) / volume.

    The volume is all chips that are ever made.
    """
    return chips * (design_cost + software_cost) / design_volume


class StorageTiers(NamedTuple):
    """Tiers of storage that the cluster states."""

    flash: bool = False
    objects: bool = False


class Holding(NamedTuple):
    """Facts about owner, racks and site that select cost lines."""

    # Chip whose design the owner pays for; None where the price of the chip includes the design.
    design: str | None = None
    network: frozenset[str] = frozenset()  # parts of the tree that belong to the scale-out network
    # Cooling of the hall; None where the site states no premium or discount for the cooling.
    hall: str | None = None
    backup_in_racks: bool = False  # batteries in the racks replace those of the building
    demand_charge: bool = False  # the utility charges for the highest draw of the site
    quoted_peak: float | None = None  # peak PUE of the hall whose rent the site states
    tiers: StorageTiers = StorageTiers()
    own_rates: frozenset[str] = frozenset()  # asset classes with a separate cost of capital
    chip: str = ""  # part whose power falls while it waits for work


# Inputs that each kind of agreement reads. Kinds of warrants have their strike second.
AGREEMENT_TERMS = {
    "share-of-spend": ("share_of_spend",),
    "warrant-share": ("share_of_spend", "strike", "reference_price"),
    "warrant-spend": ("shares", "strike", "spend_threshold", "vested"),
    "warrant-power": (
        "shares",
        "strike",
        "power_threshold",
        "vested",
        "power_per_chip",
        "reachable",
    ),
    "equity": ("invested",),
}
# Kinds of agreement without a rebate: the supplier buys shares of its customer.
KINDS_WITHOUT_REBATE = ("equity",)


@formula("USD", source="formulas-warrants")
def warrant_rebate_by_share(
    spend: USD,
    share_of_spend: Pure,
    share_price: USDPerShare,
    strike: USDPerShare,
    reference_price: USDPerShare,
) -> Quantity:
    """Rebate by a share of spend known at one share price: R = x S max(P - K, 0) / (P0 - K).

    The shares that a dollar vests are fixed.
    """
    return (
        share_of_spend
        * spend
        * elementwise_maximum(share_price - strike, 0 * strike)
        / (reference_price - strike)
    )


@formula("USD", source="formulas-warrants")
def warrant_rebate_on_spend(
    spend: USD,
    shares: Share,
    share_price: USDPerShare,
    strike: USDPerShare,
    spend_threshold: USD,
    vested: Pure,
) -> Quantity:
    """Intrinsic value that a purchase vests: R = N max(P - K, 0) min(S / S_full, 1 - vested).

    Each dollar vests the same number of shares until all are vested.
    """
    return (
        shares
        * elementwise_maximum(share_price - strike, 0 * strike)
        * elementwise_minimum(spend / spend_threshold, 1 - vested)
    )


@formula("W", source="formulas-warrants")
def deployment_power(chips: Chip, power_per_chip: WattPerChip) -> Quantity:
    """Power for which accelerators count in an agreement: P = n p.

    It does not depend on the power of their site.
    """
    return chips * power_per_chip


@formula("USD", source="formulas-warrants")
def warrant_rebate_on_power(
    power: Watt,
    shares: Share,
    share_price: USDPerShare,
    strike: USDPerShare,
    power_threshold: Watt,
    vested: Pure,
    reachable: Pure,
) -> Quantity:
    """Intrinsic value that a delivery of power vests.

    R = h N max(P_share - K, 0) min(P / P_full, 1 - vested), with a share h of the shares within
    their hurdles.
    """
    return (
        reachable
        * shares
        * elementwise_maximum(share_price - strike, 0 * strike)
        * elementwise_minimum(power / power_threshold, 1 - vested)
    )


@formula("USD/share", source="black-scholes1973")
def black_scholes_call(
    share_price: USDPerShare,
    strike: USDPerShare,
    riskless_rate: Pure,
    volatility: Pure,
    life: Year,
    period: Year = 1,
) -> Quantity:
    """Value of a right to buy a share: C = S N(d1) - K exp(-r T) N(d2).

    d1,2 = (ln(S/K) + (r +- s^2/2) T) / (s sqrt T).
    """
    years = life / period
    spread = volatility * sqrt(years)
    first = (log(share_price / strike) + (riskless_rate + volatility**2 / 2) * years) / spread
    return share_price * normal_cdf(first) - strike * exp(-riskless_rate * years) * normal_cdf(
        first - spread
    )


@formula("", source="formulas-warrants")
def warrant_discount(value: USDPerShare, shares: Share, spend_threshold: USD) -> Quantity:
    """Share of the vesting spend that a warrant returns: x = N v / S.

    v is the value of the right to one share.
    """
    return value * shares / spend_threshold


@formula("USD/share", source="formulas-warrants")
def intrinsic_value(share_price: USDPerShare, strike: USDPerShare) -> Quantity:
    """Value of exercising a right now: max(P - K, 0)."""
    return elementwise_maximum(share_price - strike, 0 * strike)


class Agreement(NamedTuple):
    """One agreement between a supplier and a buyer."""

    id: str
    supplier: str
    holder: str  # buyer
    kind: str  # key of `AGREEMENT_TERMS`
    parts: tuple[str, ...]  # covered parts
    company: str  # company whose shares the agreement pays in
    begins: str  # date
    ends: str  # date
    note: str

    def in_force(self, date: str) -> bool:
        """Return whether the agreement covers purchases on the last day of a date.

        Args:
            date: Year, quarter, month or day.

        """
        return period(self.begins).first <= period(date).last <= period(self.ends).last

    @property
    def gives_back(self) -> bool:
        """Whether purchases earn a rebate under the agreement."""
        return self.kind not in KINDS_WITHOUT_REBATE


@once_per_owner
def load_agreement(catalogue: Catalogue, agreement_id: str) -> Agreement:
    """Return the agreement of `data/rebates/<name>.toml`.

    Args:
        catalogue: Holds the files; each is read once.
        agreement_id: Id of the agreement.

    Raises:
        DataError: The name or the kind is unknown, or a key is missing or wrong.

    """
    path, document = catalogue.document("rebates", agreement_id, "rebate")
    for document_key in ("supplier", "holder", "kind", "parts", "company", "from", "until"):
        if document_key not in document:
            raise DataError(f"{path}: the key {document_key!r} is missing")
        texts = document[document_key] if document_key == "parts" else [document[document_key]]
        if not isinstance(texts, list) or any(
            not isinstance(key_text, str) or not key_text for key_text in texts
        ):
            raise DataError(
                f"{path}: {document_key} is {document[document_key]!r}, expected "
                f"{'a list of texts' if document_key == 'parts' else 'a text'}"
            )
    refuse_unknown("kind of rebate", [document["kind"]], AGREEMENT_TERMS, str(path))
    for document_key in ("from", "until"):
        period(str(document[document_key]), f"{path}: {document_key}")
    return Agreement(
        id=agreement_id,
        supplier=document["supplier"],
        holder=document["holder"],
        kind=document["kind"],
        parts=tuple(document["parts"]),
        company=document["company"],
        begins=str(document["from"]),
        ends=str(document["until"]),
        note=document.get("note", ""),
    )


class Rebate(NamedTuple):
    """Rebate of an agreement on a scale-up domain."""

    path: str
    supplier: str
    value: Any  # USD
    kind: str  # kind of the evidence
    sources: tuple[str, ...]
    inputs: tuple[str, ...]  # paths of the inputs that set the value
    note: str
    spend: Any = None  # USD spent on the covered parts


def in_force_for(agreements: list[Agreement], owner: str, date: str) -> list[Agreement]:
    """Return the agreements that give an owner a rebate at a date.

    Args:
        agreements: Agreements of all holders.
        owner: Name of the owner.
        date: Date in ISO form: a year, quarter, month or day.

    Returns:
        At most one agreement of each supplier, in the given order.

    Raises:
        DataError: Two agreements with one supplier are in force together.

    """
    by_supplier: dict[str, Agreement] = {}
    for agreement in agreements:
        if agreement.holder != owner or not agreement.in_force(date) or not agreement.gives_back:
            continue
        if agreement.supplier in by_supplier:
            raise DataError(
                f"rebates: {by_supplier[agreement.supplier].id} and {agreement.id} of "
                f"{agreement.supplier} are both in force at {date}; no purchase earns twice"
            )
        by_supplier[agreement.supplier] = agreement
    return list(by_supplier.values())


def rebate_of(
    agreement: Agreement, lines: list[BillLine], chips: float, input_values: Values
) -> Rebate:
    """Return the rebate of an agreement on a scale-up domain, USD.

    It is a share of the spend on covered parts, or follows from the power of the chips.

    Args:
        agreement: An agreement that gives a rebate.
        lines: Bill of the scale-up domain; `extended` is in USD.
        chips: Chips of the scale-up domain.
        input_values: Inputs by path, with the terms of the agreement and the share price.

    Returns:
        The rebate and the spend on covered parts in USD, with sources and input paths.

    Raises:
        DataError: The reference price of a `warrant-share` agreement is not above its strike.

    """
    with scope("rebates", agreement.id):
        path = f"rebates.{agreement.id}"
        paths = [f"{path}.{term_name}" for term_name in AGREEMENT_TERMS[agreement.kind]]
        spend = total(
            "covered_spend",
            [
                line.extended
                for line in lines
                if line.part in agreement.parts and line.extended is not None
            ],
        )
        if agreement.kind == "share-of-spend":
            rebate_value = share_of_price(spend, *(input_values[term_path] for term_path in paths))
        else:
            terms = [input_values[term_path] for term_path in paths]
            price = input_values[f"shares.{agreement.company}.price"]
            paths.append(f"shares.{agreement.company}.price")
            if agreement.kind == "warrant-share":
                _refuse_low_reference(path, input_values)
            rebate_value = _warrant_rebate(agreement.kind, spend, chips, price, terms)
        kind, sources, _ = input_values.grounds(paths)
        return Rebate(
            path=path,
            supplier=agreement.supplier,
            value=rebate_value,
            kind=kind,
            sources=sources,
            inputs=tuple(paths),
            note=agreement.note,
            spend=spend,
        )


def _warrant_rebate(
    kind: str, spend: Quantity, chips: float, price: Quantity, terms: list[Quantity]
) -> Quantity:
    """Return the rebate of a warrant at a share price, USD.

    The terms are those of `AGREEMENT_TERMS`, in the same order.
    """
    if kind == "warrant-share":
        share_of_spend, strike, reference_price = terms
        return warrant_rebate_by_share(spend, share_of_spend, price, strike, reference_price)
    if kind == "warrant-spend":
        shares, strike, spend_threshold, vested = terms
        return warrant_rebate_on_spend(spend, shares, price, strike, spend_threshold, vested)
    shares, strike, power_threshold, vested, power_per_chip, reachable = terms
    power = deployment_power(chips, power_per_chip)
    return warrant_rebate_on_power(power, shares, price, strike, power_threshold, vested, reachable)


def _refuse_low_reference(path: str, input_values: Values) -> None:
    """Refuse a reference price at or below the strike: the rebate would be negative or infinite."""
    strike, reference = (
        input_values.number(f"{path}.{term_name}") for term_name in ("strike", "reference_price")
    )
    if np.any(reference <= strike):
        raise DataError(
            f"{path}.reference_price: not above {path}.strike, expected a share price at which the "
            "right is worth something"
        )


class Worth(NamedTuple):
    """Value of a warrant at a date, and the equivalent discounts on spend."""

    share_price: Any  # USD per share
    vested: Any  # share from 0 to 1
    intrinsic: Any  # USD per share, value of the right to buy a share if exercised now
    option: Any  # USD per share, value of the same right by Black and Scholes from its grant
    intrinsic_discount: Any  # intrinsic value as a share of the spend that vests the warrant
    option_discount: Any  # option value as a share of the spend that vests the warrant


def worth_of(agreement: Agreement, input_values: Values) -> Worth | None:
    """Return the value of a warrant and its discounts.

    Args:
        agreement: The agreement between supplier and buyer.
        input_values: Inputs by path, with the terms of the agreement and the share price.

    Returns:
        Values in USD per share, the vested share, and discounts as shares of spend. A discount is
        None unless the agreement vests by spend. The result is None for an agreement without a
        warrant, and for a warrant of which only a share of spend is known.

    """
    if agreement.kind in ("share-of-spend", "warrant-share", *KINDS_WITHOUT_REBATE):
        return None
    path = f"rebates.{agreement.id}"
    price = input_values[f"shares.{agreement.company}.price"]
    strike = input_values[f"{path}.strike"]
    intrinsic = intrinsic_value(price, strike)
    option = black_scholes_call(
        price,
        strike,
        *(
            input_values[f"{path}.{term_name}"]
            for term_name in ("riskless_rate", "volatility", "life")
        ),
    )
    intrinsic_discount: Quantity | None = None
    option_discount: Quantity | None = None
    if agreement.kind == "warrant-spend":
        shares = input_values[f"{path}.shares"]
        spend_threshold = input_values[f"{path}.spend_threshold"]
        intrinsic_discount = warrant_discount(intrinsic, shares, spend_threshold)
        option_discount = warrant_discount(option, shares, spend_threshold)
    return Worth(
        share_price=price,
        vested=input_values[f"{path}.vested"],
        intrinsic=intrinsic,
        option=option,
        intrinsic_discount=intrinsic_discount,
        option_discount=option_discount,
    )


def agreement_inputs(agreement: Agreement, input_values: Values) -> list[Input]:
    """Return an agreement's inputs: its terms and the supplier's share price.

    The share price is included only where the agreement pays in shares.

    Args:
        agreement: The agreement between supplier and buyer.
        input_values: Inputs by path.

    """
    paths = [f"rebates.{agreement.id}.{term_name}" for term_name in AGREEMENT_TERMS[agreement.kind]]
    if agreement.kind not in ("share-of-spend", *KINDS_WITHOUT_REBATE):
        paths.append(f"shares.{agreement.company}.price")
    return [input_values.input(path) for path in paths]


def given_back(agreement: Agreement, input_values: Values) -> Any:
    """Return the share of each dollar spent that an agreement gives back.

    Args:
        agreement: The agreement between supplier and buyer.
        input_values: Inputs by path, with the terms of the agreement and the share price.

    Returns:
        A share of spend; None for an agreement that does not state a share of spend.

    """
    path = f"rebates.{agreement.id}"
    if agreement.kind == "share-of-spend":
        return input_values[f"{path}.share_of_spend"]
    if agreement.kind != "warrant-share":
        return None
    price = input_values[f"shares.{agreement.company}.price"]
    strike = input_values[f"{path}.strike"]
    return warrant_rebate_by_share(
        1.0,
        input_values[f"{path}.share_of_spend"],
        price,
        strike,
        input_values[f"{path}.reference_price"],
    )
