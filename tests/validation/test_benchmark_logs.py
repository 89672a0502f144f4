"""Files of benchmarks are read by their own keys; a fact they lack is asked for by its option."""

from __future__ import annotations

import json

import pytest

from tco import DataError
from tco.core.provenance import measured_facts
from tco.validation.measured import read_measured
from tests.cli import document, tco

FACTS = {"chip": "h200-sxm", "tp": "8", "measured": "2026-08", "model": "llama-3.1-70b"}
VLLM = {
    "date": "20260801-101010",
    "backend": "vllm",
    "model_id": "meta-llama/Llama-3.1-70B-Instruct",
    "max_concurrency": 64,
    "request_rate": "inf",
    "completed": 640,
    "total_input_tokens": 655360,
    "total_output_tokens": 655360,
    "output_throughput": 3058.1,
    "mean_tpot_ms": 20.1,
    "median_tpot_ms": 20.2,
    "median_ttft_ms": 640.1,
}
SGLANG = VLLM | {"backend": "sglang", "max_concurrency": None, "concurrency": 61.5, "date": None}
STATISTICS = {"unit": "ms", "avg": 20.1, "p50": 20.2, "p90": 22.0}
AIPERF = {
    "input_config": {"endpoint": {"model_names": ["x/y"]}, "loadgen": {"concurrency": 64}},
    "request_throughput": {"unit": "requests/sec", "avg": 2.98},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 3058.1},
    "inter_token_latency": STATISTICS,
    "time_to_first_token": STATISTICS,
    "input_sequence_length": {"avg": 1024},
    "output_sequence_length": {"avg": 1024},
    "start_time": "2026-08-01T05:11:41.465270",
}
GENAI_PERF = AIPERF | {
    "input_config": {
        "model_names": ["x/y"],
        "perf_analyzer": {"stimulus": {"concurrency": 64}},
    }
}


def distribution(mean):
    return {"successful": {"mean": mean, "median": mean, "percentiles": {"p90": 1.1 * mean}}}


GUIDELLM = {
    "args": {"model": "x/y"},
    "benchmarks": [
        {
            "config": {"strategy": {"type_": "concurrent", "streams": 64}},
            "start_time": 1785542400.0,
            "metrics": {
                "prompt_token_count": distribution(1024),
                "output_token_count": distribution(1024),
                "output_tokens_per_second": distribution(3058.1),
                "inter_token_latency_ms": distribution(20.1),
                "time_to_first_token_ms": distribution(640.1),
            },
        }
    ],
}
INFERENCEX = {
    "hw": "h200",
    "tp": 8,
    "model": "x/y",
    "isl": 1024,
    "osl": 1024,
    "conc": 64,
    "framework": "vllm",
    "precision": "fp8",
    "disagg": "false",
    "date": "2026-08-01 17:44:42",
    "tput_per_gpu": 764.5,
    "output_tput_per_gpu": 382.26,
    "mean_tpot": 0.0201,
    "median_intvty": 49.5,
}
NESTED = {key: cell for key, cell in INFERENCEX.items() if not isinstance(cell, float)} | {
    "metrics": {key: cell for key, cell in INFERENCEX.items() if isinstance(cell, float)}
}
TRTLLM = {
    "engine": {"model": "x/y", "backend": "Pytorch", "quantization": "FP8"},
    "machine": {"name": "NVIDIA H200"},
    "world_info": {"tp_size": 4, "pp_size": 2},
    "request_info": {"avg_input_length": 1024, "avg_output_length": 1024},
    "performance": {"system_output_throughput_tok_s": 3058.1},
    "streaming_metrics": {"avg_tpot_ms": 20.1},
}
ENDPOINTS = {
    "concurrency": 64,
    "system_tps": 3058.1,
    "tps_per_user": 45.0,
    "ttft_p90_ms": 900,
    "isl_mean": 1024,
    "osl_mean": 1024,
}
LOGS = {
    "vllm": VLLM,
    "sglang": SGLANG,
    "aiperf": AIPERF,
    "genai-perf": GENAI_PERF,
    "guidellm": GUIDELLM,
    "inferencex": INFERENCEX,
    "inferencex-app": NESTED,
    "trtllm": TRTLLM,
    "endpoints": ENDPOINTS,
}


def read(tmp_path, text, **facts):
    path = tmp_path / "log.json"
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    token = measured_facts.set(facts)
    try:
        return read_measured(path)
    finally:
        measured_facts.reset(token)


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_a_serving_log_states_lengths_and_rates(tmp_path, log):
    facts = FACTS if log is not TRTLLM else {"measured": "2026-08"}
    kind, table = read(tmp_path, log, **facts)
    row = table.iloc[0]
    assert kind == "inference"
    assert (row.isl_tokens, row.osl_tokens, row.n_gpus) == (1024, 1024, 8)
    rate = row.get("system_tput_tok_s", 0) or row.output_tput_tok_s_per_gpu * 8
    assert rate == pytest.approx(3058.1, rel=1e-5)
    if log is not ENDPOINTS:
        assert row.tpot_ms_mean == pytest.approx(20.1)


@pytest.mark.parametrize("name", ["vllm", "aiperf", "guidellm", "inferencex"])
def test_a_log_that_states_its_day_keeps_it(tmp_path, name):
    facts = {option: text for option, text in FACTS.items() if option != "measured"}
    assert read(tmp_path, LOGS[name], **facts)[1].date[0] == "2026-08-01"


@pytest.mark.parametrize("form", ["lines", "list"])
def test_several_runs_are_rows(tmp_path, form):
    runs = [VLLM, VLLM | {"max_concurrency": 128}]
    text = "\n".join(map(json.dumps, runs)) if form == "lines" else json.dumps(runs)
    assert list(read(tmp_path, text, **FACTS)[1].concurrency) == [64, 128]


def test_requests_all_at_once_have_no_limit_and_a_rate_is_no_concurrency(tmp_path):
    run = VLLM | {"max_concurrency": None}
    assert read(tmp_path, run, **FACTS)[1].concurrency[0] == float("inf")
    assert "concurrency" not in read(tmp_path, run | {"request_rate": 4.0}, **FACTS)[1]


def test_a_missing_fact_is_asked_for_by_its_option(tmp_path):
    with pytest.raises(DataError) as caught:
        read(tmp_path, SGLANG)
    assert "does not state the chip, tensor parallelism, the month of the run" in str(caught.value)
    assert "add --chip ... --tp ... --measured ..." in str(caught.value)


def test_json_of_no_benchmark_names_its_keys(tmp_path):
    with pytest.raises(DataError, match=r"no known benchmark, with the keys a, b\.c; those of"):
        read(tmp_path, {"a": 1, "b": {"c": 2}})
    with pytest.raises(DataError, match=r"log\.json:2: broken JSON"):
        read(tmp_path, json.dumps(VLLM) + "\n{")


RANKS = "".join(
    f"#  Rank  {rank} Group  0 Pid    313 on host-a device  {rank} [0x18] NVIDIA H100 80GB HBM3\n"
    for rank in range(8)
)
HEAD = "# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor)\n#\n# Using devices\n" + RANKS
COLUMNS = (
    "#       size         count      type   redop    root     time   algbw   busbw #wrong"
    "     time   algbw   busbw #wrong\n#        (B)    (elements)\n"
)
ALL_REDUCE = (
    "   134217728      33554432     float     sum      -1    603.9  222.25  388.94      0"
    "    602.1  222.92  390.11      0\n"
)
ALL_GATHER = ALL_REDUCE.replace("sum ", "none").replace("388.94", "194.47")
TAIL = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 300.2\n"


def test_a_log_of_collectives_states_ranks_and_operation(tmp_path):
    kind, table = read(tmp_path, HEAD + COLUMNS + ALL_REDUCE + TAIL)
    row = table.iloc[0]
    assert (kind, row.op, row.n_gpus, row.nodes) == ("collectives", "all_reduce", 8, 1)
    assert (row.time_us, row.busbw_gb_s, row.message_size_bytes) == (603.9, 388.94, 134217728)


def test_an_operation_that_may_be_two_is_asked_for(tmp_path):
    text = HEAD + COLUMNS + ALL_GATHER
    with pytest.raises(DataError, match=r"does not state the operation; add --op"):
        read(tmp_path, text)
    assert read(tmp_path, text, op="all_gather")[1].op[0] == "all_gather"
    started = "# Collective test starting: all_gather_perf\n" + text
    assert read(tmp_path, started)[1].op[0] == "all_gather"


def test_a_log_without_devices_asks_for_them(tmp_path):
    with pytest.raises(DataError, match=r"the chip, the number of ranks, .* add --chip"):
        read(tmp_path, COLUMNS + ALL_REDUCE)


def test_json_of_collectives_is_read_as_their_text(tmp_path):
    log = {
        "version": 1,
        "args": ["./build/alltoall_perf", "-g", "8"],
        "devices": [
            {"rank": rank, "hostname": "a", "device_info": "AMD Instinct MI300X"}
            for rank in range(8)
        ],
        "results": [
            {
                "size": 1024,
                "type": "float",
                "redop": "none",
                "out_of_place": {"time": 20.0, "alg_bw": 0.05, "bus_bw": 0.04},
            }
        ],
    }
    row = read(tmp_path, log)[1].iloc[0]
    assert (row.op, row.n_gpus, row.library) == ("alltoall", 8, "rccl")
    assert (row.time_us, row.message_size_bytes) == (20.0, 1024)


@pytest.mark.parametrize(("name", "op"), [("AllReduce", "all_reduce"), ("AllGather", "all_gather")])
def test_json_of_rccl_is_read(tmp_path, name, op):
    """As rccl-tests writes it with --output_format json: one object for each size and placement."""
    record = {
        "numCycle": 0,
        "name": name,
        "nodes": 1,
        "ranks": 8,
        "ranksPerNode": 8,
        "gpusPerRank": 1,
        "size": 1048576,
        "type": "float",
        "redop": "sum",
        "inPlace": 0,
        "time": 50.0,
        "algBw": 20.97,
        "busBw": 36.7,
        "wrong": 0,
    }
    with pytest.raises(DataError, match=r"does not state the chip; add --chip"):
        read(tmp_path, record)
    kind, table = read(tmp_path, [record, record | {"inPlace": 1}], chip="MI300X")
    row = table.iloc[1]
    assert (kind, row.op, row.n_gpus, row.nodes) == ("collectives", op, 8, 1)
    assert (row.time_us, row.busbw_gb_s, row.message_size_bytes) == (50.0, 36.7, 1048576)


def test_the_same_file_is_scored_with_the_facts(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(VLLM | {"output_throughput": 2000.0}))
    refused = tco("validate", path)
    assert refused.exit_code == 3
    assert "--chip ... --tp ..." in refused.stderr
    assert document("validate", path, "--chip", "h200-sxm", "--tp", "8")["scored"] == 1


def test_a_fact_without_a_file_is_refused():
    refused = tco("compare", "h200-hgx8", "--chip", "h200-sxm")
    assert refused.exit_code == 2
    assert "add --anchor FILE" in refused.stderr
