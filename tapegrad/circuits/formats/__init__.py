"""File formats of circuits, each in a file of its own, recognised by content."""

from tapegrad.circuits.formats import aiger, bench, blif, bristol
from tapegrad.circuits.model import Circuit
from tapegrad.errors import FormatError
from tapegrad.source import Format

FORMATS = (aiger.ASCII, aiger.BINARY, blif.FORMAT, bench.FORMAT, bristol.FORMAT)


def detect(data: bytes) -> Format | None:
    """The format that a file is in, by its content."""
    return next((known for known in FORMATS if known.detect(data)), None)


def read(data: bytes) -> Circuit:
    """The circuit of a file in any of the formats."""
    known = detect(data)
    if known is None:
        raise FormatError(
            "this is not a circuit in a known format",
            where=f"the file begins with {data[:30]!r}",
            advice=f"Formats of circuits: {', '.join(known.name for known in FORMATS)}.",
        )
    return known.read(data)
