"""Every set input changes a metric, or a note says why it changes none."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

from tco import DataError, evaluate
from tco.evaluation import what_if
from tests.catalogue import CATALOGUE
from tests.cli import document, tco
from tests.study_helpers import evaluate_each

TRAINING = "llama-3.1-405b-training-gb200-nvl72"
WORKLOADS = [
    ({"workload": name}, "gb200-nvl72")
    for name in CATALOGUE.ids("workloads")
    if "training" not in name
]
EVERY = [
    *(({}, name) for name in CATALOGUE.ids("systems")),
    *WORKLOADS,
    *(({}, name) for name in CATALOGUE.scenarios if "training" in name),
]
IDS = ["-".join([name, *view.values()]) for view, name in EVERY]
OUT_OF_BOUNDS = re.compile(r"--set: (\S+): value (\S+) .*is outside ")
LONGER_REQUESTS = [(f"workload.{side}_tokens", 2.0) for side in ("input", "output")]
WHY = re.compile(r"is set, but (moves no metric here: .+|nothing in this scenario rests on it)$")


@pytest.fixture
def trace_of_base_case(monkeypatch):
    """Trace the base case once: each note compares its input's trace with the same one."""
    trace, traced = what_if._metric_nodes, {}

    def trace_once(function, metric):
        if function.settings.keys() - {"workload"}:
            return trace(function, metric)
        question = repr((function, metric))
        if question not in traced:
            traced[question] = trace(function, metric)
        return traced[question]

    monkeypatch.setattr(what_if, "_metric_nodes", trace_once)


def inputs_without_effect_and_note(view, name, step, first=0):
    """Return the number of inputs halved and doubled, and those without effect and note."""
    (evaluation,) = evaluate_each([name], None, view, refuse=False, priced=False)
    base, silent = evaluation.result, []
    paths = sorted(path for path, scenario_input in base.inputs.items() if scenario_input.value)[
        first::step
    ]
    changes = [(path, factor) for path in paths for factor in (0.5, 2.0)]
    refused, unmoved = changes_without_effect(evaluation, changes)
    # a note of one factor stands for the other
    for path, factor in dict(unmoved).items():
        setting = f"{base.inputs[path].value * factor!r} {base.inputs[path].unit}"
        settings = {**view, path: setting}
        (changed,) = evaluate_each([name], None, settings, refuse=False, priced=False)
        still = changed.result.metrics == {
            metric: None if value is None else pytest.approx(value, rel=1e-12)
            for metric, value in base.metrics.items()
        }
        notes = [note for note in changed.result.notes if note.startswith(path)]
        if still and not any(WHY.search(note) for note in notes):
            silent.append((path, factor))
    return len(changes) - len(refused), silent


def changes_without_effect(evaluation, changes):
    """Evaluate all changes together, each in a draw of its own behind one of the base case.

    Returns:
        Changes that are refused as out of bounds, and those in whose draw no metric moves.

    """
    inputs, function = evaluation.result.inputs, evaluation.function(refuse=False)
    arrays = {
        path: np.full(len(changes) + 1, inputs[path].value, dtype=float) for path, _ in changes
    }
    for draw, (path, factor) in enumerate(changes, 1):
        arrays[path][draw] *= factor
    refused = []
    while True:
        try:
            draws = function.draws({path: (arrays[path], inputs[path].unit) for path in arrays})
            break
        except DataError as error:
            if (stated := OUT_OF_BOUNDS.match(str(error))) is None:
                # the sum of both lengths lies beyond the context
                change = next(longer for longer in LONGER_REQUESTS if longer not in refused)
            else:
                factor = float(stated[2]) / inputs[stated[1]].value
                change = (stated[1], min((0.5, 2.0), key=lambda tried: abs(tried - factor)))
            arrays[change[0]][1 + changes.index(change)] = inputs[change[0]].value
            refused.append(change)
    moved_draws = np.zeros(len(changes) + 1, dtype=bool)
    for values in draws.metrics.values():
        if values is not None:
            moved_draws |= ~np.isclose(values, values[0], rtol=1e-12, atol=0, equal_nan=True)
    unmoved = [
        change for change, is_moved in zip(changes, moved_draws[1:], strict=True) if not is_moved
    ]
    return refused, [change for change in unmoved if change not in refused]


@pytest.mark.parametrize(
    ("view", "name", "step"),
    [({}, "trn3-nl72x2", 9), ({}, "gb200-nvl72", 7), ({"workload": "chat"}, "tpuv7-cube64", 9)],
)
def test_some_inputs_change_a_metric_or_have_a_note(view, name, step):
    change_count, silent = inputs_without_effect_and_note(view, name, step, first=2)
    assert silent == []
    assert change_count >= 15


@pytest.mark.thorough
@pytest.mark.usefixtures("trace_of_base_case")
@pytest.mark.parametrize(("view", "name"), EVERY, ids=IDS)
def test_every_input_changes_a_metric_or_has_a_note(view, name):
    change_count, silent = inputs_without_effect_and_note(
        view, name, 5 if "training" in name else 1
    )
    assert silent == []
    assert change_count >= 20


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (
            "parts.optic-800g-dr8.reach",
            "1 km",
            "it is read to check or to choose, and all that is chosen stays",
        ),
        (
            "performance.nvidia.hop_latency",
            "0.6 us",
            r"it is read but does not bind: serving/\S+ stays \S+ s(, as do \d+ more)?",
        ),
        ("cluster.network", "efa", "it is read to choose, and the choice stays"),
        (
            "money.rent",
            "3 USD/chip/h",
            "the money by month and the margin of a site rest on it, no metric does",
        ),
        ("terms.life", "5 year", None),  # what it is anyway
    ],
)
def test_note_on_an_input_without_effect_states_the_reason(path, value, why):
    """The note stands in JSON and beside the table.

    An input that moves something, or is set to its value, has none.
    """
    words = ("compare", "gb200-nvl72", "--no-range", "--set", f"{path}={value}")
    (row,) = document(*words)["rows"]
    notes = [note for note in row["notes"] if note.startswith(f"{path} is set")]
    assert [f"note: gb200-nvl72: {note}" for note in notes] == [
        line for line in tco(*words).stderr.splitlines() if f"{path} is set" in line
    ]
    assert len(notes) == (why is not None)
    assert not notes or re.fullmatch(f"{path} is set, but moves no metric here: {why}", notes[0])


def test_one_input_beside_another_has_a_note_of_its_own():
    done = tco(
        "price",
        "trn3-nl72x2",
        "--set",
        "terms.rate=0.2",
        "--set",
        "parts.optic-800g-dr8.reach=2 km",
    )
    assert "parts.optic-800g-dr8.reach is set" in done.stderr
    assert "terms.rate is set" not in done.stderr


CHIPS = {
    "trn3-nl72x2": "trn3",
    "trn3-nl32x2": "trn3",
    "trn2-nl16": "trn2",
    "tpuv7-cube64": "tpu-v7",
    "gb200-nvl72": "gb200-gpu",
    "mi300x-8": "mi300x",
}


@pytest.mark.parametrize("system", CHIPS)
def test_a_bandwidth_that_is_set_cuts_the_lanes_below_it(system):
    """A tenth of a chip's bandwidth is slower, whatever its lanes are.

    The bandwidth follows from the lanes unless it is set.
    """
    part = f"parts.{CHIPS[system]}"
    ask, token = partial(evaluate, system, catalogue=CATALOGUE), "usd_per_million_output_tokens"
    base = ask().metrics
    rate = base["scale_up_byte_per_s"]
    same, cut = (
        ask({f"{part}.scale_up_bandwidth": (rate / factor, "byte/s")}) for factor in (1, 10)
    )
    assert same.metrics[token] == pytest.approx(base[token], rel=1e-9)
    assert cut.metrics[token] > 1.02 * base[token]
    assert cut.metrics["scale_up_byte_per_s"] == pytest.approx(rate / 10)
    assert f"{part}.lane_bandwidth" not in cut.inputs


@pytest.mark.parametrize("system", ["trn3-nl72x2", "trn2-nl16"])
def test_the_lanes_move_what_a_chip_sends_at_and_a_scope_carries(system):
    part = f"parts.{CHIPS[system]}"
    base = document("fabric", system)["scopes"]
    half = evaluate(system, catalogue=CATALOGUE).inputs[f"{part}.lane_bandwidth"].value / 2
    slow = document("fabric", system, "--set", f"{part}.lane_bandwidth={half!r} byte/s")["scopes"]
    cut = document(
        "fabric",
        system,
        "--set",
        f"{part}.scale_up_bandwidth={base[-1]['injection_gb_per_s'] / 2} GB/s",
    )["scopes"]
    for key in ("injection_gb_per_s", "bisection_gb_per_s", "all_to_all_gb_per_s"):
        for slow_scope, cut_scope, before in zip(slow, cut, base, strict=True):
            assert (
                slow_scope[key] == pytest.approx(cut_scope[key]) == pytest.approx(before[key] / 2)
            )


def test_an_explanation_ends_where_it_was_cut():
    words = ("explain", "trn3-nl72x2", "tpot_s", "--all", "--format", "json")
    full_explanation, cut = (
        tco(*words).stdout,
        tco(*words, "--set", "parts.trn3.scale_up_bandwidth=100 GB/s").stdout,
    )
    assert "parts.trn3.lane_bandwidth" in full_explanation
    assert "parts.trn3.lane_bandwidth" not in cut
    assert "parts.trn3.scale_up_bandwidth" in cut
