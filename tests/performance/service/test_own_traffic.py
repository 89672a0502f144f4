"""Traffic read under redaction follows from no own value."""

from __future__ import annotations

import pytest

from tco import load_catalogue
from tco.core.errors import DataError
from tco.core.files import data_directory
from tco.core.redaction_values import DIRECTIONS, Making, figures_apart, made_with
from tco.performance.service.traffic import load_traffic, own_promises

CHAT = (data_directory() / "traffic" / "chat.toml").read_text(encoding="utf-8")
MIX = (data_directory() / "traffic" / "mix.toml").read_text(encoding="utf-8")
RANGE = "low = 1\nhigh = 9000\n"
# a text of shipped traffic, and what two people write in its place
CHANGES = {
    "rate": (
        CHAT,
        'value = 100\nunit = ""\nlow = 100\nhigh = 100\n',
        f'value = 137\nunit = ""\n{RANGE}',
        f'value = 219\nunit = ""\n{RANGE}',
    ),
    "length": (
        CHAT,
        'value = 4142\nunit = ""\nlow = 4142\nhigh = 4142\n',
        f'value = 5137\nunit = ""\n{RANGE}',
        f'value = 6219\nunit = ""\n{RANGE}',
    ),
    "promises": (
        CHAT,
        'promises = ["ttft p90 <= 2 s", "tpot p90 <= 50 ms"]',
        'promises = ["ttft p99 <= 1.37 s"]',
        'promises = ["e2e p50 <= 9 s", "ttft p91 <= 4 s"]',
    ),
    "shares": (MIX, "chat = 0.6", "chat = 0.137", "chat = 0.219"),
}


def written(folder, kind, person):
    """Write the traffic of one of two people, and return its file."""
    shipped, text, *texts = CHANGES[kind]
    assert text in shipped
    path = folder / "mine.toml"
    path.write_text(shipped.replace(text, texts[person], 1), encoding="utf-8")
    return str(path)


def read_in_makings(name, settings=None):
    """Return traffic as it is read in every making."""
    readings = []
    for number in range(len(DIRECTIONS)):
        making = Making(number, set(), 30.0)
        making.typed_settings.update((settings or {}).items())
        with made_with(making):
            readings.append(load_traffic(load_catalogue(), name, settings))
        assert making.own_paths
    return readings


@pytest.mark.parametrize("kind", CHANGES)
def test_two_peoples_traffic_is_the_same_in_every_making_and_differs_outside(tmp_path, kind):
    makings, outside = [], []
    for person in (0, 1):
        name = written(tmp_path, kind, person)
        makings.append(read_in_makings(name))
        outside.append(load_traffic(load_catalogue(), name))
    assert makings[0] == makings[1]
    assert outside[0] != outside[1]
    assert outside[0] not in makings[0]


def test_set_traffic_is_the_same_in_every_making_and_its_errors_tell_no_value():
    first, second = (
        read_in_makings("chat", {"traffic.requests_per_s": rate}) for rate in ("137", "219")
    )
    assert first == second
    for rate in ("-8881.5", "8881.5 kg", "8881.5x"):
        with pytest.raises(DataError, match="told without --redact") as raised:
            read_in_makings("chat", {"traffic.requests_per_s": rate})
        assert "8881" not in str(raised.value)


@pytest.mark.parametrize("number", range(len(DIRECTIONS)))
def test_lengths_of_a_making_rise_whichever_way_it_puts_them(tmp_path, number):
    name = written(tmp_path, "rate", 0)
    with made_with(Making(number, set(), 30.0)):
        values = load_traffic(load_catalogue(), name).values
    for side in ("input", "output"):
        lengths = [values[f"{side}_p{quantile}"] for quantile in (50, 90, 99)]
        assert lengths == sorted(lengths)


def test_promises_of_a_making_are_withheld_as_whole_texts():
    """Two makings differ in the quantile, which is no word that a number may be left out of."""
    texts = []
    for number in (0, 1):
        with made_with(Making(number, set(), 4.0)):
            texts.append(
                [str(promise) for promise in own_promises(["e2e p50 <= 9 s"], "--promise")]
            )
    assert len(texts[0]) == len(texts[1])
    for first, second in zip(*texts, strict=True):
        assert first.split()[1] != second.split()[1]


def test_promise_that_cannot_be_read_is_not_told_in_a_making():
    with made_with(Making(0, set())), pytest.raises(DataError, match="--promise") as raised:
        own_promises(["ttft p99 <= 8881 parsecs"], "--promise")
    assert "8881" not in str(raised.value)
    with pytest.raises(DataError, match="8881 parsecs"):
        own_promises(["ttft p99 <= 8881 parsecs"], "--promise")


def test_figures_of_own_traffic_differ_in_every_making_though_they_move_in_steps():
    figures = {"racks": 1.0, "hit_rate": 0.0, "both": {"chips": 8}}
    readings = []
    for number in range(len(DIRECTIONS)):
        with made_with(Making(number, {"traffic.requests_per_s"})):
            readings.append(figures_apart(figures, "traffic"))
        with made_with(Making(number, {"terms.rate"})):
            assert figures_apart(figures, "traffic") == figures
    assert figures_apart(figures, "traffic") == figures
    assert len({reading["racks"] for reading in readings}) == len(DIRECTIONS)
    assert len({reading["hit_rate"] for reading in readings}) == len(DIRECTIONS)
    assert len({reading["both"]["chips"] for reading in readings}) == len(DIRECTIONS)
