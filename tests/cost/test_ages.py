"""A bill states the age of its prices, and prices follow the date of a scenario."""

from __future__ import annotations

import pickle
import re

import pytest

from tco import DataError, evaluate
from tco.cost import price_dates
from tco.cost.price_dates import evidence_age_limit, is_old, limits
from tco.cost.waiting import year_of
from tests.catalogue import input_attributes
from tests.cli import document, tco
from tests.scenario_helpers import period

BILL = ("servers", "network", "storage")
HEADER = "part,attribute,value,unit,low,high,as_of,kind,source,note,use"


def priced(catalogue, name, date):
    return evaluate(name, {"terms.date": date}, catalogue=catalogue)


def test_ages_are_computed_when_they_are_asked_for(catalogue, monkeypatch):
    computed_dates = []
    ages_of = price_dates.ages_of

    def counted(*arguments):
        computed_dates.append(arguments[-1])
        return ages_of(*arguments)

    monkeypatch.setattr("tco.scenario.evaluate.ages_of", counted)
    priced_result = evaluate(
        "gb200-nvl72",
        {"terms.date": "2025-12", "site.electricity_price": "0.0717 USD/kWh"},
        catalogue=catalogue,
    )
    assert computed_dates == []
    assert priced_result.ages.later > 0
    assert priced_result.ages == pickle.loads(pickle.dumps(priced_result)).ages
    assert computed_dates == ["2025-12"]


@pytest.mark.parametrize(
    ("date", "year"),
    [
        ("2024", 2025.0),
        ("2024-12", 2025.0),
        ("2024-02", 2024 + 60 / 366),
        ("2024-06-30", 2024 + 182 / 366),
        ("2025-12-31", 2026.0),
        ("2025-02", 2025 + 59 / 365),
        ("2025-01-01", 2025 + 1 / 365),
        ("2025-Q2", 2025 + 181 / 365),
    ],
)
def test_a_date_ends_with_its_last_day_in_leap_years_too(date, year):
    assert year_of(date) == pytest.approx(year, abs=1e-12)


# ---------------------------------------------------------------- shares of the bill
def test_the_share_of_later_rows_is_counted_by_hand(catalogue):
    priced_result = priced(catalogue, "gb200-nvl72", "2025-12")
    bill = [line for line in priced_result.lines if line.asset in BILL and line.usd is not None]
    later = [
        line
        for line in bill
        if any(
            priced_result.inputs[path].as_of > "2025-12~" and path.endswith("price")
            for path in line.inputs
        )
    ]
    assert {line.path.rpartition("/")[2] for line in later} == {
        "bluefield-3",
        "gb200-gpu",
        "nvswitch-5",
        "power-shelf-33kw",
        "rack-manifold",
    }
    assert priced_result.ages.later == pytest.approx(
        sum(line.usd for line in later) / sum(line.usd for line in bill), rel=1e-12
    )
    assert (
        f"{priced_result.ages.later * 100:.1f} % of the bill has prices later than 2025-12: "
        "gb200-gpu (2026-05), nvswitch-5 (2026-05)" in priced_result.ages.notes[0]
    )


@pytest.mark.parametrize("name", ["mi450x-ualoe72", "gb300-nvl72"])
def test_a_note_names_the_parts_that_cost_most(catalogue, name):
    priced_result, sums = priced(catalogue, name, "2025-12"), {}
    for line in priced_result.lines:
        if line.asset in BILL and line.usd is not None:
            for path in line.inputs:
                if (
                    path.startswith("parts.")
                    and path.endswith("price")
                    and (date := priced_result.inputs[path].as_of) > "2025-12~"
                ):
                    sums[f"{path.split('.')[1]} ({date})"] = (
                        sums.get(f"{path.split('.')[1]} ({date})", 0.0) + line.usd
                    )
    most = sorted(sums, key=sums.get, reverse=True)[:3]
    (note,) = [note for note in priced_result.ages.notes if "later than" in note]
    assert f"later than 2025-12: {', '.join(most)}" in note


def test_the_shares_move_with_the_date(catalogue):
    ages = [
        priced(catalogue, "mi450x-ualoe72", date).ages for date in ("2025-06", "2025-12", "2026-09")
    ]
    assert ages[0].later > ages[1].later > ages[2].later
    ages = [priced(catalogue, "gb200-nvl72", date).ages for date in ("2026-06", "2026-09", "2030")]
    assert ages[0].older < ages[1].older < ages[2].older


def test_one_day_over_the_limit_is_old(own_data):
    own_data.parts("connectx-7,price,1400,USD,,,2025-06-30,vendor,tco-model,,")
    price_input = own_data.catalogue().part_input("connectx-7", "price", "2027")
    # a file of one's own is no kind of its own
    assert evidence_age_limit(price_input) == limits()["parts", "*"] == 731
    assert not is_old(price_input, period("2027-07-01").last)
    assert is_old(price_input, period("2027-07-02").last)
    before, after = (
        evaluate(
            "gb200-nvl72",
            {"terms.date": f"2027-07-0{day}"},
            catalogue=own_data.catalogue(),
            variant={"nic": "400g"},
        ).ages.older
        for day in (1, 2)
    )
    assert after > before


def test_every_kind_has_its_limit(catalogue):
    kinds = {"ddr5-dimm": 92, "optic-800g-dr8": 183, "gb200-gpu": 366, "backplane-cable": 731}
    for part, days in kinds.items():
        assert evidence_age_limit(catalogue.part_input(part, "price", "2025-12")) == days
    assert evidence_age_limit(catalogue.share_price("astera", "2025-12")) == 31
    assert evidence_age_limit(catalogue.part_input("h100-sxm", "rent", "2025-12")) == 183
    tables = {
        (path.parent.name, path.stem)
        for folder in ("parts", "shares")
        for path in (catalogue.folders[0] / folder).iterdir()
    }
    parts = {("parts", part) for part in catalogue.parts}
    assert {key for key in limits() if key[1] != "*"} <= tables | parts | input_attributes().keys()


@pytest.mark.parametrize(("part", "days"), [("tpuv7-rack", 366), ("gb200-memory", 92)])
def test_a_part_that_holds_accelerators_or_memory_ages_as_they_do(catalogue, part, days):
    assert evidence_age_limit(catalogue.part_input(part, "price", "2026-11")) == days


def test_limit_of_a_part_precedes_those_of_its_attribute_and_group(catalogue):
    rack, board = (
        catalogue.part_input(part, "price", "2026-11")
        for part in ("tpuv7-rack", "compute-board-trn3")
    )
    assert (evidence_age_limit(rack), evidence_age_limit(board)) == (
        limits()["parts", "tpuv7-rack"],
        limits()["parts", "*"],
    )


# ---------------------------------------------------------------- the age of evidence
def test_age_of_a_row_is_that_of_its_evidence(own_data):
    own_data.write(
        "parts/own.csv",
        f"{HEADER},evidence_of\nconnectx-7,price,1400,USD,,,2026-11,vendor,tco-model,,,2024-10\n",
    )
    price_input = own_data.catalogue().part_input("connectx-7", "price", "2026-11")
    assert (price_input.as_of, price_input.evidence_of, price_input.evidence_date) == (
        "2026-11",
        "2024-10",
        "2024-10",
    )
    assert is_old(
        price_input, period("2026-11").last
    )  # 760 days after October 2024, as_of says none
    assert not is_old(price_input._replace(evidence_of=""), period("2026-11").last)


def test_evidence_later_than_its_row_is_refused(own_data):
    own_data.write(
        "parts/own.csv",
        f"{HEADER},evidence_of\nconnectx-7,price,1400,USD,,,2025-06,vendor,tco-model,,,2026-01\n",
    )
    with pytest.raises(
        DataError,
        match=r"own\.csv:2: parts\.connectx-7\.price: evidence_of 2026-01 is later than as_of "
        r"2025-06, expected the date",
    ):
        own_data.catalogue().part_input("connectx-7", "price", "2026-11")


def test_evidence_that_is_no_date_is_refused(own_data):
    own_data.write(
        "parts/own.csv",
        f"{HEADER},evidence_of\nconnectx-7,price,1400,USD,,,2025-06,vendor,tco-model,,,soon\n",
    )
    with pytest.raises(DataError, match="evidence_of: 'soon' is no date"):
        own_data.catalogue().part_input("connectx-7", "price", "2026-11")


def test_own_site_states_the_age_of_its_evidence(own_data, catalogue):
    shipped = (catalogue.folders[0] / "sites" / "us-hyperscale.toml").read_text(encoding="utf-8")
    own_data.write(
        "sites/mine.toml",
        shipped.replace('as_of = "2025"\n', 'as_of = "2026-10"\nevidence_of = "2025"\n', 1),
    )
    (note,) = evaluate(
        "gb200-nvl72", {"site": "mine"}, catalogue=own_data.catalogue()
    ).ages.hour_notes
    assert "electricity price (2025)" in note
    own_data.write("sites/mine.toml", shipped.replace('as_of = "2025"\n', 'as_of = "2026-10"\n', 1))
    (note,) = evaluate(
        "gb200-nvl72", {"site": "mine"}, catalogue=own_data.catalogue()
    ).ages.hour_notes
    assert "electricity price" not in note


def test_old_evidence_of_the_hall_is_a_share_of_the_chip_hour(catalogue):
    """Energy rests on old evidence: the price of electricity and the load factor."""
    priced_result = priced(catalogue, "gb200-nvl72", "2026-11")
    old = [
        line
        for line in priced_result.lines
        if line.asset != "rebate"
        and any(is_old(priced_result.inputs[path], period("2026-11").last) for path in line.inputs)
    ]
    assert "site/energy" in [line.path for line in old]
    gross = sum(line.usd_per_chip_hour for line in priced_result.lines if line.asset != "rebate")
    assert priced_result.ages.hour_older == pytest.approx(
        sum(line.usd_per_chip_hour for line in old) / gross, rel=1e-12
    )
    (note,) = priced_result.ages.hour_notes
    assert note == (
        "evidence older than it should be: electricity price (2025), grid carbon (2023), draw "
        "over nameplate (2024-03); "
        f"{priced_result.ages.hour_older * 100:.0f} % of the chip-hour rests on old evidence"
    )


def test_terms_age_but_are_no_share_of_the_chip_hour(own_data, catalogue):
    shipped = (catalogue.folders[0] / "perspectives" / "hyperscaler.toml").read_text(
        encoding="utf-8"
    )
    own_data.write(
        "perspectives/hyperscaler.toml",
        shipped.replace('as_of = "2025-12-31"', 'as_of = "2024-12-31"', 1),
    )
    before, after = (
        evaluate("gb200-nvl72", catalogue=price_catalogue).ages
        for price_catalogue in (catalogue, own_data.catalogue())
    )
    assert after.hour_older == before.hour_older
    assert "cost of capital (2024-12-31)" in after.hour_notes[0]
    assert "cost of capital" not in before.hour_notes[0]


# ---------------------------------------------------------------- guards
UNCHECKED = "no independent published figure checks"


def test_a_bill_names_the_parts_that_no_figure_of_another_checks(catalogue):
    for name in ("trn3-nl72x2", "mi450x-ualoe72"):
        priced_result = priced(catalogue, name, "2026-11")
        (note,) = [note for note in priced_result.ages.notes if note.startswith(UNCHECKED)]
        assert "nvme-8tb" in note
        assert not any(part in note for part in ("ddr5-dimm", "hbm3e-12hi-36gb", "mi450x"))


def test_price_and_bom_print_what_is_unguarded_and_the_first_table_of_a_comparison_does_not():
    for command in ("price", "bom"):
        (line,) = [
            line for line in tco(command, "mi450x-ualoe72").stderr.splitlines() if UNCHECKED in line
        ]
        assert re.fullmatch(
            r"note: no independent published figure checks \d+ % of the bill: nvme-8tb.*",
            line,
        )
    assert UNCHECKED not in tco("compare", "gb200-nvl72", "mi450x-ualoe72", "--no-range").stderr


def test_own_price_or_set_price_is_not_called_unguarded(own_data, catalogue):
    own_data.parts("nvme-8tb,price,5000,USD,,,2026-11,vendor,tco-model,,")
    for price_catalogue, settings in (
        (own_data.catalogue(), {}),
        (catalogue, {"parts.nvme-8tb.price": "5000 USD"}),
    ):
        notes = evaluate(
            "mi450x-ualoe72", settings | {"terms.date": "2026-11"}, catalogue=price_catalogue
        ).ages.notes
        assert not [note for note in notes if "nvme-8tb" in note]


def test_date_before_the_prices_is_refused_and_one_beyond_gets_a_note(catalogue):
    assert (
        "2030 lies beyond the prices known: the last is of 2027-01, and holds on"
        in priced(catalogue, "gb200-nvl72", "2030").ages.notes
    )
    with pytest.raises(
        DataError, match=r"terms\.date=2010 lies before the first price of this bill, of 20"
    ):
        priced(catalogue, "gb200-nvl72", "2010")
    for note in priced(catalogue, "gb200-nvl72", "2026-09").ages.notes:
        assert "lies" not in note


def test_a_rebate_names_its_stale_share(catalogue):
    priced_result = evaluate(
        "mi450x-ualoe72", {"terms.date": "2026-01-31", "terms.owner": "OpenAI"}, catalogue=catalogue
    )
    assert (
        "rebates/amd-openai: share price of amd is of 2025-12-05, 57 days before 2026-01-31"
        in priced_result.ages.notes
    )


def test_value_set_by_the_user_has_no_date(catalogue):
    before = priced(catalogue, "gb200-nvl72", "2025-12").ages
    after = evaluate(
        "gb200-nvl72", {"parts.nvswitch-5.price": "3600 USD"}, catalogue=catalogue
    ).ages
    assert after.later < before.later


def test_a_chip_alone_has_no_bill(catalogue):
    chip_ages = evaluate("h100-sxm", catalogue=catalogue).ages
    assert (chip_ages.later, chip_ages.older, chip_ages.notes) == (0, 0, ())


def test_price_and_compare_print_the_age_of_prices():
    december = ("--date", "2025-12")
    price_document = document("price", "gb200-nvl72", *december)
    assert 0.6 < price_document["bill_dates"]["later"] < 0.75
    assert any("later than 2025-12" in note for note in price_document["notes"])
    assert "has prices later than 2025-12" in tco("price", "gb200-nvl72", *december).stderr
    first = tco("compare", "gb200-nvl72", "--no-range", *december).stderr
    assert "up to 67 % of a rack's price is of other dates" in first
    assert (
        document("compare", "gb200-nvl72", "--no-range", *december)["rows"][0]["bill_dates"]
        == price_document["bill_dates"]
    )


def test_first_table_sums_up_ages_in_one_line_and_the_full_table_lists_choices():
    compare_words = ("compare", "trn3-nl72x2", "gb200-nvl72", "--no-range", "--date", "2025-12")
    first, full = tco(*compare_words).stderr, tco(*compare_words, "--full").stderr
    most = max(row["bill_dates"]["later"] for row in document(*compare_words)["rows"])
    assert f"up to {most * 100:.0f} % of a rack's price is of other dates" in first
    assert "31.0 % of the bill has prices later than 2025-12" in full
    assert "cost least over their life at 2025-12" in full
    assert "cost least over their life at 2025-12" not in first
    assert len(first.splitlines()) < len(full.splitlines())
