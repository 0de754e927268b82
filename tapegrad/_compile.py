"""From a source to a net: the list of passes, and the compiled net that remembers them."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad._alive import alive
from tapegrad._sizing import SIGHT, for_own_run, left_open, suiting, typical, typical_inputs, way
from tapegrad._sources import Found, as_source, example_of, kind_of, parse_inputs
from tapegrad.errors import InputError, Refused, described
from tapegrad.source import Call, Rewriting, Source, State, imported
from tapegrad.targets import Carry, Counts, Estimate, Target, target_named, target_names

if TYPE_CHECKING:
    from tapegrad._training import Fitted
    from tapegrad.networks.backends.numpy import NumPy
    from tapegrad.targets.net import Net

Defaults = Mapping[str, Any]
"""Names of options and the values they have unless others are given."""

Progress = Callable[[int], None]
"""Called now and then with the number of steps taken so far."""
Watch = Callable[[State], None]
"""Is shown states of the user's own source while a net runs, as often as they are looked at."""
MOST_STEPS_OF_A_CALL, STEPS_WITHOUT_AN_END, STEPS_TO_BUILD_FOR = SIGHT, 1_000_000, 10_000
FEW_SYMBOLS = 8
"""There are not many short words over so many."""
AUTO = "auto"
"""In place of an engine: the one for the length of the run."""
LONGEST_NAME = 40
"""Characters of a source's name that is shown in advice."""
ROWS_AT_ONCE = 1 << 10
"""Of a batch that a net of one step takes: some megabytes."""
LONGEST_CHUNK = 0.5
"""Seconds, after which the next steps that are taken at once are no more than these."""


@dataclass(frozen=True)
class Run:
    """What came of running a net on one input: `state` is in terms of the source the user gave, its last one
    if the net is done, and None where the run was cut off between two of them. `halted`: the net is done, and
    so is the source; a net of a fixed number of steps may end before its source does."""

    steps: int
    halted: bool
    state: State | None
    carry: Carry = field(repr=False)
    deviation: float
    seconds: float
    value: Any = None
    """What a call returns: the function's result, whether a machine accepts, and so on; None where the net is
    not done."""


@dataclass(frozen=True, repr=False)
class Compiled:
    """A net together with the source it runs and the way from the one to the other."""

    net: "Net"
    target: Target
    source: Source
    passes: tuple[Rewriting, ...]
    options: dict[str, Any]
    given: frozenset[str] | None = None
    """The options that the user gave. Where that is known, all others may grow with the input of a call; of
    a net from a folder it is not, and nothing does."""
    fitted: "Fitted | None" = field(default=None, init=False, compare=False)
    """What the last `fit` has left, of a learner."""
    larger: "Compiled | None" = field(default=None, init=False, compare=False)
    """The net that the last call made because its input did not fit this one."""

    def __repr__(self) -> str:
        way = " -> ".join([self.source.name, *(p.name for p in self.passes), self.target.name])
        return f"<compiled {way}: {self.counts}>"

    @property
    def counts(self) -> Counts:
        """Trainable weights, fixed weights and memory."""
        return self.net.counts

    @property
    def lowered(self) -> Source:
        """The source that the net was built from: what came out of the last pass."""
        return self.passes[-1].after if self.passes else self.source

    def encode(self, state: State) -> State:
        """A first state of the user's source as a first state of the lowered one."""
        return _encoded(self.passes, state)

    def decode(self, state: State | None, *, last: bool = False) -> State | None:
        """A state of the lowered source as one of the user's, or None between two of its steps; `last` where
        the lowered source has halted."""
        for rewriting in reversed(self.passes):
            if state is None:
                return None
            state = rewriting.decode_last(state) if last else rewriting.decode(state)
        return state

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Runs the net to its end and returns what the source is about: a function's result, the outputs of a
        circuit, whether a machine accepts, or its tape, or what a program prints."""
        call = kind_of(self.source).call(self.source, inputs, named)
        if self._in_one_pass:
            carry = self.start(*call.inputs)
            carry = self.net.advance(carry, MOST_STEPS_OF_A_CALL, self.net.engine_for(carry, 1))
            return call.result(self.decode(self.net.decode(carry), last=True))
        if call.patterns != 1 and self._one_step is not None:
            return call.result(self._at_once(self._one_step, call))
        run = self._run(call, None, AUTO, None, None)
        if run.state is None or not run.halted:
            raise Refused(
                f"this run of {self.source.name!r} does not end within {run.steps:,} steps of the net",
                advice="Compile a net for more steps, or use `run`, which says how far this one gets.",
            )
        return run.value

    @cached_property
    def _of_any_size(self) -> bool:
        """Whether a net of this source and target may be larger for another input."""
        lowerings = way(self.source, self.target, self.options)
        sizes = self.target.built_for_inputs or self.target.fitted is not Target.fitted
        return sizes or kind_of(self.source).fitted is not None or any(own.suits for own in lowerings)

    @cached_property
    def _in_one_pass(self) -> bool:
        """Whether a call is one forward pass, of a batch as of a single input, and nothing else."""
        by_steps = self.one_by_one or kind_of(self.source).one_by_one
        return self.net.one_pass and not by_steps and not self._of_any_size

    @cached_property
    def _one_step(self) -> "NumPy | None":
        """What computes the one step of a net that takes rows of bits one by one, for many of them."""
        alone = len(self.passes) == 1 and self.passes[0].one_by_one
        own = self.net.one_step() if alone else None
        return None if own is None else imported("tapegrad.networks.backends.numba:Numba")(own)

    def _at_once(self, step: "NumPy", call: Call) -> State:
        """The last state of the source, chunk by chunk, so that memory stays small."""
        rows = self.source.start(*call.inputs).astype(np.float32)
        chunks = np.split(rows, range(ROWS_AT_ONCE, len(rows), ROWS_AT_ONCE))
        return np.concatenate([step.run({"bits": chunk})[0]["outputs"] > 0.5 for chunk in chunks])

    def taking(self, *inputs: Any) -> "Compiled":
        """This net, if it has room for a run on this input; else a larger one, if its size was left open."""
        if self.given is None or not self._of_any_size or self._has_room(inputs):
            return self
        if self.larger is None or not self.larger._has_room(inputs):
            own = {name: value for name, value in self.options.items() if name in self.given}
            # A net that is built for an input has a vertex for each step.
            most = STEPS_TO_BUILD_FOR if self.target.built_for_inputs else MOST_STEPS_OF_A_CALL
            made = compile_for(self.source, self.target.name, inputs, most, **own)
            object.__setattr__(self, "larger", made)
        assert self.larger is not None
        return self.larger

    def _has_room(self, inputs: tuple[Any, ...]) -> bool:
        """Whether the input fits the net, and no option would have to be greater for its run."""
        first, most = self.source.start(*inputs), MOST_STEPS_OF_A_CALL
        try:
            lowered = self.encode(first)
            self.net.start(lowered)
        except (InputError, Refused):
            return False
        try:
            needs = suiting(self.source, self.target, first, most, self.options)
            needs |= self.target.fitted(self.lowered, lowered, most)
        except Refused:  # no size is enough: this net runs as far as it goes, and reports where it ends
            return True
        stages = defaults(self.source, self.target, self.options)
        now = {name: value for stage in stages for name, value in stage.items()} | self.options
        return all(value <= now[name] for name, value in needs.items() if isinstance(now.get(name), int))

    def start(self, *inputs: Any) -> Carry:
        """The net before its first step on an input as a user writes it."""
        return self.net.start(self.encode(self.source.start(*inputs)))

    def run(
        self,
        *inputs: Any,
        steps: int = 100_000,
        engine: str = AUTO,
        progress: Progress | None = None,
        watch: Watch | None = None,
        **named: Any,
    ) -> Run:
        """Steps the net until it is done, for at most `steps` steps of its own, on inputs as a call takes
        them, in order or by name. The engine `auto` is `fast` for a long run, where the net has one that was
        shown to be equal, and else `reference`."""
        call = kind_of(self.source).call(self.source, inputs, named)
        return self._run(call, steps, engine, progress, watch)

    def _run(
        self, call: Call, steps: int | None, engine: str, progress: Progress | None, watch: Watch | None
    ) -> Run:
        """A run; without a number of steps to its end, or not so far where that is not in sight."""
        if call.patterns != 1 and self.one_by_one:
            return self._row_by_row(call, steps, engine, progress, watch)
        net = self.taking(*call.inputs)
        ahead = None
        if steps is None or engine == AUTO:
            most = steps or MOST_STEPS_OF_A_CALL
            ahead = imported("tapegrad._lockstep:looked_ahead")(net, call.inputs, most)
        if steps is None:
            steps = MOST_STEPS_OF_A_CALL if ahead is not None and ahead.halted else STEPS_WITHOUT_AN_END
        first = net.encode(net.source.start(*call.inputs))
        if engine == AUTO:
            engine = imported("tapegrad._lockstep:engine_for")(net, first, steps, ahead)
        carry = net.net.begin(first, engine)
        run = net.resume(carry, steps=steps, engine=engine, progress=progress, watch=watch)
        done = run.halted and run.state is not None
        return replace(run, value=call.result(run.state)) if done else run

    def _row_by_row(self, call: Call, *how: Any) -> Run:
        """A run of a batch by a net that takes one row at a time: the state has the results of all rows, the
        carry is that of the last; steps and deviation are the most that a row has taken and shown."""
        (rows,) = call.inputs
        *_, none = self.source.run(self.source.start(rows[:0]))
        found, carry, longest, deviation, seconds = [none], None, 0, 0.0, 0.0
        for row in rows:
            run = self._run(Call((row[None],), lambda state: state), *how)
            found += [run.state] if run.halted and run.state is not None else []
            carry, longest = run.carry, max(longest, run.steps)
            deviation, seconds = max(deviation, run.deviation), seconds + run.seconds
        done = len(found) == 1 + len(rows)
        state = np.concatenate(found) if done else None
        value = call.result(state) if done else None
        return Run(longest, done, state, carry, deviation, seconds, value)

    @cached_property
    def one_by_one(self) -> bool:
        """Whether the net takes one input at a time, of a source that takes batches."""
        return any(own.one_by_one or kind_of(own.after).one_by_one for own in self.passes)

    def resume(
        self,
        carry: Carry,
        *,
        steps: int = 100_000,
        engine: str = "reference",
        progress: Progress | None = None,
        watch: Watch | None = None,
        every: int | None = None,
    ) -> Run:
        """Goes on from where a net stands, for at most `steps` steps from its start. `watch` sees the state
        now and then, at least every so many steps if `every` says so."""
        began = time.perf_counter()
        at_once = self.net.one_pass and progress is None and watch is None
        taken, chunk, took = self.net.steps_taken(carry), steps if at_once else 1, 0.0
        while taken < steps and not self.net.done(carry):
            # Growing chunks: a short run shows its first steps at once, a long one is not slowed down.
            chunk = max(2 * chunk if took < LONGEST_CHUNK else chunk, self.net.silent(carry))
            chunk = min(chunk, steps - taken, every or steps)
            before = time.perf_counter()
            carry = self.net.advance(carry, chunk, engine)
            taken = self.net.steps_taken(carry)
            took = time.perf_counter() - before
            if progress is not None:
                progress(taken)
            state = None if watch is None else self.decode(self.net.decode(carry))
            if watch is not None and state is not None:
                watch(state)
        done = self.net.done(carry)
        state = self.decode(self.net.decode(carry), last=done)
        return Run(
            steps=taken,
            halted=done and self._is_last(state),
            state=state,
            carry=carry,
            deviation=self.net.deviation(carry),
            seconds=time.perf_counter() - began,
        )

    def _is_last(self, state: State | None) -> bool:
        """Whether the source takes no step from here; one that takes no steps of its own is at its end."""
        if state is None or not kind_of(self.source).one_by_one:
            return True
        return len(list(islice(self.source.run(state), 2))) == 1

    # Learners, as scikit-learn has them

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        passes: int = 20,
        threshold: float | str | None = None,
        guesses: str = "both",
        seed: int = 0,
        engine: str | None = None,
    ) -> Self:
        """Trains the net of a learner on samples until it has finished, afresh: each pass, `passes` at most,
        shows every sample twice, with both guesses, so that it is learned from once. Features are bits, or
        numbers with a threshold; labels are any two values, or as many as the learner tells apart."""
        settings = {"passes": passes, "threshold": threshold, "guesses": guesses, "seed": seed}
        found = imported("tapegrad._training:fit")(self, X, y, engine=engine, **settings)
        object.__setattr__(self, "fitted", found)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class that the trained net answers for each row of X."""
        if self.fitted is None:
            raise InputError("the net has not been trained", advice="Call `fit` first.")
        return imported("tapegrad._training:predict")(self, self.fitted, X)

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """The part of the rows of X whose class the trained net gets right."""
        labels = imported("tapegrad.learners.data:labels_of")(y)
        return float(np.mean(self.predict(X) == labels))

    def explain(self, unit: str) -> str:
        """What a weight or unit stands for, in words; or a column, a value or a row of the network, by the
        names that `print(net.network)` has."""
        try:
            return self.net.explain(unit)
        except InputError:
            if (said := self._explained(unit)) is None:
                raise
            return said

    def _explained(self, unit: str) -> str | None:
        """What the graph says; a net with exact memory has none."""
        try:
            return self.net.explained.explain(unit)
        except Refused:
            return None

    def units(self) -> Iterator[str]:
        """The names that `explain` understands: those of what the network is made for, then its own."""
        yield from self.net.units()
        try:
            explained = self.net.explained
        except Refused:
            return
        for unit in explained.units():
            try:
                self.net.explain(unit)
            except InputError:
                yield unit

    def built_for(self) -> list[tuple[Any, ...]] | None:
        """The inputs that the net was built for, as a user writes them; None where it takes any, or where
        they have no form in the user's terms."""
        if not self.target.built_for_inputs:
            return None
        settings = self.target.with_defaults(
            {name: value for name, value in self.options.items() if name in self.target.options}
        )
        if settings["inputs"] is not None:
            return [tuple(words) for words in _words(self.source, settings["inputs"])]
        if self.passes:
            return None
        return [(state,) for state in self.target.first_states(self.source, **settings)]


Given = Source | Found | Callable[..., Any] | str | PathLike[str]
"""A source, a Python function whose parameters have types, or a text: a ready name, a file, a format."""


def compile(given: Given, target: str | None = None, **options: Any) -> Compiled:
    """A net of the given target that runs the source exactly. The source is one of the kinds of source, or a
    Python function whose parameters have types, or a text: a ready name, a file, or `file.py:function`.

    1. Lower the source to the kind that the target takes (the kinds' records say how).
    2. Rewrite it into the form that the target needs (the target's own passes).
    3. Build the net.
    """
    target = _chosen(given, target, "compile")
    source = as_source(given)
    if (own := _built_for(given, source, target, options)) is not None:
        return replace(
            compile_for(source, target, own, MOST_STEPS_OF_A_CALL, **options), given=frozenset(options)
        )
    with alive(lambda: f"{source.name} is being compiled for {target}"):
        sized, chosen, passes, settings = _sized(given, source, target, options)
        lowered = passes[-1].after if passes else source
        return Compiled(chosen.build(lowered, **settings), chosen, source, passes, sized, frozenset(options))


def _chosen(given: Any, target: Any, call: str) -> str:
    """The target, if there is one and it comes second."""
    names = target_names()
    if isinstance(given, str) and given in names and not (isinstance(target, str) and target in names):
        raise InputError(
            "the source comes first, then the target", advice=f'Write tg.{call}({_named(target)}, "{given}").'
        )
    if isinstance(target, str):
        return target
    raise InputError(
        "there is no target" if target is None else f"{described(target)} is no target",
        advice=f'Choose one of {", ".join(names)}, as in tg.{call}({_named(given)}, "relu").',
    )


def _named(given: Any) -> str:
    """A source as it may be written in a call."""
    short = isinstance(given, str) and len(given) <= LONGEST_NAME
    return getattr(given, "__name__", json.dumps(given) if short else "source")


def check_compiled(given: Any, call: str, further: str = "") -> None:
    """Refuses what is no compiled net where one is needed."""
    if not isinstance(given, Compiled):
        raise InputError(
            f"`{call}` takes a compiled net, and this is {described(given)}",
            advice=f'Compile it first, as in tg.{call}(tg.compile({_named(given)}, "relu"){further}).',
        )


def _sized(
    given: Given, source: Source, target: str, options: dict[str, Any]
) -> tuple[dict[str, Any], Target, tuple[Rewriting, ...], dict[str, Any]]:
    """The options with values for those that were left open, and what `_prepared` makes of them."""
    refuse_early(source, target, None, options)
    chosen, own, sized = target_named(target), example_of(given, source), dict(options)
    if left_open(source, chosen, options):
        sized = typical(source, chosen, own, options) | options
    _, passes, settings = _prepared(source, target, sized)
    lowered = passes[-1].after if passes else source
    open_ones = {name: value for name, value in settings.items() if name not in sized}
    larger = for_own_run(source, own, chosen, lowered, partial(_encoded, passes), open_ones)
    return sized | larger, chosen, passes, settings | larger


def _built_for(
    given: Given, source: Source, target: str, options: Mapping[str, Any]
) -> tuple[Any, ...] | None:
    """The input to build a net for that is built for inputs, where none are given and short words would say
    nothing: the source's own, or a typical one."""
    refuse_early(source, target, None, options)
    chosen = target_named(target)
    if not chosen.built_for_inputs or {"inputs", "longest"} & options.keys():
        return None
    own = example_of(given, source)
    if isinstance(source, chosen.kinds):
        return own if own and len(source.alphabet) > FEW_SYMBOLS else None  # type: ignore[attr-defined]
    if own or kind_of(source).one_by_one or left_open(source, chosen, options):
        return next(typical_inputs(source, own), None)
    return None


def compile_for(
    source: Source, target: str, inputs: Iterable[Any], steps: int, /, **options: Any
) -> Compiled:
    """`compile`, where the net is to run on this one input: options that depend on the input and on the
    number of steps are chosen to suit, unless they are given; and so is the size of the source, where that is
    not a part of what it says."""
    with alive(lambda: f"{source.name} is being compiled for {target}"):
        source, options, chosen, passes, settings = _suited(source, target, inputs, steps, options)
        lowered = passes[-1].after if passes else source
        return Compiled(chosen.build(lowered, **settings), chosen, source, passes, options)


def _suited(
    source: Source, target: str, inputs: Iterable[Any], steps: int, options: dict[str, Any]
) -> tuple[Source, dict[str, Any], Target, tuple[Rewriting, ...], dict[str, Any]]:
    words = tuple(inputs)
    if (fitted := kind_of(source).fitted) is not None:
        source = imported(fitted)(source, words, steps)
    first = source.start(*words)
    refuse_early(source, target, first, options)
    if target_named(target).built_for_inputs and "longest" not in options:
        options.setdefault("inputs", [tuple(map(_as_text, words))])
    options = suiting(source, target_named(target), first, steps, options) | options
    chosen, passes, settings = _prepared(source, target, options)
    if chosen.options.keys() - options.keys():
        suits = chosen.fitted(passes[-1].after if passes else source, _encoded(passes, first), steps)
        options = dict(suits) | options
        settings |= {name: options[name] for name in suits}
    return source, options, chosen, passes, settings


def estimate(given: Given, target: str | None = None, **options: Any) -> Estimate:
    """Width, depth, weights, memory and precision of `compile(given, target, **options)`, unbuilt."""
    target = _chosen(given, target, "estimate")
    source = as_source(given)
    if (own := _built_for(given, source, target, options)) is not None:
        return estimate_for(source, target, own, MOST_STEPS_OF_A_CALL, **options)
    _, chosen, passes, settings = _sized(given, source, target, options)
    return chosen.estimate(passes[-1].after if passes else source, **settings)


def estimate_for(
    source: Source, target: str, inputs: Iterable[Any], steps: int, /, **options: Any
) -> Estimate:
    """`estimate` of what `compile_for` builds."""
    source, options, chosen, passes, settings = _suited(source, target, inputs, steps, options)
    return chosen.estimate(passes[-1].after if passes else source, **settings)


def prepare(
    source: Source, target: str, options: dict[str, Any], then: Sequence[Defaults] | None = None
) -> tuple[Rewriting, ...]:
    """The passes that `compile` takes; the same again whenever it is asked, as a loaded net needs. It gives
    the `defaults` of the time when it was compiled."""
    return _prepared(source, target, options, then)[1]


def defaults(source: Source, target: Target, names: Iterable[str] = ()) -> list[Defaults]:
    """The defaults of all options: those of each lowering on the way to the target where options of these
    names are given, then the target's."""
    return [
        {name: option.default for name, option in stage.options.items() if option.default is not ...}
        for stage in (*way(source, target, names), target)
    ]


def _prepared(
    source: Source, target: str, options: dict[str, Any], then: Sequence[Defaults] | None = None
) -> tuple[Target, tuple[Rewriting, ...], dict[str, Any]]:
    refuse_early(source, target, None, options)
    chosen = target_named(target)
    passes: list[Rewriting] = []
    own = dict(options)
    # A loaded net has come the way whose options it names.
    names = {*options, *(name for stage in then or () for name in stage)}
    lowerings, now = way(source, chosen, names), defaults(source, chosen, names)
    if then is not None and len(then) != len(now):
        raise Refused(f"from this source to {target!r} there is another way now than there was then")
    changed = [
        {name: value for name, value in before.items() if name not in after or after[name] != value}
        for before, after in zip(now if then is None else then, now, strict=True)
    ]
    if then is not None:
        stages = (*lowerings, chosen)
        for stage, before, others in zip(stages, then, changed, strict=True):
            others |= {n: o.was for n, o in stage.options.items() if n not in before and o.was is not ...}
    for lowering, others in zip(lowerings, changed, strict=False):
        wanted = others | {name: own.pop(name) for name in lowering.options if name in own}
        passes.append(lowering.rewrite(passes[-1].after if passes else source, **wanted))
    settings = chosen.with_defaults(changed[-1] | own)
    passes.extend(chosen.passes(passes[-1].after if passes else source, **settings))
    if chosen.built_for_inputs and settings["inputs"] is not None:
        starts = [source.start(*words) for words in _words(source, settings["inputs"])]
        settings["inputs"] = [(_encoded(passes, state),) for state in starts]
    return chosen, tuple(passes), settings


def refuse_early(source: Source, target: str, first: State | None, options: Mapping[str, Any]) -> None:
    """Refuses what is known not to fit before anything is loaded that takes time."""
    if (refuses := kind_of(source).refuses) is not None:
        imported(refuses)(source, target, first, options)


def _words(source: Source, inputs: Any) -> Iterable[Iterable[Any]]:
    """The arguments of `source.start` for each input; on the command line `,` separates inputs and `|`
    tapes."""
    if isinstance(inputs, str | int):
        return [parse_inputs(source, words.split("|")) for words in str(inputs).split(",")]
    return inputs


def _as_text(word: Any) -> Any:
    """Bytes as the text that they are, which can be saved; anything else as it is."""
    try:
        return word.decode() if isinstance(word, bytes) else word
    except UnicodeDecodeError:
        return word


def _encoded(passes: Iterable[Rewriting], state: State) -> State:
    for rewriting in passes:
        state = rewriting.encode(state)
    return state
