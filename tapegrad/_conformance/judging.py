"""What a runtime makes of a network: whether every layer is exact, and if not, where it goes wrong first.

A runtime may compute a network differently when its layers are looked at: what is fused cannot be seen
inside. So a network runs twice, once with the last layer alone as its output, and once with all. Where the
first run is wrong and the second is not, the layers are shown one at a time, by halving, each in a run that
otherwise fuses as it likes.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._conformance.formats import INT8, in_bytes
from tapegrad._conformance.graph import Graph
from tapegrad._conformance.kit import Member
from tapegrad._conformance.reading import Fault, first_fault
from tapegrad._conformance.runtimes import RUNTIMES
from tapegrad._conformance.runtimes.base import Program, Unsupported, cast
from tapegrad.errors import FormatError

EXACT, FAULT, REFUSED = "exact", "fault", "refused"
BEYOND, ABSENT, CRASH, TIMEOUT = "beyond", "absent", "crash", "timeout"
OUTCOMES = (EXACT, FAULT, REFUSED, BEYOND, ABSENT, CRASH, TIMEOUT)
TIMED = 0.4
"""Seconds of the processor for which a network is run again and again."""
ROWS = 1024
"""Patterns at a time, where speed is measured."""

Prepare = Callable[[Graph, str, str, list[str]], Program]


def judged(runtime: str, level: str, name: str, own: Member) -> dict[str, Any]:
    """The outcome of one network in one format."""
    if own.shortfalls[name]:
        return {"outcome": BEYOND, "reason": own.shortfalls[name]}
    used = RUNTIMES[runtime]
    try:
        if isinstance(own.net, Graph):
            fault, how = located(used.prepare(), level, name, own)
        elif used.trains:
            values = complete(used.imported().train(own.net, level), own.names)
            fault, how = first_fault(own.names, own.expected, values), "all layers"
        else:
            return {"outcome": REFUSED, "reason": "this runtime does not train"}
    except Unsupported as error:
        return {"outcome": REFUSED, "reason": str(error)}
    if fault is None:
        return {"outcome": EXACT, "reason": ""}
    return {"outcome": FAULT, "reason": str(fault), "fault": fault.to_json(), "seen": how}


def located(prepare: Prepare, level: str, name: str, own: Member) -> tuple[Fault | None, str]:
    """The first fault, and which layers were shown when it was seen."""
    graph, inputs, scale = in_format(own, name)

    def shown(wanted: list[str]) -> Fault | None:
        found = complete(prepare(graph, name, level, wanted)(inputs), wanted)
        values = {key: np.asarray(value).astype(np.float64) / scale for key, value in found.items()}
        return first_fault(own.names, own.expected, values, own.units)

    whole, every = shown([graph.output]), shown(graph.names)
    if every is not None or whole is None:
        return every, "all layers"
    low, high, fault = 0, len(graph.names) - 1, whole
    while low < high:  # the layer `high` is wrong when it is shown alone
        middle = (low + high) // 2
        found = shown([graph.names[middle]])
        if found is None:
            low = middle + 1
        else:
            high, fault = middle, found
    return fault, "one layer at a time"


def complete(found: dict[str, NDArray[Any]], wanted: Sequence[str]) -> dict[str, NDArray[Any]]:
    """What was found, if nothing is missing: what is not there must not pass for right."""
    for name in wanted:
        if name not in found:
            raise FormatError(f"the runtime gave no layer {name!r}")
    return found


def in_format(own: Member, name: str) -> tuple[Graph, dict[str, NDArray[Any]], int]:
    """The network and its inputs in a format, and by what all values are multiplied."""
    assert isinstance(own.net, Graph)
    if name != INT8:
        return own.net, {key: cast(array, name) for key, array in own.inputs.items()}, 1
    inputs = {key: np.round(array * own.scale).astype(np.int8) for key, array in own.inputs.items()}
    return in_bytes(own.net, own.scale), inputs, own.scale


def timed(runtime: str, level: str, name: str, own: Member) -> dict[str, Any]:
    """Patterns a second of the processor, of a network whose rows are patterns."""
    graph, inputs, _ = in_format(own, name)
    many = {key: np.resize(array, (ROWS, *array.shape[1:])) for key, array in inputs.items()}
    try:
        program = RUNTIMES[runtime].prepare()(graph, name, level, [graph.output])
        program(many)
    except Unsupported as error:
        return {"outcome": REFUSED, "reason": str(error)}
    runs, began, clock = 0, time.process_time(), time.perf_counter()
    while time.process_time() - began < TIMED and time.perf_counter() - clock < 10 * TIMED:
        program(many)
        runs += 1
    spent, passed = time.process_time() - began, time.perf_counter() - clock
    figures = {"patterns_per_cpu_second": runs * ROWS / max(spent, 1e-9)}
    return {"outcome": EXACT, "reason": "", **figures, "patterns_per_second": runs * ROWS / passed}
