"""Plans and lines of a step of training on numbers that are made by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tco import DataError
from tco.fabric.links import RankGroup
from tco.performance.training import micro_batch, micro_batch_levels, schedule
from tco.performance.training.micro_batch_levels import data_stride, pipeline_stride
from tco.performance.training.plans import (
    ALL_FREE,
    TrainingPlan,
    _block_of,
    _candidate_divisions,
    _value_of,
    _working_share,
    orders,
)
from tco.performance.training.result import Details, _step_bound, _step_counts
from tests.performance.training.jobs import evaluate_plan, job, small


# ---------------------------------------------------------------- axes that a user gives
@pytest.mark.parametrize(
    ("axis", "text", "value"),
    [
        ("zero", "0", 0),
        ("zero", "3", 3),
        ("tensor", "1", 1),
        ("tensor", "12", 12),
        ("order", "pipeline-first", None),
        ("schedule", "1f1b-interleaved", "interleaved"),
    ],
)
def test_a_value_of_an_axis_is_read(axis, text, value):
    if value is None:
        with pytest.raises(DataError, match="order"):
            _value_of(axis, text)
    else:
        assert _value_of(axis, text) == value


@pytest.mark.parametrize(
    ("axis", "text", "expected"),
    [
        ("tensor", "0", "a whole number from 1 on"),
        ("tensor", "-2", "a whole number from 1 on"),
        ("tensor", "1.5", "a whole number from 1 on"),
        ("zero", "4", "0, 1, 2 or 3"),
        ("zero", "-1", "0, 1, 2 or 3"),
    ],
)
def test_a_value_that_an_axis_cannot_take_is_refused(axis, text, expected):
    with pytest.raises(DataError, match=f"--plan {axis}={text}: expected {expected}"):
        _value_of(axis, text)


# ---------------------------------------------------------------- divisions
def job_of(layers=8, batch=64, chips=16, length=4096, heads=(8,)):
    model = SimpleNamespace(
        layers=layers,
        attentions=[SimpleNamespace(heads=count) for count in heads],
        mixers=[],
        blocks=[SimpleNamespace(feed_forward=SimpleNamespace(experts=0))],
    )
    return SimpleNamespace(model=model, batch=batch, chips=chips, length=length)


def test_the_share_of_a_pipeline_that_works_is_layers_over_slots_and_batches_over_waits():
    """Eight layers in four stages: no empty slot; four micro-batches wait for three more."""
    shares = list(_working_share(job_of(batch=16), 4, 4))
    assert shares[0] == pytest.approx(4 / 7)
    # two parts a stage: half of the wait
    assert shares[1] == pytest.approx(1 / (1 + 3 / 8))
    # fewer micro-batches than stages are not interleaved
    assert list(_working_share(job_of(batch=8), 4, 4)) == pytest.approx([2 / 5])
    # more than stages are: 8 of them
    assert list(_working_share(job_of(batch=32), 4, 4))[1] == pytest.approx(1 / (1 + 3 / 16))
    # 19 layers in four stages leave one of 20 slots empty
    assert next(_working_share(job_of(layers=19, batch=16), 4, 4)) == pytest.approx(19 / 20 * 4 / 7)


@pytest.mark.parametrize(
    ("domain", "inner", "stages", "data_parallel", "choices"),
    [
        (8, 8, 1, 4, (0,)),  # one stage
        (8, 8, 4, 1, (0,)),  # one replica
        (8, 2, 2, 4, (0, 1)),  # four replicas lie in a domain, or two
        (8, 8, 2, 2, (0,)),  # both lie outside
        (8, 2, 2, 2, (0,)),
        (72, 8, 9, 3, (0, 1)),
    ],
)
def test_an_order_of_groups_is_a_choice_only_where_it_moves_replicas(
    domain, inner, stages, data_parallel, choices
):
    assert orders(domain, inner, stages, data_parallel) == choices


def divisions_of(**fields):
    return set(_candidate_divisions(job_of(**fields), 8, ALL_FREE))


def test_divisions_multiply_to_all_chips_and_fit_heads_batch_and_length():
    for tensor, context, stages, data_parallel, expert, _ in divisions_of():
        assert tensor * context * stages * data_parallel == 16
        assert 8 % tensor == 0
        assert 64 % data_parallel == 0
        assert expert == 1
    # two layers a stage at least, of ten with the embedding and the output head
    assert {stages for _, _, stages, *_ in divisions_of()} == {1, 2, 4}
    # each of two ranks takes an early and a late part: a length of 4,098 is no multiple of four
    assert {context for _, context, *_ in divisions_of(length=4098)} == {1}
    assert 2 in {context for _, context, *_ in divisions_of(length=4100)}
    assert {data for *_, data, _, _ in divisions_of(batch=6)} == {1, 2}


@pytest.mark.parametrize(
    ("order", "between_replicas", "between_stages"),
    [(0, 8 * 2, 8 * 2 * 3), (1, 8 * 2 * 5, 8 * 2)],
)
def test_the_inner_of_replicas_and_stages_are_neighbours(order, between_replicas, between_stages):
    """Eight by two chips are a replica's stage; three replicas or five stages lie inside."""
    plan = TrainingPlan(8, 2, 5, 3, 1, order, 1, 1, "1f1b")
    assert (data_stride(plan), pipeline_stride(plan)) == (between_replicas, between_stages)


@pytest.mark.parametrize(
    ("tensor", "sharded", "choices"),
    [
        (False, False, ((0,), (0,), (0,))),
        (False, True, ((0, 1, 2, 3), (0,), (0,))),
        (True, False, ((0,), (0, 1), (0, 1))),
    ],
)
def test_choices_apply_where_something_is_shared(tensor, sharded, choices):
    software = SimpleNamespace(splits_sequences=True, splits_collectives=True)
    block = _block_of(SimpleNamespace(software=software), ALL_FREE, "1f1b", tensor, sharded, None)
    assert (block.zero_levels, block.sequence_parallel, block.overlap) == choices
    assert block.offload == (0, 1)


# ---------------------------------------------------------------- memory and traffic
def test_a_gated_layer_keeps_gate_up_and_input_of_the_down_projection():
    """Three numbers of two bytes for each further number of the width, in each layer and token."""
    training_job, machine = small("llama-3.1-8b", 8, 8)

    def activations(more):
        blocks = tuple(
            block._replace(
                feed_forward=block.feed_forward._replace(width=block.feed_forward.width + more)
            )
            for block in training_job.model.blocks
        )
        wider_job = replace(training_job, model=training_job.model._replace(blocks=blocks))
        plan = TrainingPlan(1, 1, 1, 8, 1, 0, 1, 1, "1f1b", "none")
        return float(evaluate_plan(wider_job, machine, plan)[0].memory["activations"])

    expected = 3 * 1000 * 2 * float(training_job.sequence) * training_job.model.layers
    assert activations(1000) - activations(0) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("latent", "matrices", "numbers"), [(0, 3, 2 * (100 + 2 * 48 / 4)), (30, 2, 2 * (30 + 48 / 4))]
)
def test_gradients_of_experts_are_cast_by_token_and_expert(latent, matrices, numbers):
    """Two experts a token: what each gives, and its gate and width over four ranks."""
    streams = []
    layer_pass = SimpleNamespace(
        shape=SimpleNamespace(tokens=11.0, tensor_parallel=4),
        machine=SimpleNamespace(
            gradient_form=SimpleNamespace(stored="fp8_block"),
            activation_size=2.0,
            gradients={micro_batch.EXPERTS: SimpleNamespace(input_size=1.0)},
            elementwise=1.5,
            bandwidth=1e12,
        ),
        stream=lambda *stream: streams.append(stream),
    )
    training_job = SimpleNamespace(
        software=SimpleNamespace(fused_experts=False), model=SimpleNamespace(hidden=100)
    )
    feed_forward = SimpleNamespace(bias=False, latent=latent, matrices=matrices, width=48, active=2)
    micro_batch.expert_kernels(layer_pass, training_job, feed_forward, 7)
    ((_, layers, traffic, _),) = streams
    assert layers == 7
    # read in two bytes and written in one, half as often again
    assert traffic == pytest.approx(11 * numbers * 1.5 * (2 + 1))
    streams.clear()
    training_job.software.fused_experts = True
    micro_batch.expert_kernels(layer_pass, training_job, feed_forward, 7)
    assert streams == []


# ---------------------------------------------------------------- times
@pytest.mark.parametrize(("domains", "in_domain"), [(1, 2.0), (2, 1.0), (5, 1.0)])
def test_a_transfer_to_the_next_rank_is_of_two_in_one_domain_or_in_two(
    monkeypatch, domains, in_domain
):
    groups = []
    monkeypatch.setattr(schedule, "reach", lambda _, group: groups.append(group))
    monkeypatch.setattr(schedule, "fastest_algorithm_time", lambda *_: 0.0)
    schedule.neighbour_transfer_time(None, 1e6, RankGroup(8, domains, 8 / domains, 1))
    ((ranks, group_domains, per_domain, worlds),) = groups
    assert (ranks, group_domains, per_domain, worlds) == (2, min(domains, 2), in_domain, 1)


@pytest.mark.parametrize(
    ("fused", "separate", "microseconds"),
    [(True, False, 9 * 10), (False, False, 6 * 10 + 3 * 40), (True, True, 9 * 10 + 3 * 8 / 4 * 2)],
)
def test_the_host_launches_parts_of_layers_and_experts(fused, separate, microseconds):
    """Six parts of attention take 10 us, and three of experts as long, or 40 if not fused."""
    blocks = [
        SimpleNamespace(
            layers=3,
            attention=SimpleNamespace(heads=8),
            mixer=None,
            feed_forward=SimpleNamespace(width=width, experts=experts),
        )
        for width, experts in ((48, 8), (0, 0))
    ]
    values = {
        "host_block_time": 10e-6,
        "host_expert_block_time": 40e-6,
        "host_expert_time": 2e-6,
    }
    training_job = SimpleNamespace(
        software=SimpleNamespace(compiled=False, separate_experts=separate, fused_experts=fused),
        model=SimpleNamespace(blocks=blocks),
        value=values.get,
    )
    machine = SimpleNamespace(kernels=SimpleNamespace(practice=lambda _: 1.0))
    times = micro_batch_levels._host_times(training_job, machine, SimpleNamespace(expert=4))
    assert times["none"] == pytest.approx(microseconds * 1e-6)
    assert times["full"] == pytest.approx(microseconds * 1e-6 * 4 / 3)
    training_job.software.compiled = True
    assert set(micro_batch_levels._host_times(training_job, machine, None).values()) == {0.0}


# ---------------------------------------------------------------- lines of a step
def operator_of(**fields):
    usual = {
        "name": "gate",
        "link": False,
        "runs": (2, 3),
        "bytes": 10.0,
        "layers": 4,
        "time": 0.5,
        "backward": 1.5,
        "bandwidth": 100.0,
        "flops": 7.0,
        "compute_rate": 70.0,
        "backward_work": (),
        "recompute_level": 1,
    }
    return SimpleNamespace(**usual | fields)


def work_of(flops, traffic, peak):
    return SimpleNamespace(flops=flops, traffic=traffic, peak=peak)


@pytest.mark.parametrize(
    ("fields", "runs", "counts"),
    [
        ({"link": True}, 2, (0.0, 10 * (2 * 2 + 3))),
        ({"name": "launches of kernels"}, 2, (0.0, 0.0)),
        ({}, 2, (0.0, (2 * 0.5 + 1.5) * 100)),
        # forward twice and backward once, in four layers
        ({"backward_work": (work_of(14.0, 20.0, 70.0),)}, 2, (4 * (2 * 7 + 14), 4 * (2 * 10 + 20))),
    ],
)
def test_work_and_traffic_of_an_operator_are_those_of_its_runs(monkeypatch, fields, runs, counts):
    monkeypatch.setattr("tco.performance.training.result.LAUNCHES", "launches of kernels")
    monkeypatch.setattr("tco.performance.training.result.OperatorWork", work_of)
    assert _step_counts(operator_of(**fields), runs) == pytest.approx(counts)


@pytest.mark.parametrize(
    ("fields", "bound"),
    [
        ({"link": True}, ("link", None)),
        ({"name": "launches of kernels"}, ("latency", None)),
        ({}, ("memory", 2.5 * 100 / 50)),
        # 2 x 7 / 70 + 14 / 70 s of work, 2 x 10 / 50 + 20 / 50 s of traffic
        ({"backward_work": (work_of(14.0, 20.0, 70.0),)}, ("memory", 0.8)),
        ({"backward_work": (work_of(70.0, 20.0, 70.0),)}, ("compute", 1.2)),
    ],
)
def test_an_operator_is_bound_by_what_takes_longest(monkeypatch, fields, bound):
    monkeypatch.setattr("tco.performance.training.result.LAUNCHES", "launches of kernels")
    monkeypatch.setattr("tco.performance.training.result.OperatorWork", work_of)
    machine = SimpleNamespace(kernels=SimpleNamespace(part=lambda _: 50.0))
    name, time = _step_bound(operator_of(**fields), 2, machine)
    assert (name, time) == (bound[0], None if bound[1] is None else pytest.approx(bound[1]))


@pytest.mark.parametrize(
    ("recompute", "share", "level", "runs"),
    [
        ("none", None, 1, 1),
        ("selective", None, 1, 2),
        ("selective", None, 2, 1),
        ("full", None, 2, 2),
        ("full", None, 0, 1),
        ("partial", 0.25, 2, 1.25),
        ("partial", 0.25, 0, 1),
    ],
)
def test_what_is_computed_again_runs_twice_or_in_a_share_of_the_layers(
    recompute, share, level, runs
):
    training_job, _ = job()
    plan = SimpleNamespace(recompute=recompute, share=share)
    details = SimpleNamespace(job=training_job, plan=plan)
    assert Details.forward_runs(details, operator_of(recompute_level=level)) == runs
