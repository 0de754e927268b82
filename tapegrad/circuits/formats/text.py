"""What every reader of circuits shares: limits, decoding, and short quotations for errors."""

from tapegrad.errors import FormatError
from tapegrad.formats import quoted

MOST_INPUTS = 1 << 20
"""Some formats state the number of inputs without listing them, so a short file can claim any number."""

MOST_WIRES = 1 << 28
"""Largest number that stands for a wire or a literal."""


def decoded(data: bytes) -> str:
    """The text of a file, or a FormatError if it is not UTF-8 text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"byte {data[error.start]:#04x} is not UTF-8",
            where=f"line {data.count(10, 0, error.start) + 1}, byte {error.start + 1} of the file",
            advice="Save the file as UTF-8 text.",
        ) from None
    if (nul := text.find("\0")) >= 0:
        raise FormatError(
            "this is a binary file, not a text",
            where=f"line {text.count(chr(10), 0, nul) + 1} holds a zero byte",
            advice="This format is plain text; of those read here only AIGER has a binary form.",
        )
    return text


def number(text: str, where: str, what: str = "a number", most: int = MOST_WIRES) -> int:
    """A whole number in plain digits, from 0 to `most`."""
    if not (text.isascii() and text.isdigit()):
        raise FormatError(f"{what} was expected, not {quoted(text)}", where=where)
    if len(text) > 18 or int(text) > most:
        raise FormatError(
            f"{what} of {quoted(text)} is too large",
            where=where,
            advice=f"At most {most:,} can be read here; is the file what it seems to be?",
        )
    return int(text)
