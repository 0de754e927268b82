"""Conversions between source languages: how every source reaches every target."""

from tapegrad.lowering.rewriting import Rewriting, Source, State

__all__ = ["Rewriting", "Source", "State"]
