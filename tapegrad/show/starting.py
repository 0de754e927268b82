"""What a run that is to be shown starts from: a source, as found, compiled, and the input for it."""

from collections.abc import Mapping, Sequence
from typing import Any

from tapegrad.compile import Compiled, compile, compile_for
from tapegrad.inputs import inputs_for
from tapegrad.sources import Found
from tapegrad.targets import target_named

EXAMPLE = "example"
"""In place of a source: the target's own first example, with its input."""


def compiled_example(target: str) -> tuple[Compiled, tuple[Any, ...]]:
    """The first example of a target."""
    example = target_named(target).examples()[0]
    return compile(example.source, target, **example.options), example.inputs


def compiled_source(
    found: Found, target: str, texts: Sequence[str] | None, settings: Mapping[str, Any], steps: int
) -> tuple[Compiled, tuple[Any, ...]]:
    """The source on its target, with the input as typed, or else the one that came with it, made for at most
    this many steps on it."""
    inputs = inputs_for(found.source, texts, found.inputs)
    return compile_for(found.source, target, inputs, steps, **settings), inputs
