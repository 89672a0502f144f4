"""Evidence on figures that are made by hand: no scenario is evaluated."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from tco.catalog.statements import ReproducedFigure
from tco.core.errors import DataError
from tco.core.provenance import Input
from tco.cost.cash_flows import Flow
from tco.evidence import check, draws, guarding
from tco.evidence.check import Finding
from tco.evidence.draws import SpeedProbability, conclusion_probability
from tco.evidence.forecasts import COLUMNS, FILE, read_forecasts
from tco.evidence.guarding import Guard, failing_changes, write_guards
from tco.evidence.ledger import read_ledger
from tco.evidence.published import (
    Publication,
    PublishedRow,
    evaluate_published_figure,
    priced_amounts,
)
from tests.catalogue import CATALOGUE, load_catalogue


# ---------------------------------------------------------------- forecasts
def written_forecasts(tmp_path, monkeypatch, *rows):
    source = next(iter(CATALOGUE.sources))
    usual = {
        "id": "f1",
        "date": "2026-01",
        "version": "0.1",
        "hash": "abc",
        "system": "gb200-nvl72",
        "metric": "tpot_s",
        "predicted": "120",
        "low": "90",
        "high": "150",
        "source": source,
    }
    cells = [[(usual | row).get(column, "") for column in COLUMNS] for row in rows]
    lines = [",".join(row_cells) for row_cells in (COLUMNS, *cells)]
    (tmp_path / "claims").mkdir(exist_ok=True)
    (tmp_path / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setattr("tco.evidence.forecasts.data_directory", lambda: tmp_path)
    return read_forecasts(CATALOGUE)


def test_a_forecast_is_too_high_by_a_share_and_inside_its_range_or_not(tmp_path, monkeypatch):
    forecasts = written_forecasts(
        tmp_path,
        monkeypatch,
        {"measured": "100"},
        {"id": "f2", "measured": "160"},
        {"id": "f3", "source": "nobody"},
        {"id": "f4", "low": "", "high": "", "measured": "120"},
    )
    assert [(forecast.error, forecast.inside) for forecast in forecasts] == [
        (pytest.approx(0.2), True),
        (-0.25, False),
        (None, None),
        (0.0, None),
    ]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (({}, {}), "an id of its own"),
        (({"hash": ""},), "and a hash"),
        (({"version": ""},), "the version that made it"),
        (({"measured": "1", "source": "nobody"},), "unknown source 'nobody'"),
        (({"low": "few"},), "low"),
    ],
)
def test_a_broken_forecast_is_refused(tmp_path, monkeypatch, rows, message):
    with pytest.raises(DataError, match=message):
        written_forecasts(tmp_path, monkeypatch, *rows)


# ---------------------------------------------------------------- published figures
def figure_of(computed, kind="power", tolerance=0.1, reason="", low=90.0, high=110.0):
    is_near = computed is not None and low <= computed <= high
    return ReproducedFigure(
        kind,
        "scenario",
        "rack",
        "watts",
        "W",
        100.0,
        tolerance,
        low,
        high,
        computed,
        "source",
        "",
        reason,
        is_near,
        "publisher",
        (),
    )


@pytest.mark.parametrize(
    ("figure", "findings"),
    [
        (figure_of(105.0), []),
        (figure_of(120.0), ["file: watts of rack is 120.0, published 100 within 10%"]),
        (figure_of(120.0, tolerance=None), ["file: watts of rack is 120.0, published 90 to 110"]),
        # a reason excuses a price of others, and no figure of watts
        (
            figure_of(120.0, reason="why"),
            ["file: watts of rack is 120.0, published 100 within 10%"],
        ),
        (figure_of(120.0, "independent", reason="why"), []),
        (figure_of(120.0, "same-publisher", reason="why"), []),
        (
            figure_of(None, "independent"),
            ["file: watts of rack is None, published 100 within 10%, and no reason is given"],
        ),
    ],
)
def test_a_figure_that_misses_is_found_unless_a_reason_excuses_it(figure, findings):
    assert list(Publication("file", [figure]).findings()) == findings


def flow_of(path, asset, usd, inputs, recurrence=0, hour=0.0):
    return Flow(path, asset, usd, 1, 5, recurrence, 0, "press", (), inputs, False, hour)


RESULT = SimpleNamespace(
    inputs={"site.pue": None},
    bill=None,
    lines=[
        flow_of("servers/chip", "servers", 60.0, ("a",), hour=6.0),
        flow_of("network/nic", "network", 30.0, ("b",), hour=3.0),
        flow_of("site/building", "building", 50.0, ("c",), hour=2.0),
        flow_of("site/energy", "energy", 9.0, ("d",), 12, hour=1.0),
    ],
)


@pytest.mark.parametrize(
    ("cells", "amounts"),
    [
        ({"metric": "capex_usd"}, [(60.0, ("a",)), (30.0, ("b",))]),
        ({"metric": "usd"}, [(60.0, ("a",)), (30.0, ("b",)), (50.0, ("c",))]),
        (
            {"metric": "usd_per_chip_hour"},
            [(6.0, ("a",)), (3.0, ("b",)), (2.0, ("c",)), (1.0, ("d",))],
        ),
        ({"metric": "usd", "lines": ["site"]}, [(50.0, ("c",))]),
        ({"metric": "site.pue"}, [(1.0, ("site.pue",))]),
    ],
)
def test_a_figure_is_priced_by_what_it_counts(cells, amounts):
    assert priced_amounts(RESULT, PublishedRow(None, None, "file:1", cells)) == amounts


def test_lines_are_those_at_or_below_a_path():
    row = PublishedRow(None, None, "file:1", {"metric": "usd", "lines": ["serv"]})
    with pytest.raises(DataError, match="unknown cost line 'serv'"):
        priced_amounts(RESULT, row)


# ---------------------------------------------------------------- guards
BILL_LINES = [
    SimpleNamespace(part="x", extended=10.0, power=100.0, inputs=()),
    SimpleNamespace(part="y", extended=30.0, power=300.0, inputs=()),
]


class Sum(PublishedRow):
    """A row of a figure that is the sum of two prices, and its scenario."""

    def result(self):
        changed = self.cells.get("set", {})
        values = {
            path: float(changed.get(path, f"{value} USD").split()[0])
            for path, value in (("a", 60.0), ("b", 39.0), ("c", 1.0))
        }
        lines = [
            flow_of(path, "servers", value, (path,))
            for path, value in values.items()
            if value < 80  # a dearer part is no choice any more
        ]
        if len(lines) < len(values):
            raise DataError("its line is gone")
        return SimpleNamespace(
            inputs={path: price_of(path, value) for path, value in values.items()}
            | {"cluster.chips": Input("cluster.chips", 16.0, "count")},
            bill=SimpleNamespace(lines=BILL_LINES),
            lines=lines,
            metrics={"chips": 4.0, "it_power_w_per_chip": 5.0},
            scenario="sum",
            system=self.cells.get("system", "rack"),
        )


def price_of(path, value, as_of="2026-05"):
    return Input(path, value, "USD", as_of=as_of)


def sum_row(**cells):
    catalogue = SimpleNamespace(
        sources={"paper": SimpleNamespace(date="2026-06")}, publisher=lambda source: source
    )
    usual = {"metric": "usd", "source": "paper", "kind": "independent"}
    return Sum(catalogue, None, "file:1", usual | cells)


@pytest.fixture
def figures(monkeypatch):
    """The figures of sums are right within a fourth of a hundred."""

    def evaluate_sum(row):
        total = sum(line.usd for line in row.result().lines)
        return figure_of(total, "independent", low=75.0, high=125.0)

    monkeypatch.setattr(guarding, "evaluate_published_figure", evaluate_sum)


def test_a_price_is_guarded_where_its_change_alone_fails_the_figure(figures):
    """Half as much again is 30 or 19.5 more, a third less is 19.8 or 12.9 less.

    The third price is too small to be tried.
    """
    prices = {path: price_of(path, value) for path, value in (("a", 60.0), ("b", 39.0))}
    assert list(failing_changes(sum_row(), prices)) == [("a", 1.5)]
    # of a sum of 81 a third less of 41 is too little, and half as much again is not too much
    less = {"a": price_of("a", 41.0)}
    assert list(failing_changes(sum_row(set={"a": "41 USD"}), less)) == [("a", 0.67)]
    small = {"c": price_of("c", 1000.0)}
    assert list(failing_changes(sum_row(), small)) == []
    unused = {"d": price_of("d", 60.0)}
    assert list(failing_changes(sum_row(), unused)) == []


def test_a_price_of_another_date_or_newer_evidence_is_not_guarded(figures):
    assert list(failing_changes(sum_row(), {"a": price_of("a", 60.0, "2026-04")})) == []
    assert list(failing_changes(sum_row(), {"a": price_of("a", 60.0, "2026-06")})) == []
    guarded = {"a": price_of("a", 60.0)}
    assert list(failing_changes(sum_row(as_of="2026-04"), guarded)) == []
    assert list(failing_changes(sum_row(as_of="2026-05"), guarded)) == [("a", 1.5)]
    newer = {"a": price_of("a", 60.0)._replace(evidence_of="2026-07")}
    assert list(failing_changes(sum_row(), newer)) == []
    assert list(failing_changes(sum_row(source="nobody"), guarded)) == []


def test_a_figure_that_fails_already_guards_nothing(monkeypatch):
    guarded = {"a": price_of("a", 60.0)}
    for missed in (
        figure_of(200.0, "independent"),
        figure_of(100.0, "same-publisher"),
    ):
        monkeypatch.setattr(guarding, "evaluate_published_figure", lambda _, figure=missed: figure)
        assert list(failing_changes(sum_row(), guarded)) == []


def test_prices_in_force_are_held_to_independent_figures_alone(figures, monkeypatch):
    rows = {
        "file": [sum_row(), sum_row(kind="own-source"), sum_row(source="paper", as_of="2026-07")],
        "old": [sum_row(as_of="2025")],
    }
    catalogue = SimpleNamespace(published=rows)
    monkeypatch.setattr(guarding, "read_published", lambda _, name: iter(rows[name]))
    prices = {"a": price_of("a", 60.0), "b": price_of("b", 39.0)}
    monkeypatch.setattr(guarding, "_prices_in_force", lambda _: prices)
    assert guarding.measure_guards(catalogue) == [
        Guard(prices["a"], ("file/paper", "file/paper"), ()),
        Guard(prices["b"], (), ()),
    ]


@pytest.mark.parametrize(
    ("cells", "computed"),
    [
        ({"metric": "usd"}, 100.0),
        ({"metric": "usd_per_chip"}, 25.0),
        ({"metric": "usd_per_it_w"}, 5.0),
        # a domain of 4 chips has a fourth of a cluster of 16
        ({"metric": "cluster_usd"}, 400.0),
        ({"metric": "usd_per_chip", "lines": ["a", "c"]}, 61 / 4),
        ({"metric": "usd", "unit": "kUSD", "value": 0.1}, 0.1),
        ({"metric": "a", "value": 60}, 60.0),
        ({"metric": "bill_usd"}, 40.0),
        ({"metric": "bill_usd_per_chip", "parts": ["y"]}, 7.5),
        ({"metric": "bill_w_per_chip"}, 100.0),
        # two systems of the same sum
        ({"metric": "usd", "over": "other", "value": 1.0}, 1.0),
    ],
)
def test_a_published_figure_stands_beside_the_computed_one(cells, computed):
    row = sum_row(**({"value": computed, "tolerance": 0.01} | cells))
    figure = evaluate_published_figure(row)
    assert figure.computed == pytest.approx(computed, rel=1e-12)
    assert figure.ok
    assert figure.kind == "independent"
    off = sum_row(**({"tolerance": 0.01} | cells | {"value": 2 * computed}))
    assert not evaluate_published_figure(off).ok


class Priced(PublishedRow):
    """A row whose figure is the sum of prices that others state."""

    def result(self):
        prices = {
            "a.price": price_of("a.price", 50.0)._replace(source="bank"),
            "b.cost": price_of("b.cost", 30.0)._replace(source="fit", solved_from="paper;memo"),
            "c.price": price_of("c.price", 19.0)._replace(source="small"),
            "d.tdp": price_of("d.tdp", 41.0)._replace(source="sheet"),
        }
        lines = [
            flow_of(path, "servers", float(price.value), (path, path))
            for path, price in prices.items()
        ]
        return SimpleNamespace(
            inputs=prices, bill=None, lines=lines, metrics={}, scenario="sum", system="rack"
        )


@pytest.mark.parametrize(
    ("source", "kind"), [("paper", "same-publisher"), ("small", "independent")]
)
def test_a_figure_is_of_its_publisher_where_his_prices_carry_a_fifth_of_it(source, kind):
    sources = ("bank", "paper", "small", "sheet")
    catalogue = SimpleNamespace(sources=dict.fromkeys(sources), publisher=lambda name: name.title())
    cells = {"metric": "usd", "source": source, "kind": "independent", "value": 1, "tolerance": 0}
    figure = evaluate_published_figure(Priced(catalogue, None, "file:1", cells))
    # 19 of 140 are too few, watts are no price, and nobody knows the fit and the memo
    assert figure.rests_on_publishers == ("Bank", "Paper")
    assert figure.kind == kind


def test_an_unknown_metric_of_a_figure_is_refused():
    with pytest.raises(DataError, match="did you mean 'usd_per_chip'"):
        evaluate_published_figure(sum_row(metric="usd_per_chap", value=1, tolerance=0))


def test_guards_are_written_with_their_counts(tmp_path):
    guard = Guard(price_of("a", 1.0), ("x", "y"), ("y", "z", "w"))
    assert guard.figures == ("x", "y", "z", "w")
    write_guards([guard, Guard(price_of("b", 1.0), (), ())], tmp_path / "guards.csv")
    assert (tmp_path / "guards.csv").read_text().splitlines()[1:] == [
        "a,2026-05,2,3,x;y;z;w",
        "b,2026-05,0,0,",
    ]


# ---------------------------------------------------------------- all claims
@pytest.mark.parametrize(
    ("settings", "folders", "is_kept"),
    [({}, 1, True), ({"terms.rate": "0.2"}, 1, False), ({}, 2, False)],
)
def test_findings_are_kept_of_shipped_data_without_settings_alone(
    monkeypatch, settings, folders, is_kept
):
    cache_keys = []

    def keep(key, make):
        cache_keys.append(key)
        return make()

    monkeypatch.setattr(check, "cached_arrays", keep)
    monkeypatch.setattr(check, "fork_map", lambda ask, claims: enumerate(map(ask, claims)))
    monkeypatch.setattr(
        check, "check_claim", lambda context, _: Finding(context.claim, 1.0, "holds", ["site.pue"])
    )
    catalogue = load_catalogue()
    monkeypatch.setattr(catalogue, "folders", catalogue.folders * folders)  # it is shared
    ledger = read_ledger(CATALOGUE)
    monkeypatch.setattr(check, "read_ledger", lambda _: ledger)
    findings, notes = check.check_claims(catalogue, settings)
    assert bool(cache_keys) is is_kept
    assert [finding.claim.id for finding in findings] == list(ledger)
    assert notes == [f"{path} is set, but no claim rests on it" for path in settings]
    conclusions, _ = check.check_claims(catalogue, settings, conclusions=True)
    assert {finding.claim.id for finding in conclusions} == {
        claim.id for claim in ledger.values() if claim.command
    }


# ---------------------------------------------------------------- conclusions
@pytest.fixture
def conclusion(monkeypatch):
    """Make a conclusion of a figure whose samples lie by the speed at which it is asked."""

    def made(samples_at, depends=True, speeds=()):
        class Scope:
            depends_on_speed = depends
            speed = None

            def __init__(self, *_):
                pass

            def figure_samples(self):
                return samples_at(self.speed)

            def agreeing_share(self, samples):
                return float((samples > 1).mean())

        monkeypatch.setattr(draws, "ClaimUnderDraws", Scope)
        return conclusion_probability(None, speeds)

    return made


def test_a_conclusion_turns_half_way_in_ratio_between_two_speeds(conclusion):
    def samples_at(speed):
        return np.linspace(0, 1, 11) + (0.75 if speed is None else 40 / speed - 0.5)

    judged = conclusion(samples_at, speeds=(20.0, 50.0, 80.0, 320.0))
    # of 0.75 to 1.75 eight of eleven lie above one
    assert judged.probability == pytest.approx(8 / 11)
    assert (judged.low, judged.high) == pytest.approx((0.85, 1.65))
    assert judged.by_speed == [
        SpeedProbability(20.0, 1.0),
        SpeedProbability(50.0, pytest.approx(3 / 11)),
        SpeedProbability(80.0, 0.0),
        SpeedProbability(320.0, 0.0),
    ]
    assert judged.turns_at_tokens_per_s_per_user == pytest.approx((20 * 50) ** 0.5)


@pytest.mark.parametrize(("slow", "quick"), [(2, 1), (1, 2)])
def test_a_conclusion_that_half_of_the_draws_bear_out_is_the_likelier_one(conclusion, slow, quick):
    """Of four draws two or one lie above one."""

    def samples_at(speed):
        above = quick if speed == 80.0 else slow
        return np.array([2.0] * above + [0.5] * (4 - above))

    judged = conclusion(samples_at, speeds=(20.0, 80.0))
    assert judged.turns_at_tokens_per_s_per_user == pytest.approx(40.0)


def test_a_conclusion_that_rests_on_no_speed_has_none(conclusion):
    judged = conclusion(lambda _: np.array([0.5, 1.5, math.inf]), False, (20.0, 50.0))
    assert judged.by_speed == []
    assert judged.turns_at_tokens_per_s_per_user is None
    assert judged.probability == pytest.approx(2 / 3)
    assert judged.high is None


def test_a_conclusion_known_at_its_own_speed_alone_says_so_of_no_other(conclusion):
    def samples_at(speed):
        if speed == 50.0:
            raise draws.Underived("nobody serves at 50")
        return np.array([2.0])

    judged = conclusion(samples_at, True, (20.0, 50.0))
    assert (judged.probability, judged.by_speed) == (1.0, [])


@pytest.mark.parametrize(
    ("verdict", "expected", "kind", "as_expected"),
    [
        ("holds", "holds", "computed", True),
        ("off", "holds", "computed", False),
        ("open", "", "drawn", True),
        ("not-derivable", "", "drawn", False),
        ("not-derivable", "not-derivable", "computed", True),
    ],
)
def test_a_finding_is_as_expected_or_not(verdict, expected, kind, as_expected):
    claim = SimpleNamespace(verdict=expected, kind=kind, note="A note.")
    assert Finding(claim, 1.0, verdict, []).as_expected is as_expected
    assert Finding(claim, 1.0, verdict, []).note == "A note."
    assert Finding(claim, None, verdict, [], "no plan").note == "A note. Not now: no plan."
