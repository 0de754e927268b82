"""Primary networks, number formats and algorithms as plain JSON and arrays, and back again."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet, Refused
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.sources import source_from_json, source_to_json
from tapegrad.targets.extended.formats import FixedPoint, FloatingPoint, NumberFormat
from tapegrad.targets.extended.lowered import Algorithm
from tapegrad.targets.extended.primaries import MLP, PrimaryNetwork
from tapegrad.targets.tape.target import passes

Arrays = Mapping[str, NDArray[Any]]

FORMATS = {"fixed": FixedPoint, "floating": FloatingPoint}


def primary_to_json(primary: PrimaryNetwork) -> dict[str, Any]:
    """Sizes and activation; only networks of fully connected layers can be written down."""
    if type(primary) is not MLP:
        raise Refused(
            f"a primary network of the kind {type(primary).__name__} cannot be saved",
            advice="Use MLP, linear or perceptron.",
        )
    return {"sizes": list(primary.sizes), "activation": primary.activation}


def primary_from_json(data: Mapping[str, Any]) -> MLP:
    """The network again."""
    return MLP([int(size) for size in data["sizes"]], data["activation"])


def format_to_json(form: NumberFormat) -> dict[str, Any]:
    """The kind of a format and its numbers of bits."""
    for kind, known in FORMATS.items():
        if type(form) is known:
            return {"kind": kind, **vars(form)}
    raise Refused(
        f"a number format of the kind {type(form).__name__} cannot be saved",
        advice="Use FixedPoint or FloatingPoint.",
    )


def format_from_json(data: Mapping[str, Any]) -> NumberFormat:
    """The format again."""
    numbers = {name: value for name, value in data.items() if name != "kind"}
    if not all(type(value) is (bool if name == "continuous" else int) for name, value in numbers.items()):
        raise BrokenNet(f"the number format {dict(data)} holds something other than numbers of bits")
    return FORMATS[data["kind"]](**numbers)


def algorithm_to_json(algorithm: Algorithm) -> tuple[dict[str, Any], dict[str, Any], dict[str, NDArray]]:
    """The machine as it was given; the first configuration of the one it was lowered to; the places of data
    and result: bit, tape, cell and sign."""
    source, _ = source_to_json(algorithm.original)
    start = {
        "state": algorithm.start.state,
        "tapes": [sorted(tape) for tape in algorithm.start.tapes],
        "heads": list(algorithm.start.heads),
    }
    data = [(bit, *place, sign) for bit, places in enumerate(algorithm.data) for place, sign in places]
    result = [(bit, *place, sign) for bit, (place, sign) in enumerate(algorithm.result)]
    return source, start, {"data_places": np.array(data, int), "result_places": np.array(result, int)}


def algorithm_from_json(
    source: Mapping[str, Any], start: Mapping[str, Any], arrays: Arrays, read_only: int, cells: int
) -> Algorithm:
    """The algorithm again: the machine is lowered once more, which always gives the same."""
    original = source_from_json(source, {})
    if not isinstance(original, TuringMachine):
        raise BrokenNet("the algorithm is no Turing machine")
    rewritings = tuple(passes(original, cells=cells))
    machine = cast(TuringMachine, rewritings[-1].after) if rewritings else original
    symbol = machine.alphabet[-1]
    tapes = tuple({int(cell): symbol for cell in tape} for tape in start["tapes"])
    first = Configuration(start["state"], tapes, tuple(int(head) for head in start["heads"]))
    if not len(first.tapes) == len(first.heads) == machine.tapes:
        raise BrokenNet("the first configuration has not as many tapes as the machine")
    data = _places(arrays["data_places"], 0, read_only, cells)
    result = _places(arrays["result_places"], read_only, machine.tapes, cells)
    if any(len(places) != 1 for places in result):
        raise BrokenNet("a bit of the result lies at more than one place")
    return Algorithm(machine, first, read_only, data, tuple(one for (one,) in result), rewritings, original)


def _places(table: NDArray[Any], first_tape: int, end_tape: int, cells: int) -> tuple[Any, ...]:
    """For each bit its places, all of them on these tapes and within the cells."""
    bits, tapes, places, signs = table.T
    first = -(cells // 2)
    inside = (tapes >= first_tape) & (tapes < end_tape) & (places >= first) & (places < first + cells)
    if not np.all(inside & (np.abs(signs) == 1)):
        raise BrokenNet("a bit of the data or of the result lies beside its tapes")
    if not np.array_equal(np.unique(bits), np.arange(len(set(bits.tolist())))):
        raise BrokenNet("a bit of the data or of the result lies nowhere")
    found: list[list[Any]] = [[] for _ in range(int(bits.max()) + 1)]
    for bit, tape, cell, sign in table.tolist():
        found[bit].append(((tape, cell), sign))
    return tuple(tuple(one) for one in found)
