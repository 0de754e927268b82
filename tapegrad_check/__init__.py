"""The independent checker of saved nets. It shares no code with the compiler: numpy, safetensors and the
standard library are all it trusts, so that a fault in the compiler cannot hide itself here."""

from tapegrad_check.folder import CheckReport, check, read_folder

__all__ = ["CheckReport", "check", "read_folder"]
