"""Bad files of a user's data folder, and bad documents, are refused with their place."""

from __future__ import annotations

import pytest

from tco import DataError, load_catalogue

HEADER = "part,attribute,value,unit,low,high,as_of,kind,source,note\n"
SITE = """\
name = "Mine"
tenure = "own"
pue = { value = 1.2, unit = "", low = 1.1, high = 1.3, kind = "assumed", source = "me" }
"""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("part,price\n", ":1: lacks column 'attribute'"),
        (HEADER.replace("note", "remark"), ":1: lacks column 'note'"),
        (HEADER + "x,price,5,USD\n", ":2: 4 cells, expected 10"),
        (HEADER + 'x,price,"5\n', "broken CSV"),
        (b"\x00\x01\xff", "not UTF-8"),
        (HEADER.encode() + b"a\x00b\n", "NUL"),
    ],
)
def test_bad_table_is_refused_with_its_place(own_data, content, message):
    path = own_data.write("parts/own.csv", content)
    with pytest.raises(DataError) as caught:
        _ = own_data.catalogue().part_rows
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_table_that_is_a_folder_is_refused(own_data):
    (own_data.folder / "parts" / "own.csv").mkdir(parents=True)
    with pytest.raises(DataError, match="is a folder"):
        _ = own_data.catalogue().part_rows


def test_source_without_title_is_refused(own_data):
    path = own_data.write("sources.csv", "id,title,url,date\nme,,,\n")
    with pytest.raises(DataError, match="a source needs an id and a title") as caught:
        _ = own_data.catalogue().sources
    assert str(caught.value).startswith(f"{path}:2: ")


def test_missing_data_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        load_catalogue(tmp_path / "nothing")


def site(own_data, text):
    path = own_data.write("sites/mine.toml", text)
    with pytest.raises(DataError) as caught:
        own_data.catalogue().document_inputs("sites", "mine", "site", "site")
    assert str(caught.value).startswith(str(path)), str(caught.value)
    return str(caught.value).removeprefix(str(path))


def test_complete_document_is_read(own_data):
    own_data.write("sites/mine.toml", SITE)
    site_inputs = own_data.catalogue().document_inputs("sites", "mine", "site", "site")
    assert (site_inputs["site.pue"].value, site_inputs["site.pue"].overlay) == (1.2, True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('unit = ""', 'unit = "W"', ":pue: site.pue: unit 'W' is"),
        ("value = 1.2", "value = 0.5", ":pue: site.pue: value 0.5 ratio is outside 1 to"),
        ("value = 1.2", "value = true", ":pue: value is True, expected a number"),
        ("value = 1.2", 'value = "many"', ":pue: value is 'many', expected a number"),
        ("value = 1.2", "value = []", ":pue: value is [], expected a number"),
        ("value = 1.2", "value = nan", ":pue: value is nan, expected a finite number"),
        ("low = 1.1", "low = 1.25", ":pue: site.pue: low 1.25 is above the value 1.2"),
        (", low = 1.1, high = 1.3", "", ":pue: site.pue: an assumed value needs low and high"),
        ('kind = "assumed"', 'kind = "guess"', ":pue: site.pue: kind 'guess' is not one of"),
        (', source = "me"', "", ":pue: site.pue: the source is missing"),
        (
            'source = "me"',
            'source = "me", sauce = 1',
            ":pue: unknown key 'sauce'; did you mean 'source'?",
        ),
        ("pue = {", "puee = {", ":puee: unknown attribute of site 'puee'; did you mean 'pue'?"),
        (
            "pue = { value = 1.2",
            "pue = 1.2 # {",
            ":pue: expected a table with value, unit, kind and source",
        ),
        ("pue = {", "pue = {{", ": broken TOML"),
    ],
)
def test_bad_document_is_refused_with_its_place(own_data, old, new, message):
    assert old in SITE
    assert site(own_data, SITE.replace(old, new)).startswith(message)


def test_empty_document_is_refused(own_data):
    assert "is empty" in site(own_data, "")


def test_an_unknown_document_gets_the_nearest_name(catalogue):
    with pytest.raises(
        DataError, match="unknown site 'us-hyperscal'; did you mean 'us-hyperscale'"
    ):
        catalogue.document("sites", "us-hyperscal", "site")
