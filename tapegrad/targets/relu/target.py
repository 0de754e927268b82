"""The target `relu`: what it takes, how it is built, and what it costs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.layered import LayeredCircuit, layered
from tapegrad.circuits.model import Circuit
from tapegrad.errors import Refused
from tapegrad.networks.network import Network
from tapegrad.networks.wiring import numbers_of
from tapegrad.source import Rewriting
from tapegrad.targets.relu.build import CORRECTIONS, DTYPES, count_entries, lay_out, layer_sizes, padded
from tapegrad.targets.relu.compact.build import made
from tapegrad.targets.relu.compact.exactness import largest_sum
from tapegrad.targets.relu.compact.net import CompactNet
from tapegrad.targets.relu.layered import LayeredNet
from tapegrad.targets.relu.net import Gates, ReluNet
from tapegrad.targets.target import Estimate, Example, Option, Target

FORMS = ("paper", "practical")
PAPERS_CORRECTION = "thirds"


def _form(form: str | None, correction: str | None, width: int | None, depth: int | None, skips: bool) -> str:
    """The form asked for, by its name or by an option that only the paper's has; else the compact one."""
    own = {"correction": correction, "width": width, "depth": depth}
    given = [name for name, value in own.items() if value is not None]
    form = form or ("paper" if given else "practical")
    if form == "practical" and given:
        raise Refused(
            f"the compact form has no {' or '.join(given)}: its arithmetic is that of small whole numbers, "
            "and nothing is rounded or padded",
            advice="Leave that out, or choose form=paper.",
        )
    if form == "paper" and not skips:
        raise Refused(
            "the paper's form has no skip connections to leave out", advice="Choose form=practical."
        )
    return form


def build(
    circuit: Circuit | LayeredCircuit,
    *,
    form: str | None,
    skips: bool,
    correction: str | None,
    dtype: str,
    width: int | None,
    depth: int | None,
) -> "ReluNet | CompactNet":
    """The network of a circuit, or in the paper's form of the layered one that `passes` has made of it."""
    name, inputs, outputs = TARGET.name, circuit.inputs, circuit.outputs
    if isinstance(circuit, Circuit):
        wiring, holds = made(circuit, skips=skips)
        largest_sum(wiring, holds)
        return CompactNet(wiring.network(name, dtype, inputs, outputs), holds, skips)
    rounding = correction or PAPERS_CORRECTION
    _padded_width(layer_sizes(circuit, rounding), width)
    network = lay_out(circuit, rounding, dtype).network(name, dtype, inputs, outputs)
    return ReluNet(network, Gates(circuit.kinds, circuit.wires), rounding, width)


def estimate(
    circuit: Circuit | LayeredCircuit,
    *,
    form: str | None,
    skips: bool,
    correction: str | None,
    dtype: str,
    width: int | None,
    depth: int | None,
) -> Estimate:
    """The numbers of the built net. The compact form is as good as built once its gates are chosen, so it is
    built and counted."""
    if isinstance(circuit, Circuit):
        wiring, holds = made(circuit, skips=skips)
        sizes, entries, provenance = np.diff(wiring.bounds), len(wiring.places), (holds,)
        padded_to, steps = int(sizes[:-1].max(initial=0)), wiring.layers
        notes = f"{len(holds):,} units, {int((holds >= 0).sum()):,} of which hold a wire"
    else:
        rounding = correction or PAPERS_CORRECTION
        sizes, entries = layer_sizes(circuit, rounding), count_entries(circuit, rounding)
        provenance = circuit.kinds, circuit.wires
        padded_to, steps = _padded_width(sizes, width), circuit.depth
        notes = f"{circuit.size:,} gates in {circuit.depth:,} layers, identities included"
    numbers = numbers_of(sizes, entries, dtype)
    size = sum(count * np.dtype(kind).itemsize for kind, count in numbers.items())
    return Estimate(
        width=padded_to,
        depth=len(sizes) - 1,
        trainable=0,
        fixed=numbers[dtype],
        bytes=size + sum(array.nbytes for array in provenance),
        parameters=sum(numbers.values()) + sum(array.size for array in provenance),
        steps=steps,
        precision=dtype,
        notes=(notes,),
    )


def passes(
    circuit: Circuit,
    *,
    form: str | None,
    skips: bool,
    correction: str | None,
    dtype: str,
    width: int | None,
    depth: int | None,
) -> Sequence[Rewriting]:
    """In the paper's form, layers first, then identity layers up to the depth asked for."""
    if _form(form, correction, width, depth, skips) == "practical":
        return []
    steps = [layered(circuit)]
    if depth is not None:
        rounding = correction or PAPERS_CORRECTION
        steps.append(padded(steps[-1].after, depth, rounding))  # type: ignore[arg-type]
    return steps


def loads(
    config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], network: Network | None = None
) -> "ReluNet | CompactNet":
    """A saved net of either form."""
    return (CompactNet if "form" in config else ReluNet).from_saved(config, arrays, network)


def _padded_width(sizes: np.ndarray, width: int | None) -> int:
    own = int(sizes[:-1].max(initial=0))
    if width is not None and width < own:
        raise Refused(
            f"the net needs a width of {own:,}, more than {width:,}", advice=f"Give at least {own}."
        )
    return width or own


def examples() -> Sequence[Example]:
    """The sum of two two-bit numbers."""
    make = CircuitBuilder()
    a0, a1, b0, b1 = (make.input(name) for name in ("a0", "a1", "b0", "b1"))
    carry = make.and_(a0, b0)
    half = make.xor(a1, b1)
    make.output("s0", make.xor(a0, b0))
    make.output("s1", make.xor(half, carry))
    make.output("s2", make.or_(make.and_(a1, b1), make.and_(half, carry)))
    return [Example(make.circuit("two-bit adder"), ([1, 1, 1, 0],))]


TARGET = Target(
    name="relu",
    summary="the forward pass of a ReLU network: compact, or as in the paper with its corrections",
    paper="Wei, Chen, Ma, section 3 and appendix B",
    takes=Circuit,
    net=LayeredNet,
    build=build,
    estimate=estimate,
    examples=examples,
    options={
        "form": Option(
            None,
            "compact: gates of up to four inputs, with whole weights; or the paper's construction, which is "
            "taken where an option of its own is given",
            (None, *FORMS),
            was="paper",
        ),
        "skips": Option(True, "compact: whether a unit may read any earlier layer", (True, False)),
        "correction": Option(
            None,
            f"paper: round between layers as in Proposition 3.4; {PAPERS_CORRECTION} if not given",
            (None, *CORRECTIONS),
        ),
        "dtype": Option("float32", "precision of weights and values", DTYPES),
        "width": Option(None, "paper: pad every ReLU layer to this many units"),
        "depth": Option(None, "paper: pad with identities to this many ReLU layers"),
    },
    passes=passes,
    loads=loads,
)
