"""The table of circuit formats, and reading without being told which one."""

from tapegrad.circuits.formats import aiger, bench, blif, bristol
from tapegrad.circuits.model import Circuit
from tapegrad.errors import FormatError
from tapegrad.source import Format

FORMATS = (
    Format(
        name="aiger-ascii",
        summary="AIGER as text (.aag): and-inverter graphs, combinational",
        example=aiger.EXAMPLE_ASCII,
        detect=aiger.detect_ascii,
        read=aiger.read_ascii,
        write=aiger.write_ascii,
    ),
    Format(
        name="aiger-binary",
        summary="AIGER in binary (.aig): the same, compact",
        example=aiger.EXAMPLE_BINARY,
        detect=aiger.detect_binary,
        read=aiger.read_binary,
        write=aiger.write_binary,
    ),
    Format(
        name="blif",
        summary="Berkeley Logic Interchange Format: .names with on-set or off-set covers",
        example=blif.EXAMPLE,
        detect=blif.detect,
        read=blif.read,
        write=blif.write,
    ),
    Format(
        name="bench",
        summary="ISCAS .bench: y = NAND(a, b), gates of any number of operands",
        example=bench.EXAMPLE,
        detect=bench.detect,
        read=bench.read,
    ),
    Format(
        name="bristol",
        summary="Bristol Fashion: numbered wires, values with the lowest bit first",
        example=bristol.EXAMPLE,
        detect=bristol.detect,
        read=bristol.read,
    ),
)


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
