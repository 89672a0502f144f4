"""New documents of a user are copies to edit, marked as own, and priced at once."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest

from tests.cli import document, tco


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(path):
    return list(csv.DictReader(Path(path).read_text().splitlines()))


def test_new_chip_in_a_new_rack_has_cost_and_speed_of_its_template():
    assert tco("parts", "new", "acme-x1", "--like", "b200-sxm").exit_code == 0
    assert tco("systems", "new", "acme-rack", "--like", "b200-hgx8").exit_code == 0
    tree = Path("data/systems/acme-rack.toml")
    tree.write_text(tree.read_text().replace("b200-sxm", "acme-x1"))
    assert document("systems", "check")["findings"] == document("parts", "check")["findings"] == []
    tuned = "workload.as_deployed=0"  # of a new chip no deployment is known
    drafted_row, theirs = document(
        "compare", "acme-rack", "b200-hgx8", "--no-range", "--set", tuned
    )["rows"]
    dated = {"waiting_usd_per_chip": None}  # when a sketch is there nobody knows
    assert drafted_row["metrics"] == theirs["metrics"] | dated
    assert "available" not in drafted_row or drafted_row["available"] is None
    assert (drafted_row["validated_rows"], drafted_row["anchored_rows"]) == (0, 0)


def test_copied_values_are_marked_as_own_and_assumed():
    """A source says nothing of a part that it does not know."""
    tco("parts", "new", "acme-x1", "--like", "b200-sxm")
    copied = rows("data/parts/acme-x1.csv")
    assert {(row["kind"], row["source"]) for row in copied} == {("assumed", "my-own")}
    assert all(
        row["low"] and row["high"] and row["note"].startswith("copied from b200-sxm (")
        for row in copied
    )
    assert len(copied) == len(document("parts", "show", "acme-x1")["rows"])
    assert {row["attribute"] for row in copied}.isdisjoint(
        ("general_availability", "first_volume", "bring_up")
    )
    assert "(own)" in tco("parts", "show", "acme-x1").stdout
    assert 'acme-x1 = "nvidia"' in Path("data/performance/families.toml").read_text()


def test_own_price_stays_the_same_at_a_later_date():
    done = tco("parts", "new", "acme-x1", "--like", "b200-sxm")
    assert "left out, so that what you write holds on: price of 2027-01 (33920 USD)" in done.stderr
    tco("systems", "new", "acme-rack", "--like", "b200-hgx8")
    for name in ("systems/acme-rack.toml", "parts/acme-x1.csv"):
        path = Path("data") / name
        path.write_text(
            path.read_text()
            .replace("b200-sxm", "acme-x1")
            .replace("price,30000,USD,25000,37000", "price,18000,USD,18000,18000")
        )
    for date in ("2025-12", "2027-02"):
        (price,) = document("inputs", "acme-rack", "acme-x1.price", "--set", f"terms.date={date}")[
            "inputs"
        ]
        assert price["value"] == 18000


def test_own_values_are_marked_wherever_they_stand():
    tco("parts", "new", "acme-x1", "--like", "b200-sxm")
    Path("data/parts/price.csv").write_text(
        "part,attribute,value,unit,low,high,as_of,kind,source,note,use\n"
        "nvswitch-5,price,900,USD,800,1000,2025-12,assumed,my-own,,\n"
    )
    (counted,) = (
        line
        for line in tco(
            "compare", "gb200-nvl72", "trn3-nl72x2", "--no-range", "--full"
        ).stdout.splitlines()
        if line.startswith("own values")
    )
    assert counted.split()[2:] == ["1", "0"]
    for command in (
        ("price", "gb200-nvl72"),
        ("bom", "gb200-nvl72"),
        ("inputs", "gb200-nvl72", "nvswitch"),
        ("parts", "show", "nvswitch-5"),
    ):
        assert "(own)" in tco(*command).stdout, command
    assert "(own)" in tco("explain", "gb200-nvl72", "capex_usd", "--all").stdout
    assert [
        row["own_values"]
        for row in document("compare", "gb200-nvl72", "trn3-nl72x2", "--no-range")["rows"]
    ] == [1, 0]
    assert {
        line["path"].rpartition("/")[2]
        for line in document("price", "gb200-nvl72")["lines"]
        if line["own"]
    } == {"nvswitch-5"}


def test_missing_attributes_of_a_new_part_are_named_at_once():
    tco("parts", "new", "acme-x1", "--like", "b200-sxm")
    tco("systems", "new", "acme-rack", "--like", "b200-hgx8")
    tree, path = Path("data/systems/acme-rack.toml"), Path("data/parts/acme-x1.csv")
    tree.write_text(tree.read_text().replace("b200-sxm", "acme-x1"))
    gone = ("max_clock", "dies", "cores", "exponentials_per_clock", "clock", "peak_vector")
    path.write_text(
        "".join(
            line
            for line in path.read_text().splitlines(keepends=True)
            if line.split(",")[1] not in gone
        )
    )
    done = tco("price", "acme-rack", "--format", "json")
    assert done.exit_code == 3
    assert [name for name in gone if name not in done.stderr] == []


def test_new_scenario_answers_as_its_template():
    assert tco("scenarios", "new", "ours", "--like", "trn3-nl72x2@switch=gen2").exit_code == 0
    drafted_metrics, theirs = (
        document("price", name)["metrics"]
        for name in ("scenarios/ours.toml", "trn3-nl72x2@switch=gen2")
    )
    assert drafted_metrics == theirs


def test_a_model_is_read_before_it_is_taken(folder):
    (folder / "hf").mkdir()
    shipped = Path(__file__).parents[2] / "data/models/gemma-2-9b/config.json"
    (folder / "hf" / "config.json").write_text(shipped.read_text())
    assert tco("models", "add", "hf/config.json", "--id", "ours").exit_code == 0
    assert (
        document("models", "show", "ours")["parameters"]
        == document("models", "show", "gemma-2-9b")["parameters"]
    )
    (folder / "hf" / "config.json").write_text('{"model_type": "bert"}')
    done = tco("models", "add", "hf/config.json")
    assert done.exit_code == 3
    assert not Path("data/models/hf").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("parts", "new", "../x", "--like", "trn3"), 3, "'../x' is no name for a part"),
        (("parts", "new", "trn3", "--like", "trn2"), 3, "trn3 is a part already"),
        (("parts", "new", "x", "--like", "trn"), 3, "--like: unknown part 'trn'; did you mean"),
        (("systems", "new", "x", "--like", "gb200"), 3, "unknown system 'gb200'; did you mean"),
        (("systems", "new", "gb200-nvl72", "--like", "gb200-nvl72"), 3, "is a system already"),
        (("scenarios", "new", "x", "--like", "gb20"), 3, "unknown scenario 'gb20'; did you mean"),
        (("models", "add", "nothing.json"), 3, "nothing.json"),
        (("parts", "new", "x"), 2, "Missing option '--like'"),
    ],
)
def test_impossible_draft_is_refused(arguments, code, message):
    done = tco(*arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert message in done.stderr
    assert not Path("data").exists()


def test_draft_does_not_overwrite_a_file():
    assert tco("scenarios", "new", "ours", "--like", "gb200-nvl72").exit_code == 0
    Path("scenarios/ours.toml").write_text("# mine")
    assert tco("scenarios", "new", "ours", "--like", "gb200-nvl72").exit_code == 2
    assert Path("scenarios/ours.toml").read_text() == "# mine"


def test_user_folder_keeps_its_baselines_under_version_control(tmp_path):
    assert tco("init", str(tmp_path / "mine")).exit_code == 0
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path / "mine", check=True)
    ignored = subprocess.run(
        ["git", "check-ignore", "data/sources.csv", "reports/x.html", "reports/baselines/a.json"],
        cwd=tmp_path / "mine",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ignored.stdout.split() == ["data/sources.csv", "reports/x.html"]
