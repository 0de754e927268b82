"""Texts in which people write Turing machines down: one file for each format."""

from collections.abc import Iterable

from tapegrad.errors import FormatError
from tapegrad.machines.formats import bbchallenge, golly, morphett, multitape, turingmachine_io
from tapegrad.machines.formats.bbchallenge import write_bbchallenge
from tapegrad.machines.formats.loaded import Loaded, decode
from tapegrad.machines.formats.turingmachine_io import write_yaml
from tapegrad.source import Format

__all__ = ["FORMATS", "Loaded", "detect", "read", "write_bbchallenge", "write_yaml"]

FORMATS: tuple[Format, ...] = (
    golly.FORMAT,
    bbchallenge.FORMAT,
    turingmachine_io.FORMAT,
    multitape.FORMAT,
    morphett.FORMAT,
)
"""In the order in which they are tried: the most telling signs first."""


def detect(data: bytes | str) -> Format | None:
    """The format that this text is in, or None. Only the content counts, no file name."""
    content = _as_bytes(data)
    return next((format for format in FORMATS if format.detect(content)), None)


def read(data: bytes | str, format: str | None = None, symbols: Iterable[str] = ()) -> Loaded:
    """The machine in this text, in the named format or in the one that its content shows. `symbols` are
    further ones that inputs may hold; wildcards match them too."""
    content = _as_bytes(data)
    names = ", ".join(known.name for known in FORMATS)
    if format is not None:
        chosen = next((known for known in FORMATS if known.name == format), None)
        if chosen is None:
            raise FormatError(f"there is no machine format {format!r}", advice=f"There are {names}.")
    else:
        decode(content)  # an empty or binary file should be called that
        chosen = detect(content)
        if chosen is None:
            raise FormatError(
                "this text looks like none of the machine formats",
                advice=f"They are {names}; name one to see where the text departs from it.",
            )
    return chosen.read(content, tuple(symbols))


def _as_bytes(data: bytes | str) -> bytes:
    return data.encode("utf-8", "replace") if isinstance(data, str) else data
