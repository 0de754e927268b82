"""The static proof that the network computes its circuit on every input, in floating point.

Let e bound the distance of every value from its bit after a circuit layer is corrected. Gates take
e to g(e), by interval arithmetic over the four cases of every kind of gate. The correction takes a
value within d of its bit to c(d), where c is as follows. A 0 stays at or under the lower threshold, both
units are silent, and the result is exactly 0. A 1 activates both units, z itself cancels,

    s (z - low) - s (z - high) = s (high - low),

and what is left is rounding: c(d) is a few units of roundoff, however large d was inside the radius.
Take half the radius as allowance and e = c(allowance): if g(e) <= allowance, then by induction no
value after any circuit layer is further than e from its bit, at any depth.

With thresholds that are exact in binary, c(0) = 0 and nothing ever rounds: e = 0. Without corrections
all values are small integers and e = 0 too; but there an error from elsewhere, noise on the weights
say, doubles with every layer and nothing stops it, which is why the paper has corrections.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

from tapegrad.circuits.model import Gate
from tapegrad.errors import Refused
from tapegrad.networks.intervals import ZERO, Interval, Rounding, at_least, at_most, point
from tapegrad.targets.relu.build import CORRECTIONS, GADGETS, READ_OUT, Gadget, Row


@dataclass(frozen=True)
class Proof:
    """The numbers of the proof; errors are distances from the ideal bit or sign, for every input."""

    radius: Fraction | None
    allowance: Fraction
    after_gates: Fraction
    after_correction: Fraction
    at_outputs: Fraction
    pre_activations: dict[Gate, Interval]

    def to_json(self) -> dict[str, Any]:
        """The numbers as doubles, rounded to the safe side."""
        return {
            "radius": None if self.radius is None else at_most(self.radius),
            "allowance": at_most(self.allowance),
            "after_gates": at_least(self.after_gates),
            "after_correction": at_least(self.after_correction),
            "at_outputs": at_least(self.at_outputs),
            "pre_activations": {
                kind.name: [at_most(span.low), at_least(span.high)]
                for kind, span in self.pre_activations.items()
            },
        }


def prove(kinds: Iterable[Gate], correction: str, dtype: str) -> Proof:
    """The proof for nets with these kinds of gates; refused if there is none."""
    rounding = Rounding(dtype)
    chosen = CORRECTIONS[correction]
    kinds = sorted(set(kinds))
    radius, allowance, error = None, ZERO, ZERO
    if chosen is not None:
        low, high = (Fraction(-cut.bias) for cut in chosen.rows(dtype)[0])
        radius = min(low, 1 - high)
        if _corrected(correction, dtype, ZERO) > 0:
            # As doubles, rounded to the safe side, so that the certificate holds these very numbers.
            allowance = Fraction(at_most(radius / 2))
            error = Fraction(at_least(_corrected(correction, dtype, allowance)))
    spans = {kind: _gate(GADGETS[kind], kind, dtype, error) for kind in kinds}
    after_gates = max((worst for worst, _ in spans.values()), default=ZERO)
    at_outputs = max(
        _unit(READ_OUT, rounding, _near(bit, error)).shifted(1 - 2 * bit).magnitude for bit in (0, 1)
    )
    if after_gates > allowance or at_outputs >= 1:
        raise Refused(
            f"in {dtype} with correction {correction!r} a gate may be {float(after_gates):.3g} off its bit, "
            f"and only {float(allowance):.3g} can be mended",
            advice="Use dtype float64, or correction quarters.",
        )
    pre_activations = {kind: span for kind, (_, span) in spans.items()}
    return Proof(radius, allowance, after_gates, error, at_outputs, pre_activations)


def _near(bit: int, error: Fraction) -> Interval:
    """A value at most `error` from its bit; after a ReLU none is negative."""
    return Interval(max(bit - error, ZERO), bit + error)


def _unit(row: Row, rounding: Rounding, x: Interval, y: Interval = point(0)) -> Interval:  # noqa: B008
    """What a unit can have before its ReLU."""
    return rounding.affine((row.first, row.second), row.bias, (x, y))


@cache
def _gate(gadget: Gadget, kind: Gate, dtype: str, error: Fraction) -> tuple[Fraction, Interval]:
    """g(error) for one kind, and the range of all its pre-activations. What is kept depends on the arguments
    alone, the weights of the gadget included."""
    rounding = Rounding(dtype)
    worst, spans = ZERO, []
    for a, b in product((0, 1), repeat=2):
        operands = _near(a, error), _near(b, error)
        hidden = [_unit(row, rounding, *operands) for row in gadget.hidden]
        first, second = [*(h.relu() for h in hidden), point(0), point(0)][:2]
        out = _unit(gadget.out, rounding, first, second)
        spans += [*hidden, out]
        worst = max(worst, out.relu().shifted(-(kind >> (2 * a + b) & 1)).magnitude)
    return worst, Interval(min(s.low for s in spans), max(s.high for s in spans))


def _corrected(correction: str, dtype: str, error: Fraction) -> Fraction:
    """c(error): how far from its bit a value can be once it is corrected."""
    chosen = CORRECTIONS[correction]
    if chosen is None:
        return error
    rounding = Rounding(dtype)
    cuts, difference = chosen.rows(dtype)
    for cut in cuts:
        if _unit(cut, rounding, _near(0, error)).high > 0:
            raise Refused(
                f"an error of {float(error):.3g} is outside the radius of correction {correction!r}"
            )
    noise, step = ZERO, ZERO
    for cut, slope in zip(cuts, map(Fraction, difference[:2]), strict=True):
        exact = _near(1, error).shifted(Fraction(cut.bias))
        if exact.low <= 0:
            raise Refused(
                f"an error of {float(error):.3g} is outside the radius of correction {correction!r}"
            )
        slack = rounding.slack(exact)
        noise += abs(slope) * slack + rounding.product_slack(slope, exact.widened(slack))
        step += slope * Fraction(cut.bias)
    found = point(step).widened(noise)
    return found.widened(rounding.slack(found)).shifted(-1).magnitude
