"""Formats of the passes, and what the collectives of a step take from each other and from compute."""

from __future__ import annotations

import pytest

from tco.chain.scenario import evaluate
from tco.foundation.errors import DataError
from tco.performance.training.search import search
from tco.performance.training.step import evaluate_plan
from tests.performance.training.jobs import A100, CATALOGUE, MEGATRON, job

TRN3, GB200 = "llama-3.1-405b-training-trn3-nl72x2", "llama-3.1-405b-training-gb200-nvl72"


def seconds(name, plan, **settings):
    return float(evaluate_plan(*job(name, **settings), plan)[0].time)


@pytest.fixture(scope="module")
def sharded():
    return search(*job(TRN3)).best._replace(zero=3)


def test_gradients_are_made_in_the_format_of_the_forward_pass_unless_stated():
    _, machine = job(GB200, workload__precision="mxfp8")
    assert machine.backward is machine.forward
    _, machine = job(GB200, workload__precision="fp4", workload__backward_precision="bf16")
    assert (machine.forward.passed.form.stored, machine.backward.passed.form.stored) == ("fp4", "bf16")
    assert machine.backward.conversion is None


def test_a_step_lies_between_those_of_its_formats(sharded):
    narrow, mixed, wide = (
        seconds(GB200, sharded, workload__precision=forward, workload__backward_precision=backward)
        for forward, backward in (("nvfp4", "nvfp4"), ("nvfp4", "bf16"), ("bf16", "bf16"))
    )
    assert narrow < mixed < wide
    work = evaluate_plan(*job(GB200, workload__precision="fp4", workload__backward_precision="bf16"), sharded)[3]
    products = [item for item in work.items if item.weight is not None]
    assert products
    for item in products:  # inputs' and weights' gradients take the rate of BF16
        assert float(item.backward) > 4 * float(item.forward)


def test_a_format_kept_but_not_computed_is_turned_by_software(sharded):
    found, machine = job(TRN3, workload__precision="nvfp4", workload__backward_precision="mxfp8")
    assert machine.forward.passed.form.stored == machine.backward.passed.form.stored == "mxfp8"
    conversions = [machine.forward.passed.conversion, machine.backward.passed.conversion]
    assert conversions == ["software_conversion", "mxfp8_conversion"]
    mixed = float(evaluate_plan(found, machine, sharded)[0].time)
    costly = {"performance__training__software_conversion": "20 byte"}
    assert seconds(TRN3, sharded, workload__precision="nvfp4", workload__backward_precision="mxfp8", **costly) > mixed
    assert seconds(TRN3, sharded, workload__precision="nvfp4", **costly) > seconds(TRN3, sharded, workload__precision="mxfp8")
    notes = evaluate(TRN3, {"workload.precision": "nvfp4", "workload.backward_precision": "mxfp8"}, sharded, catalogue=CATALOGUE).notes
    assert "forward: the chip does not compute nvfp4: computed as mxfp8 after a conversion by software" in notes
    assert not [note for note in notes if note.startswith("backward:")]


def test_formats_of_one_width_do_not_stand_in_for_each_other():
    assert job(GB200, workload__precision="nvfp4")[1].forward.passed.form.stored == "nvfp4"
    four, eight = (job(TRN3, workload__precision=name)[1].forward for name in ("mxfp4", "mxfp8"))  # one rate: the units expand four bits
    assert (four.passed.form.stored, four.made.rate) == ("mxfp4", eight.made.rate)
    assert four.made.input_size == pytest.approx(eight.made.input_size * 4.25 / 8.25, rel=1e-12)
    assert job(A100, workload__precision="mxfp4")[1].forward.passed.form.stored == "bf16"


def test_an_unknown_format_names_its_input():
    with pytest.raises(DataError, match=r"workload\.backward_precision: unknown precision 'fp7'"):
        job(workload__backward_precision="fp7")


def test_narrow_sums_of_gradients_move_less(sharded):
    assert seconds(TRN3, sharded, workload__accumulator_size="2 byte") < seconds(TRN3, sharded)


def test_classes_of_traffic_spare_what_the_chip_waits_for(sharded):
    without, mixed, ordered = (seconds(TRN3, sharded, parts__trn3__traffic_classes=str(classes)) for classes in (0, 0.5, 1))
    assert ordered < mixed < without
    alone = sharded._replace(zero=1)  # nothing runs in the background
    assert seconds(TRN3, alone, parts__trn3__traffic_classes="0") == seconds(TRN3, alone)


def test_collectives_take_cores_and_links_from_each_other(sharded):
    own, shared = (seconds(TRN3, sharded, performance__trainium__communication_cores=str(share)) for share in (0, 0.15))
    assert own < shared < 1.15 * own
    found, machine = job(TRN3)
    made, pipe, _, work = evaluate_plan(found, machine, sharded)
    (tensor,) = [item for item in work.items if item.name == "tensor-parallel collectives"]
    assert float(pipe.links["inside"]) >= float(pipe.waits["inside"]) > 0
    assert tensor.holds["inside"] > 0
    # everything on the links follows one after the other
    assert float(made.parts["gathers"]) > 0
    machine.links = machine.links._replace(network=machine.links.network / 100)
    slow, pipe, *_ = evaluate_plan(found, machine, sharded)
    assert float(slow.parts["gathers"]) > float(pipe.time)


def test_norms_are_repeated_on_every_chip_without_sequence_parallelism():
    found, machine = job(workload__global_batch="64")
    whole, split = (evaluate_plan(found, machine, MEGATRON._replace(sequence_parallel=parallel))[3].items for parallel in (0, 1))
    times = [{item.name: float(item.forward) for item in items} for items in (whole, split)]
    for name in ("norms", "residuals"):
        assert times[0][name] == pytest.approx(8 * times[1][name])
    assert times[0]["activation functions"] == times[1]["activation functions"]


def test_dropout_reads_and_writes_its_masks():
    plan = MEGATRON._replace(recompute="full")
    with_masks, without = (seconds(A100, plan, workload__global_batch="64", workload__dropout=dropout) for dropout in ("yes", "no"))
    assert without < with_masks < 1.05 * without


def test_the_ring_of_split_sequences_runs_once_forward_and_twice_backward():
    """Keys and values go around before the products, and again with their gradients behind them (Ring Attention)."""
    work = evaluate_plan(*job(A100), MEGATRON._replace(tensor=4, context=2))[3]
    (ring,) = [item for item in work.items if item.name == "context-parallel ring"]
    assert ring.counts == (96, 2 * 96)  # layers
    assert ring.backward == pytest.approx(2 * ring.forward, rel=1e-12)
    assert ring.forward > 0
    assert ring.size == 2048 * 2 * (12288 / 4) * 2  # keys and values of a sequence for a quarter of the heads, two bytes each
