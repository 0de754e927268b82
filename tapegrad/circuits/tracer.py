"""`trace`: an ordinary Python function over bits, integers and arrays becomes a circuit.

def larger(a, b):
    return where(a < b, b, a)

traced = trace(larger, UInt(8), UInt(8))
traced.circuit          # the circuit; inputs a[0] ... b[7], outputs out[0] ... out[7]
traced(3, 200)          # 200, by the circuit
traced.plain(3, 200)    # 200, by running the function itself on concrete values
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegrad._alive import alive
from tapegrad.circuits.arrays import ArrayValue
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Bits, Circuit
from tapegrad.circuits.operations import Scalar, same_type
from tapegrad.circuits.scalars import is_number
from tapegrad.circuits.types import Array, Bit, Layout, ScalarType, from_bits, names, parts, to_bits
from tapegrad.errors import InputError, SourceError, TapegradError, described, raising_line

MOST_GATES = 1 << 23
"""Of a function. Each takes microseconds and a quarter of a kilobyte while it is traced."""


@dataclass(frozen=True)
class Traced:
    """A function and its circuit; both take and give Python numbers, truth values and lists.

    As a source, its states are bits as the circuit's are, but its interpreter is the function itself."""

    function: Callable[..., Any] | None
    """None once it was saved and loaded: then the circuit stands for it."""
    circuit: Circuit
    inputs: dict[str, Layout]
    """The layout of every parameter, by name, in order."""
    output: Layout

    def __call__(self, *arguments: Any) -> Any:
        """The result, computed by the circuit."""
        *_, rows = self.circuit.run(self.circuit.start(self.encode(*arguments)))
        return self.decode(rows[0])

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.circuit.name

    def start(self, *arguments: Any) -> Bits:
        """The bits of these arguments; or a batch of bits, a row for each pattern, as a circuit takes it."""
        if len(arguments) == 1 and self.takes_bits(arguments[0]):
            return self.circuit.start(arguments[0])
        return self.circuit.start([self.encode(*arguments)])

    def takes_bits(self, argument: Any) -> bool:
        """Whether this is a matrix of bits, as wide as the circuit: no argument of the function has that
        shape, but for a batch of rows of numbers of one bit. Of these 0 and 1, where it is one, are the
        bits."""
        matrix = isinstance(argument, np.ndarray) and argument.ndim == 2
        fits = matrix and argument.shape[1] == len(self.circuit.inputs)
        return fits and (argument.dtype == bool or bool(((argument == 0) | (argument == 1)).all()))

    def run(self, bits: Bits) -> Iterator[Bits]:
        """The arguments, then the results, computed by the function itself, pattern by pattern."""
        yield bits
        if self.function is None:
            *_, outputs = self.circuit.run(bits)
            yield outputs
            return
        rows = [list(self._plain_bits(iter(row))) for row in bits.tolist()]
        yield np.array(rows, bool).reshape(len(bits), len(self.circuit.outputs))

    def plain(self, *arguments: Any) -> Any:
        """The result, computed by the function on concrete values: Python's numbers, no gates."""
        return self.decode(self._plain_bits(iter(self.encode(*arguments))))

    def _plain_bits(self, bits: Iterator[int]) -> Iterator[int]:
        """The bits of the result for the bits of all arguments. No value leaves its type on the way, so that
        a NaN keeps whatever bits it has."""
        if self.function is None:
            raise InputError(
                f"the code of {self.name!r} was not saved with its circuit",
                advice="Call it without `.plain`.",
            )
        result = self.function(*[_concrete(layout, bits) for layout in self.inputs.values()])
        if (found := _layout(result, "the result")) != self.output:
            raise SourceError(
                f"{self.name} gives {found} here, and {self.output} when it was traced",
                advice="It depends on something that is not among its arguments.",
            )
        leaves = _leaves(self.output, result)
        return (leaf.raw >> i & 1 for leaf in leaves for i in range(leaf.type.width))

    def encode(self, *arguments: Any) -> list[int]:
        """The circuit's input bits for these arguments."""
        pairs = zip(self._matched(arguments), arguments, strict=True)
        found: list[int] = []
        for name, (layout, argument) in zip(self.inputs, pairs, strict=True):
            try:
                found.extend(to_bits(layout, argument))
            except InputError as error:
                raise InputError(error.what, where=f"argument {name!r}", advice=error.advice) from error
        return found

    def decode(self, bits: Any) -> Any:
        """The result that these output bits stand for."""
        return from_bits(self.output, iter(bits))

    def _matched(self, arguments: tuple[Any, ...]) -> list[Layout]:
        if len(arguments) != len(self.inputs):
            raise InputError(
                f"{self.circuit.name} takes {len(self.inputs)} argument(s), not {len(arguments)}",
                advice=f"They are {', '.join(f'{name}: {of}' for name, of in self.inputs.items())}.",
            )
        return list(self.inputs.values())


def trace(function: Callable[..., Any], *layouts: Layout, name: str = "", **by_name: Layout) -> Traced:
    """Runs the function once on traced values and returns its circuit.

    Types come in the order of the parameters, by parameter name, or from the function's annotations; see
    `tapegrad.circuits.types` for what they are and how bits are named. The result is called `out`, or, if
    it is a dictionary, by its keys.
    """
    if not callable(function):
        raise SourceError(f"a Python function is traced, and this is {described(function)}")
    title = name or getattr(function, "__name__", "function")
    with _worded_for(function):
        inputs = _parameters(function, layouts, by_name)
        build = CircuitBuilder(most=MOST_GATES)
        arguments = [_traced(build, layout, parameter) for parameter, layout in inputs.items()]
        with alive(lambda: f"{title}: {build.size:,} gates so far"):
            result = _result(function, arguments, title)
        output = _layout(result, "the result")
    wires = [wire for leaf in _leaves(output, result) for wire in leaf.wires(build)]
    outputs = names(output, "" if isinstance(output, dict) else "out")
    for bit, wire in zip(outputs, wires, strict=True):
        build.output(bit, wire)
    return Traced(function, build.circuit(title), inputs, output)


def _result(function: Callable[..., Any], arguments: list[Any], title: str) -> Any:
    """What the function gives for traced arguments; its own mistakes are told with their line."""
    try:
        result = function(*arguments)
    except (TapegradError, MemoryError):
        raise
    except Exception as error:
        endless = "A function that calls itself ends by an `if`, which it cannot ask here: loop instead."
        raise SourceError(
            f"{title!r} ends in {type(error).__name__}: {error}",
            where=raising_line(error),
            advice=endless if isinstance(error, RecursionError) else "",
        ) from error
    if result is None:
        raise SourceError(f"{title!r} gives back nothing", advice="End it with `return` and a value.")
    return result


_OFFERED = re.compile(
    r"(?<![\w.])(?:where|array|smallest|largest|sort|any_of|all_of|count_ones|trace|Bit|UInt|Int|Fixed|Float16"
    r"|Array)(?=[(`])"
)
"""Names of this package in a piece of advice."""


@contextmanager
def _worded_for(function: Callable[..., Any]) -> Iterator[None]:
    """Advice in the names that the user's file has for things: `tg.where` after `import tapegrad as tg`."""
    try:
        yield
    except SourceError as error:
        known = getattr(inspect.unwrap(function), "__globals__", {})
        package = sys.modules[__name__.partition(".")[0]]
        alias = next((own for own, value in known.items() if value is package), None)
        if alias is None:
            raise
        advice = _OFFERED.sub(
            lambda name: name[0] if name[0] in known else f"{alias}.{name[0]}", error.advice
        )
        raise SourceError(error.what, where=error.where, advice=advice) from error.__cause__


def _parameters(
    function: Callable[..., Any], layouts: tuple[Layout, ...], by_name: dict[str, Layout]
) -> dict[str, Layout]:
    """The layout of every parameter; parameters after the last that needs one keep their defaults."""
    parameters = _signature(function)
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return {f"x{i}": layout for i, layout in enumerate(layouts)}
    needing = [i for i, p in enumerate(parameters) if p.default is p.empty or p.name in by_name]
    taken = parameters[: max([len(layouts), *(i + 1 for i in needing)])]
    if len(layouts) > len(taken) or by_name.keys() - {p.name for p in taken[len(layouts) :]}:
        raise SourceError(
            f"the types given do not match the function's {len(parameters)} parameter(s)",
            advice=f"They are {', '.join(p.name for p in parameters)}.",
        )
    given = dict(zip((p.name for p in taken), layouts, strict=False)) | by_name
    inputs = {p.name: given.get(p.name, p.annotation) for p in taken}
    for parameter, layout in inputs.items():
        if isinstance(layout, str):
            raise SourceError(f"the type of parameter {parameter!r} is {layout!r}, which stands for nothing")
        if layout is inspect.Parameter.empty:
            raise SourceError(f"parameter {parameter!r} has no type", advice=_with_types(function, taken))
    return inputs


def _with_types(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> str:
    """How to write the function with types; a `lambda` has no place for them."""
    name = getattr(function, "__name__", "")
    if name.isidentifier():
        typed = (f"{p.name}: UInt(8)" if p.annotation is p.empty else str(p) for p in parameters)
        return f"Say how many bits each has, as in def {name}({', '.join(typed)}): for 8."
    return f"Give trace(function, {parameters[0].name}=UInt(8)), or write a `def` with types."


def _signature(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters; annotations that are strings (`from __future__ import annotations`) are looked up."""
    try:
        return list(inspect.signature(function, eval_str=True).parameters.values())
    except (NameError, SyntaxError, TypeError, AttributeError):
        return list(inspect.signature(function).parameters.values())


def _traced(build: CircuitBuilder, layout: Layout, name: str) -> Any:
    if isinstance(layout, ScalarType):
        return layout.value(layout, [build.input(bit) for bit in names(layout, name)], build)
    return _assembled(layout, [_traced(build, part, part_name) for part_name, part in parts(layout, name)])


def _concrete(layout: Layout, bits: Iterator[int]) -> Any:
    if isinstance(layout, ScalarType):
        return layout.value(layout, sum(int(next(bits)) << i for i in range(layout.width)))
    return _assembled(layout, [_concrete(part, bits) for _, part in parts(layout, "")])


def _assembled(layout: Layout, items: list[Any]) -> Any:
    if isinstance(layout, Array):
        return ArrayValue(items)
    return dict(zip(layout, items, strict=True)) if isinstance(layout, dict) else type(layout)(items)


def _layout(value: Any, place: str) -> Layout:
    """The layout of a result; an array whose elements differ takes the type common to them."""
    if isinstance(value, Scalar):
        return value.type
    if is_number(value) and int(value) in (0, 1):
        return Bit
    if isinstance(value, ArrayValue) and any(isinstance(item, Scalar) for item in value):
        return Array(same_type(value)[0].type, len(value))
    if isinstance(value, tuple | list):
        inner = [_layout(item, f"{place}[{i}]") for i, item in enumerate(value)]
        if isinstance(value, ArrayValue) and all(of == inner[0] for of in inner):
            return Array(inner[0], len(inner))
        return tuple(inner) if isinstance(value, tuple) else inner
    if isinstance(value, dict):
        return {str(key): _layout(item, f"{place}.{key}") for key, item in value.items()}
    raise SourceError(
        f"the function gives {value!r}, which is no bit, number or array with a type",
        where=place,
        advice="Give plain numbers a type, such as UInt(8)(3).",
    )


def _leaves(layout: Layout, value: Any) -> Iterator[Scalar]:
    """The single values of a result, in order, each in the type the layout says."""
    if isinstance(layout, ScalarType):
        leaf = value if isinstance(value, Scalar) else layout(value)
        yield leaf.to(layout) if leaf.type != layout else leaf
        return
    items = value.values() if isinstance(value, dict) else value
    for (_, part), item in zip(parts(layout, ""), items, strict=True):
        yield from _leaves(part, item)
