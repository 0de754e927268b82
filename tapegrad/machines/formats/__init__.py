"""Texts in which people write Turing machines down: one file for each format."""

from tapegrad.machines.formats.bbchallenge import write_bbchallenge
from tapegrad.machines.formats.loaded import Loaded
from tapegrad.machines.formats.table import FORMATS, detect, read
from tapegrad.machines.formats.turingmachine_io import write_yaml

__all__ = ["FORMATS", "Loaded", "detect", "read", "write_bbchallenge", "write_yaml"]
