"""`tapegrad margins`: how much noise the parameters of a network bear."""

from tapegrad.circuits.model import Circuit
from tapegrad.commands.output import (
    AsJson,
    InputOption,
    SetOption,
    SourceArgument,
    TargetOption,
    console,
    print_json,
)
from tapegrad.compile import compile
from tapegrad.sources import find, inputs_for, parse_options


def margins(
    source: SourceArgument,
    target: TargetOption,
    input: InputOption = None,
    settings: SetOption = None,
    as_json: AsJson = False,
) -> None:
    """Bracket the all-layer margin: the least change of the parameters that flips a prediction.

    The lower bounds are proved, for every input; the upper bound is found by attack on one input. A circuit
    without an input is attacked on all patterns, or on 64 random ones if it has more.

    Example: tapegrad margins adder4 --target relu
    """
    from tapegrad_papers.theory import all_layer_margins, patterns  # only this command needs them

    found = find(source)
    compiled = compile(found.source, target, **parse_options(settings))
    own = found.inputs
    if not own and target == "relu" and isinstance(found.source, Circuit):
        own = (patterns(found.source),)
    words = inputs_for(found.source, input, own)
    result = all_layer_margins(compiled, *words)
    if as_json:
        print_json({"source": found.source.name, "target": target, **result.to_json()})
        return
    console.print(f"[bold]{found.source.name}[/bold] ({found.origin}) on target [bold]{target}[/bold]")
    console.print(str(result), markup=False)
