"""`tco export` takes the form from the ending, and each row states its inputs and sources.

No file is written in part.
"""

from __future__ import annotations

import csv
import json
import os
import stat

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from tco import UsageError
from tco.cli.files import write_folder
from tests.cli import document, tco
from tests.registry import unit
from tests.report.spreadsheet import by_rows, cells, table
from tests.scenario_helpers import METRICS
from tests.study_helpers import drawn_metric, evaluate_each

PAIR = ("trn3-nl72x2", "gb200-nvl72")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with one export of each form."""
    export_folder = tmp_path_factory.mktemp("export")
    for name in ("model.xlsx", "a.csv", "a.json", "a.parquet", "package/"):
        done = tco("export", *PAIR, "--set", "site.pue=1.2", "-o", f"{export_folder}/{name}")
        assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    return export_folder


def rows(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def read_exact(path):
    """Return a CSV file as a frame with the exact numbers of its text.

    pandas' own parser may round their last digit.
    """
    return pd.read_csv(path, dtype=str).apply(lambda column: column.map(number_of))


def number_of(text):
    try:
        return float(text)
    except ValueError:
        return text


@pytest.mark.thorough
def test_all_forms_agree_with_compare(folder):
    expected = {
        row["scenario"]: row["metrics"]
        for row in document("compare", *PAIR, "--set", "site.pue=1.2")["rows"]
    }
    as_json = {
        row["scenario"]: row["metrics"]
        for row in json.loads((folder / "a.json").read_text(encoding="utf-8"))["rows"]
    }
    assert as_json == expected
    frames = {
        "csv": read_exact(folder / "a.csv"),
        "parquet": pd.read_parquet(folder / "a.parquet"),
        "package": read_exact(folder / "package/scenarios.csv"),
    }
    for frame in frames.values():
        for _, row in frame.iterrows():
            for name, value in expected[row["scenario"]].items():
                assert (pd.isna(row[name]) and value is None) or row[name] == value, name
    metrics = table((folder / "model.xlsx").read_bytes(), "Summary", "metric")
    for scenario, values in expected.items():
        for name, value in values.items():
            assert metrics.get(name, {}).get(scenario) == (
                None if value is None else pytest.approx(value, rel=1e-15)
            )


def test_row_states_its_inputs_and_sources(folder):
    for row in rows(folder / "a.csv"):
        assert (row["site"], row["workload"], row["date"]) == (
            "us-hyperscale",
            "deepseek-v3-8k-1k",
            "2026-11",
        )
        assert (row["model"], row["perspective"]) == ("deepseek-v3", "hyperscaler")
        assert "site.pue=1.2" in row["set"]
        assert "precision=fp8" in row["formats"]
        assert 0 < float(row["hardware_sourced_share"]) < 1
        assert float(row["validated_rows"]) >= 0
        plan = dict(pair.split("=") for pair in row["plan"].split(","))
        assert {"tp", "ep", "batch"} <= plan.keys()
    export_document = json.loads((folder / "a.json").read_text(encoding="utf-8"))
    assert export_document["schema"] == "tco.export/1"
    assert export_document["set"] == {"site.pue": "1.2"}
    assert export_document["inputs"]["site"] == "us-hyperscale"
    assert export_document["baseline"] == "gb200-nvl72"
    assert {
        scenario_input["path"]: scenario_input["value"]
        for scenario_input in export_document["rows"][0]["inputs"]
    }["site.pue"] == 1.2
    assert (
        export_document["units"]["tco_usd_per_chip_hour"] == METRICS["tco_usd_per_chip_hour"].unit
    )


def test_the_package_describes_every_column(folder):
    meta = json.loads((folder / "package/datapackage.json").read_text(encoding="utf-8"))
    assert {resource["name"] for resource in meta["resources"]} == {
        "scenarios",
        "inputs",
        "bill",
        "cost",
        "sources",
    }
    for resource in meta["resources"]:
        fields = resource["schema"]["fields"]
        content = rows(folder / "package" / resource["path"])
        assert content
        assert list(content[0]) == [field["name"] for field in fields]
        for field in fields:
            texts = [row[field["name"]] for row in content if row[field["name"]]]
            if field["type"] == "number":
                assert all(np.isfinite(float(text)) for text in texts)
                assert field["unit"].startswith("as the column") or unit(
                    "" if field["unit"] == "1" else field["unit"]
                )
            else:
                assert "unit" not in field
    cost = rows(folder / "package/cost.csv")
    for row in rows(folder / "package/scenarios.csv"):
        scenario_costs = [
            float(line["usd_per_chip_hour"]) for line in cost if line["scenario"] == row["scenario"]
        ]
        assert sum(scenario_costs) == pytest.approx(float(row["tco_usd_per_chip_hour"]), rel=1e-12)
    named = {name for row in rows(folder / "package/inputs.csv") for name in [row["source"]]}
    listed = {row["id"] for row in rows(folder / "package/sources.csv")}
    assert "tco-estimate-2026" in named & listed


def test_parquet_carries_units(folder):
    schema = pq.read_schema(folder / "a.parquet")
    assert schema.field("tco_usd_per_chip_hour").metadata[b"unit"] == b"USD/chip/h"
    assert str(schema.field("scenario").type) == "string"


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.parquet", "model.xlsx"])
def test_the_same_command_writes_the_same_bytes(name, folder, tmp_path):
    assert tco("export", *PAIR, "--set", "site.pue=1.2", "-o", tmp_path / name).exit_code == 0
    assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize("name", ["a.txt", "a.ods", "plain", ".xlsx"])
def test_an_unknown_ending_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = tco("export", "gb200-nvl72", "-o", name)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "expected one of .xlsx, .csv, .json, .parquet, /" in done.stderr
    assert not list(tmp_path.iterdir())


def test_file_in_the_way_is_left_unchanged(tmp_path):
    (tmp_path / "a.xlsx").mkdir()
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine", encoding="utf-8")
    locked = tmp_path / "locked.xlsx"
    locked.write_text("mine", encoding="utf-8")
    os.chmod(locked, stat.S_IRUSR)
    for name, word in (
        ("a.xlsx", "is a folder"),
        ("file/", "cannot be written"),
        ("full/", "holds other files"),
        ("locked.xlsx", "read-only"),
        ("no/a.csv", "no"),
    ):
        done = tco("export", "gb200-nvl72", "-o", f"{tmp_path}/{name}")
        assert done.exit_code == 2, name
        assert word in done.stderr
        assert "Traceback" not in done.stderr
    assert (
        (tmp_path / "file").read_text(encoding="utf-8")
        == (tmp_path / "full" / "mine.txt").read_text(encoding="utf-8")
        == "mine"
    )
    assert locked.read_text(encoding="utf-8") == "mine"


def test_a_package_is_replaced_and_a_broken_one_is_taken_away(tmp_path):
    for pue in ("1.2", "1.3"):
        assert (
            tco(
                "export", "gb200-nvl72", "--set", f"site.pue={pue}", "-o", f"{tmp_path}/package/"
            ).exit_code
            == 0
        )
    assert {row["path"]: row["value"] for row in rows(tmp_path / "package/inputs.csv")}[
        "site.pue"
    ] == "1.3"
    with pytest.raises(UsageError):
        write_folder(tmp_path / "new", {"a.csv": "a\n", f"{'b' * 300}.csv": "b\n"}, "a.csv")
    assert not (tmp_path / "new").exists()


def test_wrong_data_is_refused_and_nothing_is_written(tmp_path):
    done = tco("export", "gb200-nvl27", "-o", tmp_path / "a.xlsx")
    assert done.exit_code == 3
    assert "gb200-nvl72" in done.stderr
    done = tco("export", "gb200-nvl72", "--set", "site.pue=2 USD", "-o", tmp_path / "a.xlsx")
    assert done.exit_code == 3
    assert not list(tmp_path.iterdir())


def test_a_chip_alone_has_no_bill_and_its_speed_all_the_same(tmp_path):
    assert tco("export", "h100-sxm", "--quiet", "-o", tmp_path / "a.xlsx").exit_code == 0
    metrics = table((tmp_path / "a.xlsx").read_bytes(), "Summary", "metric")
    assert "tco_usd_per_chip_hour" not in metrics
    assert metrics["hbm_byte_per_s"]["h100-sxm"] > 0


def test_scenarios_of_one_name_are_refused(tmp_path):
    assert tco("init", tmp_path / "c").exit_code == 0
    scenario_path = next((tmp_path / "c").glob("*.toml"))
    (tmp_path / "d").mkdir()
    copied_path = tmp_path / "d" / scenario_path.name
    copied_path.write_bytes(scenario_path.read_bytes())
    done = tco("export", scenario_path, copied_path, "-o", tmp_path / "a.csv")
    assert (done.exit_code, "are called" in done.stderr) == (2, True)
    assert tco("export", scenario_path, scenario_path, "-o", tmp_path / "a.csv").exit_code == 0
    assert len(rows(tmp_path / "a.csv")) == 1


def test_a_rack_that_does_not_fit_keeps_its_column(tmp_path):
    pair = ("gb200-nvl72", "h200-hgx8", "--set", "site=us-air-hall")
    assert tco("export", *pair, "-o", tmp_path / "a.xlsx").exit_code == 0
    metrics = table((tmp_path / "a.xlsx").read_bytes(), "Summary", "metric")
    assert metrics["tco_usd_per_chip_hour"].keys() == {"metric", "unit", "h200-hgx8", "meaning"}
    assert metrics["output_tokens_per_s_per_chip"]["gb200-nvl72"] > 0


MEDIANS = {
    "usd_per_million_output_tokens": "cost per million output tokens",
    "tco_usd_per_chip_hour": "cost per chip-hour",
}


def test_medians_stand_beside_the_base_case(folder):
    sheet_rows = reversed(by_rows((folder / "model.xlsx").read_bytes(), "Summary").values())
    first_rows = {values["A"]: values for values in sheet_rows if "A" in values}
    evaluations = evaluate_each(PAIR, None, {"site.pue": "1.2"})
    for row, evaluation, column in zip(rows(folder / "a.csv"), evaluations, "CD", strict=True):
        for metric, label in MEDIANS.items():
            low, median, high = (
                float(row[name]) for name in (f"{metric}_p10", f"median_{metric}", f"{metric}_p90")
            )
            assert low < float(row[metric]) < high
            assert median == pytest.approx(drawn_metric(evaluation, metric).p50, rel=1e-9)
            sheet_numbers = [
                first_rows[label + suffix][column] for suffix in (", P10", "", ", P90")
            ]
            assert sheet_numbers == pytest.approx([low, median, high], rel=1e-12)


def test_a_saved_result_is_exported_as_tables_only(tmp_path):
    from tests.scenario_helpers import result

    result("gb200-nvl72").save(tmp_path / "saved.json")
    assert tco("export", tmp_path / "saved.json", "-o", tmp_path / "a.csv").exit_code == 0
    done = tco("export", tmp_path / "saved.json", "-o", tmp_path / "a.xlsx")
    assert (done.exit_code, "holds no formulas" in done.stderr) == (3, True)


SECRET = "98765.4321"


@pytest.mark.thorough
def test_own_values_are_marked_and_can_be_kept_back(own_data, tmp_path, monkeypatch):
    own_data.write(
        "parts/mine.csv",
        "part,attribute,value,unit,low,high,as_of,kind,source,note,use\n"
        f"gb200-gpu,price,{SECRET},USD,{SECRET},{SECRET},2025-11,vendor,own-quote,SECRETNOTE,\n",
    )
    own_data.write(
        "sources.csv", "id,title,url,date\nown-quote,SECRETNOTE from a friend,,2025-11\n"
    )
    export_arguments = (
        "export",
        "gb200-nvl72",
        "--data",
        own_data.folder,
        "--set",
        "terms.rate=0.0765",
    )
    assert tco(*export_arguments, "-o", tmp_path / "open.xlsx").exit_code == 0
    content = (tmp_path / "open.xlsx").read_bytes()
    inputs = table(content, "Inputs", "input")
    assert {path for path, row in inputs.items() if row.get("own") == "own"} == {
        "parts.gb200-gpu.price",
        "terms.rate",
    }
    assert any(value == float(SECRET) for _, value in cells(content, "Inputs").values())
    done = tco(*export_arguments, "--redact", "-o", tmp_path / "kept.xlsx")
    assert (done.exit_code, "cannot withhold" in done.stderr) == (2, True)
    for name in ("a.csv", "a.json", "a.parquet", "package/"):
        assert (
            tco(*export_arguments, "-o", f"{tmp_path}/kept-{name}", TCO_REDACT="1").exit_code == 0
        )
    texts = [
        (tmp_path / f"kept-{name}").read_text(encoding="utf-8") for name in ("a.csv", "a.json")
    ]
    texts += [path.read_text(encoding="utf-8") for path in (tmp_path / "kept-package").iterdir()]
    texts.append(pd.read_parquet(tmp_path / "kept-a.parquet").to_csv())
    for text in texts:
        assert SECRET not in text
        assert "0.0765" not in text
        assert "SECRETNOTE" not in text
    row = rows(tmp_path / "kept-a.csv")[0]
    assert row["tco_usd_per_chip_hour"] == ""
    assert float(row["output_tokens_per_s_per_chip"]) > 0


def test_without_own_values_a_redacted_workbook_is_the_same(tmp_path):
    for name, more in (("a.xlsx", ()), ("b.xlsx", ("--redact",))):
        assert tco("export", "gb200-nvl72", *more, "-o", tmp_path / name).exit_code == 0
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()
