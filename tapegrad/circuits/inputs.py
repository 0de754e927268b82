"""Inputs of circuits and functions as users write them, in Python or as text, and results as values.

The bits `a[0]`, `a[1]`, ... of a circuit are one number, under the name `a`. A function takes and gives the
values of its types. Lists and arrays with one axis more than the type has are batches: a value for every
pattern. Numbers stay Python's on the way in, and arrays of results have the type that the width calls for
(`ScalarType.dtype`), so that no bit is lost whatever the values are.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.model import Bits, Circuit
from tapegrad.circuits.scalars import (
    Words,
    dtype_of_integers,
    residues_of,
    rows_of,
    type_of_words,
    whole,
    within,
    words_of,
)
from tapegrad.circuits.tracer import Traced
from tapegrad.circuits.types import (
    Array,
    BitType,
    IntType,
    Layout,
    ScalarType,
    integers,
    many_from_bits,
    many_to_words,
    parts,
)
from tapegrad.errors import InputError
from tapegrad.source import Call

BUS = re.compile(r"(.+)\[([0-9]+)\]")
"""A bit of a value, as in `a[3]`."""
LONGEST_TEXT = 1 << 20
Numbers = Sequence[Any] | NDArray[Any]
Rows = NDArray[np.uint8]


class Bus(NamedTuple):
    """A value of a circuit: which of the bits are its own, and where in it they stand, the lowest at 0."""

    name: str
    width: int
    """Bits, those that the circuit does not have among them."""
    columns: slice | list[int]
    places: slice | list[int]


@lru_cache(maxsize=64)
def buses_of(names: tuple[str, ...]) -> tuple[Bus, ...]:
    """The values, by the names of bits: `x[0]`, `x[1]`, ... are one number."""
    found: dict[str, tuple[list[int], list[int]]] = {}
    for column, name in enumerate(names):
        bus = BUS.fullmatch(name)
        columns, places = found.setdefault(bus[1] if bus else name, ([], []))
        columns.append(column)
        places.append(int(bus[2]) if bus else 0)
    return tuple(
        Bus(name, 1 + max(places), _in_one_piece(columns), _in_one_piece(places))
        for name, (columns, places) in found.items()
    )


def _in_one_piece(numbers: list[int]) -> slice | list[int]:
    """A slice in place of numbers that follow one another: what it takes of an array is not copied."""
    first = numbers[0]
    return slice(first, first + len(numbers)) if numbers == [*range(first, first + len(numbers))] else numbers


def named_numbers(names: Sequence[str], rows: Bits) -> dict[str, NDArray[Any]]:
    """The value of every bus, for each row of bits."""
    found = {}
    for bus in buses_of(tuple(names)):
        bits, kept = rows[:, bus.columns], dtype_of_integers(bus.width)
        if bus.places != slice(0, bus.width):
            bits = np.zeros((len(rows), bus.width), bool)
            bits[:, bus.places] = rows[:, bus.columns]
        found[bus.name] = bits[:, 0].astype(kept) if bus.width == 1 else words_of(bits).astype(kept)
    return found


def named_bits(names: Sequence[str], row: np.ndarray) -> dict[str, int]:
    """The numbers of one row."""
    numbers = named_numbers(names, np.asarray(row, bool)[None])
    return {name: own.tolist()[0] for name, own in numbers.items()}


LONGEST_EXAMPLE = 80
"""Characters of an input that is shown as an example."""

# Circuits.


def call_circuit(circuit: Circuit, given: tuple[Any, ...], named: Mapping[str, Any]) -> Call:
    """Numbers for its inputs, in order or by name. A list by itself is a row of bits where the circuit has
    several inputs, and a batch of numbers where it has one; a matrix has a row of bits for each pattern. What
    comes back is a number, or one for each output by name."""
    widths = _widths(circuit.inputs)
    if len(given) == 1 and not named and (len(widths) > 1 or _axes_of(given[0]) > len(widths)):
        bits = circuit.start(_as_numpy(given[0], "bits"))
        batch = _axes_of(given[0]) > 1
        return Call((bits,), lambda rows: _outputs(circuit, rows, batch), len(bits))
    values = _bound(circuit.name, {name: name for name in widths}, given, named)
    batch, bits = _bits(circuit.inputs, values)
    rows = bits.view(bool)  # which nobody need look at again
    return Call((rows,), lambda result: _outputs(circuit, result, batch), len(rows))


def cycles_by_name(inputs: Sequence[str], name: str, named: Mapping[str, Any]) -> Rows:
    """The row of bits of every cycle, from a number for each input and cycle; a single number holds for all
    of them."""
    values = _bound(name, {own: own for own in _widths(inputs)}, (), named)
    return _bits(inputs, values)[1]


def parse_bits(circuit: Circuit, texts: Sequence[str]) -> tuple[Rows]:
    """Bits in order (`0110`), or a number for each input or bus, in order or as `name=number`."""
    widths, digits = _widths(circuit.inputs), "".join(texts).replace("_", "").replace(" ", "")
    by_name, bits = any("=" in text for text in texts), not set(digits) - {"0", "1"}
    numbers_in_order = len(texts) == len(widths) and (not bits or len(digits) != len(circuit.inputs))
    if by_name or (numbers_in_order and (len(texts) > 1 or not bits)):
        given = () if by_name else tuple(texts)
        named = dict(map(_pair, texts)) if by_name else {}
        values = _bound(circuit.name, {name: name for name in widths}, given, named)
        numbers = {name: _number(text, f"input {name!r}") for name, text in values.items()}
        return (_bits(circuit.inputs, numbers)[1],)
    if not bits:
        raise InputError(
            f"{''.join(texts)!r} is not a row of bits",
            advice=f"Write the bits in order, as in 0110, or a number for each of {', '.join(widths)}.",
        )
    if len(digits) != len(circuit.inputs):
        raise InputError(
            f"{len(digits)} bits were given for the {len(circuit.inputs)} inputs of {circuit.name!r}",
            advice=f"Its inputs are {', '.join(widths)}.{typed_example(circuit)}",
        )
    return (np.array([[int(digit) for digit in digits]], np.uint8).reshape(1, -1),)


def typed_example(circuit: Circuit) -> str:
    """A number for each input or bus, as it is typed; nothing where there are too many for that."""
    widths = _widths(circuit.inputs)
    numbers = (f"{name}={3 if width > 1 else 1}" for name, width in widths.items())
    return f" For this one: --input {' '.join(numbers)}" if 0 < len(widths) <= 8 else ""


def _widths(names: Sequence[str]) -> dict[str, int]:
    """Every input or bus with the number of its bits."""
    return {bus.name: bus.width for bus in buses_of(tuple(names))}


def _bits(inputs: Sequence[str], values: Mapping[str, Any]) -> tuple[bool, Rows]:
    """Whether these numbers are batches; and a row of bits for each pattern."""
    buses = {bus.name: bus for bus in buses_of(tuple(inputs))}

    def words(name: str, numbers: Numbers) -> Words:
        width = buses[name].width
        return Words(_words(numbers, width, f"input {name!r}"), width)

    batch, count, found = _columns(values, dict.fromkeys(values, 0), words)
    whole = (isinstance(bus.columns, slice) and bus.places == slice(0, bus.width) for bus in buses.values())
    if all(whole):
        return batch, rows_of(found, count)
    rows = np.empty((count, len(inputs)), np.uint8)
    for name, own in zip(values, found, strict=True):
        bus = buses[name]
        rows[:, bus.columns] = rows_of([own], count)[:, bus.places]
    return batch, rows


def _words(numbers: Numbers, width: int, where: str) -> NDArray[Any]:
    """Numbers of so many bits, signed or not, modulo 2^width."""
    low, high = -(1 << width - 1), (1 << width) - 1
    array = integers(numbers)
    if array is not None and array.ndim == 1 and within(array, width, low, high):
        return residues_of(array, width)
    found = []
    for value in numbers:
        number = whole(value, "is not a whole number", where=where)
        if not low <= number <= high:
            raise InputError(f"{number} does not fit {width} bits", where=where)
        found.append(number & high)
    return np.array(found, type_of_words(width))


def _outputs(circuit: Circuit, rows: Bits, batch: bool) -> Any:
    found = named_numbers(circuit.outputs, rows)
    values = found if batch else {name: own.tolist()[0] for name, own in found.items()}
    return next(iter(values.values())) if len(values) == 1 else values


# Functions.


def call_function(traced: Traced, given: tuple[Any, ...], named: Mapping[str, Any]) -> Call:
    """The arguments of the function, in order or by name, or a matrix with a row of bits for each pattern;
    what comes back is its result."""

    def results(rows: Bits) -> Any:
        return many_from_bits(traced.output, rows)

    def encoded(name: str, own: Numbers) -> Words:
        try:
            return many_to_words(traced.inputs[name], own)
        except InputError as error:
            raise InputError(error.what, where=f"argument {name!r}", advice=error.advice) from error

    if len(given) == 1 and not named and traced.takes_bits(bits := _as_numpy(given[0], "bits")):
        return Call((bits,), results, len(bits))
    values = _bound(traced.name, _described(traced), given, named)
    depths = {name: _axes(layout) for name, layout in traced.inputs.items()}
    batch, count, found = _columns(values, depths, encoded)
    rows = rows_of(found, count).view(bool)
    return Call((rows,), results if batch else lambda result: traced.decode(result[0]), len(rows))


def parse_arguments(traced: Traced, texts: Sequence[str]) -> tuple[Rows]:
    """A value for each parameter, in order or as `name=value`: a number, or `[1, 2, 3]`, or `1,2,3`."""
    assigned = [text for text in texts if "=" in text]
    given = tuple(text for text in texts if "=" not in text)
    if len(given) == 1 and len(traced.inputs) > 1:
        given = tuple(given[0].split())
    values = _bound(traced.name, _described(traced), given, dict(map(_pair, assigned)))
    parsed = [_parsed(traced.inputs[name], text, f"argument {name!r}") for name, text in values.items()]
    return (np.array([traced.encode(*parsed)], np.uint8),)


def _described(traced: Traced) -> dict[str, str]:
    """Every parameter with its type, where a name alone does not say how to write a value."""
    return {name: f"{name}: {of}" for name, of in traced.inputs.items()}


def typed_arguments(traced: Traced) -> str:
    """A value for each parameter, as it is typed; nothing where there are too many for that."""
    example = " ".join(map(_typed, traced.inputs.values()))
    return f" For this one: --input {example}" if 0 < len(example) <= LONGEST_EXAMPLE else ""


def _typed(layout: Layout) -> str:
    """The number 1, so often as the layout has places: `1`, `1,1,1` or a list or dictionary of JSON's."""
    if isinstance(layout, ScalarType):
        return "1"
    if isinstance(layout, Array) and isinstance(layout.element, ScalarType):
        return ",".join(["1"] * layout.length)
    return f"'{json.dumps(_ones(layout))}'"


def _ones(layout: Layout) -> Any:
    if isinstance(layout, ScalarType):
        return 1
    if isinstance(layout, dict):
        return {key: _ones(part) for key, part in layout.items()}
    return [_ones(part) for _, part in parts(layout, "")]


def result_json(traced: Traced, rows: Bits) -> Any:
    """The result, or a list of them."""
    results = [_plain_json(traced.decode(row)) for row in rows]
    return results[0] if len(results) == 1 else results


def _plain_json(value: Any) -> Any:
    """Infinities and NaN as text, which JSON has no numbers for."""
    if isinstance(value, dict):
        return {key: _plain_json(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain_json(part) for part in value]
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _parsed(layout: Layout, text: str, where: str) -> Any:
    if isinstance(layout, ScalarType):
        return _number(text, where) if isinstance(layout, BitType | IntType) else _real(text, where)
    if text.lstrip()[:1] not in ("[", "{"):
        return [_parsed(layout.element, part, where) for part in text.split(",")]
    try:
        return json.loads(text[:LONGEST_TEXT])
    except (ValueError, RecursionError):
        raise InputError(f"{text[:60]!r} is no list", where=where, advice="Write [1, 2, 3].") from None


def _axes(layout: Layout) -> int:
    """Axes of an array of this type; of tuples and dictionaries there are no batches."""
    if isinstance(layout, Array):
        return 1 + _axes(layout.element)
    return 0 if isinstance(layout, ScalarType) else 1 << 16


# Arguments in order and by name, and batches of them.


def _bound(
    name: str, wanted: Mapping[str, str], given: tuple[Any, ...], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Every name with its value, in order; `wanted` has them with what is said of each."""
    values = dict(zip(wanted, given, strict=False))
    if unknown := named.keys() - wanted.keys():
        wrong = f"there is no input {min(unknown)!r}"
    elif len(given) > len(wanted):
        wrong = f"{len(given)} inputs were given instead of {len(wanted)}"
    elif twice := values.keys() & named.keys():
        wrong = f"input {min(twice)!r} was given twice"
    elif missing := wanted.keys() - values.keys() - named.keys():
        wrong = f"no value for {', '.join(own for own in wanted if own in missing)}"
    else:
        values |= named
        return {own: values[own] for own in wanted}
    advice = f"{name} takes {', '.join(wanted.values())}."
    if any(": Array" in said for said in wanted.values()):
        advice += " An array is one value: [1, 2, 3] in Python, 1,2,3 on the command line."
    raise InputError(wrong, advice=advice)


def _columns(
    values: Mapping[str, Any],
    axes: Mapping[str, int],
    words: Callable[[str, Numbers], Words],
) -> tuple[bool, int, list[Words]]:
    """Whether these are batches, of how many patterns, and the words of every value. What is no batch is the
    same in all."""
    values = {name: _as_numpy(own, f"input {name!r}") for name, own in values.items()}
    found = {name: _axes_of(own) for name, own in values.items()}
    for name, count in found.items():
        if count > axes[name] + 1:
            shape = (
                f"an array of shape {values[name].shape}" if isinstance(values[name], np.ndarray) else "this"
            )
            raise InputError(
                f"{shape} has too many axes",
                where=f"input {name!r}",
                advice="A batch has one axis more than a single value; `.ravel()` makes one axis of many.",
            )
    batches = {name for name, count in found.items() if count == axes[name] + 1}
    sizes = {len(values[name]) for name in batches}
    if len(sizes) > 1:
        raise InputError(f"batches of {' and '.join(map(str, sorted(sizes)))} do not go together")
    count = sizes.pop() if sizes else 1
    given = ((name, own if name in batches else [own]) for name, own in values.items())
    return bool(batches), count, [words(name, own) for name, own in given]


def _as_numpy(value: Any, where: str) -> Any:
    """Arrays of other packages (PyTorch, JAX, pandas) as NumPy's; anything else as it is. A list stays one:
    NumPy would make floats of integers that no type of its own holds all of."""
    if not hasattr(value, "__array__"):
        return value
    try:
        return np.asarray(value)[()]
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{error}", where=where) from error


def _axes_of(value: Any) -> int:
    """Axes of an array, or of lists within lists as far as their first elements go."""
    if isinstance(value, list | tuple):
        return 1 + (_axes_of(value[0]) if value else 0)
    return np.ndim(value) if hasattr(value, "__array__") else 0


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"{text!r} has no name", advice="Write name=number for each input, or for none.")
    return name.strip(), value


def _real(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{text[:60]!r} is not a number", where=where) from None


def _number(text: str, where: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise InputError(f"{text[:60]!r} is not a whole number", where=where) from None
