"""A rack whose parts change while it runs, as switches of a later generation do: what is bought for it, and what it runs as before and after."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from tco.economics.flows import Payment
from tco.foundation.errors import UsageError

if TYPE_CHECKING:
    from tco.chain.result import Result

FORM = re.compile(r"(?P<key>[\w-]+)=(?P<value>[^@=]+)@(?P<month>\d+)")


class Swap(NamedTuple):
    """A variant of the system that stands from a month of operation on."""

    key: str
    value: str
    month: int  # of operation, the last of the old parts


def swap_of(text: str) -> Swap:
    """Return the swap that `KEY=VALUE@MONTH` names; anything else raises `UsageError`."""
    found = FORM.fullmatch(text)
    if found is None or not int(found["month"]):
        raise UsageError(f"--swap {text}: expected a variant and a month of operation, such as switch=gen2@24")
    return Swap(found["key"], found["value"], int(found["month"]))


def bought(before: Result, after: Result, month: int) -> Iterator[Payment]:
    """Yield what the parts cost that the new variant has more of, in the month they are put in: the old ones fetch nothing."""
    had = quantities(before)
    prices = {line.part: line.unit_price for line in after.bill.lines if line.unit_price is not None} if after.bill else {}
    for part, count in quantities(after).items():
        if part in prices and count > had.get(part, 0.0):
            yield Payment(month, prices[part] * (count - had.get(part, 0.0)), f"swap/{part}")


def quantities(result: Result) -> dict[str, float]:
    """Return how many of each part that is priced by itself stand in a world."""
    found: dict[str, float] = {}
    for line in result.bill.lines if result.bill else []:
        if line.extended is not None:
            found[line.part] = found.get(line.part, 0.0) + line.quantity
    return found
