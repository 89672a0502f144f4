"""The shipped file of drawn plans: what `tco compare` and `tco claims` take from an empty cache.

`python -m tco.evidence.shipped_draws` writes it anew.
"""

from __future__ import annotations

from tco.catalog import load_catalogue
from tco.comparison.confidence import USUAL
from tco.comparison.curve import draw_confidence
from tco.core.disk_cache import SHIPPED_ARRAYS
from tco.core.files import data_directory
from tco.core.shipped_arrays import PackedArrays, archive_of, collected_arrays
from tco.evaluation.evaluation import HEADLINE, evaluate_each
from tco.evaluation.side_by_side import speeds_of
from tco.evidence.check import check_claim
from tco.evidence.ledger import read_ledger
from tco.evidence.questions import Context
from tco.scenario.document import HEADLINE_SYSTEM


def shipped_draws() -> PackedArrays:
    """Compute the plans of all draws of the headline comparison and of the claims."""
    catalogue = load_catalogue()
    ledger = read_ledger(catalogue)
    evaluations = evaluate_each(HEADLINE, None, {})
    baseline = evaluations[HEADLINE.index(HEADLINE_SYSTEM)]
    request = USUAL._replace(speeds=speeds_of(baseline.result, USUAL.speeds))
    with collected_arrays() as collected:
        draw_confidence(evaluations, HEADLINE_SYSTEM, request)
        for claim in ledger.values():
            if claim.kind == "drawn":
                check_claim(Context(catalogue, {}, ledger, claim))
    return collected


if __name__ == "__main__":
    (data_directory() / SHIPPED_ARRAYS).write_bytes(archive_of(shipped_draws()))
