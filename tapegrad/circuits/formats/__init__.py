"""File formats of circuits, each in a file of its own, recognised by content."""

from tapegrad.circuits.formats.table import FORMATS, detect, read

__all__ = ["FORMATS", "detect", "read"]
