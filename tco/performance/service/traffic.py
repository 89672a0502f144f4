"""Traffic: arrivals, lengths of requests, the prefixes they share, and promised times.

Times between arrivals are of a gamma distribution with the coefficient of variation stated, 1 being
Poisson's. Logarithms of lengths lie on straight lines between the quantiles stated, over those of
the normal distribution; prompt and answer are joined by their rank correlation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.catalog.catalogue import values_of
from tco.catalog.rows import input_attributes
from tco.core.errors import DataError, located, refuse_unknown, unknown
from tco.core.files import is_there, read_toml
from tco.core.own_values import own_input, question_quantity, setting_input, untold_errors
from tco.core.provenance import Given, Input, making
from tco.core.types import FloatArray, JsonMapping, TextMapping, is_finite_number
from tco.performance.service.length_samples import LENGTHS, stretched_sample
from tco.performance.service.simulation import Requests

GROUP = "traffic"
# P50, P90 and P99 of the standard normal distribution
KNOTS = np.array([0.0, 1.2815515655446004, 2.3263478740408408])
ENDS = 4.0  # standard deviations at which lengths end
UNLESS_SAID = {
    "arrival_cv": 1.0,
    "correlation": 0.0,
    "turns": 1.0,
    "thinking_time": 0.0,
    "reuse": 0.0,
}
OF_A_MIX = ("requests_per_s", "arrival_cv")
ROUTERS = ("affinity", "random", "round-robin")


# ---------------------------------------------------------------- promises
class Promise(NamedTuple):
    """Latency limit at a quantile of the requests.

    An example is `ttft p99 <= 2 s`.
    """

    metric: str
    quantile: float
    limit: float  # seconds

    def __str__(self) -> str:
        """Return it as it is written."""
        return f"{self.metric} p{self.quantile * 100:g} <= {self.limit:g} s"


PROMISED = {
    "ttft": "time to first token",
    "tpot": "time per output token after the first",
    "e2e": "time to the last token",
}


def promise_of(promise_text: str) -> Promise:
    """Read a promise, as `ttft p99 <= 2 s`.

    Args:
        promise_text: Metric, percentile and limit; a limit with its unit of time.

    Returns:
        Promise with the quantile from 0 to 1 and the limit in s.

    Raises:
        DataError: The text is no promise, the metric is unknown, or a number is out of range.

    """
    promise_match = re.fullmatch(r"\s*(\w+)\s+[pP](\d+(?:\.\d+)?)\s*<=?\s*(.+?)\s*", promise_text)
    if promise_match is None:
        raise DataError(
            f"promise {promise_text!r}: expected METRIC pQUANTILE <= TIME, such as 'ttft p99 <= 2 "
            "s'"
        )
    metric, quantile = promise_match[1].lower(), float(promise_match[2]) / 100
    refuse_unknown("promise", [metric], PROMISED, repr(promise_text))
    with located(f"promise {promise_text!r}"):
        limit = question_quantity(promise_match[3], "s")
    if not (0 < quantile < 1 and limit > 0):
        raise DataError(
            f"promise {promise_text!r}: expected a percentile between p0 and p100 and a time above "
            "zero"
        )
    return Promise(metric, quantile, limit)


# limits that stand in for a person's own, by metric, in seconds
USUAL_LIMITS = {"ttft": 2.0, "tpot": 0.05}
USUAL_QUANTILE = 0.9


def own_promises(texts: Sequence[str], where: str) -> tuple[Promise, ...]:
    """Return a person's own promises, or their stand-ins where an answer keeps them back.

    The stand-ins are the same however many promises there are, and of which metrics.

    Args:
        texts: Promises such as `ttft p99 <= 2 s`.
        where: Place of the promises, for errors.

    Raises:
        DataError: A text is no promise.

    """
    with untold_errors(f"{where}: a promise cannot be read"):
        promises = tuple(map(promise_of, texts))
    return tuple(map(_usual_promise, USUAL_LIMITS)) if promises and making.get() else promises


def _usual_promise(metric: str) -> Promise:
    limit = _stand_in(f"{GROUP}.{metric}", USUAL_LIMITS[metric], 0.0, math.inf)
    quantile = _stand_in(f"{GROUP}.{metric}_quantile", USUAL_QUANTILE, 0.5, 0.99)
    return Promise(metric, quantile, limit)


def _stand_in(path: str, usual: float, minimum: float, maximum: float) -> float:
    usual_input = Input(path, usual, "ratio")
    return float(own_input(usual_input, partial(float, usual), minimum, maximum).value)


# ---------------------------------------------------------------- traffic
class Traffic(NamedTuple):
    """Traffic document: arrival and length values, promises, and parts of a mix.

    Each part of a mix has its share of the requests.
    """

    id: str
    values: dict[str, float]
    promises: tuple[Promise, ...]
    parts: tuple[tuple[float, Traffic], ...] = ()
    # tokens of prompts, answers and, if known, prefixes; None where quantiles say the lengths
    sample: FloatArray | None = None

    @property
    def thinking(self) -> float:
        """Mean time until a session's next request."""
        return (
            sum(share * part.thinking for share, part in self.parts)
            if self.parts
            else self.values["thinking_time"]
        )

    def gaps(self, engines: float, router: str) -> float:
        """Return the coefficient of variation of arrivals at one of `engines` engines.

        It receives every n-th request, or a random share 1/n.
        """
        cv = self.values["arrival_cv"]
        return (
            cv / np.sqrt(engines)
            if router == "round-robin"
            else float(np.sqrt(1 + (cv**2 - 1) / engines))
        )

    def lengths(self, count: int, draws: np.random.Generator) -> tuple[FloatArray, ...]:
        """Return tokens of prompts, answers and, of a sample that has them, prefixes."""
        if self.sample is not None:
            size = len(self.sample)  # all requests of a sample come before one comes again
            rounds = [draws.permutation(size) for _ in range(-(-count // size))]
            chosen = np.concatenate([*rounds, np.empty(0, int)])[:count]
            return tuple(self.sample[chosen].T)
        prompt_draws, answer_draws = draws.standard_normal((2, count))
        share = 2 * np.sin(np.pi / 6 * self.values["correlation"])
        sides = prompt_draws, share * prompt_draws + np.sqrt(1 - share**2) * answer_draws
        quantiles = np.array([self.values[length_name] for length_name in LENGTHS]).reshape(2, 3)
        prompt, answer = (
            np.rint(np.exp(np.interp(length_draws, *_knots(np.log(length_quantiles)))))
            for length_draws, length_quantiles in zip(sides, quantiles, strict=True)
        )
        return np.maximum(prompt, 1), np.maximum(answer, 1)

    def requests(
        self, engines: float, router: str, count: int, seed: int, pause: float
    ) -> tuple[Requests, Requests]:
        """Return requests to one of `engines` engines, after equally many earlier ones.

        A session pauses for `pause` between two requests. A slot is a session at any time: its next
        request comes from any session under way, and ends it with a chance of one over its turns.
        """
        draws = np.random.default_rng([seed, 20260])
        cv = max(self.gaps(engines, router), 1e-3)
        engine_rate = self.values["requests_per_s"] / engines
        gaps = draws.gamma(1 / cv**2, cv**2 / engine_rate, count)
        part = (
            np.searchsorted(
                np.cumsum([share for share, _ in self.parts]), draws.uniform(size=2 * count)
            )
            if self.parts
            else np.zeros(2 * count, int)
        )
        prompt, answer, slot, prefix_tokens, keeps = np.ones((5, 2 * count))
        first = 0
        for number, (share, traffic_part) in enumerate(self.parts or ((1.0, self),)):
            part_indices = np.flatnonzero(part == number)
            prompt[part_indices], answer[part_indices], *prefix = traffic_part.lengths(
                len(part_indices), draws
            )
            at_once = engine_rate * share * pause * (1.0 if router == "affinity" else engines)
            sessions = (
                max(1, round(at_once)) if traffic_part.values["reuse"] else len(part_indices) + 1
            )
            slot[part_indices] = first + (
                draws.integers(0, sessions, len(part_indices))
                if traffic_part.values["reuse"]
                else np.arange(len(part_indices))
            )
            again = draws.uniform(size=len(part_indices)) >= 1 / traffic_part.values["turns"]
            prefix_tokens[part_indices] = (
                prefix[0]
                if prefix
                else np.floor(traffic_part.values["reuse"] * prompt[part_indices]) * again
            )
            keeps[part_indices] = (prompt[part_indices] + answer[part_indices]) * (
                traffic_part.values["reuse"] > 0
            )
            first += sessions
        arrived = np.concatenate([np.zeros(count), np.cumsum(gaps)])
        all_requests = Requests(
            arrived, prompt, answer, slot.astype(int), np.minimum(prefix_tokens, prompt - 1), keeps
        )
        before, after = (
            Requests(*(request_field[side] for request_field in all_requests))
            for side in (slice(0, count), slice(count, None))
        )
        return before, after


def _knots(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    slopes = np.diff(logs) / np.diff(KNOTS)
    ends = logs[0] - slopes[0] * ENDS, logs[2] + slopes[1] * (ENDS - KNOTS[2])
    return np.array([-ENDS, *KNOTS, ENDS]), np.array([ends[0], *logs, ends[1]])


def _values_set(settings: TextMapping, stated: Mapping[str, float]) -> dict[str, float]:
    """Return the values that are set by name; `stated` holds those of the document."""
    attributes = {
        input_name: attribute
        for (group, input_name), attribute in input_attributes().items()
        if group == GROUP
    }
    set_values = {}
    for setting_key, setting_text in settings.items():
        input_name = setting_key.removeprefix(f"{GROUP}.")
        if input_name not in attributes:
            raise unknown(
                "input path",
                setting_key,
                [f"{GROUP}.{attribute_name}" for attribute_name in attributes],
                "--set",
            )
        attribute = attributes[input_name]
        setting = setting_input(
            f"{GROUP}.{input_name}",
            Given(setting_text),
            attribute.unit,
            (attribute.minimum, attribute.maximum),
            partial(stated.get, input_name),
        )
        set_values[input_name] = setting.value
    return set_values


def _shares_of(document: JsonMapping, path: Path, is_own: bool) -> dict[str, float]:
    """Return the share of the requests of each part of a mix, which sum to one."""
    shares = document.get("shares", {})
    if not isinstance(shares, dict) or not all(
        is_finite_number(share) and share > 0 for share in shares.values()
    ):
        raise DataError(f"{path}:shares: expected NAME = SHARE of the requests, each above zero")
    if is_own and making.get():
        shares = {part: _stand_in(f"{GROUP}.{part}", 1.0, 0.0, math.inf) for part in shares}
    total = sum(shares.values())
    return {part: share / total for part, share in shares.items()}


def _promises_of(document: JsonMapping, path: Path, is_own: bool) -> tuple[Promise, ...]:
    texts = document.get("promises", [])
    if not isinstance(texts, list) or not all(
        isinstance(promise_text, str) for promise_text in texts
    ):
        raise DataError(f"{path}: promises: expected a list of texts, such as ['ttft p99 <= 2 s']")
    if is_own:
        with located(str(path)):
            return own_promises(texts, str(path))
    with located(str(path)):
        return tuple(map(promise_of, texts))


def load_traffic(
    catalogue: Catalogue,
    traffic_name: str,
    settings: TextMapping | None = None,
    part_of: str = "",
) -> Traffic:
    """Read traffic of the catalogue or of a file, with values set.

    Args:
        catalogue: Holds the traffic documents.
        traffic_name: Id of a traffic document, or a TOML file.
        settings: Values by input path, such as `traffic.requests_per_s`.
        part_of: File of the mix that the traffic is a part of; empty for no mix.

    Raises:
        DataError: The document is unknown, lacks a value or is wrong, a part of a mix is a mix, or
            a setting does not suit the traffic.

    """
    if traffic_name.endswith(".toml") and is_there(Path(traffic_name)):
        path, document = Path(traffic_name), read_toml(Path(traffic_name))
        inputs = catalogue.stated_inputs(GROUP, path, document, GROUP)
    else:
        path, document = catalogue.document(GROUP, traffic_name, GROUP)
        inputs = catalogue.document_inputs(GROUP, traffic_name, GROUP, GROUP)
    is_own = catalogue.is_overlay(path)
    stated = {input_path.partition(".")[2]: cell.value for input_path, cell in inputs.items()}
    stated |= _values_set(settings or {}, UNLESS_SAID | stated)
    traffic_values = _with_defaults(path, stated)
    shares = _shares_of(document, path, is_own)
    if shares and part_of:
        raise DataError(f"{part_of}: shares: {traffic_name} is a mix itself; name its parts")
    unsuited = [
        setting_key
        for setting_key in settings or {}
        if setting_key.removeprefix(f"{GROUP}.") not in OF_A_MIX
    ]
    if shares and unsuited:
        raise DataError(
            f"--set {unsuited[0]}: {traffic_name} is a mix, whose parts say so; of it "
            f"{' and '.join(OF_A_MIX)} may be set"
        )
    parts = tuple(
        (share, load_traffic(catalogue, part, part_of=str(path))) for part, share in shares.items()
    )
    return _checked_traffic(traffic_name, path, document, traffic_values, parts, is_own)


def traffic_from_text(document_text: str, path: Path) -> Traffic:
    """Read the text of a traffic document without parts, which a file is to hold.

    Args:
        document_text: Document in TOML.
        path: The file, for errors.

    """
    import tomllib

    document = tomllib.loads(document_text)
    inputs = values_of(document, GROUP, path, True)
    stated = {input_path.partition(".")[2]: cell.value for input_path, cell in inputs.items()}
    return _checked_traffic(str(path), path, document, _with_defaults(path, stated))


def _checked_traffic(
    traffic_name: str,
    path: Path,
    document: JsonMapping,
    traffic_values: dict[str, float],
    parts: tuple[tuple[float, Traffic], ...] = (),
    is_own: bool = False,
) -> Traffic:
    """Return the traffic of a document, whose values are all there and rise where they must."""
    for needed in ("requests_per_s", *(() if parts else LENGTHS)):
        if needed not in traffic_values:
            raise DataError(f"{path}: {needed} is missing")
    if not parts:
        for side in ("input", "output"):
            length_names = [f"{side}_p{quantile}" for quantile in (50, 90, 99)]
            lengths = [traffic_values[length_name] for length_name in length_names]
            if making.get():
                traffic_values |= zip(length_names, sorted(lengths), strict=True)
            elif lengths != sorted(lengths):
                raise DataError(f"{path}: {side}_p50, {side}_p90 and {side}_p99 do not rise")
    # stand-ins of an answer that keeps values back have quantiles alone
    has_sample = not parts and not (is_own and making.get())
    sample = stretched_sample(path, document, traffic_values) if has_sample else None
    return Traffic(
        traffic_name, traffic_values, _promises_of(document, path, is_own), parts, sample
    )


def _with_defaults(path: Path, stated: Mapping[str, float]) -> dict[str, float]:
    """Return values with those that a document leaves out.

    Without turns every prompt begins with what was read before.
    """
    traffic_values = UNLESS_SAID | dict(stated)
    if traffic_values["reuse"] and "turns" not in stated:
        traffic_values["turns"] = np.inf
    if traffic_values["reuse"] and traffic_values["turns"] <= 1 and not making.get():
        raise DataError(
            f"{path}: reuse is {traffic_values['reuse']:g}, but turns says that a session has one "
            "request, "
            "which nothing comes before; expected turns above 1, or none where all prompts reuse"
        )
    return traffic_values
