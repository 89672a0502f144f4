"""A model from the figures of a paper or a measured row, without a `config.json`.

The text form `layers=40,hidden=5120,heads=40,kv_heads=40,ffn=13824,vocab=32000` names such a model
wherever a model is named; a row of measurements with columns of these names is turned into the same
text first, so that both are read by one function.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from tco.core.errors import DataError, refuse_unknown
from tco.core.types import JsonMapping, JsonObject, is_finite_number
from tco.models.config import Config
from tco.models.layers import Architecture, Attention, FeedForward, LayerBlock

NEEDED = ("layers", "hidden", "heads", "ffn", "vocab")
OPTIONAL = (
    "kv_heads",
    "head_dim",
    "experts",
    "active",
    "shared",
    "matrices",
    "tied",
    "context",
    "params_b",
)
KEYS = (*NEEDED, *OPTIONAL)
TOGETHER = {"experts": "active", "active": "experts"}  # one says nothing without the other
ANSWERS = {"yes": True, "no": False}
UNLIMITED = 10**9  # tokens: no context is stated
PLAIN, GATED = 2, 3  # matrices of a feed-forward part
PLAIN_WIDTH = 4  # a feed-forward part without a gate is this many times as wide as the model
# share of the stated parameters that the model of the stated figures may miss or exceed
FARTHEST = 0.15


def missing_figures(figures: JsonMapping) -> list[str]:
    """Return the keys without which no model can be built.

    Args:
        figures: Figures of a model by key.

    Returns:
        Needed keys that `figures` lacks, such as `active` beside `experts`.

    """
    return [
        figure_key
        for figure_key in (
            *NEEDED,
            *(TOGETHER[figure_key] for figure_key in TOGETHER if figure_key in figures),
        )
        if figure_key not in figures
    ]


def figures_text(figures: JsonMapping) -> str:
    """Return figures as the text that names their model.

    Known keys have a fixed order; whole numbers have no decimal point.

    Args:
        figures: Figures of a model by key, all numbers; unknown keys are left out.

    Returns:
        A text such as `layers=40,hidden=5120`.

    """
    return ",".join(
        f"{figure_key}={figures[figure_key]:.12g}" for figure_key in KEYS if figure_key in figures
    )


def _parse_model_figures(model_text: str) -> JsonObject:
    """Parse figures `key=value,...`; an unknown, double or missing key raises `DataError`."""
    figures: JsonObject = {}
    for pair in model_text.split(","):
        figure_key, sign, figure_value = (part.strip() for part in pair.partition("="))
        if not sign or not figure_value:
            raise DataError(
                f"model {model_text!r}: {pair!r} is no key=value; the keys are {', '.join(KEYS)}"
            )
        refuse_unknown("key", [figure_key], KEYS, f"model {model_text!r}")
        if figure_key in figures:
            raise DataError(f"model {model_text!r}: {figure_key} is given twice")
        figures[figure_key] = _parse_stated_value(figure_value)
    missing = missing_figures(figures)
    if missing:
        raise DataError(f"model {model_text!r}: missing {', '.join(missing)}")
    return figures


def _parse_stated_value(value_text: str) -> Any:
    """Return a value as a whole number, a decimal number or a word."""
    for kind in (int, float):
        try:
            return kind(value_text)
        except ValueError:
            continue
    return ANSWERS.get(value_text.lower(), value_text)


def stated_model(model_text: str) -> Architecture:
    """Return the model of stated figures: equal layers of grouped-query attention, no biases.

    Its feed-forward part is dense or routed.

    `kv_heads` left out is as many as heads, `head_dim` hidden over heads; `ffn` is the width of one
    expert where there are `experts`, of which `active` see a token beside a shared one of width
    `shared`. `matrices` (2, or 3 with a gate) and `tied` (one matrix for both embeddings) left out
    follow custom: no gate and tied embeddings, as in GPT, where a dense feed-forward part is
    exactly four times as wide as the model and every head has keys of its own, else a gate and
    untied ones. A stated `params_b` (billions) that this misses by more than its last digit decides
    instead.
    """
    c = Config(_parse_model_figures(model_text), f"model {model_text!r}")
    every_head = c.integer("kv_heads", c.integer("heads")) == c.integer("heads")
    plain = (
        c.integer("ffn") == PLAIN_WIDTH * c.integer("hidden")
        and every_head
        and not c.has("experts")
    )
    usual = PLAIN if plain else GATED
    gates = (
        (c.integer("matrices", least=PLAIN, most=GATED),) if c.has("matrices") else (PLAIN, GATED)
    )
    ties = (c.flag("tied"),) if c.has("tied") else (False, True)
    candidates = [_shaped(c, model_text, gate, tied) for gate, tied in product(gates, ties)]
    target, rounding = _billions(c) if c.has("params_b") else (0.0, math.inf)

    def rank(model: Architecture) -> tuple[float, bool, bool]:
        matrices = model.blocks[0].feed_forward.matrices
        return (
            max(abs(model.parameters - target) - rounding, 0.0),
            matrices != usual,
            model.tied != (matrices == PLAIN),
        )

    best = min(candidates, key=rank)
    if abs(best.parameters - target) > max(FARTHEST * target, rounding):
        raise DataError(
            f"{c.where}: the figures make {best.parameters / 1e9:,.4g} billion parameters, "
            f"params_b says {target / 1e9:,.4g}"
        )
    return best


def _billions(c: Config) -> tuple[float, float]:
    stated_billions = c.content["params_b"]
    if not is_finite_number(stated_billions) or not 0 < stated_billions < UNLIMITED:
        raise c.wrong("params_b", "billions of parameters")
    return float(stated_billions) * 1e9, 0.5e9 / 10 ** len(
        f"{stated_billions:.12g}".partition(".")[2]
    )


def _shaped(c: Config, model_text: str, matrices: int, tied: bool) -> Architecture:
    """Return the model of the figures with the given gate matrices and tied embeddings."""
    layers = c.integer("layers", most=10_000)
    hidden = c.integer("hidden")
    heads = c.integer("heads")
    groups = c.integer("kv_heads", heads, most=heads)
    if not c.has("head_dim") and hidden % heads:
        raise c.wrong("heads", f"a divisor of hidden, {hidden}, or head_dim beside it")
    if heads % groups:
        raise c.wrong("kv_heads", f"a divisor of the {heads} heads")
    width = c.integer("head_dim", max(hidden // heads, 1))
    feed_forward = FeedForward(c.integer("ffn"), matrices)
    if c.has("experts"):
        experts = c.integer("experts", most=10**6)
        feed_forward = feed_forward._replace(
            experts=experts,
            active=c.integer("active", most=experts),
            shared_width=c.count("shared", 10**9),
        )
    block = LayerBlock(
        layers, Attention(heads, groups, width, width), feed_forward, other_weights=2 * hidden
    )
    return Architecture(
        model_text,
        hidden,
        c.integer("vocab"),
        tied,
        c.integer("context", UNLIMITED),
        (block,),
        "",
        other_weights=hidden,
    )
