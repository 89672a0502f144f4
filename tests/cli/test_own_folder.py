"""A user's data folder is made by `init`, priced, kept as a baseline and compared."""

from __future__ import annotations

import json

import pytest

from tests.catalogue import DATA
from tests.cli import document, tco


@pytest.fixture
def folder(tmp_path, monkeypatch):
    assert tco("init", tmp_path / "mine").exit_code == 0
    monkeypatch.chdir(tmp_path / "mine")
    return tmp_path / "mine"


@pytest.fixture
def quote(folder):
    """The file of a price of one's own, whose example is in use."""
    path = folder / "data" / "parts" / "mine.csv"
    path.write_text(path.read_text().replace("#nitro", "nitro"))
    return path


def test_the_example_of_a_price_changes_no_answer(folder):
    for scenario in ("gb200-nvl72", "trn3-nl72x2"):
        done = tco("price", scenario)
        assert done.exit_code == 0
        assert "own values" not in done.stderr


def test_the_example_of_a_price_is_in_force_without_its_mark(quote):
    assert "own values: 1 in force, 0 not used" in tco("price", "trn3-nl72x2").stderr


def test_init_makes_a_folder_that_works(folder):
    assert sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    ) == [
        ".gitignore",
        "README.md",
        "data/parts/mine.csv",
        "data/sources.csv",
        "mine.toml",
    ]
    assert tco("price", "mine.toml").exit_code == 0
    for kind in ("parts", "systems", "sources"):
        assert document(kind, "check", "--data", "data")["findings"] == []


@pytest.mark.thorough
def test_every_command_of_the_readme_that_init_writes_runs(folder):
    commands = [
        line.strip().partition("  ")[0]
        for line in (folder / "README.md").read_text().splitlines()
        if line.startswith("    tco")
    ]
    assert len(commands) >= 8
    (folder / "hf").mkdir()
    (folder / "hf" / "config.json").write_text(
        (DATA / "models" / "llama-3.1-8b" / "config.json").read_text()
    )
    for line in commands:
        for command in line.split(" && "):
            done = tco(*command.split()[1:])
            assert done.exit_code == 0, (command, done.stderr)


def test_init_does_not_write_over_anything(folder):
    done = tco("init", folder)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "exists and is not an empty folder" in done.stderr


def test_init_says_what_git_ignores(tmp_path):
    printed = tco("init", tmp_path / "mine").stdout
    ignored = (tmp_path / "mine" / ".gitignore").read_text().splitlines()
    assert "data/" in ignored
    assert "Git ignores data/ and reports/, but for baselines" in printed
    assert f"remove its line from {tmp_path / 'mine' / '.gitignore'}." in printed


def test_init_takes_an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    assert tco("init", tmp_path / "empty").exit_code == 0


def test_init_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    done = tco("init", tmp_path / "file" / "mine")
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr


def test_data_beside_a_scenario_is_laid_over_ours(quote):
    lines = {line["path"]: line for line in document("price", "mine.toml")["lines"]}
    overlay_lines = [line for path, line in lines.items() if path.endswith("nitro-v6-400g")]
    assert overlay_lines
    assert all(line["sources"] == ["my-quote"] for line in overlay_lines)


def test_baseline_round_trip(folder):
    assert tco("baseline", "save", "main", "gb200-nvl72", "mine.toml").exit_code == 0
    baseline_path = folder / "reports" / "baselines" / "main.json"
    assert json.loads(baseline_path.read_text())["schema"] == "tco.baseline/2"
    check_document = document("baseline", "check", "main")
    assert (check_document["schema"], check_document["ok"], check_document["drift"]) == (
        "tco.baseline-check/1",
        True,
        [],
    )


def test_a_drift_names_the_input(folder):
    assert tco("baseline", "save", "main", "gb200-nvl72", "mine.toml").exit_code == 0
    check_document = document(
        "baseline", "check", "main", "--set", "site.electricity_price=0.30 USD/kWh", code=1
    )
    assert not check_document["ok"]
    assert {row["scenario"] for row in check_document["drift"]} == {"gb200-nvl72", "mine.toml"}
    for row in check_document["drift"]:
        assert any("site.electricity_price" in reason for reason in row["why"])
        assert row["new"] != row["old"]
        assert row["change"] == pytest.approx(row["new"] / row["old"] - 1, rel=1e-12)


def test_a_drift_is_printed_and_fails(folder):
    assert tco("baseline", "save", "main", "gb200-nvl72").exit_code == 0
    done = tco("baseline", "check", "main", "--set", "site.pue=1.5")
    assert done.exit_code == 1
    assert "facility_power_w_per_chip" in done.stdout
    assert "site.pue" in done.stdout


def test_a_tolerated_increase_passes_and_what_gets_better_too(folder):
    assert tco("baseline", "save", "main", "gb200-nvl72").exit_code == 0
    pue = document("scenarios", "show", "gb200-nvl72")["inputs"]
    now = next(row["value"] for row in pue if row["path"] == "site.pue")
    dearer, cheaper = f"site.pue={now * 1.01}", f"site.pue={now * 0.99}"
    assert (
        document("baseline", "check", "main", "--max-increase", "0.05", "--set", dearer)["drift"]
        == []
    )
    dearer_drift = document(
        "baseline", "check", "main", "--max-increase", "0.005", "--set", dearer, code=1
    )["drift"]
    assert {row["metric"] for row in dearer_drift} == {
        *("facility_power_w_per_chip", "energy_usd_per_chip_hour", "tokens_per_s_per_facility_mw"),
        *("grid_co2e_g_per_chip_hour", "co2e_g_per_million_output_tokens"),
    }
    assert all(row["worse"] for row in dearer_drift)
    assert (
        document("baseline", "check", "main", "--max-increase", "0", "--set", cheaper)["drift"]
        == []
    )


def test_own_price_changes_the_baseline(quote):
    assert tco("baseline", "save", "main", "mine.toml").exit_code == 0
    quote.write_text(quote.read_text().replace(",500,", ",550,"))
    drift = document("baseline", "check", "main", code=1)["drift"]
    assert any(
        "price parts.nitro-v6-400g.price: 500 -> 550 USD" in reason
        for row in drift
        for reason in row["why"]
    )


GATE = ("--metric", "usd_per_million_output_tokens", "--max-increase", "2%")


def test_save_says_that_the_file_holds_own_values(quote):
    plain = "It holds your own values in plain text; --redact leaves them out."
    done = tco("baseline", "save", "main", "mine.toml")
    path = "reports/baselines/main.json"
    metrics = json.loads((quote.parents[2] / path).read_text())["scenarios"]["mine.toml"]["metrics"]
    assert done.stdout.splitlines()[-2:] == [f"{path} keeps {len(metrics)} metrics.", plain]
    both = tco("baseline", "save", "both", "gb200-nvl72", "mine.toml").stdout
    assert "metrics and figures of the draws." in both
    assert plain in both
    assert plain not in tco("baseline", "save", "red", "mine.toml", "--redact").stdout
    assert plain not in tco("baseline", "save", "shipped", "gb200-nvl72").stdout


def test_baseline_with_own_values_is_saved_again_without_them(quote):
    """The error of a redacted check names the command that ends it."""
    for name in ("main", "other"):
        assert tco("baseline", "save", name, "mine.toml").exit_code == 0
    for words in (("check", "main"), ("show", "main")):
        done = tco("baseline", *words, "--redact")
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.endswith(
            "; save the baseline without them: tco baseline save main mine.toml --redact\n"
        )
    another_scenario = tco("baseline", "save", "main", "gb200-nvl72", "--redact")
    assert another_scenario.exit_code == 2
    assert "tco baseline save main gb200-nvl72 mine.toml --redact\n" in another_scenario.stderr
    path, price = quote.parents[2] / "reports/baselines/main.json", "parts.nitro-v6-400g.price"
    saved_inputs = json.loads(path.read_text())["scenarios"]["mine.toml"]["inputs"]
    assert saved_inputs[price] == [500, "USD"]
    assert tco("baseline", "save", "main", "mine.toml", "--redact").exit_code == 0
    assert price not in json.loads(path.read_text())["scenarios"]["mine.toml"]["inputs"]
    # the other file holds own values still
    for words in (("check", "main"), ("show", "main")):
        assert tco("baseline", *words, "--redact").exit_code == 0
    listed = document("baseline", "list", "--redact")["items"]
    assert [item["scenarios"] for item in listed] == [["mine.toml"], ["mine.toml"]]


def test_check_without_the_own_price_of_the_baseline_fails(quote):
    assert tco("baseline", "save", "main", "mine.toml").exit_code == 0
    assert tco("baseline", "check", "main", *GATE).exit_code == 0
    quote.unlink()
    done = tco("baseline", "check", "main", *GATE)
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr == (
        "error: reports/baselines/main.json: rests on 1 own value that this check lacks: "
        "parts.nitro-v6-400g.price; add data/ or --set again, or save the baseline without: "
        "tco baseline save main mine.toml\n"
    )
    # without a limit the drift fails, and the note says what is missing
    drifted = tco("baseline", "check", "main")
    assert drifted.exit_code == 1
    assert "rests on 1 own value that this check lacks: parts.nitro-v6" in drifted.stderr
    # what is removed on purpose is accepted by saving again
    assert tco("baseline", "save", "main", "mine.toml").exit_code == 0
    assert tco("baseline", "check", "main", *GATE).exit_code == 0


def test_own_value_that_a_setting_states_is_not_missing(quote):
    assert tco("baseline", "save", "main", "mine.toml").exit_code == 0
    quote.unlink()
    stated = ("--set", "parts.nitro-v6-400g.price=500 USD")
    assert tco("baseline", "check", "main", *GATE, *stated).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("gb200-nvl72", "gb200-nvl72"), 0),
        (("gb200-nvl72", "gb200-nvl72", "--exit-code"), 0),
        (("gb200-nvl72", "trn3-nl72x2"), 0),
        (("gb200-nvl72", "trn3-nl72x2", "--exit-code"), 1),
        (("gb200-nvl72", "gb200-nvl72", "--exit-code", "--set", "site.pue=1.5"), 1),
    ],
)
def test_diff_exits_as_asked(arguments, code):
    done = tco("diff", *arguments)
    assert done.exit_code == code
    assert done.stdout


def test_diff_names_the_causes():
    difference_document = document(
        "diff", "gb200-nvl72", "gb200-nvl72", "--set", "terms.life=7 year"
    )
    assert [
        (cause["path"], cause["new"], cause["unit"]) for cause in difference_document["why"]
    ] == [("terms.life", 7, "year")]
    assert "tco_usd_per_chip_hour" in {move["metric"] for move in difference_document["metrics"]}
    assert "it_power_w_per_chip" not in {move["metric"] for move in difference_document["metrics"]}
