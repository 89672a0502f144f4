"""`tco inputs` says in words what inputs are, and finds them by words; `parts show` likewise."""

from __future__ import annotations

from tests.cli import document, tco


def test_inputs_without_a_word_are_an_overview():
    lines = tco("inputs", "gb200-nvl72").stdout.splitlines()
    assert len(lines) <= 60
    assert lines[lines.index("cost of capital") + 1].split()[:2] == ["terms.rate", "~0.09"]
    (count,) = [line for line in lines if line.startswith("All ")]
    total = len(document("inputs", "gb200-nvl72")["inputs"])
    assert count == f"All {total} inputs, by group"
    groups = lines[lines.index(count) + 3 : -1]
    assert sum(int(line.split("tco inputs")[0].split()[-1]) for line in groups) == total


def test_a_word_begins_a_word_of_a_path_and_an_exact_name_comes_first():
    paths = [row["path"] for row in document("inputs", "gb200-nvl72", "rate")["inputs"]]
    assert paths[0] == "terms.rate"
    assert "workload.operated_by" not in paths


def test_chip_and_attribute_in_words_are_an_exact_name():
    lines = tco("inputs", "trn3-nl72x2", "trn3", "price").stdout.splitlines()
    assert lines[3] == "trn3 price with HBM [derived; tco-model]"


def test_names_are_said_to_be_for_set_with_an_example_that_works():
    text = tco("inputs", "gb200-nvl72", "electricity", "price").stdout
    assert text.splitlines()[1].startswith("input, then its name for --set  ")
    setting = "site.electricity_price=0.0861 USD/kWh"
    assert f"Change an input: tco compare --set '{setting}'." in text
    assert tco("price", "gb200-nvl72", "--set", setting).exit_code == 0


def test_building_cost_is_per_watt_whatever_its_name_says():
    text = tco("inputs", "gb200-nvl72", "usd_per_mw").stdout
    assert "per watt of IT power, not per MW" in text


def test_chip_without_a_price_of_its_own_says_where_it_comes_from():
    text = tco("parts", "show", "trn3").stdout
    assert "tco inputs trn3-nl72x2 trn3 price." in text
    assert "design cost, once for all chips, USD" in text
    assert "no price of its own" not in tco("parts", "show", "gb200-gpu").stdout


def test_inputs_that_a_word_only_describes_are_counted():
    text = tco("inputs", "gb200-nvl72", "rate").stdout
    described = "performance.nvidia.tile_efficiency"
    assert described in [row["path"] for row in document("inputs", "gb200-nvl72", "rate")["inputs"]]
    assert described not in text
    assert "more inputs only in the description: tco inputs gb200-nvl72 rate" in text


def test_every_input_of_a_word_is_said_in_words_with_its_source():
    lines = tco("inputs", "gb200-nvl72", "electricity").stdout.splitlines()
    (row,) = [index for index, line in enumerate(lines) if "site.electricity_price " in line]
    assert lines[row - 1].startswith("electricity price: price of a unit of energy [")


def test_a_chip_shows_its_main_values_and_says_how_to_see_the_rest():
    lines = tco("parts", "show", "trn3").stdout.splitlines()
    assert len(lines) <= 60
    rows = document("parts", "show", "trn3")["rows"]
    (rest,) = [line for line in lines if "more values, notes and sources" in line]
    dated = [line for line in lines if line.split()[-2:-1] and line.split()[-2][:2] == "20"]
    assert int(rest.split()[0]) < len(rows)
    assert len(dated) >= 15
    assert rest.endswith("tco parts show trn3 --format csv.")
    assert not any("_" in line.split("  ")[0] for line in lines if line and "tco " not in line)


def test_a_small_part_shows_all_its_values_notes_and_sources():
    text = tco("parts", "show", "connectx-7").stdout
    assert "more values" not in text
    assert "failure rate" in text
    assert "llama3: Llama Team" in text


def test_price_that_follows_from_other_inputs_is_not_said_to_be_fixed():
    text = tco("inputs", "trn3-nl72x2", "trn3", "price").stdout
    (row,) = [line for line in text.splitlines() if line.startswith("  parts.trn3.price ")]
    assert row.endswith("built up")
    assert "built up: the value follows from other inputs and varies with them." in text
    assert "built up" not in tco("inputs", "gb200-nvl72", "terms").stdout


def test_values_of_a_chip_have_sources_and_those_not_used_a_remark():
    text = tco("parts", "show", "trn3").stdout
    used, unused = text.split("Values that are not used")
    (capacity,) = [line for line in used.splitlines() if line.startswith("HBM capacity, GiB")]
    assert capacity.split()[-1] == "aws-neuron-trn3"
    (decimal_capacity,) = [
        line for line in unused.splitlines() if line.startswith("HBM capacity, GB")
    ]
    assert decimal_capacity.endswith("12 layers of 24 Gbit are 36 GiB, so GiB is right")
