"""Documents of a scenario, shipped or the user's own, are listed, shown and checked."""

from __future__ import annotations

import json

import pytest

from tests.cli import tco
from tests.cli.test_json import DOCUMENTS

MINE = """name = "Mine"
base = "us-hyperscale"
note = "SECRETNOTE of the site"
[electricity_price]
value = 45.6789
unit = "USD/MWh"
as_of = "2026-01"
kind = "vendor"
source = "tco-model"
note = "SECRETNOTE of the price"
"""


def answer(*arguments):
    done = tco(*arguments, "--format", "json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_the_list_holds_every_document(kind, catalogue):
    listed_documents = answer(kind, "list")["items"]
    assert [item["id"] for item in listed_documents] == catalogue.ids(kind)
    assert not any(item["own"] for item in listed_documents)
    assert all(item["name"] for item in listed_documents)


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_shipped_documents_pass_the_checks(kind):
    assert answer(kind, "check")["findings"] == []


def test_a_page_shows_each_value_as_written_with_its_range_and_source(catalogue):
    """A page has the rows that a scenario of these terms rests on, in the units of the file."""
    values = {
        value["path"]: value for value in answer("perspectives", "show", "hyperscaler")["values"]
    }
    inputs = catalogue.document_inputs("perspectives", "hyperscaler", "perspective", "terms")
    assert values.keys() == inputs.keys()
    for path, document_input in inputs.items():
        assert (values[path]["value"], values[path]["unit"], values[path]["source"]) == (
            *document_input.stated_quantity,
            document_input.source,
        )


def test_a_site_shows_what_it_takes_from_its_base(own_data):
    own_data.write("sites/mine.toml", MINE)
    page = answer("sites", "show", "mine", "--data", own_data.folder)
    values = {value["path"]: value for value in page["values"]}
    assert (
        values["site.electricity_price"]["value"],
        values["site.electricity_price"]["from"],
    ) == (45.6789, "mine (own)")
    assert (values["site.pue"]["from"], values["site.pue"]["hall"]) == ("us-hyperscale", "liquid")
    assert page["texts"]["tenure"] == "own"
    assert [
        item["own"]
        for item in answer("sites", "list", "--data", own_data.folder)["items"]
        if item["id"] == "mine"
    ] == [True]


@pytest.mark.parametrize("form", ["table", "csv", "json", "md"])
def test_an_own_value_is_withheld_where_asked(own_data, form):
    own_data.write("sites/mine.toml", MINE)
    done = tco("sites", "show", "mine", "--data", own_data.folder, "--redact", "--format", form)
    assert done.exit_code == 0
    assert "45.6" not in done.stdout
    assert "SECRETNOTE" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "content", "finding"),
    [
        (
            "workloads/odd",
            'name = "x"\nkind = "servin"\n',
            "unknown kind of workload 'servin'; did you mean 'serving'?",
        ),
        (
            "workloads/odd",
            'name = "x"\nkind = "serving"\nmodel = "deepseek-v33"\n',
            "unknown model 'deepseek-v33'; did you mean 'deepseek-v3",
        ),
        ("sites/odd", 'name = "x"\nbase = "us-hyperscal"\n', "did you mean 'us-hyperscale'?"),
        (
            "sites/odd",
            'name = "x"\nbase = "us-hyperscale"\ncooling = "ice"\n',
            "unknown cooling 'ice'",
        ),
        (
            "terms/odd",
            'name = "x"\nperspective = "tenant"\ndate = "2025-12"\n',
            "unknown perspective 'tenant'",
        ),
        ("terms/odd", 'name = "x"\nperspective = "neocloud"\ndate = "banana"\n', "banana"),
        ("clusters/odd", 'name = "x"\nswitch = "25.7T"\nport = "100G"\n', "unknown switch '25.7T'"),
        ("clusters/odd", 'name = "x"\nswitch = "25.6T"\nport = "fast"\n', "fast"),
        (
            "perspectives/odd",
            'name = "x"\nas_of = "2025-12"\nowner = ""\npays = ["favours"]\n',
            "unknown basis of cost 'favours'",
        ),
    ],
)
def test_check_finds_a_text_that_names_no_document(own_data, file, content, finding):
    own_data.write(f"{file}.toml", content)
    done = tco(file.partition("/")[0], "check", "--data", own_data.folder, "--format", "json")
    assert (done.exit_code, done.stderr) == (1, "")
    assert finding in " ".join(json.loads(done.stdout)["findings"])


@pytest.mark.parametrize(("kind", "name"), DOCUMENTS.items())
def test_an_unknown_id_names_the_nearest(kind, name):
    done = tco(kind, "show", f"{name}x")
    assert (done.exit_code, done.stdout) == (3, "")
    assert f"did you mean '{name}'" in done.stderr
