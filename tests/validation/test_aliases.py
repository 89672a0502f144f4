"""Aliases: what names in one's own rows mean, and files of them that are wrong."""

import json

import pytest

from tests.cli import tco

ROWS = """\
date,accelerator,n_accelerators,model,precision,seq_len,global_batch_seqs,micro_batch_seqs,tp,\
activation_recompute,step_time_s
2024-06,{chip},64,{model},bf16,4096,256,1,2,none,3.4
"""


def validate(tmp_path, chip, model, aliases):
    rows, names = tmp_path / "rows.csv", tmp_path / "names.csv"
    rows.write_text(ROWS.format(chip=chip, model=model), encoding="utf-8")
    names.write_text(aliases, encoding="utf-8")
    return tco("validate", rows, "--alias", names, "--rows", "--format", "json")


@pytest.mark.parametrize(
    "aliases",
    [
        "name,part,model\nbox,H100 SXM,\nour,,Llama-2-13b\n",
        "name,model,part\nour,llama2-13b,\nbox,,h100-sxm\n",
    ],
)
def test_aliases_stand_for_known_names(tmp_path, aliases):
    done = validate(tmp_path, "box", "our", aliases)
    plain = validate(tmp_path, "H100 SXM", "llama-2-13b", "name,part\nbox,h100-sxm\n")
    assert done.exit_code == plain.exit_code == 0
    (aliased_row,), (plain_row,) = (
        json.loads(command_result.stdout)["rows"] for command_result in (done, plain)
    )
    assert aliased_row["predicted"] == plain_row["predicted"] > 0
    assert (aliased_row["accelerator"], aliased_row["model"]) == (
        "box",
        "our",
    )  # as the file has them


def test_an_alias_may_be_stated_figures(tmp_path):
    done = validate(
        tmp_path,
        "H100",
        "our",
        'name,model\nour,"layers=40,hidden=5120,heads=40,ffn=13824,vocab=32000"\n',
    )
    plain = validate(tmp_path, "H100", "llama-2-13b", "name,part\n")
    assert json.loads(done.stdout)["rows"][0]["predicted"] == pytest.approx(
        json.loads(plain.stdout)["rows"][0]["predicted"], rel=1e-12
    )


@pytest.mark.parametrize(
    ("aliases", "says"),
    [
        (
            "name,part\nbox,h101-sxm\n",
            "names.csv:2: unknown accelerator 'h101-sxm'; did you mean 'h100-sxm'",
        ),
        ("name,part\nbox,A100\n", "names.csv:2: unknown accelerator 'A100'"),
        (
            "name,model\nour,llama-2-31b\n",
            "names.csv:2: unknown model 'llama-2-31b'; did you mean 'llama-2-13b'",
        ),
        (
            'name,model\nour,"layers=40,hiden=1"\n',
            "names.csv:2: model 'layers=40,hiden=1': unknown key 'hiden'; did you mean 'hidden'",
        ),
        (
            "name,part,model\nbox,h100-sxm,\nbox,h200-sxm,\n",
            "names.csv:3: the name 'box' is given twice",
        ),
        (
            "name,part,model\nbox,h100-sxm,llama-2-7b\n",
            "names.csv:2: expected a name and either the part or the model it means",
        ),
        ("name,part\n,h100-sxm\n", "names.csv:2: expected a name"),
        ("name,chip\nbox,h100-sxm\n", "names.csv:1: has the unexpected column 'chip'"),
        ("", "names.csv: is empty"),
    ],
)
def test_a_bad_file_of_aliases_is_named(tmp_path, aliases, says):
    done = validate(tmp_path, "box", "our", aliases)
    assert done.exit_code == 3
    assert says in done.stderr
