"""The claims ledger: what published sources state, against what parts, systems and formulas of the
catalogue give.
"""

from tco.evidence.check import Finding, check_claims

__all__ = ["Finding", "check_claims"]
