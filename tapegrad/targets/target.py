"""What every target says of itself: what to find it by, what it takes and what it costs.

Nothing here needs JAX, so that sources can be read and targets asked for before it is loaded.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tapegrad.errors import Refused
from tapegrad.source import Option, Rewriting, Source, State

if TYPE_CHECKING:
    from tapegrad.networks.network import Network
    from tapegrad.targets.net import Net

Carry = Any
"""Whatever a net hands from one step to the next: weights under training, activations, a cache."""


@dataclass(frozen=True)
class Counts:
    """The size of a net in three numbers. `trainable` weights are those that training changes while the
    algorithm runs; `fixed` ones are all other numbers that the net computes with; `bytes` is the memory that
    both take, with the places of weights in sparse maps."""

    trainable: int
    fixed: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.trainable:,} trainable, {self.fixed:,} fixed; {in_words(self.bytes)}"


def in_words(size: int) -> str:
    """A number of bytes, for people."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= 10 * scale:
            return f"{size / scale:,.0f} {unit}"
    return f"{size:,} bytes"


@dataclass(frozen=True)
class Estimate:
    """The cost of a net, known before it is built. `parameters` are the numbers that its saved form consists
    of, places of weights among them; `trainable`, `fixed` and `bytes` are those of `Counts`."""

    width: int
    depth: int
    trainable: int
    fixed: int
    bytes: int
    parameters: int
    steps: int | None
    precision: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Example:
    """A source and an input small enough to show a target at work in a second or two."""

    source: Source
    inputs: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 10_000


@dataclass(frozen=True)
class Target:
    """A construction: what it takes, how it is built, what it costs, and how to show it."""

    name: str
    summary: str
    paper: str
    takes: type
    """The kind of source it is built from; others come through lowering."""
    net: "type[Net]"
    build: "Callable[..., Net]"
    """`build(source, **options)`, for a source that `passes` has made ready."""
    estimate: Callable[..., Estimate]
    """`estimate(source, **options)`, without building."""
    examples: Callable[[], Sequence[Example]]
    options: Mapping[str, Option] = field(default_factory=dict)
    also_takes: tuple[type, ...] = ()
    """Further kinds that it is built from without a lowering."""
    passes: Callable[..., Sequence[Rewriting]] = lambda source, **options: ()
    """`passes(source, **options)`: the rewritings that make a source of the right kind ready."""

    built_for_inputs: bool = False
    """Whether a net is built for certain inputs, given by the option `inputs`."""

    first_states: Callable[..., Iterable[State]] = lambda source, **options: ()
    """`first_states(source, **options)`: those it is built for where that option is not given."""

    fitted: Callable[..., Mapping[str, Any]] = lambda source, state, steps: {}
    """`fitted(source, state, steps)`: the options that suit a run of so many steps from this first state."""

    blind: int = 100_000
    """Steps that a run takes where its end is not in sight."""

    loads: "Callable[..., Net] | None" = None
    """`loads(config, arrays, network)`: a saved net, where nets of this target are of more than one class."""

    @property
    def kinds(self) -> tuple[type, ...]:
        """All kinds of source that it is built from."""
        return self.takes, *self.also_takes

    def loaded(
        self, config: Mapping[str, Any], arrays: Mapping[str, Any], network: "Network | None" = None
    ) -> "Net":
        """A net again, from what was saved."""
        return (self.loads or self.net.from_saved)(config, arrays, network)

    def with_defaults(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """All options with their values; unknown names and values are refused."""
        for name, value in options.items():
            known = self.options.get(name)
            if known is None:
                listed = ", ".join(self.options) or "none"
                raise Refused(
                    f"target {self.name!r} has no option {name!r}",
                    advice=f"Its options: {listed}.",
                )
            if known.choices and value not in known.choices:
                raise Refused(
                    f"option {name!r} of target {self.name!r} cannot be {value!r}",
                    advice=f"Choose one of {', '.join(map(str, known.choices))}.",
                )
        return {name: option.default for name, option in self.options.items()} | dict(options)
