"""The claims ledger: what published sources state, against what parts, systems and formulas of the catalogue give."""

from tco.studies.claims import compute, copper, fabrics, memory, money, networks, plans, racks, sites, switches, worlds
from tco.studies.claims.ledger import Finding, check_claims

__all__ = [
    "Finding",
    "check_claims",
    "compute",
    "copper",
    "fabrics",
    "memory",
    "money",
    "networks",
    "plans",
    "racks",
    "sites",
    "switches",
    "worlds",
]
