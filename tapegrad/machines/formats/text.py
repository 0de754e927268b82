"""What every reader of machine texts shares: decoding, limits, positions, and short quotations for errors."""

from collections.abc import Iterator
from typing import NamedTuple

from tapegrad.errors import FormatError
from tapegrad.formats import quoted

MAX_BYTES = 2 << 20
MAX_LINE = 10_000
"""Characters in a line, for the formats that are read line by line."""
MAX_RULES = 100_000
"""Rules of one machine, counted after wildcards and list keys are expanded."""
MAX_NAME = 200
"""Characters in the name of a state."""


def decode(data: bytes) -> str:
    """The text of a file, or a FormatError if it is empty, too large, binary or not UTF-8."""
    if len(data) > MAX_BYTES:
        raise FormatError(
            f"the text is {len(data):,} bytes long, and a machine may take {MAX_BYTES:,} at most",
            advice="Is this the right file?",
        )
    if (nul := data.find(b"\0")) >= 0:
        raise FormatError(
            "this is a binary file, not a text",
            where=f"byte {nul + 1} is zero",
            advice="Machines are read from UTF-8 text; save the file as UTF-8 if it is in UTF-16.",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise FormatError(
            f"byte {data[error.start]:#04x} is not UTF-8",
            where=f"line {line}, byte {column}",
            advice="Save the file as UTF-8 text.",
        ) from None
    if not text.strip():
        raise FormatError("the text is empty", advice="`tapegrad formats` shows an example of every format.")
    return text


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Every line with its number, counted from 1."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_LINE:
            raise FormatError(
                f"a line of {len(line):,} characters; {MAX_LINE:,} are allowed",
                where=str(At(number, MAX_LINE + 1)),
                advice="Is this the right file?",
            )
        yield number, line.rstrip("\r")


class At(NamedTuple):
    """A position in the text, written out only when an error needs it."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


def check_symbol(symbol: str, where: At | str) -> str:
    """The symbol itself, if it is a single character."""
    if len(symbol) != 1:
        raise FormatError(
            f"a symbol is one character, and {quoted(symbol)} is {len(symbol)}",
            where=str(where),
        )
    return symbol


def check_name(name: str, where: At | str) -> str:
    """The name of a state itself, if there is one and it is of a sensible length."""
    if not name:
        raise FormatError("the name of a state is missing", where=str(where))
    if len(name) > MAX_NAME:
        raise FormatError(
            f"the name of a state is {len(name):,} characters long; {MAX_NAME} are allowed", where=str(where)
        )
    return name


def check_count(rules: int, where: At | str) -> None:
    """Refuse a machine that is too large to hold."""
    if rules > MAX_RULES:
        raise FormatError(
            f"the machine has more than {MAX_RULES:,} rules once they are all written out",
            where=str(where),
            advice="Use fewer states or symbols, or fewer wildcards.",
        )
