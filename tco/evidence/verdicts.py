"""Words of the ledger of claims: verdicts, and kinds of claims."""

from __future__ import annotations

from typing import Literal

Verdict = Literal["holds", "open", "arithmetic", "not-shown", "off", "contradicts", "not-derivable"]
# arithmetic: what the claim rests on was typed from it; unstated: of a case that the source leaves
# open; drawn: judged by draws
ClaimKind = Literal["computed", "arithmetic", "unstated", "drawn"]
