"""Cores that software joins into logical devices: what they cost, and what fits one."""

from __future__ import annotations

import pytest

from tco import DataError, evaluate
from tests.catalogue import CATALOGUE

LLAMA = {"workload.model": "llama-3.1-70b"}


def cost(cores, speed):
    settings = LLAMA | {"workload.interactivity": f"{speed} token/s", "workload.as_deployed": "0"}
    return evaluate("trn3-nl72x2", settings, variant={"lnc": cores}, catalogue=CATALOGUE).metrics[
        "usd_per_million_output_tokens"
    ]


@pytest.mark.parametrize("speed", [20, 35, 50])
def test_devices_of_few_cores_never_cost_more_than_a_whole_chip(speed):
    """Logical devices of one or two cores cost no more than the whole chip as one device.

    SemiAnalysis states this of LNC=1 and 2: the cores of a larger device fan in, and kernels
    that span them leave some of the chip idle.
    """
    assert max(cost("1", speed), cost("2", speed)) <= cost("8", speed)


def test_a_model_that_nothing_splits_must_fit_a_logical_device():
    """70.6 GB of weights in FP8, 36 GB a device of two cores, all of 144 GB in one of eight."""
    with pytest.raises(
        DataError, match=r"does not fit the memory of a logical device of 2 cores unsplit: 70\.6 GB"
    ):
        evaluate("trn3-nl72x2", LLAMA, {"tp": "1"}, catalogue=CATALOGUE)
    slow = LLAMA | {"workload.interactivity": "20 token/s"}
    assert (
        evaluate(
            "trn3-nl72x2", slow, {"tp": "1"}, variant={"lnc": "8"}, catalogue=CATALOGUE
        ).report.plan["tp"]
        == 1
    )
    assert evaluate("trn3-nl72x2", slow, {"tp": "2"}, catalogue=CATALOGUE).report.plan["tp"] == 2
