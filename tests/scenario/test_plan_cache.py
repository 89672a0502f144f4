"""Plans of a search on disk: remembered for another price, with all that the search read."""

from __future__ import annotations

import pytest

from tco.catalog import Catalogue
from tco.core.provenance import making
from tco.performance.serving import result
from tco.scenario.evaluate import evaluate

SYSTEM = "trn3-nl72x2"
PRICE = {"site.electricity_price": "0.0813 USD/kWh"}


@pytest.fixture
def searching(tmp_path, monkeypatch):
    """Return an evaluation of a system with settings, its cache folder, and a log of searches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    log, search = [], result.choose_decode

    def choose_decode(*request):
        log.append(request)
        return search(*request)

    monkeypatch.setattr(result, "choose_decode", choose_decode)
    return lambda settings: evaluate(SYSTEM, settings, catalogue=Catalogue()), tmp_path, log


def test_another_price_has_the_same_plan_without_a_search(searching):
    answer, _, log = searching
    first, second = answer({}), answer(PRICE)
    assert len(log) == 1
    assert second.plan == first.plan
    assert second.metrics["tokens_per_s_per_user"] == first.metrics["tokens_per_s_per_user"]
    assert second.metrics["tco_usd_per_chip_hour"] != first.metrics["tco_usd_per_chip_hour"]


def test_remembered_plan_reads_and_reports_what_its_search_did(searching):
    answer, _, log = searching
    searched, remembered = answer(PRICE), answer(PRICE)
    assert len(log) == 1
    for field in ("metrics", "notes", "texts"):
        assert getattr(remembered, field) == getattr(searched, field)
    assert [*remembered.inputs] == [*searched.inputs]
    structure, base = remembered.structure, searched.structure
    assert [*structure.readings.items()] == [*base.readings.items()]
    assert structure.readings.decisions == base.readings.decisions
    for phase, choice in searched.serving.choices.items():
        again = remembered.serving.choices[phase]
        for field in ("plan", "plans", "feasible", "margin", "reason", "plan_index"):
            assert getattr(again, field) == getattr(choice, field)
        assert again.best.tobytes() == choice.best.tobytes()
        assert again.plan_pass.lines == choice.plan_pass.lines


@pytest.mark.parametrize(
    "settings",
    [
        {"workload.interactivity": "33 token/s"},
        {"parts.trn3.hbm_bandwidth": "4.5 TB/s"},
        {"workload.precision": "bf16"},
    ],
)
def test_setting_that_the_search_reads_is_searched_anew(searching, settings):
    answer, _, log = searching
    answer({})
    answer(settings)
    assert len(log) == 2


def test_damaged_file_is_searched_anew(searching):
    answer, folder, log = searching
    before = answer({})
    for file in (folder / "tco" / "arrays").iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    assert answer({}).metrics == before.metrics
    assert len(log) == 2


def test_no_plan_is_kept_while_values_are_withheld(searching):
    answer, folder, log = searching
    token = making.set(type("Making", (), {"typed_settings": set()})())
    try:
        answer(PRICE)
        answer(PRICE)
    finally:
        making.reset(token)
    assert len(log) == 2
    assert not (folder / "tco").exists()


def test_decision_that_cannot_be_named_is_never_remembered(searching, monkeypatch):
    answer, _, log = searching
    search = result.choose_decode

    def choose_decode(workload, *request):
        workload.values.decided(lambda limit: limit > 0, "workload.draft_limit")
        return search(workload, *request)

    monkeypatch.setattr(result, "choose_decode", choose_decode)
    assert answer({}).metrics == answer({}).metrics
    assert len(log) == 2
