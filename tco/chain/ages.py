"""How the dates of the prices of a bill stand to the date of the scenario: which are later, and which are older than their kind may be."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.catalogue import limit_of, moves
from tco.catalog.rows import attributes
from tco.economics.cost import CostLine
from tco.foundation.errors import UnavailableError
from tco.foundation.provenance import Input, Period, period

BILL = ("servers", "network", "storage")  # classes of assets that are bought at the prices of parts
BY_ROWS = " of the bill is priced by rows "
NAMED = 3  # parts a note names, those of the largest sums


class Ages(NamedTuple):
    """The share of the bill that rests on later prices, and on older ones than their kind may be."""

    later: float = 0.0
    older: float = 0.0
    notes: tuple[str, ...] = ()


def ages_of(catalogue: Catalogue, lines: Sequence[CostLine], inputs: Mapping[str, Input], date: str) -> Ages:
    """Return how much of a bill rests on prices of other dates than it should, with notes that name the largest."""
    day, newest = period(date), newest_price(catalogue)
    known: dict[str, Judged] = catalogue.once(("ages", date), dict)
    flows = [line.flow for line in lines]
    found = {flow.path: [one for path in flow.inputs if (one := judged(known, inputs[path], day)).moves] for flow in flows}
    bill = [(float(flow.amount), found[flow.path]) for flow in flows if flow.asset in BILL and not flow.recurs]
    dated = [one for _, rows in bill for one in rows]
    whole = sum(usd for usd, _ in bill)
    notes = [f"{date} lies beyond the prices known: the last is of {newest}, and holds on"] if day.first > period(newest).last else []
    if dated and all(one.later for one in dated):
        first = min(dated, key=lambda one: one.first)
        raise UnavailableError(f"terms.date={date} lies before the first price of this bill, of {first.given.as_of}: its parts were not for sale yet")
    shares = []
    for is_wrong, words in ((LATER, f"later than {date}"), (OLD, "older than their kind may be")):
        rests = [(usd, amiss) for usd, rows in bill if (amiss := [one.given for one in rows if is_wrong(one)])] if any(map(is_wrong, dated)) else []
        shares.append(sum(usd for usd, _ in rests) / whole if rests else 0.0)
        if rests:
            notes.append(f"{shares[-1] * 100:.1f} %{BY_ROWS}{words}: {largest(rests)}")
    for flow in flows:
        if flow.asset in ("rebate", "rent"):
            notes += [aged(flow.path, one.given, day.last) for one in found[flow.path] if one.later or one.old]
    return Ages(shares[0], shares[1], tuple(notes))


class Judged(NamedTuple):
    """An input, whether it moves with the date, and how its own stands to that of the scenario."""

    given: Input
    moves: bool
    first: datetime.date = datetime.date.min
    later: bool = False
    old: bool = False


LATER, OLD = attrgetter("later"), attrgetter("old")


def judged(known: dict[str, Judged], given: Input, day: Period) -> Judged:
    """Return how an input stands to a date, judged once for the same input."""
    found = known.get(given.path)
    if found is None or found.given is not given:
        if moves(given):
            found = Judged(given, True, period(given.as_of).first, is_later(given, day.last), is_old(given, day.last))
        else:
            found = Judged(given, False)
        known[given.path] = found
    return found


def is_later(given: Input, day: datetime.date) -> bool:
    """Say whether a price is of a date after a day."""
    return period(given.as_of).first > day


def is_old(given: Input, day: datetime.date) -> bool:
    """Say whether a price is older at a day than its kind may be."""
    limit = limit_of(given)
    return limit is not None and (day - period(given.as_of).last).days > limit


def largest(rests: list[tuple[float, list[Input]]]) -> str:
    """Return the parts that the largest sums rest on, with the dates of their prices."""
    sums: dict[str, float] = {}
    for usd, found in rests:
        for part in dict.fromkeys(f"{one.path.split('.')[1]} ({one.as_of})" for one in found):
            sums[part] = sums.get(part, 0.0) + usd
    names = sorted(sums, key=lambda part: -sums[part])
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def aged(line: str, given: Input, day: datetime.date) -> str:
    """Return a note on a rebate or a rent that rests on a price of another date."""
    of = period(given.as_of)
    away = f"{(of.first - day).days} days after" if of.first > day else f"{(day - of.last).days} days before"
    return f"{line}: {given.path} is of {given.as_of}, {away} {day}"


def newest_price(catalogue: Catalogue) -> str:
    """Return the date of the latest price of a part."""

    def latest() -> str:
        priced = {name for (group, name), found in attributes().items() if group == "parts" and found.dated}
        rows = (row for (_, name), rows in catalogue.part_rows.items() if name in priced for row in rows)
        return max((row for row in rows if row.as_of), key=lambda row: row.begins).as_of

    return str(catalogue.once("newest price", latest))
