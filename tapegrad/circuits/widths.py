"""Which type a result has.

Of two integers the wider type wins, and the narrower is extended by its own sign; signed and unsigned do not
mix without `.to(type)`. A Python number or a bit takes the type of its partner. Comparisons widen both sides
until neither loses anything, so they compare the numbers whatever the types.
"""

from typing import Any

import numpy as np

from tapegrad.circuits.places import calling_line
from tapegrad.circuits.types import Bit, BitType, Int, IntType, UInt
from tapegrad.errors import SourceError


def is_number(value: Any) -> bool:
    """Whether this is an ordinary Python or NumPy integer or truth value."""
    return isinstance(value, int | np.integer | np.bool_)


def common_type(a: BitType | IntType, b: BitType | IntType) -> BitType | IntType:
    """The type of a result: the wider one; a bit gives way to an integer."""
    if a == b or b == Bit:
        return a
    if a == Bit:
        return b
    if a.signed != b.signed:
        raise SourceError(
            f"{a} and {b} do not mix", where=calling_line(), advice="Cast one of them with .to(type)."
        )
    return a if a.width > b.width else b


def holding_both(a: BitType | IntType, b: BitType | IntType) -> IntType:
    """The smallest integer type that has every value of both: what they are compared in."""
    if not a.signed and not b.signed:
        return UInt(max(a.width, b.width))
    return Int(max(t.width + (not t.signed) for t in (a, b)))
