"""VNN-LIB, the language of properties in the competition of verifiers (VNN-COMP): what a counterexample is.

Both versions are written. Version 1.0 declares a constant for every input and output and is what verifiers
read; version 2.0 declares the network's tensors and is what the parser of the standard (`vnnlib` on PyPI)
reads. The solver looks for an input in the box whose output is at least the threshold: `sat` if there is one.
"""

from collections.abc import Sequence
from fractions import Fraction

from tapegrad.errors import InputError

Box = Sequence[tuple[Fraction, Fraction]]
"""The least and the greatest value of every input."""

DIGITS = 60
"""Behind the point, at most."""


def decimal(value: Fraction) -> str:
    """A number in full, such as 0.375; refused where that has no end."""
    digits = next((count for count in range(1, DIGITS) if (value * 10**count).denominator == 1), None)
    if digits is None:
        raise InputError(f"{value} has no short decimal form", advice="Use parts of a power of two.")
    scaled = value * 10**digits
    sign, whole = "-" if scaled < 0 else "", abs(scaled.numerator)
    return f"{sign}{whole // 10**digits}.{whole % 10**digits:0{digits}}"


def written(box: Box, threshold: Fraction, comment: Sequence[str] = ()) -> str:
    """Version 1.0: an input in the box with output Y_0 at least the threshold."""
    lines = [f"; {line}" for line in comment]
    lines += [f"(declare-const X_{place} Real)" for place in range(len(box))]
    lines += ["(declare-const Y_0 Real)"]
    for place, (low, high) in enumerate(box):
        lines += [f"(assert (>= X_{place} {decimal(low)}))", f"(assert (<= X_{place} {decimal(high)}))"]
    lines += [f"(assert (>= Y_0 {decimal(threshold)}))"]
    return "\n".join(lines) + "\n"


def written_in_2(box: Box, threshold: Fraction, comment: Sequence[str] = ()) -> str:
    """Version 2.0 of the same."""
    lines = [f"; {line}" for line in comment]
    lines += [
        "(vnnlib-version <2.0>)",
        "(declare-network N",
        f"    (declare-input X float32 [1, {len(box)}])",
        "    (declare-output Y float32 [1, 1])",
        ")",
    ]
    for place, (low, high) in enumerate(box):
        lines += [
            f"(assert (>= X[0, {place}] {decimal(low)}))",
            f"(assert (<= X[0, {place}] {decimal(high)}))",
        ]
    lines += [f"(assert (>= Y[0, 0] {decimal(threshold)}))"]
    return "\n".join(lines) + "\n"
