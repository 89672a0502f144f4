"""Validation reads rows, asks the engine and compares; it computes nothing of its own."""

from __future__ import annotations

import ast
import csv
import importlib
import inspect
import shlex
from functools import cache

import pytest

from tests.cli import document
from tests.registry import FORMULAS
from tests.validation.today import PREDICTORS, ROOT, validated

ROOM = "tco.validation"
MODULES = sorted(
    path.stem for path in (ROOT / "tco/validation").glob("*.py") if path.stem != "__init__"
)
# rooms of what computes
ENGINE = (
    "tco.performance",
    "tco.fabric",
    "tco.system",
    "tco.cost",
)
CALCULATORS = {(formula.function.__module__, formula.name) for formula in FORMULAS}
# What a question consists of: a plan, a place, formats, what exists. None of them holds a value
# that the engine computes.
QUESTIONS = {
    "DecodePlan",
    "RankGroup",
    "TrainingJob",
    "TrainingPlan",
    "Precision",
    "PrefillPlan",
    "Route",
    "ServingPlan",
    "Stored",
    "Tokens",
    "Traits",
}
SAMPLE = 10  # rows of a kind that are asked again
HEADER = (
    "source_id,source_title,date,accelerator,n_accelerators,model,params_b,layers,hidden,"
    "heads,kv_heads,ffn,vocab,precision,seq_len,global_batch_seqs,micro_batch_seqs,tp,pp,vp,cp,ep,"
    "dp,sharding,activation_recompute,step_time_s,value_kind"
)
OWN = (
    "own,own run,2024-06,NVIDIA H100 80GB HBM3,64,our-13b,13,40,5120,40,40,13824,32000,bf16,4096,"
    "256,1,2,1,1,1,1,32,ZeRO-1,selective + sequence parallel,3.4,measured"
)


# ---------------------------------------------------------------- validation computes nothing
def imported(tree):
    """Yield (name used in the module, what it stands for) of every import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "tco":
                    yield alias.asname or alias.name, importlib.import_module(alias.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "tco":
            for alias in node.names:
                module = importlib.import_module(node.module)
                imported_object = (
                    getattr(module, alias.name)
                    if hasattr(module, alias.name)
                    else importlib.import_module(f"{node.module}.{alias.name}")
                )
                yield alias.asname or alias.name, imported_object


def resolved(node, names):
    """Return the object of a name or a dotted name, or None for anything else."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        dotted = ast.unparse(node)
        return names.get(dotted) or getattr(resolved(node.value, names), node.attr, None)
    return None


def is_record(engine_object):
    """Tell whether an object is a record of the engine that is no part of a question."""
    return (
        inspect.isclass(engine_object)
        and engine_object.__module__.startswith(ENGINE)
        and engine_object.__name__ not in QUESTIONS
        and not issubclass(engine_object, Exception)
    )


def own_physics(source):
    """Return the formulas and records of the engine that a module uses or makes itself."""
    tree = ast.parse(source)
    names = dict(imported(tree))
    records = [imported_object for imported_object in names.values() if is_record(imported_object)]
    fields = {
        field
        for record in records
        for field in getattr(record, "_fields", ()) or getattr(record, "__dataclass_fields__", ())
    }
    wrong = []
    for node in ast.walk(tree):
        used_object = resolved(node, names) if isinstance(node, ast.Name | ast.Attribute) else None
        if (
            used_object is not None
            and (getattr(used_object, "__module__", ""), getattr(used_object, "__name__", ""))
            in CALCULATORS
        ):
            wrong.append(f"line {node.lineno}: uses the formula {used_object.__name__}")
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if is_record(resolved(node.func, names)):
                wrong.append(f"line {node.lineno}: makes a {name}")
            if name.rpartition(".")[2] in ("replace", "_replace") and fields & {
                keyword.arg for keyword in node.keywords
            }:
                wrong.append(f"line {node.lineno}: alters a record of the engine")
        if isinstance(node, ast.ClassDef) and any(
            is_record(resolved(base, names)) for base in node.bases
        ):
            wrong.append(f"line {node.lineno}: {node.name} is a record of the engine")
    wrong += [
        f"imports the formula {name}"
        for name, imported_object in names.items()
        if (getattr(imported_object, "__module__", ""), getattr(imported_object, "__name__", ""))
        in CALCULATORS
    ]
    return sorted(set(wrong))


@pytest.mark.parametrize("name", MODULES)
def test_validation_imports_no_formula_and_makes_no_machine(name):
    assert own_physics((ROOT / f"tco/validation/{name}.py").read_text(encoding="utf-8")) == []


def test_validation_defines_no_formula():
    assert [
        formula.name for formula in FORMULAS if formula.function.__module__.startswith(ROOM)
    ] == []


@pytest.mark.parametrize(
    "source",
    [
        "from tco.performance.chip.roofline import achieved_bandwidth",
        "from tco.performance.chip.roofline import achieved_bandwidth as rate\nrate(1, 2)",
        "from tco.performance.chip import roofline\nroofline.achieved_bandwidth(1, 2)",
        "import tco.performance.chip.roofline as r\nr.achieved_bandwidth(1, 2)",
        "import tco.performance.chip.roofline\ntco.performance.chip.roofline.achieved_bandwidth(1, "
        "2)",
        "def f():\n    from tco.performance.chip.roofline import achieved_bandwidth",
        "from tco.performance.layer.chip_model import Machine\nMachine()",
        "from tco.performance.layer import chip_model\nchip_model.Machine()",
        "from tco.fabric.links import Links as L\nL()",
        "from tco.fabric.links import Latencies\nLatencies()",
        "from tco.performance.layer.operators import Operator\nOperator()",
        "from tco.performance.layer.chip_model import Machine\nclass Own(Machine):\n    pass",
        "from tco.fabric.links import Links\nfrom dataclasses import replace\ndef f(links: "
        "Links):\n    return replace(links, inside=2)",
    ],
)
def test_rule_refuses_formulas_and_records_of_the_engine(source):
    assert own_physics(source)


@pytest.mark.parametrize(
    "source",
    [
        "from tco.performance.layer.chip_model import Machine, machine\ndef f(one: Machine):\n    "
        "return machine(one)",
        "from tco.models.architecture import load_model\nload_model(1, 2)",
        "from tco.performance.training.plans import TrainingPlan\nTrainingPlan()",
    ],
)
def test_the_rule_allows_questions(source):
    assert own_physics(source) == []


# ---------------------------------------------------------------- every scored row can be asked
# again
def scored(kind):
    validated_rows = validated(kind).rows
    return validated_rows[validated_rows.skipped == ""]


# rows may share a command: its answer is asked once
document_of = cache(document)


def follow(content, key):
    for step in key.split("/"):
        content = content[int(step)] if isinstance(content, list) else content[step]
    return content


@pytest.mark.thorough
@pytest.mark.parametrize("kind", PREDICTORS)
def test_the_command_of_a_row_gives_its_prediction(kind):
    rows = scored(kind)
    spread = rows.iloc[:: max(len(rows) // SAMPLE, 1)]
    group_samples = rows.groupby("accelerator" if "accelerator" in rows else "model").sample(
        1, random_state=len(rows)
    )
    for row in [*spread.itertuples(), *group_samples.itertuples()]:
        program, *arguments = shlex.split(row.command)
        assert program == "tco", row.command
        again = follow(document_of(*arguments), row.key) * row.scale
        assert again == pytest.approx(row.predicted, rel=1e-9, abs=0), f"{row.command} {row.key}"


def test_every_scored_row_has_a_command():
    for kind in PREDICTORS:
        rows = scored(kind)
        assert rows.command.str.startswith("tco ").all()
        assert (rows.key != "").all()
        assert rows.scale.notna().all()


# ---------------------------------------------------------------- rows that state their own model
def own_rows(tmp_path, *changes):
    path = tmp_path / "own.csv"
    columns = HEADER.split(",")
    row = dict(zip(columns, OWN.split(","), strict=True))
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows([row | change for change in changes])
    return document("validate", path, "--rows")


def test_a_row_may_state_its_own_model(tmp_path):
    done = own_rows(tmp_path, {}, {"model": "meta-llama/Llama-2-13b-hf"})
    assert (done["scored"], done["skipped"]) == (2, {})
    stated_row, named_row = done["rows"]
    # 6 N D = 6 x 13.0e9 x 256 x 4096 = 8.2e16 FLOP on 64 x 989 TFLOP/s: 1.3 s at the peak, 2.2 to 5
    # s in practice
    assert 2.2 <= stated_row["predicted"] <= 5.0
    assert stated_row["predicted"] == pytest.approx(
        named_row["predicted"], rel=1e-12
    )  # the same shape


def test_what_a_row_says_of_its_model_moves_its_step(tmp_path):
    room = {"tp": "4", "dp": "16", "params_b": ""}  # for twice the layers
    done = own_rows(tmp_path, room, room | {"layers": "80"}, room | {"kv_heads": "8"})
    plain, deep, grouped = (row["predicted"] for row in done["rows"])
    assert 1.8 * plain < deep < 2.1 * plain
    assert grouped < plain


def test_a_row_that_says_too_little_of_its_model_names_what_is_missing(tmp_path):
    done = own_rows(tmp_path, {"heads": "", "ffn": ""})
    assert done["skipped"] == {
        "unknown-model: neither the name 'our-13b' nor its shape is known; missing: heads, ffn": 1
    }


def test_words_of_a_row_are_read(tmp_path):
    words = (
        "full, no sequence parallelism",
        "full + sequence parallel",
        "selective + sequence parallel",
    )
    done = own_rows(tmp_path, *({"activation_recompute": text} for text in words))
    full, split, selective = (row["predicted"] for row in done["rows"])
    # sequences split save memory traffic; recomputing attention only saves products
    assert full > split > selective
