"""`tco service` prices promises under traffic, from a trace to a cost, and refuses bad traffic."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from tco.comparison.request_traces import trace_statistics
from tco.comparison.trace_files import read_trace
from tco.performance.service.traffic import Promise, load_traffic, promise_of
from tco.report.service import _cheapest_texts, _sessions_text
from tests.catalogue import CATALOGUE
from tests.cli import tco

BASE = ("service", "gb200-nvl72", "--set", "traffic.requests_per_s=200")
HEADER = "arrived,input_tokens,output_tokens\n"


def answer(*words):
    done = tco(*words, "--format", "json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def loose():
    return answer(*BASE, "--promise", "ttft p90 <= 5 s", "--promise", "tpot p90 <= 60 ms")


@pytest.mark.parametrize(
    "tighter",
    [
        ("ttft p99 <= 1 s", "tpot p90 <= 60 ms"),
        pytest.param(("ttft p90 <= 5 s", "tpot p90 <= 15 ms"), marks=pytest.mark.thorough),
        pytest.param(("ttft p99 <= 0.6 s", "tpot p99 <= 15 ms"), marks=pytest.mark.thorough),
    ],
)
def test_a_tighter_promise_is_never_cheaper(loose, tighter):
    tight = answer(*BASE, *(word for text in tighter for word in ("--promise", text)))
    assert (
        tight["metrics"]["usd_per_million_output_tokens"]
        >= loose["metrics"]["usd_per_million_output_tokens"]
    )
    for text in tighter:
        promise = promise_of(text)
        assert tight["metrics"][f"{promise.metric}_p{promise.quantile * 100:g}_s"] <= promise.limit
    assert tight["metrics"]["attainment"] >= 0.8


def test_figures_of_a_service_agree_with_each_other(loose):
    got = loose["metrics"]
    assert got["chips"] == int(got["chips"]) >= 1
    assert got["requests_per_s_per_chip"] == pytest.approx(200 / got["chips"])
    tokens_per_month = got["output_tokens_per_s_per_chip"] * got["chips"] * 730.5 * 3600
    cost_in_use = got["usd_per_million_output_tokens_in_use"]
    assert got["usd_per_month"] == pytest.approx(
        got["usd_per_million_output_tokens"] * tokens_per_month / 1e6
    )
    assert cost_in_use == pytest.approx(
        got["usd_per_million_output_tokens"] * got["chips"] / got["chips_bought"]
    )
    sessions = got["agents_per_chip"] * got["chips"]
    assert got["usd_per_agent_hour"] * sessions * 730.5 == pytest.approx(got["usd_per_month"])
    assert 0 < got["utilisation"] <= 1
    assert got["hit_rate"] == 0  # of chat nothing is read again
    assert "chips in use" in loose["power_basis"]
    assert all(
        got["ttft_p50_s"] > 20 * error
        for name, error in loose["errors"].items()
        if name == "ttft_p50_s"
    )


# Chips and racks of a scale-up domain, as the makers state them.
DOMAINS = {
    "gb200-nvl72": (72, 1),
    "trn3-nl32x2": (64, 2),
    "trn2-nl16": (16, 0.5),
    "h100-hgx8": (8, 0.25),
}


@pytest.mark.parametrize("system", DOMAINS)
def test_service_buys_whole_scale_up_domains(system):
    chips, racks = DOMAINS[system]
    service = answer("service", system)
    metrics, pools = service["metrics"], service["plan"].values()
    domains = metrics["chips_bought"] / chips
    assert domains == int(domains)
    assert domains >= np.ceil(metrics["chips"] / chips)
    assert (domains - 1) * chips < metrics["chips"]
    assert metrics["chips"] >= sum(pool["chips"] * pool["engines"] for pool in pools)
    assert metrics["racks"] == domains * racks
    engine_chips = sum(pool["chips"] * pool["engines"] for pool in pools)
    load = metrics["utilisation"] * engine_chips / metrics["chips_bought"]
    price = answer("price", system, "--set", f"terms.utilisation={load!r}")["metrics"]
    assert metrics["usd_per_month"] == pytest.approx(
        metrics["chips_bought"] * price["tco_usd_per_chip_hour"] * 730.5
    )


def test_energy_follows_the_load_unless_a_utilisation_is_set():
    quiet, busy = (
        answer("service", "gb200-nvl72", "--set", f"traffic.requests_per_s={rate}")["metrics"]
        for rate in (0.2, 400)
    )
    assert quiet["chips_bought"] == busy["chips_bought"]
    assert quiet["usd_per_month"] < busy["usd_per_month"]
    # a load below the least utilisation that a scenario may have counts as that one
    least = answer("price", "gb200-nvl72", "--set", "terms.utilisation=1%")["metrics"]
    assert quiet["usd_per_month"] == pytest.approx(72 * least["tco_usd_per_chip_hour"] * 730.5)
    setting = ("--set", "terms.utilisation=80%")
    stated, priced = (
        answer(command, "gb200-nvl72", *setting)["metrics"] for command in ("service", "price")
    )
    assert stated["usd_per_month"] == pytest.approx(72 * priced["tco_usd_per_chip_hour"] * 730.5)
    assert "chips at work 80 % of the time" in tco("service", "gb200-nvl72", *setting).stdout
    assert "the energy of the load above" in tco("service", "gb200-nvl72").stdout


@pytest.fixture(scope="module")
def agents():
    """Return the answer on three racks that serve agents."""
    return answer("service", "gb200-nvl72", "mi450x-ualoe72", "trn3-nl72x2", "--traffic", "agents")


def test_agents_are_cheapest_by_bought_chips_and_not_by_used_ones(agents):
    """At 10 requests/s MI450X needs the fewest chips, and most of the rack that is bought idles."""
    rows = agents["rows"][:2]
    costs = {
        metric: [row["metrics"][metric] for row in rows]
        for metric in ("usd_per_million_output_tokens", "usd_per_million_output_tokens_in_use")
    }
    gb200, mi450x = costs["usd_per_million_output_tokens"]
    assert gb200 < mi450x
    assert rows[1]["metrics"]["chips"] < rows[0]["metrics"]["chips"]
    shares = [row["share_of_best"] for row in rows]
    assert shares[1] / shares[0] == pytest.approx(gb200 / mi450x)


def test_screen_says_how_many_of_the_bought_chips_are_in_use(loose):
    done = tco(*BASE, "--promise", "ttft p90 <= 5 s", "--promise", "tpot p90 <= 60 ms")
    metrics = loose["metrics"]
    used = f"{metrics['chips']:g} of {metrics['chips_bought']:g} chips are in use"
    assert f"gb200-nvl72: buy 1 rack; {used}." in done.stdout
    for metric in ("usd_per_million_output_tokens", "usd_per_million_output_tokens_in_use"):
        assert f"{metrics[metric]:.2f}\n" in done.stdout


def test_range_is_of_what_is_bought():
    words = ("service", "trn3-nl32x2", "--set", "traffic.requests_per_s=20", "--samples", "64")
    service = answer(*words)
    percentiles = service["range"]["usd_per_million_output_tokens"]
    cost = service["metrics"]["usd_per_million_output_tokens"]
    assert percentiles["p10"] < cost < percentiles["p90"]
    assert percentiles["p10"] > service["metrics"]["usd_per_million_output_tokens_in_use"]


def test_the_same_seed_gives_the_same_answer_and_another_one_nearly_so(loose):
    again, reseeded_answer = (
        answer(
            *BASE, "--promise", "ttft p90 <= 5 s", "--promise", "tpot p90 <= 60 ms", "--seed", seed
        )
        for seed in ("0", "7")
    )
    assert again["metrics"] == loose["metrics"]
    assert reseeded_answer["metrics"]["ttft_p50_s"] != loose["metrics"]["ttft_p50_s"]
    assert reseeded_answer["metrics"]["chips"] == pytest.approx(loose["metrics"]["chips"], rel=0.2)


@pytest.mark.thorough
def test_agents_cost_less_where_their_contexts_are_found_again():
    high_reuse, lost = (
        answer("service", "gb300-nvl72", "--traffic", "agents", "--set", f"traffic.reuse={share}")[
            "metrics"
        ]
        for share in (0.931, 0.5)
    )
    assert high_reuse["hit_rate"] > 0.8 > 0.5 >= lost["hit_rate"]
    assert high_reuse["usd_per_agent_hour"] < lost["usd_per_agent_hour"]


@pytest.mark.thorough
def test_racks_are_compared_with_the_best_and_those_without_a_plan_are_named(agents):
    done = answer(
        "service", "gb200-nvl72", "trn2-nl16", "h100-hgx8", "--promise", "tpot p50 <= 8 ms"
    )
    cost = [row["metrics"]["usd_per_million_output_tokens"] for row in done["rows"]]
    assert [row["share_of_best"] for row in done["rows"]] == pytest.approx(
        [min(cost) / row_cost for row_cost in cost]
    )
    assert [row["scenario"] for row in done["rows"]] == ["gb200-nvl72", "h100-hgx8"]
    assert any(note.startswith("trn2-nl16: no plan keeps") for note in done["notes"])
    assert agents["metrics"] == agents["rows"][0]["metrics"]
    assert max(row["share_of_best"] for row in agents["rows"]) == 1


def test_a_small_service_has_engines_that_do_both():
    small = answer("service", "gb200-nvl72", "--set", "traffic.requests_per_s=2")
    assert small["plan"].keys() == {"both"}
    assert small["metrics"]["chips"] <= 8


def test_requests_beyond_the_context_are_rejected_and_counted(agents):
    rejected = agents["metrics"]["rejected_share"]
    assert 0 < rejected < 0.01
    assert agents["metrics"]["attainment"] <= 1 - rejected
    assert any("longer than the context of deepseek-v3" in note for note in agents["notes"])
    assert answer("service", "gb200-nvl72")["metrics"]["rejected_share"] == 0


def test_the_rate_of_users_follows_by_little_s_law():
    service = answer("service", "gb200-nvl72", "--users", "5000")
    metrics, rate = service["metrics"], service["rows"][0]["requests_per_s"]
    sessions = metrics["agents_per_chip"] * metrics["chips"]
    assert sessions == pytest.approx(5000, rel=0.03)  # whose own time between requests it is
    assert 5000 / 40 < rate < 5000 / 30  # 30 s of thinking, and an answer of a few seconds
    at_rate = answer("service", "gb200-nvl72", "--set", f"traffic.requests_per_s={rate!r}")
    assert at_rate["metrics"] == metrics
    assert metrics["capex_usd"] == pytest.approx(
        metrics["racks"] * answer("price", "gb200-nvl72")["metrics"]["capex_usd"]
    )


def test_the_purchase_is_shown_as_part_of_the_cost_per_month():
    lines = tco("service", "gb200-nvl72").stdout.splitlines()
    (month,) = [index for index, line in enumerate(lines) if line.startswith("  USD per month")]
    assert lines[month + 1].startswith("    capex with hall, paid once, USD")
    assert lines[month + 2].startswith("      capex of IT: racks, network, storage")
    assert "pays off the capex over its life" in " ".join(lines)


def test_the_screen_says_who_buys_and_names_a_utilisation_only_where_it_counts():
    def screen(*settings):
        return tco("service", "gb200-nvl72", *settings).stdout

    assert "Buyer Amazon (hyperscaler) | prices of 2026-11" in screen()
    assert "| utilisation" not in screen()
    assert "| utilisation 70 %" in screen("--set", "terms.utilisation=70%")
    assert "P90 <= 50 ms" in screen()


def test_users_and_a_rate_of_requests_exclude_each_other():
    done = tco("service", "gb200-nvl72", "--users", "9", "--set", "traffic.requests_per_s=3")
    assert done.exit_code == 2
    assert "leave out --set traffic.requests_per_s, or --users" in " ".join(done.stderr.split())
    assert tco("service", "gb200-nvl72", "--users", "0").exit_code == 2
    crowd = tco("service", "gb200-nvl72", "--users", "1" + "0" * 12)
    assert crowd.exit_code == 3
    assert "requests/s, expected at most 1e+07" in " ".join(crowd.stderr.split())


def test_the_screen_of_users_says_rate_and_assumption():
    lines = tco("service", "gb200-nvl72", "--users", "5000").stdout.splitlines()
    assert lines[0] == (
        "Fewest racks that serve deepseek-v3 in FP8 to chat traffic, 5,000 sessions at once; on "
        "average 1,280 tokens in, 175 out"
    )
    (rate_line,) = (line for line in lines if "Little's law" in line)
    assert rate_line.startswith("5,000 sessions at once send ")
    assert "30 s of thinking" in rate_line


def service_of(name, month, token, rate):
    return SimpleNamespace(
        result=SimpleNamespace(scenario=name),
        metrics={"usd_per_month": month, "usd_per_million_output_tokens_in_use": token},
        traffic=SimpleNamespace(values={"requests_per_s": rate}, thinking=30.0),
    )


def test_the_cheapest_service_is_named_and_a_tie_is_said():
    first, second = service_of("a", 107_498.2, 0.28, 250.0), service_of("b", 2e5, 0.26, 200.0)
    racks_decide = (
        "Whole racks are bought here. By the chips in use alone, as in the large fleet of `tco "
        "compare`, b would cost least per token."
    )
    assert _cheapest_texts([second, first]) == [
        "Cheapest: a, 107,498 USD per month.",
        racks_decide,
    ]
    assert _cheapest_texts([first, service_of("b", 2e5, 0.3, 200.0)]) == [
        "Cheapest: a, 107,498 USD per month."
    ]
    assert _cheapest_texts([first, service_of("c", 107_498.2, 0.28, 250.0)]) == [
        "Tie: a and c cost the same, 107,498 USD per month."
    ]
    assert _cheapest_texts([first]) == []


def test_sessions_of_several_systems_have_one_line():
    """10,000 sessions send 250 requests/s if each asks every 40 s, 10 s of which are the answer."""
    first, second = service_of("a", 1.0, 1.0, 250.0), service_of("b", 1.0, 1.0, 200.0)
    assert _sessions_text([first, second], 10_000) == (
        "10,000 sessions at once send 200 to 250 requests/s by Little's law. Each sends one every "
        "40 to 50 s: 10 to 20 s until its answer is complete, and 30 s of thinking."
    )
    assert "send 250 requests/s" in _sessions_text([first], 10_000)


@pytest.mark.thorough
def test_a_wait_of_a_queue_that_grows_has_no_value():
    """Of tokens alone is promised something: what waits before them may wait without end."""
    lengths = ("input_p50=50000", "input_p90=120000", "input_p99=130000")
    words = [word for text in lengths for word in ("--set", f"traffic.{text}")]
    command = ("service", "gb200-nvl72", "--promise", "tpot p50 <= 1 s", *words)
    done = answer(*command)
    assert any("the queue still grows" in note for note in done["notes"])
    waits = {name for name, value in done["metrics"].items() if value is None}
    assert {"ttft_p50_s", "e2e_p99_s", "agents_per_chip"} <= waits
    assert "tpot_p50_s" not in waits
    assert "ttft_p50_s" not in done["errors"]
    (wait,) = (
        line for line in tco(*command).stdout.splitlines() if line.startswith("time to first token")
    )
    assert wait.split()[-4:] == ["-"] * 4  # P50, P90, P99 and their error
    prompt = answer(*command, "--promise", "ttft p90 <= 60 s")
    assert prompt["metrics"]["ttft_p90_s"] <= 60
    assert prompt["metrics"]["chips"] > done["metrics"]["chips"]


# of MLPerf Inference's data sets: P50, P90 and P99 of prompts and of answers, and what its server
# scenario promises, in ms
LENGTHS = {
    "deepseek-r1": ((901.5, 1281, 1432, 2114, 9496, 20000), (2000, 80)),
    "gpt-oss-120b": ((4593, 7935, 12432, 1309, 1309, 1309), (3000, 80)),
    "llama-2-70b": ((152, 519, 791, 190, 449, 779), (2000, 200)),
}
# server runs on 64 to 94 chips in MLPerf Inference v6.0 and v6.1, the latest of each chip and
# model: requests/s, chips
RACKS = (
    ("vr-nvl144", "deepseek-r1", 310.08, 72),
    ("gb300-nvl72", "deepseek-r1", 156.23, 72),
    ("gb200-nvl72", "deepseek-r1", 103.82, 72),
    ("gb300-nvl72", "gpt-oss-120b", 909.92, 72),
    ("gb200-nvl72", "llama-2-70b", 2983.09, 72),
    ("gb200-nvl72", "gpt-oss-120b", 568.05, 64),
    ("mi355x-8", "gpt-oss-120b", 707.71, 72),
    ("mi355x-8", "gpt-oss-120b", 658.41, 94),
    ("mi355x-8", "llama-2-70b", 3591.83, 87),
)


@pytest.mark.thorough
@pytest.mark.xfail(reason="one of nine loads is 38 % off where 34 % are allowed", strict=False)
def test_chips_for_the_load_of_mlperf_are_near_the_measured_ones():
    """Fewest chips for the measured load are within 15 % at the median and a third at most.

    Nothing is fitted to these racks.
    """
    off = []
    for system, model, rate, chips in RACKS:
        tokens, (first, token_time) = LENGTHS[model]
        names = (
            f"{side}_p{percentile}" for side in ("input", "output") for percentile in (50, 90, 99)
        )
        traffic_inputs = {
            "requests_per_s": rate,
            "arrival_cv": 1,
            **dict(zip(names, tokens, strict=True)),
        }
        settings = [f"traffic.{key}={value}" for key, value in traffic_inputs.items()]
        # tuned
        settings += [
            f"workload.model={model}",
            "workload.precision=fp4",
            "workload.draft_tokens=0",
            "workload.as_deployed=0",
        ]
        promised = (
            "--promise",
            f"ttft p99 <= {first} ms",
            "--promise",
            f"tpot p99 <= {token_time} ms",
        )
        service_answer = answer(
            "service", system, *promised, *(word for text in settings for word in ("--set", text))
        )
        plan = service_answer["plan"].values()
        off.append(sum(pool["chips"] * pool["engines"] for pool in plan) / chips - 1)
    assert np.median(np.abs(off)) <= 0.15
    assert np.abs(off).max() <= 0.34


@pytest.mark.parametrize("name", CATALOGUE.ids("traffic"))
def test_shipped_traffic_has_the_quantiles_and_the_rate_it_states(name):
    traffic = load_traffic(CATALOGUE, name)
    before, drawn_requests = traffic.requests(1, "random", 50_000, 0, 60.0)
    assert 50_000 / drawn_requests.arrived[-1] == pytest.approx(
        traffic.values["requests_per_s"], rel=0.15
    )
    assert (np.diff(drawn_requests.arrived) >= 0).all()
    assert (drawn_requests.prior_tokens < drawn_requests.prompt).all()
    if not traffic.parts:
        for side, token_counts in (
            ("input", drawn_requests.prompt),
            ("output", drawn_requests.answer),
        ):
            for percentile in (50, 90, 99):
                assert np.quantile(token_counts, percentile / 100) == pytest.approx(
                    traffic.values[f"{side}_p{percentile}"], rel=0.06
                )
        assert np.diff(drawn_requests.arrived).std() / np.diff(
            drawn_requests.arrived
        ).mean() == pytest.approx(traffic.values["arrival_cv"], rel=0.1)
    assert len(before.slot) == 50_000


def test_means_of_lengths_are_those_of_the_traces():
    """Drawn lengths have the means of the traces, which the documents do not state.

    They are 1,155 and 211, 2,048 and 28, 12,035 and 343 tokens.
    """
    for name, means in (
        ("chat", (1154.7, 211.1)),
        ("code", (2047.8, 27.9)),
        ("long-documents", (12035.1, 342.6)),
    ):
        drawn_requests = load_traffic(CATALOGUE, name).requests(1, "random", 50_000, 0, 60.0)[1]
        assert (drawn_requests.prompt.mean(), drawn_requests.answer.mean()) == pytest.approx(
            means, rel=0.18
        )


def test_traffic_read_from_a_trace_is_that_which_drew_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, drawn_requests = load_traffic(CATALOGUE, "chat").requests(1, "random", 20_000, 0, 60.0)
    rows = zip(
        drawn_requests.arrived.tolist(),
        drawn_requests.prompt.tolist(),
        drawn_requests.answer.tolist(),
        strict=True,
    )
    (tmp_path / "trace.csv").write_text(
        HEADER + "".join(f"{a!r},{p:g},{o:g}\n" for a, p, o in rows)
    )
    assert tco("traffic", "from", "trace.csv", "-o", "mine.toml").exit_code == 0
    traced_values, like = (load_traffic(CATALOGUE, name).values for name in ("mine.toml", "chat"))
    for key in ("requests_per_s", "arrival_cv", "input_p50", "input_p99", "output_p90"):
        assert traced_values[key] == pytest.approx(like[key], rel=0.1)
    priced, shipped = (
        answer("service", "gb200-nvl72", "--traffic", name, "--promise", "ttft p90 <= 2 s")[
            "metrics"
        ]
        for name in ("mine.toml", "chat")
    )
    assert priced["usd_per_million_output_tokens"] == pytest.approx(
        shipped["usd_per_million_output_tokens"], rel=0.25
    )


def test_sessions_and_prefixes_of_a_trace_are_read(tmp_path):
    rows = [
        f"{row_index},1000,50,{'ab'[row_index % 2]},{900 if row_index > 1 else 0}\n"
        for row_index in range(20)
    ]
    (tmp_path / "trace.csv").write_text(f"{HEADER.strip()},session,prefix\n" + "".join(rows))
    traffic_statistics = trace_statistics(read_trace(tmp_path / "trace.csv"))
    assert (
        traffic_statistics["turns"],
        traffic_statistics["thinking_time"],
        traffic_statistics["reuse"],
        traffic_statistics["arrival_cv"],
    ) == (
        10,
        2,
        pytest.approx(0.9),
        0,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "1,-5,10\n", "t.csv:2:2: input_tokens is '-5'"),
        (HEADER + "1,5,10\n2,banana,10\n", "t.csv:3:2: input_tokens is 'banana'"),
        (HEADER + "1,5,\n", "t.csv:2:3: output_tokens is ''"),
        (HEADER + "nan,5,10\n", "t.csv:2:1: arrived is 'nan'"),
        (HEADER + "-1,5,10\n", "t.csv:2:1: arrived is '-1'"),
        (HEADER + "5,5,10\n4,5,10\n", "t.csv:3:1: arrived is earlier"),
        (HEADER + "5,5\n", "t.csv:2: 2 cells, expected 3"),
        (HEADER + "5,5,10\n", "1 requests in no time"),
        ("arrived,tokens\n1,2\n", "t.csv:1: lacks column 'input_tokens'"),
        ("", "t.csv: is empty"),
    ],
)
def test_a_bad_trace_is_told_by_line_and_column(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(text)
    done = tco("traffic", "from", "t.csv", "-o", "bad.toml")
    assert done.exit_code == 3
    assert message in done.stderr
    assert not (tmp_path / "bad.toml").exists()


def test_promises_are_read():
    assert promise_of("TTFT P99 <= 200 ms") == Promise("ttft", 0.99, 0.2)
    assert promise_of("e2e p99.9<=1 minute") == Promise("e2e", pytest.approx(0.999), 60)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--promise", "ttft p99 <= 1 us"), "the nearest is"),
        pytest.param(
            ("--promise", "tpot p99 <= 10 us"), "the nearest is", marks=pytest.mark.thorough
        ),
        (("--promise", "ttft p99.99999999 <= 1 s"), "p99.99999999 is not measured"),
        (
            ("--traffic", "long-documents", "--promise", "ttft p99.9 <= 60 s"),
            "are longer than the context of deepseek-v3, 163,840 tokens, and are rejected",
        ),
        (("--set", "traffic.requests_per_s=1e9"), "is outside 1e-06 to 1e+07"),
        (("--promise", "ttft"), "expected METRIC pQUANTILE <= TIME"),
        (("--promise", "tftt p9 <= 1 s"), "did you mean 'ttft'?"),
        (("--promise", "ttft p100 <= 1 s"), "expected a percentile"),
        (("--promise", "ttft p50 <= 1 GB"), "unit 'GB'"),
        (("--racks", "1", "--set", "traffic.requests_per_s=3000"), "could hold about"),
        (("--racks", "0.5"), "one scale-up domain takes 1; say --racks 1"),
        (("--traffic", "chatt"), "did you mean 'chat'?"),
        (("--set", "traffic.rate=3"), "unknown input path 'traffic.rate'"),
        (("--set", "traffic.reuse=3"), "is outside 0 to 1"),
        (("--set", "workload.drafts=3"), "unknown input path 'workload.drafts'"),
        (("--set", "parts.gb200-gpuu.price=3 USD"), "unknown"),
        (
            ("--traffic", "mix", "--set", "traffic.reuse=0.3"),
            "of it requests_per_s and arrival_cv may be set",
        ),
        (("--set", "traffic.input_p50=9000"), "do not rise"),
        (("--set", "workload.input_tokens=3"), "set traffic.* instead"),
    ],
)
def test_impossible_service_is_refused(words, message):
    done = tco("service", "gb200-nvl72", *words)
    assert done.exit_code == 3
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("promises = 'ttft'\n[shares]\nchat = 1\n", "requests_per_s is missing"),
        ("[shares]\nchat = 'much'\n", "shares: expected NAME = SHARE"),
        ("[shares]\nchat = inf\n", "shares: expected NAME = SHARE"),
        ("[shares]\nchat = true\n", "shares: expected NAME = SHARE"),
        ("[shares]\nchat = -0.2\n", "shares: expected NAME = SHARE"),
        ("[shares]\nmix = 1\n", "mix is a mix itself"),
        ("[shares]\nchatt = 1\n", "did you mean 'chat'?"),
        ("promises = 'ttft'\n{rate}[shares]\nchat = 1\n", "promises: expected a list"),
        ("promises = ['ttft']\n{rate}[shares]\nchat = 1\n", "own.toml: promise 'ttft'"),
        ("{rate}[shares]\nchat = 1\n", "promises nothing"),
        ("{rate}", "input_p50 is missing"),
    ],
)
def test_impossible_own_traffic_is_refused(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    rate = (
        "[requests_per_s]\nvalue = 9\nunit = ''\nlow = 9\nhigh = 9\nkind = 'assumed'\nsource = "
        "'own'\nnote = ''\n"
    )
    (tmp_path / "own.toml").write_text(text.format(rate=rate), encoding="utf-8")
    done = tco("service", "gb200-nvl72", "--traffic", "own.toml")
    assert done.exit_code == 3
    assert message in done.stderr
