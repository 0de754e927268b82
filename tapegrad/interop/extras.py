"""Parts that need another tool: imported when asked for, with a word on what to install."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from tapegrad.compile import Compiled
from tapegrad.errors import Refused

if TYPE_CHECKING:
    from tapegrad.targets.net import Net

EXTRAS = {"pytorch": "torch", "onnx": "onnx"}
"""For each part of `tapegrad.interop` that `part` imports, the extra that it needs."""


def part(name: str) -> ModuleType:
    """`tapegrad.interop.<name>`; refused, with advice, where its tool is not installed."""
    try:
        return import_module(f"tapegrad.interop.{name}")
    except ImportError as error:
        raise Refused(
            f"this export needs a package that is not installed: {error}",
            advice=f"Try: pip install 'tapegrad[{EXTRAS[name]}]'.",
        ) from error


def net_of(compiled: "Compiled | Net") -> "Net":
    """The net itself, of a compiled one too."""
    return compiled.net if isinstance(compiled, Compiled) else compiled
