"""What a large batch costs in data: beyond the critical batch, the noise scale of the gradients, more of it saves few steps.

The scale belongs to model and data and grows as the loss falls, so no workload states it; who knows it sets `workload.critical_batch`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import formula
from tco.foundation.trace import plain
from tco.foundation.units import Pure
from tco.foundation.values import Values

PATH = "workload.critical_batch"


@formula(unit="", source="mccandlish2018")
def steps_over_least(sequences: Pure, sequence: Pure, critical_batch: Pure) -> Any:
    """Steps to a loss over the fewest any batch takes: S / S_min = 1 + B_n / (B s)."""
    return 1 + critical_batch / (sequences * sequence)


@formula(unit="", source="mccandlish2018")
def tokens_over_least(sequences: Pure, sequence: Pure, critical_batch: Pure) -> Any:
    """Tokens to a loss over the fewest any batch takes: E / E_min = 1 + B s / B_n."""
    return 1 + sequences * sequence / critical_batch


def notes_on_batch(values: Values) -> list[str]:
    """Say what the batch of a step costs in steps and tokens, if the user states the critical batch."""
    if not values.has(PATH):
        return []
    batch = values["workload.global_batch"], values["workload.sequence_length"], values[PATH]
    steps, tokens = plain(steps_over_least(*batch)), plain(tokens_over_least(*batch))
    if np.ndim(steps):
        return []  # many draws at once
    return [f"to the same loss this batch takes {float(steps):.3g} x the fewest steps and {float(tokens):.3g} x the fewest tokens"]
