"""Software practice can be replaced; formats are those in use; priors lie near measured ones."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from tco import DataError, evaluate, load_catalogue
from tests.cli import document, tco
from tests.registry import parse_quantity
from tests.scenario_helpers import plain_values

ROOT = Path(__file__).parents[2]
RATE = "output_tokens_per_s_per_chip"
# attributes of Trainium's practice that the chip's own build sets, and why they may lie outside the
# measured families
PHYSICS = {
    "flop_energy": "the peak is quoted at the clock the chip holds",
    "collective_chunk": "no trip through HBM",
    "collective_step": "a ring step of the torus by the vendor's documents",
    "die_latency_factor": "latencies are quoted for the two-die package",
    "direct_start_ratio": "no separate kernels in a compiled program",
    "efa_step": "HBM to HBM by the vendor's documents",
    "expert_kernel_latency": "dispatch and combine on cores of their own",
    "link_efficiency": "flits of PCIe 6",
    "load_balance": "several unequal paths",
    "reference_clock": "its own clock",
    "tile_efficiency_fp4": "the same arrays at the same rate as in 8 bits, which is measured",
}


def test_a_prior_lies_where_measured_families_do_unless_physics_sets_it():
    rows: dict[str, dict[str, dict[str, str]]] = {}
    for path in (ROOT / "data/calibration").glob("*.csv"):
        for row in csv.DictReader(path.read_text().splitlines()):
            rows.setdefault(row["attribute"], {})[row["family"]] = row
    judged = 0
    for name, owners in rows.items():
        measured = [
            owners[family]
            for family in ("nvidia", "amd", "trainium1")
            if family in owners and owners[family]["source"] == "tco-calibration"
        ]
        trainium_row = owners.get("trainium")
        if (
            trainium_row is None
            or trainium_row["kind"] != "estimate"
            or not measured
            or name in PHYSICS
        ):
            continue
        judged += 1
        value = parse_quantity(
            f"{trainium_row['value']} {trainium_row['unit']}", measured[0]["unit"]
        )
        low = min(
            parse_quantity(f"{row['low'] or row['value']} {row['unit']}", measured[0]["unit"])
            for row in measured
        )
        high = max(
            parse_quantity(f"{row['high'] or row['value']} {row['unit']}", measured[0]["unit"])
            for row in measured
        )
        assert 0.99 * low <= value <= 1.01 * high, f"{name}: {value:g} outside {low:g} to {high:g}"
    assert judged >= 12


def test_a_family_under_its_own_practice_is_itself():
    for system, family in (("gb200-nvl72", "nvidia"), ("trn3-nl72x2", "trainium")):
        assert evaluate(system, {"workload.practice": family}).metrics == evaluate(system).metrics


def test_practice_swaps_what_is_fitted_and_leaves_the_chip():
    swapped_result = evaluate("trn3-nl72x2", {"workload.practice": "nvidia"})
    catalogue = load_catalogue()
    for name in ("launch_time", "collective_wait", "stream_efficiency"):
        assert (
            swapped_result.inputs[f"performance.trainium.{name}"].value
            == catalogue.practice("nvidia", name).value
        )
    assert (
        swapped_result.metrics["tco_usd_per_chip_hour"]
        == evaluate("trn3-nl72x2").metrics["tco_usd_per_chip_hour"]
    )
    assert (
        swapped_result.inputs["performance.trainium.exchange_overlap"].value
        == catalogue.practice("nvidia", "exchange_overlap").value
    )


def test_a_setting_wins_over_a_swapped_practice():
    swapped_result = evaluate(
        "trn3-nl72x2", {"workload.practice": "nvidia", "performance.trainium.launch_time": "9 us"}
    )
    assert swapped_result.inputs["performance.trainium.launch_time"].value == pytest.approx(9e-6)


def test_the_command_swaps_and_says_so():
    comparison_document = document(
        "compare", "gb200-nvl72", "trn3-nl72x2", "--practice", "nvidia", "--no-range"
    )
    assert comparison_document["inputs"]["practice"] == "nvidia"
    assert comparison_document["inputs"]["formats"]["precision"] == "fp8"
    assert (
        "software of nvidia"
        in tco("compare", "gb200-nvl72", "--practice", "nvidia", "--no-range").stdout
    )
    wrong = tco("compare", "gb200-nvl72", "--practice", "nvida")
    assert wrong.exit_code == 3
    assert "did you mean 'nvidia'" in wrong.stderr


def test_software_reaches_further_the_further_it_is_said_to():
    software_rates = [
        evaluate("trn3-nl72x2", {"workload.software": text}).metrics[RATE]
        for text in ("public", "drawn", "2027-12", "best")
    ]
    assert software_rates == sorted(software_rates)
    assert software_rates[0] < software_rates[-1]
    assert (
        evaluate("trn3-nl72x2", {"workload.software": "mature"}).metrics[RATE] == software_rates[-1]
    )


@pytest.mark.parametrize("reach", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize(
    ("name", "best_is"), [("collective_wait", min), ("stream_efficiency", max)]
)
def test_reached_value_lies_between_public_and_best_in_logarithms(name, best_is, reach):
    """The reached value is public^(1 - reach) times best^reach, as computed from the rows."""
    settings = {
        "performance.owner.software_reach": str(reach),
        "performance.trainium.port_overhead": "0",
    }
    catalogue = load_catalogue()
    public, best = (catalogue.practice(owner, name).value for owner in ("trainium", "best"))
    reached_values, stack = [], list(evaluate("trn3-nl72x2", settings, trace=True).nodes.values())
    while stack:
        node = stack.pop()
        stack += [inner for _, inner in node.inputs]
        if (
            node.formula is not None
            and node.formula.name.startswith("reached")
            and node.inputs[0][1].path == f"performance.trainium.{name}"
        ):
            reached_values.append(node.value)
            break
    assert reached_values == [
        pytest.approx(public ** (1 - reach) * best_is(public, best) ** reach, rel=1e-12)
    ]


def test_unknown_software_is_refused():
    done = tco("price", "trn3-nl72x2", "--set", "workload.software=banana")
    assert done.exit_code == 3
    assert all(level in done.stderr for level in ("drawn", "public", "best"))


@pytest.mark.parametrize(
    ("path", "worse"),
    [
        ("parts.trn3.dma_bandwidth", "3.6 TB/s"),  # transfer engines feed the memory
        ("parts.trn3.dma_start", "2.6 us"),  # experts wait for their descriptors
        ("parts.trn3.dma_signal", "2.6 us"),  # collectives step by signals
        ("parts.trn3.dereferences", "0"),  # tokens are copied to their experts' order
        ("parts.trn3.exponentials_per_clock", "16"),
        ("parts.trn3.array_least_moving", "512"),  # small products leave arrays unfilled
        ("performance.trainium.exchange_overlap", "0"),  # collectives without cores of their own
        ("performance.trainium.endpoint_in_memory", "1"),  # collectives through HBM
    ],
)
def test_each_piece_of_physics_counts(path, worse):
    plan = {"tp": "4", "chips": "144", "batch": "288", "prefill_chips": "12", "prefill_tp": "4"}
    rate = {
        value: evaluate("trn3-nl72x2", {path: value} if value else {}, plan).metrics[RATE]
        for value in ("", worse)
    }
    assert rate[worse] < rate[""]


def test_a_model_keeps_the_formats_it_is_published_in():
    model_texts = evaluate("gb200-nvl72", {"workload.model": "gpt-oss-120b"}).texts
    assert (model_texts["workload.expert_format"], model_texts["workload.attention_format"]) == (
        "w4a8",
        "bf16",
    )
    assert (
        evaluate(
            "gb200-nvl72", {"workload.model": "gpt-oss-120b", "workload.expert_format": "fp8"}
        ).texts["workload.expert_format"]
        == "fp8"
    )
    assert (
        "experts W4A8"
        in tco("compare", "gb200-nvl72", "--set", "workload.model=gpt-oss-120b").stdout
    )


@pytest.mark.parametrize(
    ("system", "form"),
    [
        ("gb200-nvl72", "nvfp4"),
        ("mi450x-ualoe72", "mxfp4"),
        ("trn3-nl72x2", "w4a8"),
        ("h100-hgx8", "fp8"),
    ],
)
def test_native_formats_are_the_chips_own(system, form):
    native_result = evaluate(
        system, {"workload.formats": "native", "workload.interactivity": "20 token/s"}
    )
    assert native_result.texts["workload.precision"] == form
    assert not [note for note in native_result.notes if "does not compute" in note]
    # a setting wins
    assert (
        evaluate(system, {"workload.formats": "native", "workload.precision": "bf16"}).texts[
            "workload.precision"
        ]
        == "bf16"
    )


def test_unknown_formats_are_refused():
    with pytest.raises(DataError, match="native"):
        evaluate("gb200-nvl72", {"workload.formats": "nativ"})


def test_chip_without_runs_names_its_stand_in():
    chip_standing = evaluate("mi450x-ualoe72").standing
    assert "stand in" in chip_standing.text
    assert (chip_standing.validated_rows, chip_standing.short) == (
        0,
        f"none; {chip_standing.anchored_rows} mi355x runs",
    )
    assert re.fullmatch(r"none; \d+ b200-sxm runs", evaluate("a100-hgx8").standing.short)


def test_chip_with_few_runs_states_them_and_its_stand_in():
    """Trainium3 has eight published runs, all on software that holds it back.

    Nothing is fitted to them, and the model is too quick.
    """
    chip_standing = evaluate("trn3-nl72x2").standing
    assert chip_standing.anchors == ("trn2",)
    assert (chip_standing.validated_rows, chip_standing.anchored_rows) == (8, 33)
    # its rows print a year alone: software of the middle of it, not of any later time
    assert 0.3 < chip_standing.median < 0.9
    assert chip_standing.text.startswith("checked on 8 published serving runs of trn3")
    assert "33 runs of trn2 stand in" in chip_standing.text


def test_chip_with_runs_states_their_median_error():
    chip_standing = evaluate("gb200-nvl72").standing
    rows = csv.DictReader((ROOT / "data/accuracy/chips.csv").read_text().splitlines())
    (row,) = [row for row in rows if (row["kind"], row["part"]) == ("inference", "gb200-gpu")]
    assert chip_standing.anchors == ()
    assert (chip_standing.validated_rows, chip_standing.anchored_rows, chip_standing.median) == (
        int(row["n"]),
        0,
        float(row["median_ape"]),
    )
    assert chip_standing.short == f"{row['n']} runs, {float(row['median_ape']) * 100:.0f} % error"


def test_values_of_a_swapped_practice_are_those_of_the_catalogue():
    values = plain_values()
    assert (
        values["performance.trainium.launch_time"]
        == load_catalogue().practice("trainium", "launch_time").value
    )


@pytest.mark.parametrize("system", ["h200-hgx8", "b200-hgx8"])
def test_older_engines_are_slower_on_every_vendor(system):
    """A step takes 1 + g per month of age of its engine, until the engine has matured.

    Nothing else of these chips ages.
    """
    engine_settings = {
        "workload.concurrency": "32",
        "workload.interactivity": "1 token/s",
        "performance.trtllm.release_gain": "0.02",
    }
    engine_settings |= {"workload.as_deployed": "0"}
    old, older, grown, mature = (
        evaluate(
            system, {**engine_settings, "workload.software": date}, {"tp": "8", "ep": "1"}
        ).metrics["tpot_s"]
        for date in ("2026-06-30", "2025-06-30", "2026-08", "10000 months")
    )
    assert grown == mature
    assert older / old == pytest.approx(1 + 0.02 * 12, rel=0.01)


def test_attention_is_multiplied_in_sixteen_bits_unless_eight_are_asked_for():
    cache_settings = {"workload.cache_format": "fp8", "workload.software": "public"}
    default_result, eight = (
        evaluate("gb200-nvl72", cache_settings | more)
        for more in ({}, {"workload.attention_core_format": "fp8"})
    )
    assert default_result.texts["workload.attention_core_format"] == "bf16"
    assert (
        eight.metrics["output_tokens_per_s_per_chip"]
        > default_result.metrics["output_tokens_per_s_per_chip"]
    )


@pytest.mark.parametrize(
    ("system", "engine", "precision", "slower"),
    [
        ("mi300x-8", "sglang", "fp8", 1.41),
        ("mi300x-8", "vllm", "fp8", 1),
        ("mi300x-8", "sglang", "bf16", 1),
        ("mi355x-8", "sglang", "fp8", 1),
    ],
)
def test_a_release_without_tuned_kernels_is_slower_while_it_lasts(
    system, engine, precision, slower
):
    """Every pass takes as much longer as its publisher measured, so any batch makes less.

    The release is SGLang on MI300X from January to April 2026.
    """
    engine_settings = {
        "workload.engine": engine,
        "workload.precision": precision,
        "workload.as_deployed": "0",
        "workload.offline": "1",
    }
    dates = ("2025-12-31", "2026-01-05", "2026-04-14")
    before, untuned_rate, after = (
        evaluate(system, engine_settings | {"workload.software": date}).metrics[
            "output_tokens_per_s_per_chip"
        ]
        for date in dates
    )
    assert before / untuned_rate == pytest.approx(slower, rel=0.02)
    assert after / untuned_rate == pytest.approx(
        slower, rel=0.04
    )  # gaps of a port shrink by the month


def test_a_port_counts_from_the_newest_kernels_of_its_family():
    """Software of December 2025 on MI300X has the gaps of a young port, as on MI355X.

    MI300X of 2023 runs kernels of 2025.
    """
    port_settings = {
        "workload.software": "2025-12",
        "workload.as_deployed": "0",
        "workload.interactivity": "20 token/s",
    }
    began = "performance.amd.port_began"
    for system, moves in (("mi300x-8", True), ("gb200-nvl72", False)):
        young, grown = (
            evaluate(system, port_settings | {began: date}).metrics["output_tokens_per_s_per_chip"]
            for date in ("2025.6", "2023")
        )
        assert (young < 0.97 * grown) is moves
