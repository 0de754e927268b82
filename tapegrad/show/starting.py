"""What a run that is to be shown starts from: a source, as found, compiled, and the input for it."""

from collections.abc import Mapping, Sequence
from typing import Any

from tapegrad.compile import Compiled, compile
from tapegrad.inputs import inputs_for
from tapegrad.nets import target_named
from tapegrad.sources import Found

EXAMPLE = "example"
"""In place of a source: the target's own first example, with its input."""


def compiled_example(target: str) -> tuple[Compiled, tuple[Any, ...]]:
    """The first example of a target."""
    example = target_named(target).examples()[0]
    return compile(example.source, target, **example.options), example.inputs


def compiled_source(
    found: Found, target: str, texts: Sequence[str] | None, settings: Mapping[str, Any]
) -> tuple[Compiled, tuple[Any, ...]]:
    """The source on its target, with the input as typed, or else the one that came with it."""
    inputs = inputs_for(found.source, texts, found.inputs)
    return compile(found.source, target, **settings), inputs
