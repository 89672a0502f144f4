"""`tco kernel`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command

LEAST = 0.001  # sides may be means, of tokens over experts for one


def side(text: str, name: str = "") -> typer.models.OptionInfo:
    """Return the option of a side of a kernel."""
    found: typer.models.OptionInfo = typer.Option(name, min=LEAST, help=text) if name else typer.Option(min=LEAST, help=text)
    return found


@command(app, "set")
def kernel(
    given: Given,
    chip: Annotated[str, typer.Argument(help="A chip's id, such as h100-sxm.")],
    operation: Annotated[str, typer.Option("--op", help="gemm, grouped, experts, attention or elementwise.")] = "gemm",
    precision: Annotated[str, typer.Option(help="Format of weights, of prompts' attention, or of the cache: bf16, fp8, nvfp4.")] = "bf16",
    rows: Annotated[float | None, side("Rows of the result: tokens, of each group if grouped.", "--m")] = None,
    columns: Annotated[float | None, side("Columns of the result.", "--n")] = None,
    inner: Annotated[float | None, side("Inner side of a product.", "--k")] = None,
    groups: Annotated[float | None, side("Products whose tiles share the chip, as experts do.")] = None,
    batch: Annotated[float | None, side("Sequences of attention.")] = None,
    seq_q: Annotated[float | None, side("Queries of a sequence.", "--seq-q")] = None,
    seq_kv: Annotated[float | None, side("Keys of a sequence.", "--seq-kv")] = None,
    heads: Annotated[float | None, side("Query heads.")] = None,
    kv_heads: Annotated[float | None, side("Key heads.", "--kv-heads")] = None,
    head_dim: Annotated[float | None, side("Width of a head.", "--head-dim")] = None,
    value_dim: Annotated[float | None, side("Width of the values of a head, if it is another.", "--value-dim")] = None,
    latent: Annotated[float | None, side("Width of the latent cache.")] = None,
    rotary: Annotated[float | None, side("Width of the rotary part beside the latent cache.")] = None,
    tokens: Annotated[float | None, side("Tokens of all ranks that an expert layer takes.")] = None,
    topk: Annotated[float | None, side("Experts that a token chooses.")] = None,
    experts: Annotated[float | None, side("Experts of the layer, on all ranks.")] = None,
    ranks: Annotated[float, side("Ranks that share the experts; the busiest is timed.")] = 1,
    hidden: Annotated[float | None, side("Width of the tokens of an expert layer; --width is the rank's part of an expert's.")] = None,
    skew: Annotated[float, typer.Option(min=0, help="Standard deviation over mean of how popular experts are.")] = 0,
    even: Annotated[bool, typer.Option("--even", help="Tokens are dealt out to experts in turn, not by chance.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Attention without a causal mask.")] = False,
    phase: Annotated[str, typer.Option(help="Of attention: prefill, decode, or latent, which is decoding against one latent cache.")] = "prefill",
    width: Annotated[float | None, side("Numbers of a row of an elementwise kernel.")] = None,
    passes: Annotated[float | None, side("Times an elementwise kernel reads or writes a row.")] = None,
    flat: Annotated[bool, typer.Option("--flat", help="An elementwise kernel that knows no rows, as sums.")] = False,
    cores: Annotated[float | None, side("Cores of the chip that a product has to itself; left out: all.")] = None,
    library: Annotated[str | None, typer.Option(help="Time it as this library's layer runs it, with its casts; left out: the bare kernel.")] = None,
) -> None:
    """Time a GEMM, attention or an elementwise kernel on one chip, and show the bound that binds."""
    from tco.chain.inputs import plain_inputs
    from tco.cli.emit import Answer
    from tco.cli.load import catalogue_for
    from tco.foundation.values import as_number
    from tco.outputs.document import document
    from tco.outputs.kernels import HEADER, kernel_document, kernel_rows, kernel_tables
    from tco.studies.kernels import asked, operation_of

    catalogue = catalogue_for(None, given.data)
    inputs = plain_inputs(catalogue, given.settings)
    values = inputs.values(as_number)
    sides = {"m": rows, "n": columns, "k": inner, "groups": groups, "width": width, "passes": passes, "by_row": not flat}
    sides |= {"batch": batch, "seq_q": seq_q, "seq_kv": seq_kv, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
    sides |= {"value_dim": value_dim or head_dim, "latent": latent, "rotary": rotary, "tokens": tokens, "topk": topk, "experts": experts}
    sides |= {"ranks": ranks, "hidden": hidden, "skew": skew, "even": float(even)}
    sides["causal"] = 0.0 if full else 1.0
    found = asked(catalogue, values, chip, operation_of(operation, phase), precision, sides, library, cores)
    given.emit(
        Answer(
            lambda: document("kernel", catalogue, kernel_document(found)),
            lambda: kernel_tables(found),
            HEADER,
            kernel_rows(found),
            [f"{path} is set, but this kernel does not rest on it" for path in inputs.unused(values)],
        ),
    )
