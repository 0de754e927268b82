"""What a run that is to be shown starts from: a source, as found, compiled, and the input for it."""

from collections.abc import Mapping, Sequence
from typing import Any

from tapegrad.circuits.model import Circuit
from tapegrad.compile import Compiled, compile
from tapegrad.errors import InputError
from tapegrad.inputs import parse_inputs
from tapegrad.learners import Learner
from tapegrad.lowering.rewriting import Source
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


def inputs_for(source: Source, texts: Sequence[str] | None, own: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """The arguments of `source.start`; a machine may start on a blank tape, nothing else may."""
    if texts is not None:
        return parse_inputs(source, texts)
    if not own and isinstance(source, Circuit):
        raise InputError(
            f"the circuit {source.name!r} needs an input",
            advice="Write its bits in order, as in 0110, or name=number for each input.",
        )
    if not own and isinstance(source, Learner):
        raise InputError(
            f"the learner {source.name!r} needs samples, which cannot be typed here",
            advice=f"Use compiled.show(x, y) in Python, or {EXAMPLE!r} in place of the source.",
        )
    return own
