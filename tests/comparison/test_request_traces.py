"""Public traces of requests, as their publishers write them."""

import numpy as np
import pytest

from tco.comparison.request_traces import compared_means, trace_statistics, traffic_text
from tco.comparison.trace_files import read_trace
from tco.core.errors import DataError
from tco.performance.service.traffic import traffic_from_text

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"
MOONCAKE = '{"timestamp": %d, "input_length": %d, "output_length": 9, "hash_ids": %s}\n'
BAILIAN = (
    '{"chat_id": %d, "parent_chat_id": %d, "timestamp": %d, "input_length": 32, '
    '"output_length": 5, "type": "text", "turn": 1, "hash_ids": [%d, %d]}\n'
)


def trace_of(tmp_path, text):
    path = tmp_path / "trace"
    path.write_text(text)
    return read_trace(path)


@pytest.mark.parametrize(
    ("text", "arrived", "left_out"),
    [
        (AZURE + "2023-11-16 18:15:50.6805900,396,109\n", [0, 4], 0),
        (AZURE.replace("5900,374", "59+00:00,374") + "2023-11-16T18:15:47.68059Z,3,1\n", [0, 1], 0),
        (
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
            "5,GPT-4,472,18,490,API log\n8,GPT-4,9,0,9,API log\n45,GPT-4,10,2,12,API log\n",
            [0, 40],
            1,
        ),
        ("arrived_at,num_prefill_tokens,num_decode_tokens\n1,3,4\n3.5,3,4\n", [0, 2.5], 0),
        ("arrived;input_tokens;output_tokens\n1700158546680;3;4\n1700158547180;3;4\n", [0, 0.5], 0),
    ],
)
def test_public_formats_are_read(tmp_path, text, arrived, left_out):
    trace = trace_of(tmp_path, text)
    assert trace.arrived == pytest.approx(arrived, abs=1e-6)
    assert trace.left_out == left_out


def test_shared_blocks_are_a_prefix(tmp_path):
    text = MOONCAKE % (0, 1200, "[1, 2, 3]") + MOONCAKE % (3000, 1100, "[1, 2, 4]")
    trace = trace_of(tmp_path, text)
    assert trace.arrived.tolist() == [0, 3]
    assert trace.prefix.tolist() == [0, 1024]


@pytest.mark.parametrize("size", [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096])
def test_blocks_are_of_the_size_that_prompts_have_so_many_of(tmp_path, size):
    """Prompts of ten to twelve blocks, the last of which is not full; all begin with six alike."""
    lines = []
    for number in range(12):
        count = 10 + number % 3
        blocks = [*range(6), *(100 * number + rest for rest in range(100, 94 + count))]
        lines.append(MOONCAKE % (1000 * number, size * count - size // 3, blocks))
    trace = trace_of(tmp_path, "".join(lines))
    assert trace.prefix.tolist() == [0] + [6 * size] * 11


def test_chats_are_joined_by_their_parents(tmp_path):
    rows = [(7, -1, 0, 1, 2), (8, 7, 5, 1, 3), (9, -1, 6, 4, 5)]
    trace = trace_of(tmp_path, "".join(BAILIAN % row for row in rows))
    first, second, third = trace.session
    assert first == second != third
    assert trace.prefix.tolist() == [0, 16, 0]


def test_missing_sessions_stay_apart(tmp_path):
    header = "arrived,input_tokens,output_tokens,session\n"
    trace = trace_of(tmp_path, header + "0,1,1,\n1,1,1,\n2,1,1,a\n3,1,1,a\n")
    assert len(set(trace.session.tolist())) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("arrived,input_tokens,output_tokens,prefix\n0,4,1,5\n", "trace:2:4: prefix is 5"),
        ("arrived,input_tokens,output_tokens,sesion\n0,4,1,5\n", "did you mean 'session'"),
        ("arrived,input_tokens,answer\n0,4,1\n", "lacks column 'output_tokens'"),
        (MOONCAKE % (0, 600, "[1, 2, 3, 4]") + MOONCAKE % (9, 600, "[1, 2]"), "trace:1: hash_ids"),
    ],
)
def test_impossible_traces_are_refused(tmp_path, text, words):
    with pytest.raises(DataError, match=words):
        trace_of(tmp_path, text)


def test_sample_has_means_of_lognormal_lengths(tmp_path):
    draws = np.random.default_rng(1)
    prompts, answers = np.ceil(draws.lognormal(6, 1.5, (2, 4321)))
    rows = "".join(
        f"{i},{p:g},{a:g}\n" for i, (p, a) in enumerate(zip(prompts, answers, strict=True))
    )
    trace = trace_of(tmp_path, "arrived,input_tokens,output_tokens\n" + rows)
    traffic = traffic_from_text(traffic_text(trace, "trace"), tmp_path / "x.toml")
    for _, mean, simulated, _ in compared_means(trace, traffic):
        assert simulated == pytest.approx(mean, rel=2e-3)


def test_ranks_of_equal_lengths_are_averaged(tmp_path):
    rows = "".join(f"{i},{1000 + (i == 7)},{i + 1}\n" for i in range(100))
    trace = trace_of(tmp_path, "arrived,input_tokens,output_tokens\n" + rows)
    assert abs(trace_statistics(trace)["correlation"]) < 0.2


@pytest.mark.parametrize(
    ("header", "good", "bad"),
    [
        ("status", "ok", "failed"),
        ("Status", "success", "error"),
        ("status_code", "200", "503"),
        ("http_status", "200.0", "429"),
        ("success", "True", "False"),
        ("success", "1", "0"),
        ("finish_reason", "length", "abort"),
        ("finish_reason", "stop", "error"),
        ("request_status", "FINISHED_LENGTH_CAPPED", "FINISHED_ABORTED"),
        ("state", "completed", "timed out"),
        ("error", "", "connection reset"),
        ("error_code", "0", "500"),
        ("error_message", "None", "server overloaded"),
        ("is_error", "false", "true"),
        ("cancelled", "0", "1"),
    ],
)
def test_requests_failed_by_their_outcome_are_left_out(tmp_path, header, good, bad):
    rows = f"0,4,1,{good}\n1,,,{bad}\n2,4,1,{good}\n3,4,1,{bad}\n"
    trace = trace_of(tmp_path, f"arrived,input_tokens,output_tokens,{header}\n{rows}")
    assert trace.arrived.tolist() == [0, 2]
    assert trace.left_out == 2


def test_error_that_only_failed_requests_have_is_read(tmp_path):
    request = '{"timestamp": %d, "input_length": 600, "output_length": 5%s}\n'
    text = "".join(request % (1000 * i, ', "error": "timeout"' * (i == 1)) for i in range(3))
    trace = trace_of(tmp_path, text)
    assert trace.left_out == 1
    assert trace.arrived.tolist() == [0, 2]


@pytest.mark.parametrize(("header", "cell"), [("status", "7"), ("status", "0"), ("state", "zzz")])
def test_unknown_outcome_is_refused(tmp_path, header, cell):
    text = f"arrived,input_tokens,output_tokens,{header}\n0,4,1,{cell}\n1,4,1,{cell}\n"
    with pytest.raises(DataError, match="an outcome such as success"):
        trace_of(tmp_path, text)


def test_large_trace_is_refused_with_the_command_that_shortens_it(tmp_path, monkeypatch):
    monkeypatch.setattr("tco.comparison.trace_files.LARGEST_FILE", 2**21)
    path = tmp_path / "long.csv"
    path.write_bytes(b"arrived,input_tokens,output_tokens\n" + b"1000,10,1\n" * 300_000)
    with pytest.raises(DataError, match=r"2 MiB; .*: head -n \d+ long.csv > short.csv"):
        read_trace(path)
