"""File formats of circuits, each in a file of its own, recognised by content."""

from tapegrad.circuits.clocked.model import SequentialCircuit
from tapegrad.circuits.formats import aiger, aiger_binary, bench, blif, bristol
from tapegrad.circuits.model import Circuit
from tapegrad.errors import FormatError
from tapegrad.source import Format

FORMATS = (aiger.ASCII, aiger_binary.BINARY, blif.FORMAT, bench.FORMAT, bristol.FORMAT)
"""All but the last may have latches; then a `SequentialCircuit` is read."""


def detect(data: bytes) -> Format | None:
    """The format that a file is in, by its content."""
    return next((known for known in FORMATS if known.detect(data)), None)


def read(data: bytes) -> Circuit:
    """The circuit of a file in any of the formats, where it has no latches."""
    known = detect(data)
    if known is None:
        raise FormatError(
            "this is not a circuit in a known format",
            where=f"the file begins with {data[:30]!r}",
            advice=f"Formats of circuits: {', '.join(known.name for known in FORMATS)}.",
        )
    found = known.read(data)
    if isinstance(found, SequentialCircuit):
        raise FormatError(
            f"this is a sequential circuit with {len(found.latches)} latches",
            where="the whole file",
            advice="Read it with tapegrad.read, or take its `logic`, in which they are inputs and outputs.",
        )
    return found
