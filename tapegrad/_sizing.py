"""How large a net must be: options that depend on a run, learnt from the source before a net is built.

A circuit made of a machine holds so many steps and cells, a language model so many tokens. Nobody should have
to know these numbers beforehand: the source itself is run, by its compiled interpreter, and says them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from tapegrad._sources import kind_of, route
from tapegrad.errors import InputError, Refused
from tapegrad.source import Lowering, Source, State, imported
from tapegrad.targets import Target

TYPICAL_INPUTS = 32
"""Inputs of which a net of open size is to take as many as it can."""
LONG_RUN, SHORT_RUN = 1_000, 64
"""A typical run ends within so many steps; of one that does not, so many are taken."""
SIGHT = 100_000_000
"""The compiled interpreter looks so far ahead for the end of the source. A source that does not end there is
run for fewer steps, unless more are asked for."""
OWN_RUN = 1 << 22
"""So many steps of the source's own run a net is made for where nobody has said on what it is to run; to look
so far takes a few hundredths of a second."""
MOST_CELLS_TIMES_STEPS = 1 << 14
"""An input for which more than that would be needed is not typical, unless it came with the source."""


def way(source: Source, target: Target, names: Iterable[str]) -> list[Lowering]:
    """The lowerings on the way to a target, where options of these names are given."""
    return route(source, *target.kinds, names=set(names) - set(target.options))


def suiting(
    source: Source, target: Target, first: State, steps: int, options: Iterable[str]
) -> dict[str, Any]:
    """Options of the lowerings on the way to a target that suit a run from this state."""
    suits: dict[str, Any] = {}
    lowerings = way(source, target, options)
    for number, lowering in enumerate(lowerings):
        own = lowering.suiting(source, first, steps)
        suits = own | suits
        if any(later.suits for later in lowerings[number + 1 :]):
            rewriting = lowering.rewrite(source, **own)
            source, first = rewriting.after, rewriting.encode(first)
    return suits


def left_open(source: Source, target: Target, options: Mapping[str, Any]) -> set[str]:
    """Options that must have a value and were given none."""
    lowerings = way(source, target, options)
    needed = {name for own in lowerings for name, option in own.options.items() if option.default is ...}
    return needed - set(options)


def typical(
    source: Source, target: Target, own: tuple[Any, ...], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Values for the options that are left open, so that the net takes the source's `own` input and, of a
    source that takes many steps for each, most of the inputs that `verify` would try."""
    missing = left_open(source, target, options)
    if not missing:
        return {}
    found: dict[str, Any] = {}
    for number, words in enumerate(typical_inputs(source, own)):
        try:
            first = source.start(*words)
            suits = suiting(source, target, first, LONG_RUN, options)
            if suits.get("steps", 0) >= LONG_RUN:  # it may never end
                suits = {} if found else suiting(source, target, first, SHORT_RUN, options)
        except (InputError, Refused):
            continue
        if 0 in suits.values():  # an empty input says nothing of a size
            continue
        larger = {name: max(value, found.get(name, value)) for name, value in suits.items()}
        if number and larger.get("steps", 1) * larger.get("cells", 1) > MOST_CELLS_TIMES_STEPS:
            continue
        found |= larger
    return {name: value for name, value in found.items() if name in missing or name not in options}


def ends(source: Source, words: tuple[Any, ...], within: int = SIGHT) -> bool:
    """Whether the run on this input is known to end within so many steps."""
    interpreter = kind_of(source).compiled_run
    try:
        return bool(interpreter and imported(interpreter)(source, source.start(*words), within).halted)
    except Refused:  # it takes too much memory, or its table does
        return False


def for_own_run(
    source: Source,
    own: tuple[Any, ...],
    target: Target,
    lowered: Source,
    encode: Callable[[State], State],
    settings: Mapping[str, Any],
) -> dict[str, int]:
    """Options of the target that its usual values are too small for: a net that is saved takes no larger
    form later, and has to get to the end of the run on the source's own input, or without one."""
    usual = {name: value for name, value in settings.items() if isinstance(value, int)}
    if not usual or (not own and kind_of(source).input_needed) or not ends(source, own, OWN_RUN):
        return {}
    try:
        needs = target.fitted(lowered, encode(source.start(*own)), OWN_RUN)
    except (InputError, Refused):  # what was asked for is too small for that run, or no size is enough
        return {}
    return {name: value for name, value in needs.items() if name in usual and value > usual[name]}


def typical_inputs(source: Source, own: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The input that came with the source, then others; of most kinds the first of these is enough."""
    kind = kind_of(source)
    if own or not kind.input_needed:
        yield own
    if not own or kind.one_by_one:
        try:
            samples, _ = kind.default_inputs(source, np.random.default_rng(0), False)
        except InputError:  # there is no sample of inputs for this kind
            return
        yield from islice(samples, TYPICAL_INPUTS if kind.one_by_one else 1)
