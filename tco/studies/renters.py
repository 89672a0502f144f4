"""Renters side by side: one statistic of one publisher for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tco.chain.ownership import PUBLISHER
from tco.economics.cost import CIRCULAR, COMMITMENTS, COMMITTED, RENTS

if TYPE_CHECKING:
    from tco.studies.evaluation import Evaluation

BOUND = "rent_bound"  # no statistic: nothing is held against it
WORDS = {names[0]: words for words, names in COMMITMENTS.items() if words != COMMITTED}  # what a rent is called -> the commitment that asks for it


def of_one_statistic(asked: Sequence[Evaluation], how: Mapping[str, Any]) -> list[Evaluation]:
    """Return renters that pay by one statistic of one publisher: the one that most chips have, and of several the nearest to a contract.

    A side that has none by it is left out, and says so. A rent that is set stands as it is.
    """
    known = Counter(pair for one in asked for pair in {*pairs_of(one)})
    if not known:
        return list(asked)
    ranks = list(RENTS)
    name, publisher = max(known, key=lambda pair: (known[pair], -ranks.index(pair[0])))
    said = {"terms.commitment": WORDS[name], PUBLISHER: publisher}
    found = []
    for one in asked:
        if one.result.rent in (None, (name, publisher)) or one.saved:
            found.append(one)
        else:
            found.append(one._replace(settings={**one.settings, **said}, result=one.again(said, **how)))
    return found


def pairs_of(one: Evaluation) -> list[tuple[str, str]]:
    """Return every statistic and publisher by which the chips of a renter might be paid for, at the commitment he asks for."""
    rent, result = one.result.rent, one.result
    if rent is None:
        return []
    chip, date = next(iter(result.lines)).inputs[0].split(".")[1], result.texts["terms.date"]
    names = [name for name in COMMITMENTS[result.texts["terms.commitment"]] if name != BOUND and one.catalogue.has_part_value(chip, name)]
    given = [(name, one.catalogue.part_input(chip, name, date)) for name in names]
    return [(name, found.publisher) for name, found in given if found.source != CIRCULAR]
