"""A stage of a benchmark with open arrivals: requests at a rate for some seconds, to servers that begin with nothing to do."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.performance.service.engine import Engine
from tco.performance.service.simulation import Requests, serve

SERVERS = 48  # that are simulated, each with draws of its own
BEFORE = 400  # requests of earlier stages, whose prefixes a server may still hold


def first_tokens(engine: Engine, rate: float, seconds: float, prefix: float, prefixes: float, question: float, answer: float) -> Any:
    """Return times to first token of a stage: a server has so many requests a second by lot, each of which begins with one of some prefixes."""
    found = []
    for number in range(SERVERS):
        draws = np.random.default_rng([number, 20260])
        count = BEFORE + int(draws.poisson(rate * seconds))
        arrived = np.sort(np.concatenate([np.zeros(BEFORE), draws.uniform(0, seconds, count - BEFORE)]))
        prompt, answers, known, keeps = (np.full(count, tokens) for tokens in (prefix + question, answer, prefix, prefix))
        every = Requests(arrived, prompt, answers, draws.integers(0, int(prefixes), count), known, keeps)
        before, after = (Requests(*(one[side] for one in every)) for side in (slice(0, BEFORE), slice(BEFORE, count)))
        if count > BEFORE:
            found.append(serve(engine, after, before).first)
    return np.concatenate(found)
