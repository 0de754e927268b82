"""RASP as users of Tracr write it: sequences, selectors, and the operators on them.

A program that was written for Tracr runs after changing its import. Every expression can be called with a
list of tokens, which evaluates it: this is the definition of what it means. `docs/rasp.md` has a table of
what was decided where the language is unclear.
"""

import copy
import enum
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

from tapegrad.errors import InputError, SourceError, calling_line
from tapegrad.rasp.functions import Operation, Value, applied, as_python, compared, is_number, mean

Matrix = list[list[bool]]
"""What a selector selects: a row for each query, a column for each key."""


class Annotations(Mapping[str, Any]):
    """What users say about an expression. What they do not say is found when it is asked for."""

    def __init__(self, expression: "RASPExpr", given: Mapping[str, Any]) -> None:
        self._expression, self._given = expression, dict(given)

    def __getitem__(self, key: str) -> Any:
        if key not in self._given:
            if key not in DEFAULT_ANNOTATORS:
                raise KeyError(f"there is no annotation {key!r}")
            self._given[key] = DEFAULT_ANNOTATORS[key](self._expression)
        return self._given[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


DEFAULT_ANNOTATORS: dict[str, Callable[["RASPExpr"], Any]] = {}
"""From the name of an annotation to the function that finds it where it was not given."""


class Encoding(enum.Enum):
    """Whether an aggregate moves values (categorical) or takes their mean (numerical)."""

    CATEGORICAL = "categorical"
    NUMERICAL = "numerical"


class RASPExpr:
    """A sequence or a selector."""

    _numbers = itertools.count(1)
    default_name = "expression"

    def __init__(self) -> None:
        self._annotations = Annotations(self, {})
        self.where = calling_line()

    def __call__(self, xs: Sequence[Value]) -> Any:
        return evaluate(self, xs)

    @property
    def annotations(self) -> Mapping[str, Any]:
        """Name, encoding, and whatever users add."""
        return self._annotations

    @annotations.setter
    def annotations(self, given: Mapping[str, Any]) -> None:
        self._annotations = Annotations(self, given)

    @property
    def name(self) -> str:
        """The name of this expression."""
        return self.annotations["name"]

    @property
    def children(self) -> Sequence["RASPExpr"]:
        """The expressions that it depends on directly."""
        return []

    @cached_property
    def unique_id(self) -> int:
        """A number that no other expression has."""
        return next(self._numbers)

    @property
    def label(self) -> str:
        """The name with the number."""
        return f"{self.name}_{self.unique_id}"

    def copy(self) -> Self:
        """The same expression as another object."""
        made = copy.copy(self)
        made.__dict__.pop("unique_id", None)
        return made

    def named(self, name: str) -> Self:
        """The same with a name."""
        return annotate(self, name=name)

    def annotated(self, **annotations: Any) -> Self:
        """The same with annotations."""
        return annotate(self, **annotations)


Expression = TypeVar("Expression", bound=RASPExpr)


def annotate(expr: Expression, **annotations: Any) -> Expression:
    """The same expression with more annotations."""
    made = expr.copy()
    made.annotations = {**expr.annotations, **annotations}
    return made


def _binary(sign: str, reflected: bool = False) -> Callable[["SOp", Any], "SOp"]:
    def method(self: "SOp", other: Any) -> "SOp":
        if isinstance(other, SOp):
            first, second = (other, self) if reflected else (self, other)
            return SequenceMap(Operation(sign), first, second)
        return Map(Operation(sign, left=other) if reflected else Operation(sign, right=other), self)

    return method


class SOp(RASPExpr):
    """A sequence: a value at every position, for every input."""

    default_name = "sop"
    __hash__ = object.__hash__
    __lt__, __le__, __gt__, __ge__ = _binary("<"), _binary("<="), _binary(">"), _binary(">=")

    def __eq__(self, other: Any) -> "SOp":  # type: ignore[override]
        return _binary("==")(self, other)

    def __ne__(self, other: Any) -> "SOp":  # type: ignore[override]
        return _binary("!=")(self, other)

    __add__, __radd__ = _binary("+"), _binary("+", True)
    __sub__, __rsub__ = _binary("-"), _binary("-", True)
    __mul__, __rmul__ = _binary("*"), _binary("*", True)
    __truediv__, __rtruediv__ = _binary("/"), _binary("/", True)
    __floordiv__, __rfloordiv__ = _binary("//"), _binary("//", True)
    __mod__, __rmod__ = _binary("%"), _binary("%", True)
    __and__, __rand__ = _binary("and"), _binary("and", True)
    __or__, __ror__ = _binary("or"), _binary("or", True)

    def __invert__(self) -> "SOp":
        return sop_not(self)


class TokensType(SOp):
    """The input."""

    default_name = "tokens"


class IndicesType(SOp):
    """The number of each position, from 0."""

    default_name = "indices"


class LengthType(SOp):
    """How many tokens there are, at every position."""

    default_name = "length"


class Map(SOp):
    """A function of the value at each position."""

    default_name = "map"

    def __init__(self, f: Callable[[Value], Value], inner: SOp, simplify: bool = True) -> None:
        super().__init__()
        _require(callable(f) and not isinstance(f, RASPExpr), "a Map needs a function")
        self.f, self.inner = f, _sequence(inner)

    @property
    def children(self) -> Sequence[RASPExpr]:
        return [self.inner]


class SequenceMap(SOp):
    """A function of two values at each position."""

    default_name = "sequence_map"

    def __init__(self, f: Callable[[Value, Value], Value], fst: SOp, snd: SOp) -> None:
        super().__init__()
        _require(callable(f) and not isinstance(f, RASPExpr), "a SequenceMap needs a function")
        self.f, self.fst, self.snd = f, _sequence(fst), _sequence(snd)

    @property
    def children(self) -> Sequence[RASPExpr]:
        return [self.fst, self.snd]


class LinearSequenceMap(SequenceMap):
    """Two sequences, each times a number, added."""

    default_name = "linear_sequence_map"

    def __init__(self, fst: SOp, snd: SOp, fst_fac: float, snd_fac: float) -> None:
        super().__init__(lambda x, y: fst_fac * x + snd_fac * y, fst, snd)
        self.fst_fac, self.snd_fac = fst_fac, snd_fac


class Full(SOp):
    """The same value everywhere."""

    default_name = "full"

    def __init__(self, fill: Value) -> None:
        super().__init__()
        self.fill = fill


class ConstantSOp(SOp):
    """A given sequence, whatever the input: for tests."""

    default_name = "constant_sop"

    def __init__(self, value: Sequence[Value], check_length: bool = True) -> None:
        super().__init__()
        self.value, self.check_length = value, check_length


def sop_not(sop: SOp) -> SOp:
    """True where the value is false."""
    return Map(Operation("not"), sop)


class Predicate(Protocol):
    """Whether a query selects a key."""

    def __call__(self, key: Value, query: Value, /) -> bool: ...


class Comparison(enum.Enum):
    """Predicates with a name: the key on the left, the query on the right."""

    EQ = "=="
    LT = "<"
    LEQ = "<="
    GT = ">"
    GEQ = ">="
    NEQ = "!="
    TRUE = "True"
    FALSE = "False"

    @property
    def sign(self) -> str:
        """As in `functions.COMPARISONS`."""
        return self.value.lower()

    def __call__(self, key: Value, query: Value) -> bool:
        return compared(self.sign, key, query)


class Selector(RASPExpr):
    """For every position the positions that it selects."""

    default_name = "selector"

    def __and__(self, other: "Selector") -> "Selector":
        return SelectorAnd(self, other)

    def __or__(self, other: "Selector") -> "Selector":
        return SelectorOr(self, other)

    def __invert__(self) -> "Selector":
        return SelectorNot(self)


class Select(Selector):
    """Every key for which the predicate holds."""

    default_name = "select"

    def __init__(self, keys: SOp, queries: SOp, predicate: Predicate) -> None:
        super().__init__()
        _require(callable(predicate) and not isinstance(predicate, RASPExpr), "a Select needs a predicate")
        self.keys, self.queries, self.predicate = _sequence(keys), _sequence(queries), predicate

    @property
    def children(self) -> Sequence[RASPExpr]:
        return [self.keys, self.queries]


class ConstantSelector(Selector):
    """A given selector, whatever the input: for tests."""

    default_name = "constant_selector"

    def __init__(self, value: Matrix, check_length: bool = True) -> None:
        super().__init__()
        self.value, self.check_length = value, check_length


class _Both(Selector):
    def __init__(self, fst: Selector, snd: Selector) -> None:
        super().__init__()
        self.fst, self.snd = _selector(fst), _selector(snd)

    @property
    def children(self) -> Sequence[RASPExpr]:
        return [self.fst, self.snd]


class SelectorAnd(_Both):
    """What both select."""

    default_name = "selector_and"


class SelectorOr(_Both):
    """What one or both select."""

    default_name = "selector_or"


class SelectorNot(Selector):
    """What the other does not select."""

    default_name = "selector_not"

    def __init__(self, inner: Selector) -> None:
        super().__init__()
        self.inner = _selector(inner)

    @property
    def children(self) -> Sequence[RASPExpr]:
        return [self.inner]


def selector_not(inner: Selector, simplify: bool = True) -> Selector:
    """What the other does not select."""
    return SelectorNot(inner)


def selector_and(fst: Selector, snd: Selector, simplify: bool = True) -> Selector:
    """What both select."""
    return SelectorAnd(fst, snd)


def selector_or(fst: Selector, snd: Selector, simplify: bool = True) -> Selector:
    """What one or both select."""
    return SelectorOr(fst, snd)


class SelectorWidth(SOp):
    """How many positions are selected."""

    default_name = "selector_width"

    def __init__(self, selector: Selector) -> None:
        super().__init__()
        self.selector = _selector(selector)

    @property
    def children(self) -> Sequence[RASPExpr]:
        return [self.selector]


class Aggregate(SOp):
    """The mean of the selected values, or the value itself where they are all the same."""

    default_name = "aggregate"

    def __init__(self, selector: Selector, sop: SOp, default: Value = None) -> None:
        super().__init__()
        self.selector, self.sop, self.default = _selector(selector), _sequence(sop), default

    @property
    def children(self) -> Sequence[RASPExpr]:
        return [self.selector, self.sop]


tokens, indices, length = TokensType(), IndicesType(), LengthType()

DEFAULT_ANNOTATORS["name"] = lambda expr: expr.default_name
DEFAULT_ANNOTATORS["encoding"] = lambda expr: Encoding.CATEGORICAL


def numerical(sop: SOp) -> Any:
    """The same sequence, of numbers whose mean may be taken."""
    return annotate(sop, encoding=Encoding.NUMERICAL)


def categorical(sop: SOp) -> Any:
    """The same sequence, of values that are only moved."""
    return annotate(sop, encoding=Encoding.CATEGORICAL)


def get_encoding(sop: SOp) -> Encoding:
    """How the values are to be encoded."""
    return sop.annotations["encoding"]


def is_numerical(sop: SOp) -> bool:
    """Whether it is annotated as numerical."""
    return get_encoding(sop) == Encoding.NUMERICAL


def is_categorical(sop: SOp) -> bool:
    """Whether it is not annotated as numerical."""
    return get_encoding(sop) == Encoding.CATEGORICAL


def evaluate(expr: RASPExpr, xs: Sequence[Value], causal: bool = False) -> Any:
    """The sequence or the selector of an expression for these tokens, with fractions as floats. In a causal
    program no position selects a later one."""
    found = _Evaluation(list(xs), causal).of(expr)
    return found if isinstance(expr, Selector) else [as_python(value) for value in found]


class _Evaluation:
    """Expressions for one input, each evaluated once."""

    def __init__(self, xs: list[Value], causal: bool) -> None:
        self.xs, self.causal = xs, causal
        self.known: dict[int, list[Any]] = {}

    def of(self, expr: RASPExpr) -> list[Any]:
        waiting = [expr]
        while waiting:
            own = waiting[-1]
            missing = [child for child in own.children if id(child) not in self.known]
            if not missing:
                waiting.pop()
                self.known.setdefault(id(own), self._found(own))
            waiting += missing
        return self.known[id(expr)]

    def _found(self, expr: RASPExpr) -> list[Any]:
        inner = [self.known[id(child)] for child in expr.children]
        count = len(self.xs)
        if isinstance(expr, TokensType):
            return self.xs
        if isinstance(expr, IndicesType):
            return list(range(count))
        if isinstance(expr, LengthType):
            return [count] * count
        if isinstance(expr, Full):
            return [expr.fill] * count
        if isinstance(expr, Map | SequenceMap):
            return [applied(expr.f, *values) for values in zip(*inner, strict=True)]
        if isinstance(expr, ConstantSOp | ConstantSelector):
            if expr.check_length and len(expr.value) != count:
                raise InputError(f"{expr.name!r} has length {len(expr.value)}, and the input {count}")
            return list(expr.value)
        if isinstance(expr, SelectorWidth):
            return [sum(row) for row in inner[0]]
        if isinstance(expr, Aggregate):
            return [
                gathered(
                    expr.name, [v for v, chosen in zip(inner[1], row, strict=True) if chosen], expr.default
                )
                for row in inner[0]
            ]
        return self._selected(expr, inner)

    def _selected(self, expr: RASPExpr, inner: list[list[Any]]) -> Matrix:
        if isinstance(expr, Select):
            keys, queries = inner
            predicate = expr.predicate
            return [
                [(not self.causal or k <= q) and selects(predicate, key, query) for k, key in enumerate(keys)]
                for q, query in enumerate(queries)
            ]
        if isinstance(expr, SelectorNot):
            return [
                [not own and (not self.causal or k <= q) for k, own in enumerate(row)]
                for q, row in enumerate(inner[0])
            ]
        if isinstance(expr, SelectorAnd | SelectorOr):
            both = isinstance(expr, SelectorAnd)
            return [
                [(x and y) if both else (x or y) for x, y in zip(*rows, strict=True)]
                for rows in zip(*inner, strict=True)
            ]
        raise SourceError(f"a {type(expr).__name__} cannot be evaluated")


def selects(predicate: Predicate, key: Value, query: Value) -> bool:
    """Whether a predicate holds. A value that is missing neither selects nor is selected, except by the
    comparison that always holds."""
    if isinstance(predicate, Comparison):
        return predicate(key, query)
    return key is not None and query is not None and bool(predicate(key, query))


def gathered(name: str, values: list[Value], default: Value) -> Value:
    """What an aggregate makes of the selected values."""
    if not values:
        return default
    if all(value == values[0] for value in values):
        return values[0]
    if all(is_number(value) for value in values):
        return mean(values)
    raise InputError(
        f"{name!r} selects several values that differ and are not all numbers, such as {values[0]!r} and "
        f"{next(value for value in values if value != values[0])!r}",
        advice="Select one position, or positions of equal values.",
    )


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SourceError(otherwise, where=calling_line())


def _sequence(found: Any) -> SOp:
    _require(isinstance(found, SOp), f"{found!r} is not a sequence")
    return found


def _selector(found: Any) -> Selector:
    _require(isinstance(found, Selector), f"{found!r} is not a selector")
    return found
