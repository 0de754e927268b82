"""`tapegrad disguise`: a net whose algorithm is known, made harder to read, with the answers beside it."""

from pathlib import Path
from typing import Annotated

import typer

from tapegrad._compile import compile as compile_source
from tapegrad._sources import find, parse_options
from tapegrad.commands.output import AsJson, SetOption, console, print_json, saved_net


def disguise(
    net: Annotated[str, typer.Argument(metavar="NET", help="A folder of a RASP net, or a RASP program.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    basis: Annotated[str, typer.Option(help="quads, hadamard (neither rounds), rotation, or none.")] = "none",
    superposition: Annotated[
        int | None, typer.Option(help="Dimensions that features share, fewer than there are of these.")
    ] = None,
    noise: Annotated[
        float, typer.Option(help="Noise of weights, as a fraction of their root mean square.")
    ] = 0.0,
    decoys: Annotated[int, typer.Option(help="Decoy heads, and decoy units in each layer.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of what is drawn.")] = 0,
    settings: SetOption = None,
    as_json: AsJson = False,
) -> None:
    """Disguise the network of a RASP program, and prove that it still computes it.

    Example: tapegrad disguise rasp-histogram --basis hadamard --decoys 4 -o hidden.net
    """
    from tapegrad.interop.disguise import disguise as disguised  # brings JAX
    from tapegrad.interop.disguised import save_disguised

    compiled = saved_net(net, None, settings) or compile_source(
        find(net).source, "decoder", **parse_options(settings)
    )
    made = disguised(
        compiled, basis=basis, superposition=superposition, noise=noise, decoys=decoys, seed=seed
    )
    save_disguised(made, output)
    assert made.key is not None
    found = {
        "source": compiled.source.name,
        "folder": str(output),
        **made.key.data["done"],
        **made.claims,
        "decoy_heads": len(made.key.decoys["heads"]),
        "decoy_units": len(made.key.decoys["units"]),
    }
    if as_json:
        print_json(found)
        return
    claims = made.claims
    console.print(
        f"{compiled.source.name} in disguise: {claims['features']} features in {claims['dimensions']} "
        f"dimensions, {found['decoy_heads']} decoy heads, {found['decoy_units']} decoy units",
        markup=False,
    )
    console.print(
        f"proved for every input of up to {claims['length']:,} tokens; scores drift by "
        f"{claims['score_drift']:.2g} at most, bits by {claims['bit_drift']:.2g}, what is read by "
        f"{claims['output_drift']:.2g}",
        markup=False,
    )
    console.print(f"written to {output}; now try: tapegrad check {output}", markup=False)
