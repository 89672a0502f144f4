"""Rows of a user are in force or named as unused, and are checked before any computation."""

from __future__ import annotations

import pytest

from tco.catalog.overlay import ROWS_WITH_HINT
from tests.cli import document, tco

QUOTE = "nitro-v6-400g,price,500,USD,400,650,2025-12,assumed,my-quote,,"


@pytest.fixture
def folder(request):
    """Return a user's data folder, filled line by line."""
    return request.getfixturevalue("own_data")


def notes(*arguments):
    done = tco("price", "trn3-nl72x2", *arguments)
    assert done.exit_code == 0, done.stderr
    return [
        line.removeprefix("note: ") for line in done.stderr.splitlines() if "own values" in line
    ]


def test_rows_in_force_are_counted(own_data):
    own_data.parts(QUOTE)
    assert notes("--data", own_data.folder) == ["own values: 1 in force, 0 not used"]


def test_a_row_nothing_uses_is_named_with_the_nearest_part(own_data):
    path = own_data.parts(
        QUOTE,
        QUOTE.replace("nitro-v6-400g", "nitro-v6-400"),
        QUOTE.replace("nitro-v6-400g", "bluefield-3"),
    )
    (note,) = notes("--data", own_data.folder)
    assert (
        note == f"own values: 1 in force, 2 not used: {path}:3 nitro-v6-400.price (did you mean "
        f"'nitro-v6-400g'?), {path}:4 bluefield-3.price"
    )


@pytest.mark.parametrize("slip", ["NITRO-V6-400G", "nitro-v6-4\u043e0g", "nitro-v6-400"])
def test_row_of_a_misspelt_part_fails_the_check_and_is_named_when_quiet(folder, slip):
    folder.write("sources.csv", "id,title,url,date\nmy-quote,Quote,,2025-12\n")
    path = folder.parts(QUOTE, QUOTE.replace("nitro-v6-400g", slip))
    sentence = (
        f"{path}:3: parts.{slip}.price: nothing takes this row; did you mean 'nitro-v6-400g'?"
    )
    findings = document("parts", "check", "--data", folder.folder, code=1)["findings"]
    assert findings == [sentence]
    for command in (("price", "trn3-nl72x2"), ("fabric", "trn3-nl72x2")):
        done = tco(*command, "--data", folder.folder, "--quiet")
        assert (done.exit_code, done.stderr) == (0, f"warning: {sentence}\n")


def test_many_rows_that_nothing_takes_are_all_named_and_the_first_with_a_near_part(folder):
    """Each search for a near name takes milliseconds: with 150,000 rows they took minutes."""
    folder.write("sources.csv", "id,title,url,date\nmy-quote,Quote,,2025-12\n")
    slips = [f"nitro-v6-400-{number}" for number in range(ROWS_WITH_HINT + 20)]
    folder.parts(*(QUOTE.replace("nitro-v6-400g", slip) for slip in slips))
    findings = document("parts", "check", "--data", folder.folder, code=1)["findings"]
    assert len(findings) == len(slips)
    assert ["did you mean" in finding for finding in findings] == [True] * ROWS_WITH_HINT + [
        False
    ] * 20


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("vesting/own.csv", "agreement,attribute,value,unit,low,high,as_of,kind,source,note\n"
         "credo-2012,vested,0.5,,,,2026-01,filing,my-quote,\n"),
        ("grids/own.csv", "region,attribute,value,unit,low,high,as_of,kind,source,note\n"
         "us-east-55,grid_carbon,300,kg/MWh,,,2025,analyst,my-quote,\n"),
    ],
)  # fmt: skip
def test_a_row_of_a_misspelt_owner_of_any_table_fails_the_check(folder, file, text):
    path = folder.write(file, text)
    findings = document("parts", "check", "--data", folder.folder, code=1)["findings"]
    assert any(finding.startswith(f"{path}:2: ") for finding in findings)
    assert any("nothing takes this row" in finding for finding in findings)


def test_blanks_around_the_name_of_a_part_are_ignored(folder):
    folder.parts(QUOTE.replace("nitro-v6-400g", " nitro-v6-400g "))
    assert notes("--data", folder.folder) == ["own values: 1 in force, 0 not used"]


def test_new_parts_that_a_document_or_a_setting_may_name_are_in_order(folder, monkeypatch):
    """A whole chip may be asked for, a tray stands in a tree, and a setting names a switch."""
    monkeypatch.chdir(folder.folder.parent)
    option = ("--data", folder.folder)
    assert tco("parts", "new", "acme-x1", "--like", "b200-sxm", *option).exit_code == 0
    assert tco("systems", "new", "acme-rack", "--like", "b200-hgx8", *option).exit_code == 0
    tree = folder.folder / "systems" / "acme-rack.toml"
    tree.write_text(tree.read_text().replace("hgx-b200-server", "acme-server"))
    folder.parts(
        QUOTE.replace("nitro-v6-400g", "acme-server"), QUOTE.replace("nitro-v6-400g", "acme-51t")
    )
    findings = document("parts", "check", *option, code=1)["findings"]
    assert [
        finding for finding in findings if "nothing takes" in finding and "51t" not in finding
    ] == []
    done = tco("price", "gb200-nvl72", *option, "--quiet", "--set", "cluster.switch=tor-25t6")
    assert "acme-51t" in done.stderr
    named = tco("price", "gb200-nvl72", *option, "--quiet", "--set", "cluster.switch=acme-51t")
    assert "nothing takes" not in named.stderr


def test_a_faulty_value_of_a_document_is_named_once_and_shown_with_its_place(folder):
    text = 'name = "Mine"\n[electricity_price]\nvalue = "dear"\nunit = "USD/kWh"\n'
    path = folder.write("sites/mine.toml", text)
    findings = document("sites", "check", "--data", folder.folder, code=1)["findings"]
    faults = [finding for finding in findings if "dear" in finding]
    assert faults == [f"{path}:electricity_price: value is 'dear', expected a number"]
    page = tco("sites", "show", "mine", "--data", folder.folder)
    assert (page.exit_code, page.stdout) == (3, "")
    assert faults[0] in page.stderr


def test_new_part_in_an_own_system_is_in_force(own_data, monkeypatch):
    monkeypatch.chdir(own_data.folder.parent)
    assert (
        tco("parts", "new", "acme-x1", "--like", "b200-sxm", "--data", own_data.folder).exit_code
        == 0
    )
    assert "acme-x1.price (did you mean" in notes("--data", own_data.folder)[0]
    assert (
        tco(
            "systems", "new", "acme-rack", "--like", "b200-hgx8", "--data", own_data.folder
        ).exit_code
        == 0
    )
    tree = own_data.folder / "systems" / "acme-rack.toml"
    tree.write_text(tree.read_text().replace("b200-sxm", "acme-x1"))
    (note,) = notes("--data", own_data.folder)
    assert "acme-x1.price" in note
    assert "did you mean" not in note


def test_own_grid_is_in_force_when_its_site_uses_it(own_data):
    columns, row = (
        "region,attribute,value,unit,low,high,as_of,kind,source,note\n",
        "{},grid_carbon,300,kg/MWh,,,2025,analyst,mine,\n",
    )
    path = own_data.write("grids/own.csv", columns + row.format("us-east5") + row.format("my-grid"))
    command_options = ("--data", own_data.folder, "--set", "site.grid=us-east5")
    assert notes(*command_options) == [
        f"own values: 1 in force, 1 not used: {path}:3 my-grid.grid_carbon"
    ]
    own_data.write("grids/own.csv", path.read_text().replace("kg/MWh", "USD"))
    done = tco("price", "trn3-nl72x2", *command_options)
    assert (done.exit_code, done.stdout) == (3, "")
    assert f"{path}:2: site.us-east5.grid_carbon" in done.stderr


def test_money_without_an_exchange_rate_is_in_dollars(own_data):
    path = own_data.parts(QUOTE.replace(",USD,", ",EUR,"))
    done = tco("price", "trn3-nl72x2", "--data", own_data.folder)
    assert (done.exit_code, done.stdout) == (3, "")
    assert (
        f"{path}:2: parts.nitro-v6-400g.price: 'EUR' is not a unit; money is in USD: convert it at "
        "the rate of its date" in done.stderr
    )
    listed = tco("parts", "check", "--data", own_data.folder)
    assert listed.exit_code == 1
    assert f"{path}:2: parts.nitro-v6-400g.price: 'EUR'" in listed.stdout + listed.stderr


def test_rent_above_twice_the_cost_of_buying_is_named_by_its_row(own_data):
    path = own_data.parts("gb200-gpu,rent,6,USD/chip/h,,,2025-12,analyst,my-quote,,")
    rented = ("price", "gb200-nvl72", "--set", "terms.perspective=renter")
    assert "more than twice" not in tco(*rented).stderr
    done = tco(*rented, "--data", own_data.folder)
    assert done.exit_code == 0
    assert (
        f"note: {path}:2: parts.gb200-gpu.rent: 3 years of it are 157,680 USD, more than twice the "
        in done.stderr
    )
    assert (
        document(*rented, "--data", str(own_data.folder))["metrics"]["tco_usd_per_chip_hour"] == 6
    )


def test_without_a_data_folder_there_is_no_note():
    assert notes() == []


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            QUOTE.replace(",price,", ",prise,"),
            ":2: unknown attribute of parts 'prise'; did you mean 'price'?",
        ),
        (QUOTE.replace(",USD,", ",USDD,"), ":2: parts.nitro-v6-400g.price"),
        (QUOTE.replace(",500,", ",700,"), ":2: parts.nitro-v6-400g.price"),
        (
            QUOTE.replace(",assumed,", ",guess,"),
            ":2: parts.nitro-v6-400g.price: kind 'guess' is not one of",
        ),
    ],
)
@pytest.mark.parametrize(
    "command", [("price", "gb200-nvl72"), ("parts", "list"), ("fabric", "gb200-nvl72"), ("claims",)]
)
def test_a_row_that_cannot_be_read_stops_every_command(own_data, row, message, command):
    path = own_data.parts(row)
    done = tco(*command, "--data", own_data.folder)
    assert (done.exit_code, done.stdout) == (3, "")
    assert f"{path}{message}" in done.stderr


def test_a_check_lists_what_is_wrong(own_data):
    own_data.parts(QUOTE.replace(",price,", ",prise,"))
    assert any(
        "prise" in finding
        for finding in document("parts", "check", "--data", own_data.folder, code=1)["findings"]
    )


def test_every_command_reads_the_data_folder_of_the_working_directory(
    own_data, monkeypatch, tmp_path
):
    own_data.parts(QUOTE)
    (tmp_path / "here").mkdir()
    own_data.folder.rename(tmp_path / "here" / "data")
    monkeypatch.chdir(tmp_path / "here")
    assert notes() == ["own values: 1 in force, 0 not used"]
    (item,) = [item for item in document("parts", "list")["items"] if item["id"] == "nitro-v6-400g"]
    assert item["own"]
    assert any(line["unit_price_usd"] == 500 for line in document("bom", "trn3-nl72x2")["lines"])
