"""Values of sequences, and the named functions on them: one meaning, for the language, the interpreter and
files.

Numbers are exact. Integers and fractions stay what they are under `+`, `-`, `*` and `/`; only a float that
the user brings in makes floats. None means that there is no value: every function of None is None, and so is
what arithmetic cannot give (a division by 0).
"""

import math
import operator
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from tapegrad.errors import InputError

Value = Any
"""None, a bool, an int, a Fraction, a float, a string, or a tuple of such."""

MOST_DIGITS = 1 << 12
"""Bits of a whole number."""


def _divided(x: Value, y: Value) -> Value:
    if isinstance(x, int) and isinstance(y, int):
        return Fraction(x, y)
    return x / y


OPERATIONS: dict[str, Callable[..., Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "//": operator.floordiv,
    "%": operator.mod,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "not": operator.not_,
}
"""By their signs. All take two values but `not`."""
LINEAR = ("+", "-")
COMPARISONS = ("==", "<", "<=", ">", ">=", "!=", "true", "false")
"""Predicates of selectors: the key on the left, the query on the right."""


class Operation:
    """A named function; a constant may stand for one of its arguments."""

    def __init__(self, sign: str, left: Value = ..., right: Value = ...) -> None:
        self.sign, self.left, self.right = sign, left, right

    def __call__(self, *values: Value) -> Value:
        if self.left is not ...:
            values = (self.left, *values)
        if self.right is not ...:
            values = (*values, self.right)
        return OPERATIONS[self.sign](*values)


def applied(function: Callable[..., Value], *values: Value) -> Value:
    """A function of values: None if one of them is, or if arithmetic has no answer."""
    if any(value is None for value in values):
        return None
    try:
        return plain(function(*values))
    except ArithmeticError:
        return None


def compared(sign: str, key: Value, query: Value) -> bool:
    """Whether a comparison holds. It does not where a value is missing, unless it asks for nothing."""
    if sign in ("true", "false"):
        return sign == "true"
    return key is not None and query is not None and bool(OPERATIONS[sign](key, query))


def plain(value: Value) -> Value:
    """A value in its plainest form: whole fractions and NumPy's numbers as Python's. Others are refused."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        if value.bit_length() > MOST_DIGITS:
            raise InputError(f"a number of {value.bit_length():,} bits is too large")
        return value
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else value
    if isinstance(value, tuple):
        return tuple(plain(own) for own in value)
    if isinstance(value, float) and type(value) is float:
        if not math.isfinite(value):
            raise InputError(f"{value} is no value of a sequence")
        return value
    if getattr(value, "shape", None) == () and (scalar := getattr(value, "item", None)):
        return plain(scalar())
    raise InputError(
        f"a {type(value).__name__} is no value of a sequence",
        advice="Values are None, numbers, true and false, strings, and tuples of these.",
    )


def is_number(value: Value) -> bool:
    """Whether means can be taken of it."""
    return isinstance(value, int | float | Fraction)


def ordered(values: Iterable[Value]) -> tuple[Value, ...]:
    """Different values, None first, then numbers, strings and tuples, each in rising order."""
    return tuple(sorted(dict.fromkeys(values), key=_place))


def _place(value: Value) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if is_number(value):
        return 1, value
    if isinstance(value, str):
        return 2, value
    return 3, tuple(_place(own) for own in value)


def mean(values: Iterable[Value]) -> Value:
    """The exact mean of numbers."""
    own = [Fraction(value) for value in values]
    return plain(sum(own, Fraction(0)) / len(own))


def as_python(value: Value) -> Value:
    """As users of Python expect it: a fraction becomes the nearest float."""
    return float(value) if isinstance(value, Fraction) else value


def to_json(value: Value) -> Any:
    """A value for JSON, in which a list is a tuple and an object a fraction or a float."""
    if isinstance(value, Fraction):
        return {"fraction": [str(value.numerator), str(value.denominator)]}
    if isinstance(value, float):
        return {"float": value.hex()}
    return [to_json(own) for own in value] if isinstance(value, tuple) else value


def from_json(data: Any) -> Value:
    """The value again."""
    if isinstance(data, list):
        return tuple(from_json(own) for own in data)
    if isinstance(data, dict):
        if data.keys() == {"fraction"}:
            numerator, denominator = data["fraction"]
            return plain(Fraction(int(numerator), int(denominator)))
        return plain(float.fromhex(data["float"]))
    return plain(data)


def shown(value: Value) -> str:
    """A value as text, for people and for files."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, tuple):
        return "(" + ", ".join(shown(own) for own in value) + ("," if len(value) == 1 else "") + ")"
    return str(value)
