"""A table of a spreadsheet is read where it can mean one thing, else its fault is named."""

from __future__ import annotations

import pytest

from tco import DataError
from tests.cli import tco

HEADER = "part,attribute,value,unit,low,high,as_of,kind,source,note,use"
ROW = "gb200-gpu,price,31000,USD,30000,32000,2025-12,assumed,my-quote,our quote,"
COST = 31000


@pytest.fixture(name="folder")
def data_folder(request):
    return request.getfixturevalue("own_data")


def price_of(folder, content):
    path = folder.folder / "parts" / "own.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder.catalogue().part_input("gb200-gpu", "price", "2025-12").value


TABLE = f"{HEADER}\n{ROW}\n"
SEMICOLONS = TABLE.replace(",", ";")
READ = {
    "semicolons": SEMICOLONS,
    "a decimal comma": SEMICOLONS.replace("31000", "31000,00"),
    "a point beside a decimal comma": SEMICOLONS.replace("31000", "31.000").replace(
        "32000", "32000,5"
    ),
    "points between thousands": SEMICOLONS.replace("31000", "31.000,0 USD"),
    "points in all cells": SEMICOLONS.replace("31000", "31.000")
    .replace("30000", "30.000,25")
    .replace("32000", "32.000"),
    "a comma beside a decimal point": SEMICOLONS.replace("31000", "31,000").replace(
        "32000", "32000.5"
    ),
    "tabs": TABLE.replace(",", "\t"),
    "a stated delimiter": "sep=;\n" + TABLE.replace(",", ";"),
    "UTF-16": TABLE.replace(",", "\t").encode("utf-16"),
    "a byte order mark": TABLE.encode("utf-8-sig"),
    "returns": TABLE.replace("\n", "\r").encode(),
    "capitals": TABLE.replace(HEADER, HEADER.title()),
    "words in a header": TABLE.replace("as_of", "As of"),
    "empty rows": f"{TABLE}{',' * 10}\n\n{' ,' * 10}\n",
    "empty columns": f"{HEADER},,\n{ROW},,\n",
    "an empty column in front": f",{HEADER}\n,{ROW}\n",
    "a title above": f"Our prices{',' * 10}\n{TABLE}",
    "a comment": f"# our prices\n{TABLE}# the end\n",
    "blanks in cells": TABLE.replace(",price,", ", price ,"),
    "thousands": TABLE.replace("31000", '"31,000"'),
    "blanks between thousands": TABLE.replace("31000", "31 000"),
    "apostrophes": TABLE.replace("31000", "31'000"),
    "dollars in front": TABLE.replace("31000", '"$31,000.00"'),
    "dollars behind": TABLE.replace("31000", "31000 $"),
    "a unit in the cell": TABLE.replace("31000", "31000 USD"),
    "thousands by a letter": TABLE.replace("31000", "31k"),
}


@pytest.mark.parametrize("content", READ.values(), ids=READ)
def test_a_table_of_a_spreadsheet_is_read(folder, content):
    assert price_of(folder, content) == COST


def test_points_between_thousands_are_told_by_another_row(folder):
    dearer = ROW.replace("gb200-gpu", "gb300-gpu").replace("32000", "1.000.000")
    content = f"{TABLE}{dearer}\n".replace(",", ";").replace("31000", "31.000")
    assert price_of(folder, content) == COST


def test_a_point_of_three_digits_is_decimal_beside_other_decimal_points(folder):
    content = SEMICOLONS.replace("31000", "31.000").replace("30000", "30.5")
    content = content.replace("32000", "32.5")
    assert price_of(folder, content) == 31


REFUSED = {
    "a comma beside semicolons": (
        SEMICOLONS.replace("31000", "31,000"),
        "own.csv:2: value is '31,000', in a file parted by semicolons: its comma may be a decimal",
    ),
    "a point beside semicolons": (
        SEMICOLONS.replace("31000", "31.000"),
        "own.csv:2: value is '31.000', in a file parted by semicolons: its point may be a decimal "
        "mark or part thousands, and no other number of the file tells; write 31000, or 31.0000",
    ),
    "a comma beside tabs": (
        TABLE.replace(",", "\t").replace("31000", "31,000"),
        "own.csv:2: value is '31,000', in a file parted by tabs",
    ),
    "both decimal marks": (
        SEMICOLONS.replace("30000", "30000,5").replace("32000", "32000.5"),
        "own.csv:2: low is '30000,5' with a decimal comma, ",
    ),
    "another name": (
        TABLE.replace("attribute", "attribut"),
        "lacks column 'attribute', and has 'attribut'; did you mean 'attribute'?",
    ),
    "a name beside it": (TABLE.replace(",use", ",used"), "column 'used'; did you mean 'use'?"),
    "a nameless column": (TABLE.replace(",use", ","), None),
    "content without a name": (
        TABLE.replace(",use", ",").replace("our quote,", "our quote,x"),
        "own.csv:2: 'x' stands in column 11, which has no name in line 1",
    ),
    "JSON": ('[{"part": "gb200-gpu"}]', "own.csv: is JSON, expected CSV with the columns part"),
    "Latin letters": (TABLE.replace("our", "für").encode("latin-1"), "save it as UTF-8"),
    "UTF-16 without a mark": (TABLE.encode("utf-16-le"), "CSV UTF-8"),
    "a workbook": (b"PK\x03\x04", "is a workbook"),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_the_fault_of_a_table_is_named(folder, content, message):
    if message is None:
        assert price_of(folder, content) == COST
        return
    with pytest.raises(DataError) as caught:
        price_of(folder, content)
    assert message in str(caught.value)


def note_of(*arguments):
    done = tco("price", "gb200-nvl72", *arguments)
    assert done.exit_code == 0, done.stderr
    return [line for line in done.stderr.splitlines() if "shipped range" in line]


def test_a_price_a_thousandth_of_ours_gets_a_note(folder):
    path = folder.parts(ROW.replace("000,", ".000,"))
    (note,) = note_of("--data", folder.folder)
    assert note.startswith(f"note: parts.gb200-gpu.price is 31 USD ({path}:2), 710 times below")


def test_a_price_in_range_gets_no_note(folder):
    folder.parts(ROW)
    assert not note_of("--data", folder.folder, "--set", "site.electricity_price=0.2 USD/kWh")


def test_electricity_in_cents_gets_a_note(folder, catalogue):
    set_note = note_of("--set", "site.electricity_price=8.61 USD/kWh")
    assert "site.electricity_price is 8.61 USD/kWh (--set)" in set_note[0]
    text = catalogue.document("sites", "us-hyperscale", "site")[0].read_text(encoding="utf-8")
    for end in ("0.0861", "0.066", "0.098"):
        text = text.replace(f"= {end}\n", f"= {float(end) * 100}\n", 1)
    folder.write("sites/us-hyperscale.toml", text)
    (own_note,) = note_of("--data", folder.folder)
    assert "us-hyperscale.toml:electricity_price" in own_note


def test_check_of_parts_notes_a_price_a_thousandth_of_ours(folder):
    path = folder.parts(ROW.replace("000,", ".000,"))
    done = tco("parts", "check", "--data", folder.folder)
    (note,) = [line for line in done.stderr.splitlines() if "shipped range" in line]
    assert note.startswith(f"note: parts.gb200-gpu.price is 31 USD ({path}:2), 710 times below")


def test_check_of_parts_in_range_has_no_note(folder):
    folder.parts(ROW)
    assert "shipped range" not in tco("parts", "check", "--data", folder.folder).stderr


@pytest.mark.parametrize("cell", ['"$31,000"', "31 000", "31k", "31000 USD"])
def test_a_number_of_a_spreadsheet_is_shown(folder, cell):
    folder.parts(ROW.replace("31000", cell))
    done = tco("parts", "show", "gb200-gpu", "--data", folder.folder)
    assert done.exit_code == 0, done.stderr
    (price,) = [line for line in done.stdout.splitlines() if line.startswith("price, USD")]
    assert price.split()[2] == "31,000"
