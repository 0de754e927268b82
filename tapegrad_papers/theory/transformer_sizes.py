"""Layers, width and parameter norm of the transformer beside the expressions of Theorem 4.1."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tapegrad.errors import Refused
from tapegrad.machines.model import TuringMachine
from tapegrad.targets.transformer import TransformerNet
from tapegrad.targets.transformer.target import LARGEST, estimate
from tapegrad_papers.theory.transformer_chain import transformer_chain
from tapegrad_papers.wei.bounds import margin_constants
from tapegrad_papers.wei.samples import lemma_2_3, transformer_norm, transformer_parameters

BUILT = (2, 3, 4)
"""The T = 2^e of the nets that are built."""
EPSILON = 0.1


@dataclass(frozen=True)
class SizeRow:
    """What the theorem bounds: d ~ log T, w > k |A| + log T, alpha = poly(k, |A|, log T)."""

    exponent: int
    steps: int
    layers: int
    layers_over_log: float
    """d / log2 T: settles at a constant."""
    width: int
    width_expression: int
    """k |A| + log2 T."""
    norm: float
    norm_over_expression: float
    """alpha / ((k |A| + log2 T) log2 T): settles at a constant."""
    margin: float | None
    """Theorem D.6; None where the net is not built."""
    samples: float | None
    """Theorem 4.1 for error 0.1."""

    def to_json(self) -> dict[str, Any]:
        """As a plain dictionary."""
        return asdict(self)


def transformer_sizes(
    machine: TuringMachine, exponents: Iterable[int] = range(4, 17), largest: int = 1 << 27
) -> list[SizeRow]:
    """A row for T = 2^e. Margins are computed where the net has at most `largest` bytes; the rest needs no
    building. For T = 2^e the bits of positions and of time are e + 2 and e + 1; layers, and the norm of each,
    are linear in these, so that the norm of the whole is a quadratic polynomial in e: the nets of three small
    T give it exactly."""
    if machine.tapes != 1:
        raise Refused("the transformer takes machines with one tape", advice="Put its tapes on one first.")
    if estimate(machine, 1 << BUILT[-1], "hardmax", "quarters").bytes > LARGEST:
        raise Refused("even the smallest nets of this machine are too large to build")
    norm = quadratic(BUILT, [transformer_norm(_net(machine, e)) for e in BUILT])
    pairs = len(machine.states) * len(machine.alphabet)
    rows = []
    for e in exponents:
        cost = estimate(machine, 1 << e, "hardmax", "quarters")
        alpha = norm(e)
        margin = samples = None
        if cost.bytes <= largest:
            margin = margin_constants(transformer_chain(_net(machine, e))).bound
            p = transformer_parameters(cost.width, cost.depth, len(machine.alphabet))
            samples = lemma_2_3(alpha, margin, p, EPSILON).samples
        rows.append(
            SizeRow(
                exponent=e,
                steps=1 << e,
                layers=cost.depth,
                layers_over_log=cost.depth / e,
                width=cost.width,
                width_expression=pairs + e,
                norm=alpha,
                norm_over_expression=alpha / ((pairs + e) * e),
                margin=margin,
                samples=samples,
            )
        )
    return rows


def quadratic(places: Sequence[int], values: Sequence[float]):
    """The polynomial of degree 2 through three points (Newton's differences)."""
    (a, b, c), (x, y, z) = values, places
    first = (b - a) / (y - x)
    second = ((c - b) / (z - y) - first) / (z - x)
    return lambda at: a + (at - x) * (first + (at - y) * second)


def size_table(rows: Iterable[SizeRow]) -> str:
    """The rows as text."""
    lines = [
        "T     layers d/log T   width k|A|+log T       alpha alpha/((k|A|+log T) log T)    margin  samples"
    ]
    for row in rows:
        margin = "-" if row.margin is None else f"{row.margin:.3g}"
        samples = "-" if row.samples is None else f"{row.samples:.2e}"
        lines.append(
            f"2^{row.exponent:<3} {row.layers:>6} {row.layers_over_log:>7.2f} {row.width:>7} "
            f"{row.width_expression:>10} {row.norm:>11.1f} {row.norm_over_expression:>26.2f} {margin:>9} "
            f"{samples:>8}"
        )
    return "\n".join(lines)


def _net(machine: TuringMachine, exponent: int) -> TransformerNet:
    return TransformerNet.build(machine, 1 << exponent, "hardmax", "quarters")
