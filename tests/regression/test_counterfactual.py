"""`tco diff` of two systems: steps that add up, each of which `--set` gives again."""

from __future__ import annotations

import math

import pytest

import tco
from tests.cli import document
from tests.cli import tco as command

COST, HOUR, USED = (
    "usd_per_million_output_tokens",
    "tco_usd_per_chip_hour",
    "tco_usd_per_used_chip_hour",
)
PAIRS = [
    ("trn3-nl72x2", "gb200-nvl72"),
    ("gb200-nvl72", "mi450x-ualoe72"),
    ("tpuv7-cube64", "a100-hgx8"),
    ("trn1-16", "tpuv6e-256"),
]


@pytest.mark.parametrize(("a", "b"), PAIRS, ids="-".join)
def test_the_steps_and_the_rest_are_the_whole_change(a, b):
    difference = document("diff", a, b)
    first_metric, second_metric = (
        document("price", name)["metrics"][difference["metric"]] for name in (a, b)
    )
    steps = difference["steps"]
    assert len({step["cause"] for step in steps}) >= 6
    assert [step["from"] for step in steps] == pytest.approx(
        [first_metric, *(step["to"] for step in steps[:-1])], rel=1e-12
    )
    assert all(
        step["change"] == pytest.approx(step["to"] - step["from"], rel=1e-9, abs=1e-12)
        for step in steps
    )
    assert math.fsum(step["change"] for step in steps) + difference["residual"] == pytest.approx(
        second_metric - first_metric, rel=1e-9
    )
    lines = command("diff", a, b).stdout.splitlines()
    assert len(lines) <= 22
    assert max(map(len, lines)) <= 80  # in a pipe too
    assert "rows add up in this order, another shifts them" in " ".join(lines)
    # software and what no input names are one row, as software is fitted to its chips
    (software,) = [step for step in steps if step["cause"] == "software"]
    row = next(line for line in lines if "software, domain size, cores" in line).split()
    assert row[-2] == f"{second_metric - software['from']:+.{len(row[-2].partition('.')[2])}f}"


def test_rows_begin_with_the_cost_of_the_first_system_and_heads_name_the_unit():
    a, b = PAIRS[0]
    text = command("diff", a, b).stdout
    start, end = (tco.evaluate(name).metrics[COST] for name in (a, b))
    rows = [line.split() for line in text.splitlines()]
    rows = rows[rows.index([a, b, "adds", "total"]) :]
    assert f"cost of {a}, USD/M " in text
    (first,) = [row for row in rows if row[:2] == ["cost", "of"] and row[2] == f"{a},"]
    assert float(first[-1]) == pytest.approx(start, abs=0.006)
    totals = [float(row[-1]) for row in rows if len(row) > 3 and row[-2][:1] in ("+", "-")]
    added = [float(row[-2]) for row in rows if len(row) > 3 and row[-2][:1] in ("+", "-")]
    assert totals[-1] == pytest.approx(end, abs=0.006)
    assert float(first[-1]) + sum(added) == pytest.approx(totals[-1], abs=0.006 * len(added))


def test_costs_are_the_lines_of_the_other_and_speed_is_what_settings_give():
    a, b = PAIRS[0]
    steps = document("diff", a, b)["steps"]
    costs, speeds = ([step for step in steps if step["of"] == of] for of in ("cost", "performance"))
    for side, name in (("own", a), ("other", b)):
        price = document("price", name)
        assert math.fsum(step[side] for step in costs[:-1]) == pytest.approx(
            price["metrics"][HOUR], rel=1e-9
        )
        assert costs[0][side] == pytest.approx(
            math.fsum(
                line["usd_per_chip_hour"]
                for line in price["lines"]
                if {"trn3", "gb200-gpu"} & {*line["path"].split("/")} or line["path"] == "design"
            ),
            rel=1e-9,
        )
    # at the rate of the first, a token costs more by what the lines of an hour do
    first, second = (document("price", name)["metrics"] for name in (a, b))
    for step in costs[:-1]:
        assert step["change"] == pytest.approx(
            (step["other"] - step["own"]) * first[COST] / first[HOUR], rel=1e-9, abs=1e-12
        )
    paid, other_paid = (metrics[USED] / metrics[HOUR] for metrics in (first, second))
    assert (costs[-1]["cause"], costs[-1]["own"], costs[-1]["other"]) == (
        "hours lost",
        pytest.approx(paid, rel=1e-9),
        pytest.approx(other_paid, rel=1e-9),
    )
    assert costs[-1]["to"] == pytest.approx(costs[-1]["from"] * other_paid / paid, rel=1e-9)
    hour = tco.evaluate(a).metrics[USED]
    # the utilised hour of the other
    start = speeds[0]["from"] / tco.evaluate(a).metrics[COST] * hour
    settings = {}
    for step in speeds:
        settings |= step["set"]
        changed_metrics = tco.evaluate(a, settings).metrics
        assert step["to"] == pytest.approx(
            changed_metrics[COST] / changed_metrics[USED] * start, rel=1e-9
        )


def test_settings_of_the_user_are_the_first_step():
    steps = document("diff", "gb200-nvl72", "trn3-nl72x2", "--set", "terms.life=4 year")["steps"]
    assert (steps[0]["cause"], steps[0]["set"]) == ("settings", {"terms.life": "4 year"})
    assert steps[0]["to"] == pytest.approx(
        tco.evaluate("gb200-nvl72", {"terms.life": "4 year"}).metrics[COST], rel=1e-12
    )


def test_all_that_differs_is_listed_in_full():
    short, full = (command("diff", *PAIRS[0], *words).stdout for words in ((), ("--full",)))
    assert full.startswith(short)
    assert "gb200-gpu price" in full
    assert "gb200-gpu price" not in short


def test_dates_are_months_and_large_numbers_have_a_prefix():
    text = command("diff", *PAIRS[0], "--full").stdout
    rows = {line[:30].strip(): line.split() for line in text.splitlines()}
    assert rows["trn3 released"][2] == "2025-12"
    assert rows["serving grown up"][-2] == "2026-07"
    assert rows["dense FP4 peak per chip"][-5:-2] == ["PFLOP/s", "2.517", "10.00"]


def test_setting_that_moves_no_cost_names_the_input_that_binds():
    setting = ("--set", "parts.trn3.hbm_bandwidth=+5%")
    difference = document("diff", "trn3-nl72x2", "trn3-nl72x2", *setting)
    (note,) = difference["notes"]
    assert note.endswith("the base-case cost: parts.trn3.dma_bandwidth 4.224 TB/s binds")
    text = command("diff", "trn3-nl72x2", "trn3-nl72x2", *setting).stdout
    assert note in text
    heading = "Cost per token: not moved; trn3 DMA bandwidth 4.224 TB/s binds"
    assert text.splitlines()[0] == heading
    assert "Why HBM bandwidth moved" not in text


def test_setting_that_nothing_reads_is_named():
    done = command("diff", "gb200-nvl72", "gb200-nvl72", "--set", "parts.trn3.tdp=+5%")
    assert "no difference" in done.stdout
    assert "parts.trn3.tdp is set, but nothing in this scenario rests on it." in done.stdout


@pytest.mark.parametrize(
    ("typed", "meant"), [("gb200", "gb200-nvl72"), ("h100", "h100-hgx8"), ("gaudi", "gaudi3")]
)
def test_a_near_miss_is_a_system_first(typed, meant):
    done = command("diff", typed, "trn3-nl72x2")
    assert (done.exit_code, f"did you mean '{meant}'?" in done.stderr) == (3, True), done.stderr


def test_a_difference_says_both_ends_and_its_rows_lead_from_one_to_the_other():
    difference = tco.diff(*PAIRS[0])
    start, end = (tco.evaluate(name).metrics[COST] for name in PAIRS[0])
    assert difference.line.startswith(f"{COST} {start:.3g} -> {end:.3g}, ")
    frame = difference.to_frame()
    assert frame["from"].iloc[0] == pytest.approx(start)
    assert frame["to"].iloc[-1] == pytest.approx(end)
    assert frame["cause"].iloc[-1] == "residual"
    assert frame["change"].sum() == pytest.approx(end - start)
    assert (frame["to"] - frame["from"]).to_numpy() == pytest.approx(frame["change"].to_numpy())
    alike = tco.diff(tco.evaluate(PAIRS[0][0]), PAIRS[0][0], {"terms.rate": "0.2"})
    assert alike.line == f"{len(alike.moves)} metrics and 1 input differ"


@pytest.mark.parametrize(
    ("scenarios", "source_software", "target_software", "engine"),
    [
        (PAIRS[0], "neuron", "trtllm", "trtllm"),
        # nothing serves where a model is trained
        (
            ("llama-3.1-405b-training-trn3-nl72x2", "llama-3.1-405b-training-gb200-nvl72"),
            "trainium",
            "nvidia",
            None,
        ),
    ],
)
def test_figures_of_a_chip_are_those_of_its_data_sheet_and_software_comes_last(
    scenarios, source_software, target_software, engine
):
    steps = document("diff", *scenarios)["steps"]
    speeds = {step["cause"]: step for step in steps if step["of"] == "performance"}
    assert list(speeds) == ["arithmetic", "memory", "links", "latency", "software"]
    texts = {cause: (step["own"], step["other"]) for cause, step in speeds.items()}
    # FP8 and HBM as both vendors publish them
    assert texts["arithmetic"] == ("2.517 PFLOP/s", "5 PFLOP/s")
    assert texts["memory"] == ("4.9 TB/s", "8 TB/s")
    assert texts["links"] == ("1,152 GB/s", "900 GB/s")
    assert texts["software"] == (source_software, target_software)
    assert speeds["software"]["set"].get("workload.engine") == engine
    settings = speeds["arithmetic"]["set"] | speeds["memory"]["set"] | speeds["links"]["set"]
    assert {path.rpartition(".")[2]: float(text.split()[0]) for path, text in settings.items()} == {
        "peak_bf16": 2.5e15,
        "peak_fp8": 5e15,
        "peak_fp4": 1e16,
        "hbm_bandwidth": 8e12,
        "hbm_capacity": 192e9,
        "dma_bandwidth": 8e12,
        "scale_up_bandwidth": 900e9,
        "scale_out_bandwidth": 50e9,
    }
