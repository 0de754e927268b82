"""The target `relu`: what it takes, how it is built, and what it costs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.layered import LayeredCircuit, layered
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.errors import Refused
from tapegrad.networks.network import Network
from tapegrad.source import Rewriting
from tapegrad.targets.relu.build import CORRECTIONS, DTYPES, lay_out, layer_sizes, padded
from tapegrad.targets.relu.compact.build import made
from tapegrad.targets.relu.compact.exactness import largest_sum
from tapegrad.targets.relu.compact.net import CompactNet
from tapegrad.targets.relu.exactness import prove
from tapegrad.targets.relu.net import Gates, ReluNet
from tapegrad.targets.target import Estimate, Example, Option, Target

FORMS = ("paper", "compact")
PAPERS_CORRECTION = "thirds"


def _form(form: str | None, correction: str | None, width: int | None, depth: int | None, skips: bool) -> str:
    """The form asked for, by its name or by an option that only the paper's has; else the compact one."""
    own = {"correction": correction, "width": width, "depth": depth}
    given = [name for name, value in own.items() if value is not None]
    form = form or ("paper" if given else "compact")
    if form == "compact" and given:
        raise Refused(
            f"the compact form has no {' or '.join(given)}: its arithmetic is that of small whole numbers, "
            "and nothing is rounded or padded",
            advice="Leave that out, or choose form=paper.",
        )
    if form == "paper" and not skips:
        raise Refused("the paper's form has no skip connections to leave out", advice="Choose form=compact.")
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
    if isinstance(circuit, Circuit):
        units, holds = made(circuit, skips=skips)
        net = CompactNet(units, holds, circuit.inputs, circuit.outputs, dtype, skips)
        largest_sum(units, holds)
        return net
    rounding = correction or PAPERS_CORRECTION
    prove(_kinds(circuit), rounding, dtype)
    _padded_width(layer_sizes(circuit, rounding), width)
    gates = Gates(circuit.kinds, circuit.left, circuit.right, circuit.wires)
    stack = lay_out(circuit, rounding, dtype)
    return ReluNet(stack.check(), gates, circuit.inputs, circuit.outputs, rounding, width)


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
    """In the paper's form the numbers of the built net: per unit two inputs, two weights and a bias; per gate
    its kind, two operands and its wire; and where each layer ends. The compact form is as good as built once
    its gates are chosen, so it is built and counted."""
    if isinstance(circuit, Circuit):
        net = CompactNet(*made(circuit, skips=skips), circuit.inputs, circuit.outputs, dtype, skips)
        return Estimate(
            width=net.width,
            depth=net.depth,
            **asdict(net.counts),
            parameters=net.parameters,
            steps=net.depth + 1,
            precision=dtype,
            notes=(f"{len(net.holds):,} units, {int((net.holds >= 0).sum()):,} of which hold a wire",),
        )
    rounding = correction or PAPERS_CORRECTION
    prove(_kinds(circuit), rounding, dtype)
    sizes = layer_sizes(circuit, rounding)
    units, number = int(sizes.sum()), np.dtype(dtype).itemsize
    return Estimate(
        width=_padded_width(sizes, width),
        depth=len(sizes) - 1,
        trainable=0,
        fixed=3 * units,
        parameters=5 * units + 4 * circuit.size + len(sizes) + 1,
        bytes=(8 + 3 * number) * units + 13 * circuit.size + 8 * (len(sizes) + 1),
        steps=circuit.depth,
        precision=dtype,
        notes=(f"{circuit.size:,} gates in {circuit.depth:,} layers, identities included",),
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
    if _form(form, correction, width, depth, skips) == "compact":
        return []
    steps = [layered(circuit)]
    if depth is not None:
        rounding = correction or PAPERS_CORRECTION
        steps.append(padded(steps[-1].after, depth, rounding))  # type: ignore[arg-type]
    return steps


def loads(
    config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], network: Network | None = None
) -> "ReluNet | CompactNet":
    """A saved net of either form; older ones do not name it."""
    return (CompactNet if "form" in config else ReluNet).from_saved(config, arrays, network)


def _kinds(circuit: LayeredCircuit) -> list[Gate]:
    return [Gate(kind) for kind in np.unique(circuit.kinds).tolist()]


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
    net=ReluNet,
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
