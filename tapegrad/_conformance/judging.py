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

from tapegrad._conformance.formats import Form
from tapegrad._conformance.kit import Member
from tapegrad._conformance.reading import Fault, first_fault
from tapegrad._conformance.runtimes import RUNTIMES
from tapegrad._conformance.runtimes.base import Program, Unsupported
from tapegrad.errors import FormatError

EXACT, FAULT, REFUSED = "exact", "fault", "refused"
BEYOND, ABSENT, CRASH, TIMEOUT = "beyond", "absent", "crash", "timeout"
OUTCOMES = (EXACT, FAULT, REFUSED, BEYOND, ABSENT, CRASH, TIMEOUT)
TIMED = 0.4
"""Seconds of the processor for which a network is run again and again."""
ROWS = 1024
"""Patterns at a time, where speed is measured."""

Prepare = Callable[[Form, str, list[str]], Program]


def judged(runtime: str, level: str, name: str, own: Member) -> dict[str, Any]:
    """The outcome of one network in one format."""
    if own.shortfalls[name]:
        return {"outcome": BEYOND, "reason": own.shortfalls[name]}
    used = RUNTIMES[runtime]
    try:
        if not own.rate:
            fault, how = located(used.prepare(), level, name, own)
        elif used.trains:
            values = complete(used.imported().train(own.training(name), level), own.names)
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
    form = own.form(name)
    inputs, names = form.inputs(own.inputs), own.names

    def shown(wanted: list[str]) -> Fault | None:
        found = complete(prepare(form, level, wanted)(inputs), wanted)
        values = {key: np.asarray(value).astype(np.float64) / form.scale for key, value in found.items()}
        return first_fault(names, own.expected, values, own.units)

    whole, every = shown(names[-1:]), shown(names)
    if every is not None or whole is None:
        return every, "all layers"
    low, high, fault = 0, len(names) - 1, whole
    while low < high:  # the layer `high` is wrong when it is shown alone
        middle = (low + high) // 2
        found = shown([names[middle]])
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


def timed(runtime: str, level: str, name: str, own: Member) -> dict[str, Any]:
    """Patterns a second of the processor, of a network whose rows are patterns."""
    form = own.form(name)
    many = {key: np.resize(array, (ROWS, *array.shape[1:])) for key, array in form.inputs(own.inputs).items()}
    try:
        program = RUNTIMES[runtime].prepare()(form, level, own.names[-1:])
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
