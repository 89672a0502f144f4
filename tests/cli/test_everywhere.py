"""Every command takes variants in the name of a system; a rack that does not fit has a reason."""

from __future__ import annotations

import csv

import pytest

from tests.cli import document, tco

FAST = "trn3-nl72x2@switch=gen2"


@pytest.mark.parametrize(
    "arguments",
    [
        ("price",),
        ("bom",),
        ("fabric",),
        ("systems", "show"),
        ("inputs",),
    ],
    ids=" ".join,
)
def test_variant_after_the_id_answers_as_the_option(arguments):
    """A variant after the id gives the answer of the option, except for names."""
    named, chosen = (
        document(*arguments, *words)
        for words in ((FAST,), ("trn3-nl72x2", "--variant", "switch=gen2"))
    )
    for answer_document in (named, chosen):
        for key in ("scenario", "title", "system", "state"):
            answer_document.pop(key, None)
    assert named == chosen
    assert named != document(*arguments, "trn3-nl72x2")


def test_a_frontier_of_a_variant():
    (frontier,) = document("frontier", FAST)["frontiers"]
    assert frontier["scenario"] == FAST
    assert frontier["points"]


def test_unknown_variant_is_refused():
    for command in (("bom",), ("fabric",), ("frontier",), ("compare",)):
        done = tco(*command, "trn3-nl72x2@swtch=gen2")
        assert (done.exit_code, done.stdout) == (3, "")
        assert "did you mean 'switch'?" in done.stderr


def test_a_rack_that_does_not_fit_is_a_frontier_without_points():
    misfit, fits = document("frontier", "gb200-nvl72", "h200-hgx8", "--set", "site=us-air-hall")[
        "frontiers"
    ]
    assert (misfit["points"], misfit["tco_usd_per_used_chip_hour"]) == ([], None)
    assert any("a rack position takes 50 kW" in note for note in misfit["notes"])
    assert fits["points"]


def test_points_of_a_frontier_at_another_date_compete_among_themselves(tmp_path):
    """Prices of one year are no offer in another."""
    documents = (
        'site = "us-hyperscale"\nterms = "hyperscaler-2025-12"\nworkload = '
        '"deepseek-v3-8k-1k"\ncluster = "tor-100g-16k"\n'
    )
    later = tmp_path / "later.toml"
    later.write_text(f'system = "h200-hgx8"\n{documents}[set]\n"terms.date" = "2026-09"\n')
    for frontier in document("frontier", "gb200-nvl72", str(later))["frontiers"]:
        assert all(point["cheapest"] for point in frontier["points"])
    assert not all(
        point["cheapest"]
        for point in document("frontier", "gb200-nvl72", "h200-hgx8")["frontiers"][1]["points"]
    )


# ---------------------------------------------------------------- what has no price beside what has
@pytest.mark.parametrize(
    ("systems", "perspective", "missing", "why"),
    [
        (
            ("vr-nvl144", "gb200-nvl72"),
            "renter",
            "vr-nvl144",
            "parts.vr200-gpu.rent is missing in ",
        ),
        (
            ("gb200-nvl72", "trn3-nl72x2"),
            "neocloud",
            "trn3-nl72x2",
            "trn3-nl72x2 is built by Amazon for its own use, so terms.perspective=neocloud has",
        ),
        (
            ("trn2-nl16", "gb200-nvl72"),
            "on-premises",
            "trn2-nl16",
            "trn2-nl16 is built by Amazon",
        ),
    ],
)
def test_system_without_a_price_keeps_its_row(systems, perspective, missing, why):
    perspective_options = ("--set", f"terms.perspective={perspective}", "--no-range")
    rows = {
        row["scenario"]: row for row in document("compare", *systems, *perspective_options)["rows"]
    }
    assert tuple(rows) == systems
    gone, priced_row = rows[missing], next(row for name, row in rows.items() if name != missing)
    price_metrics = document("price", priced_row["scenario"], *perspective_options[:2])["metrics"]
    assert priced_row["metrics"]["tco_usd_per_chip_hour"] == price_metrics["tco_usd_per_chip_hour"]
    assert any(note.startswith(f"cannot be priced: {why}") for note in gone["notes"])
    assert {value for name, value in gone["metrics"].items() if "usd" in name or "tco" in name} == {
        None
    }
    assert (
        gone["metrics"]["output_tokens_per_s_per_chip"]
        == document("perf", missing)["metrics"]["output_tokens_per_s_per_chip"]
    )
    table = tco("compare", *systems, *perspective_options)
    assert table.exit_code == 0
    assert f"{missing} cannot be priced: " in " ".join(table.stdout.split())
    refused = tco("price", missing, *perspective_options[:2])
    assert refused.exit_code == 3
    assert why in refused.stderr


@pytest.mark.parametrize(
    ("scenario", "metric", "why"),
    [
        ("trn3-nl72x2", "perf_per_tco_gross_vs_baseline", "it needs the cost of a baseline"),
        ("trn3-nl72x2", "step_s", "it is of a workload that trains, this one serves"),
        ("llama-3.1-405b-training-gb200-nvl72", "ttft_s", "this one trains"),
        ("trn1-16", "usd_per_million_output_tokens", "the quickest plan that fits gives "),
        ("vr-nvl144", "embodied_co2e_g_per_chip_hour", "nothing states the gas of making its chip"),
        ("a100-hgx8", "usd_per_peak_fp8_pflop_hour", "its chip does not compute FP8"),
    ],
)
def test_a_metric_without_a_value_has_a_reason_of_its_own(scenario, metric, why):
    quick = ("--set", "workload.interactivity=500 token/s") if scenario == "trn1-16" else ()
    done = tco("explain", scenario, metric, *quick)
    assert done.exit_code == 3
    assert f"{metric} has no value for {scenario}: " in done.stderr
    assert why in done.stderr
    (row,) = document("compare", scenario, "--no-range", *quick)["rows"]
    absent = {
        metric: note
        for note in row["notes"]
        if note.startswith("not computed: ")
        for metric in note.split(": ")[1].split(", ")
    }
    assert absent.keys() == {name for name, value in row["metrics"].items() if value is None}
    assert metric not in absent or why in absent[metric]


def test_rows_of_a_chip_are_told_from_those_of_its_relatives():
    rows = {
        row["scenario"]: row
        for row in document("compare", "gb200-nvl72", "mi450x-ualoe72", "trn1-16", "--no-range")[
            "rows"
        ]
    }
    for name, row in rows.items():
        validated_count, anchored_count = row["validated_rows"], row["anchored_rows"]
        assert (row["validated"]["rows"], row["validated"]["anchored_rows"]) == (
            validated_count,
            anchored_count,
        )
        assert (validated_count > 0) == row["validated"]["text"].startswith("checked on ")
        assert (anchored_count > 0) == (" stand in" in row["validated"]["text"]), name
    assert rows["gb200-nvl72"]["validated_rows"] > rows["gb200-nvl72"]["anchored_rows"] == 0
    assert rows["mi450x-ualoe72"]["anchored_rows"] > rows["mi450x-ualoe72"]["validated_rows"] == 0
    table = list(
        csv.DictReader(tco("compare", *rows, "--no-range", "--format", "csv").stdout.splitlines())
    )
    assert [(float(line["validated_rows"]), float(line["anchored_rows"])) for line in table] == [
        (row["validated_rows"], row["anchored_rows"]) for row in rows.values()
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("collective", "h100-hgx8", "--ranks", "99999999999999999999"),
            "the cluster has 16,384 chips (cluster.chips); expected 2 to 16384",
        ),
        (
            ("price", "trn3-nl72x2", "--set", "cluster.chips=1"),
            "cluster.chips is 1, but one scale-up domain of trn3-nl72x2 has 144 chips; expected as "
            "many",
        ),
        (
            ("price", "gb200-nvl72", "--set", "cluster.chips=71"),
            "one scale-up domain of gb200-nvl72 has 72 chips",
        ),
    ],
)
def test_ranks_beyond_the_cluster_are_refused(words, message):
    done = tco(*words)
    assert (done.exit_code, done.stdout) == (3, "")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("words", "library", "by"),
    [
        ((), "nccl+deepep", "NCCL"),
        (("--op", "dispatch"), "nccl+deepep", "DeepEP"),
        (("--library", "tensorrt-llm"), "tensorrt-llm", "TensorRT-LLM"),
    ],
)
def test_a_collective_says_which_library_it_took(words, library, by):
    collective_document, printed_text = (
        document("collective", "h100-hgx8", *words),
        tco("collective", "h100-hgx8", *words).stdout,
    )
    assert collective_document["library"] == library
    assert collective_document["algorithm_library"] in library.split("+")
    (line,) = (line for line in printed_text.splitlines() if line.startswith("library: "))
    assert by in line
