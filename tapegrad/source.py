"""What a source is: its protocol, the record that each kind of source fills in, and what a rewriting of one
source into another gives back.

A new kind of source is a folder with a `SourceKind`, and one line in `tapegrad._sources`.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tapegrad._panels import Fields, Panel
from tapegrad.errors import InputError, Refused

State = Any
"""What a source's interpreter yields: a configuration, a batch of bits, the memory of a learner."""


class Source(Protocol):
    """A machine, a circuit or a learner: something with a first state and an interpreter."""

    @property
    def name(self) -> str: ...

    @property
    def start(self) -> Callable[..., State]:
        """A method: the first state for an input as a user writes it."""
        ...

    def run(self, state: State, /) -> Iterator[State]:
        """Every state from this one to the end, in order."""
        ...


@dataclass(frozen=True)
class Rewriting:
    """A source turned into another that does the same.

    `encode` takes the first state of `before` to the first state of `after`. `decode` takes a state of
    `after` to the state of `before` that it stands for, or to None while `after` is between two steps of
    `before`. The guarantee, which tests check side by side: run `after` from an encoded state, decode
    everything, drop the Nones, and what is left is the run of `before`, each state once. A
    rewriting that `covers` T steps decodes just its last state, to the state of `before` after T steps, or
    at its halt if that is earlier. Where `after` halts between two steps of `before`, `halted` takes its last
    state to the last of `before`, which has been decoded before.
    """

    name: str
    before: Source
    after: Source
    encode: Callable[[State], State]
    decode: Callable[[State], State | None]
    covers: int | None = None
    halted: Callable[[State], State | None] | None = None
    in_step: bool = False
    """Whether every step of `after` is one of `before`, until that has halted; then it may go on."""
    one_by_one: bool = False
    """Whether `after` takes inputs one after the other that `before` takes in batches."""
    relation: Callable[[], tuple[dict[str, Any], "Arrays"]] | None = None
    """Written beside a saved net, as JSON and arrays: a hint with which the checker can prove that `after`
    does what `before` does, where that is easier than to derive it anew."""
    default_inputs: Callable[[np.random.Generator], tuple["Inputs", bool]] | None = None
    """Where `after` takes only some of the inputs of `before`: those to verify it on, and whether these are
    all."""

    def decode_last(self, state: State) -> State | None:
        """`decode`, for a state in which `after` has halted."""
        return (self.halted or self.decode)(state)


def chained(first: Rewriting, second: Rewriting) -> Rewriting:
    """Two rewritings, one after the other, as one."""

    def decode(state: State) -> State | None:
        between = second.decode(state)
        return None if between is None else first.decode(between)

    def halted(state: State) -> State | None:
        between = second.decode_last(state)
        return None if between is None else first.decode_last(between)

    return Rewriting(
        f"{first.name}, {second.name}",
        first.before,
        second.after,
        lambda state: second.encode(first.encode(state)),
        decode,
        first.covers,
        halted,
    )


@dataclass(frozen=True)
class Format:
    """A way to write a machine or a circuit down. `detect` looks at the content, never at a file's name,
    and never raises; `read` raises a FormatError that gives line and column."""

    name: str
    summary: str
    example: str
    """A short text in this format that `read` accepts."""
    detect: Callable[[bytes], bool]
    read: Callable[..., Any]
    """Takes the bytes; a format may have options besides, such as further symbols of a machine."""
    write: Callable[[Any], str | bytes] | None = None
    names_files: bool = False
    """Whether it can name other files; then `read` takes the `folder` of a file to look for them."""


def opening(data: bytes) -> str:
    """As much of a file as it takes to recognise its format."""
    return data[: 1 << 16].decode("utf-8", "replace").removeprefix("\ufeff")


def quoted(text: str) -> str:
    """A piece of the user's text, short enough for a sentence."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def shortened(text: str, widest: int) -> str:
    """A row of symbols, cut where it is too long to be shown."""
    return text if len(text) <= widest else f"{text[:widest]}... ({len(text):,} symbols)"


@dataclass(frozen=True)
class Option:
    """An option of a lowering or a target: its default, and a line of help."""

    default: Any
    """`...` where there is none, so that the option must be given."""
    help: str
    choices: tuple[Any, ...] = ()
    was: Any = ...
    """What holds for nets that were saved before there was this option, where that is not the default."""


@dataclass(frozen=True)
class Lowering:
    """A way from one kind of source to another. The module is imported when the way is taken."""

    after: str
    """The name of the kind that it leads to."""
    function: str
    """`module:function`, which takes the source and the options and gives a `Rewriting`."""
    options: Mapping[str, Option] = field(default_factory=dict)
    suits: str | None = None
    """`module:function`, which takes the source, a first state and a number of steps, and gives options that
    suit this run."""

    def suiting(self, source: Source, first: State, steps: int) -> dict[str, Any]:
        """Options that suit a run; none where the lowering does not depend on it."""
        return imported(self.suits)(source, first, steps) if self.suits else {}

    def rewrite(self, source: Source, **options: Any) -> Rewriting:
        """The rewriting of this source."""
        missing = [
            name for name, option in self.options.items() if option.default is ... and name not in options
        ]
        if missing:
            listed = "; ".join(f"{name}: {self.options[name].help}" for name in missing)
            raise Refused(
                f"lowering {source.name!r} to a {self.after} needs {' and '.join(missing)}",
                advice=f"Give {listed}.",
            )
        return imported(self.function)(source, **options)


@dataclass(frozen=True)
class Ready:
    """A source that comes with the package."""

    summary: str
    build: Callable[[], Source]
    example: Callable[[], tuple[Any, ...]] = lambda: ()
    """The arguments of `source.start` that show it at work; none where the user must give them."""


Entry = TypeVar("Entry")


class ReadyBy(Mapping[str, Ready], Generic[Entry]):
    """A library's own table of ready things, which may answer to more names than it lists."""

    def __init__(self, entries: Mapping[str, Entry], ready: Callable[[str, Entry], Ready]) -> None:
        self._entries, self._ready = entries, ready

    def __getitem__(self, name: str) -> Ready:
        return self._ready(name, self._entries[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@dataclass(frozen=True)
class Rules:
    """The rules that sources of a kind consist of, so that those can be counted which a run exercises."""

    count: Callable[[Any], int]
    at: Callable[[Any, State], Hashable]
    """Names the rule that takes the source on from a state that is not its last."""


@dataclass(frozen=True)
class Call:
    """What a user's call of a network means: the arguments of `source.start`, and what comes back."""

    inputs: tuple[Any, ...]
    result: Callable[[State], Any]
    """From the source's last state to the user's own kind of value."""
    patterns: int = 1
    """Of a source that takes batches: how many rows of bits there are in its only input."""


def _state_itself(source: Source, given: tuple[Any, ...], named: Mapping[str, Any]) -> Call:
    if named:
        raise InputError(f"the inputs of {source.name!r} have no names", advice="Give them in order.")
    return Call(given, lambda state: state)


Arrays = dict[str, NDArray[Any]]
Inputs = Iterator[tuple[Any, ...]]
"""The arguments of `source.start`, one tuple for each run."""


class View(Protocol):
    """What the player shows of a source: panels, and what they hold in a state."""

    panels: list[Panel]

    def frame(self, state: State) -> list[Any]:
        """One entry for each panel."""
        ...


class TextView:
    """A source whose states are shown as text."""

    def __init__(self, source: Source) -> None:
        self.panels: list[Panel] = [Fields("Source")]

    def frame(self, state: State) -> list[Any]:
        return [{"state": str(state)}]


def _no_input(source: Source, texts: Sequence[str]) -> tuple[Any, ...]:
    raise InputError(f"{source.name!r} takes no input on the command line")


def _no_default_inputs(source: Source, random: np.random.Generator, in_batches: bool) -> tuple[Inputs, bool]:
    raise InputError(
        f"there is no standard sample of inputs for {source.name!r}", advice="Give the inputs to check."
    )


@dataclass(frozen=True)
class SourceKind:
    """All that the rest of the package knows about one kind of source. Only the first four fields are
    needed; without the others a source of this kind has no file format, no ready examples and so on."""

    name: str
    type: type
    to_json: Callable[[Any], tuple[dict[str, Any], Arrays]]
    """The source as plain JSON; large parts go into arrays."""
    from_json: Callable[[Mapping[str, Any], Mapping[str, NDArray[Any]]], Any]

    formats: tuple[Format, ...] = ()
    found: Callable[[Any], tuple[Source, tuple[Any, ...]]] = lambda read: (read, ())
    """What a format has read, as a source and the input that came with it."""
    ready: Mapping[str, Ready] = field(default_factory=dict)
    parse_input: Callable[[Any, Sequence[str]], tuple[Any, ...]] = _no_input
    """The arguments of `source.start`, from what was typed on the command line."""
    input_needed: str = ""
    """What to write as an input, for a source that cannot start without one."""
    input_example: Callable[[Any], str] = lambda source: ""
    """What to type for this very source, as a further sentence."""
    call: Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Call] = _state_itself
    """What `net(...)` means for values in order and by name; by default its result is the last state."""
    default_inputs: Callable[[Any, np.random.Generator, bool], tuple[Inputs, bool]] = _no_default_inputs
    """Inputs to verify a net with, and whether they are all there are. The flag says whether the net takes
    them in batches."""
    covering: str | None = None
    """`module:function` that chooses inputs to verify a net with, in place of `default_inputs`, such that
    they take the source to many places. It takes the source, random numbers, and what tells within how many
    steps a run on an input has to end in the net (0: no room for it; None: it may go on)."""
    rules: Rules | None = None
    """None where there are none: `verify` then says nothing of how many were exercised."""
    step: str = "instruction"
    """What one step of it is called, where that is one step of training."""
    one_by_one: bool = False
    """Whether it takes many steps for each input, one input after the other, as a machine does."""
    sample: Callable[[int], Source] | None = None
    """A small random source for a seed, the same on every platform."""
    describe: Callable[[Any], str] = str
    """The source as text."""
    state_json: Callable[[Any, State], Any] = lambda source, state: repr(state)
    state_text: Callable[[Any, State], str] = lambda source, state: str(state)
    written: Callable[[Any, State], tuple[int, bytes]] | None = None
    """Of a source that writes while it runs: how many bytes so far, and the last of them."""
    history: Callable[[Any, State, int], tuple[int, list[Any]]] | None = None
    """Of a source that gives something at every step: how many steps there were, and what those after the
    first n have given, by name, as far as the state knows."""
    view: Callable[[Any], View] = TextView
    refuses: str | None = None
    """`module:function`, which takes a source, the name of a target, a first state or None, and the options,
    and refuses what cannot fit. It is asked before the target is loaded, which takes a second or two."""
    fitted: str | None = None
    """`module:function`, which takes a source, the arguments of `source.start` and a number of steps, and
    gives the source in a size that suits this run, where its size is not a part of what it says."""
    sizes: Callable[[Any], dict[str, int]] = lambda source: {}
    """What `fitted` chooses, for people."""
    compiled_run: str | None = None
    """`module:function` of a compiled interpreter, with which runs of millions of steps are compared."""
    lowerings: tuple[Lowering, ...] = ()


def imported(place: str) -> Any:
    """What `module:name` names."""
    module, _, function = place.partition(":")
    return getattr(import_module(module), function)
