"""What a file format is: a row of the table that `tapegrad formats` prints and that reading goes through."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Format:
    """A way to write a machine or a circuit down. `detect` looks at the content, never at a file's name,
    and never raises; `read` raises a FormatError that gives line and column."""

    name: str
    summary: str
    example: str
    """A short text in this format that `read` accepts."""
    detect: Callable[[bytes], bool]
    read: Callable[..., Any]
    """Takes the bytes; a format may have options besides, such as further symbols of a machine."""
    write: Callable[[Any], str | bytes] | None = None


def opening(data: bytes) -> str:
    """As much of a file as it takes to recognise its format."""
    return data[: 1 << 16].decode("utf-8", "replace").removeprefix("\ufeff")


def quoted(text: str) -> str:
    """A piece of the user's text, short enough for a sentence."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
