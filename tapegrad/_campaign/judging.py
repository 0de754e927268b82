"""How the programs of a campaign are judged, many together, and how one that failed is made smaller."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from tapegrad._campaign.passes import Rcnn, Relu, Transformer
from tapegrad._campaign.programs import LENGTHS, Program
from tapegrad._campaign.texts import Texts
from tapegrad._campaign.trained import Emulator, Simplex, Tape
from tapegrad._campaign.watch import Batched, Seen, Stepped, Watch, follow
from tapegrad._compile import Compiled, compile, compile_for
from tapegrad._verify import verify
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.errors import Refused, TapegradError
from tapegrad.learners.model import CircuitLearner, Memory, Response
from tapegrad.machines.model import GridMachine, TuringMachine
from tapegrad.source import Source, State
from tapegrad.targets import target_named
from tapegrad.targets.net import Net

WATCHES: dict[str, Watch] = {
    "simplex": Simplex(),
    "tape": Tape(),
    "transformer": Transformer(),
    "emulator": Emulator(),
    "relu": Relu(),
    "rcnn": Rcnn(),
    "decoder": Texts(),
}
MOST_TABULATED = 12
"""Inputs of a learner's circuit whose values for all of them are worked out at once."""


class Verdict(NamedTuple):
    """What came of one program."""

    states: int = 0
    """How many states of the net were compared."""
    refused: str = ""
    """Why it was not tried, if it was not."""
    mismatch: str = ""
    """Where net and source part, if they do."""


def judge(programs: Sequence[Program], engine: str) -> list[Verdict]:
    """A verdict for each. What cannot be followed with others, and what stops the others, is tried alone."""
    verdicts: list[Verdict | None] = [None] * len(programs)
    together: list[tuple[int, Compiled, list[_Expected]]] = []
    for number, one in enumerate(programs):
        try:
            if one.inputs == ():
                raise Refused("it halts on none of its inputs")
            if one.inputs is None or one.steps is None:
                compiled = compile(one.source, one.target, **one.options)
            else:
                compiled = compile_for(one.source, one.target, one.inputs[0], one.steps, **one.options)
            alone = one.steps is not None or not _can_follow(compiled.net, engine)
            if one.inputs is None or alone or any(p.covers for p in compiled.passes):
                verdicts[number] = _alone(one, compiled, engine)
                continue
            source, length = _interpreter(one.source), LENGTHS[one.target]
            expected = [_interpreted(compiled, source, words, length) for words in one.inputs]
        except TapegradError as error:
            verdicts[number] = Verdict(refused=error.what)
            continue
        except Exception as error:  # whatever it is, it is a fault of ours
            verdicts[number] = _crashed(error)
            continue
        parted = next((own.mismatch for own in expected if own.mismatch), "")
        if parted:
            verdicts[number] = Verdict(mismatch=parted)
        else:
            together.append((number, compiled, expected))
    for number, verdict in zip(
        [number for number, *_ in together], _followed(programs, together, engine), strict=True
    ):
        verdicts[number] = verdict
    return [verdict for verdict in verdicts if verdict is not None]


def _can_follow(net: Net, engine: str) -> bool:
    """Whether there is a watch for it; not all of them know the reference engine."""
    watch = WATCHES.get(net.target)
    if watch is None or not isinstance(net, watch.nets):
        return False
    return engine == "fast" or isinstance(watch, Batched | Stepped)


class _Expected(NamedTuple):
    """The run of the lowered source, as the interpreter has it."""

    states: list[State]
    halted: bool
    mismatch: str = ""
    """Where it is not the run of the source itself."""


def _interpreted(compiled: Compiled, source: Source, words: tuple[Any, ...], length: int) -> _Expected:
    """Both interpreters side by side: where a state of the lowered source stands for one of the source, it
    is the next that the source passes; where one halts, so does the other."""
    lowered = compiled.lowered if compiled.passes else source
    first = source.start(*words)
    own, reached = source.run(first), None
    states = list(islice(lowered.run(compiled.encode(first)), length + 1))
    halted = len(states) <= length
    if not compiled.passes:
        return _Expected(states[:length], halted)
    for number, state in enumerate(states[:length]):
        decoded = compiled.decode(state)
        if decoded is not None:
            reached = next(own, None)
            if not _same(decoded, reached):
                return _Expected([], False, f"{words}: lowered step {number} is {decoded}, not {reached}")
    if halted:
        last, left = compiled.decode(states[-1], last=True), next(own, None)
        if left is not None or not _same(last, reached):
            return _Expected(
                [], False, f"{words}: the lowered source ends with {last}, not {left or reached}"
            )
    return _Expected(states[:length], halted)


class _Tabulated(CircuitLearner):
    """A learner whose circuit has been evaluated on every input, once and for all."""

    def __init__(self, learner: CircuitLearner) -> None:
        super().__init__(learner.circuit, learner.inputs, learner.first)
        count = len(self.circuit.inputs)
        every = (np.arange(1 << count)[:, None] >> np.arange(count) & 1).astype(bool)
        self.table = self.circuit.wire_values(every)[self.circuit.output_wires].T.astype(int).tolist()

    def respond(self, memory: Memory, x: Sequence[int], random: int, guess: int) -> Response:
        place = sum(int(bit) << i for i, bit in enumerate((*memory, *x, random, guess)))
        answer, finished, *rest = self.table[place]
        return Response(answer, finished, tuple(rest))


def _interpreter(source: Source) -> Source:
    """The source, a learner of few bits as a table: that saves evaluating its circuit for each sample."""
    if isinstance(source, CircuitLearner) and len(source.circuit.inputs) <= MOST_TABULATED:
        return _Tabulated(source)
    return source


def _same(a: State, b: State) -> bool:
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b


def _followed(
    programs: Sequence[Program], together: Sequence[tuple[int, Compiled, list[_Expected]]], engine: str
) -> Iterator[Verdict]:
    if not together:
        return
    target = programs[together[0][0]].target
    watch, nets = WATCHES[target], [compiled.net for _, compiled, _ in together]
    starts = [[own.states[0] for own in expected] for _, _, expected in together]
    try:
        found = follow(watch, nets, starts, LENGTHS[target], engine)
    except Exception as error:
        if len(together) == 1:
            number, compiled, _ = together[0]
            yield (
                _alone(programs[number], compiled, engine)
                if isinstance(error, TapegradError)
                else _crashed(error)
            )
            return
        for one in together:
            yield from _followed(programs, [one], engine)
        return
    for (number, compiled, expected), seen in zip(together, found, strict=True):
        states = 0
        for words, own, did in zip(programs[number].inputs or (), expected, seen, strict=True):
            parted = _parted(watch.marks(compiled.net, own.states), own, did)
            if parted:
                yield Verdict(mismatch=f"{_brief(words)}: {parted}")
                break
            states += len(own.states)
        else:
            yield Verdict(states)


def _parted(marks: np.ndarray, expected: _Expected, seen: Seen) -> str:
    """Where what was seen is not what was expected."""
    count = len(expected.states)
    if len(seen.marks) < count:
        return f"the net ends after {len(seen.marks)} of {count} states"
    differs = (seen.marks[:count] != marks).any(axis=1)
    off = ~np.isfinite(seen.deviation[:count])
    halted = (np.arange(count) == count - 1) & expected.halted
    done = np.zeros(count, bool) if seen.done is None else seen.done[:count] != halted
    for what, rows in (
        ("another state", differs),
        ("a value that is not finite", off),
        ("another end", done),
    ):
        if rows.any():
            step = int(rows.argmax())
            return f"{what} than {_brief(expected.states[step])} at state {step}"
    return ""


def _alone(one: Program, compiled: Compiled, engine: str) -> Verdict:
    """By `verify`, step by step."""
    try:
        engine = engine if engine in type(compiled.net).engines else "reference"
        in_layers = any(p.covers for p in compiled.passes)
        steps = 1 << 20 if in_layers else one.steps or LENGTHS.get(one.target, 101) - 1
        report = verify(compiled, one.inputs, steps=steps, engine=engine)
    except TapegradError as error:
        return Verdict(refused=error.what)
    except Exception as error:
        return _crashed(error)
    if not report.agreed:
        return Verdict(report.states, mismatch=str(report))
    return Verdict(report.states, refused="" if report.states else "no state was compared")


def _crashed(error: Exception) -> Verdict:
    return Verdict(mismatch=f"{type(error).__name__}: {_brief(error)}")


def _brief(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 300 else f"{text[:280]} ... ({len(text):,} characters)"


# Shrinking


MOST_TRIES = 300


def shrunk(failed: Program, engine: str) -> tuple[Program, Verdict]:
    """A smaller program that fails as well: inputs, rules or gates are left out while it does."""
    verdict, tries, going = judge([failed], engine)[0], 0, True
    while going:
        going = False
        for smaller in _smaller(failed):
            tries += 1
            if tries > MOST_TRIES:
                return failed, verdict
            found = judge([smaller], engine)[0]
            if found.mismatch:
                failed, verdict, going = smaller, found, True
                break
    return failed, verdict


def _smaller(one: Program) -> Iterator[Program]:
    """Programs with something left out, the most first."""
    inputs = one.inputs or ()
    for number in range(len(inputs) if len(inputs) > 1 else 0):
        yield _with_inputs(one, (inputs[number],))
    source = one.source
    if isinstance(source, TuringMachine | GridMachine):
        for rule in source.rules:
            kept = {key: value for key, value in source.rules.items() if key != rule}
            yield replace(one, source=_with_rules(source, kept))
        if isinstance(source, TuringMachine) and len(inputs) == 1:
            for tape, word in enumerate(inputs[0]):
                for cut in (word[:-1], word[1:]) if word else ():
                    yield _with_inputs(one, ((*inputs[0][:tape], cut, *inputs[0][tape + 1 :]),))
    if isinstance(source, Circuit):
        yield from (replace(one, source=smaller) for smaller in _smaller_circuits(source, keep=1))
    if isinstance(source, CircuitLearner):
        for smaller in _smaller_circuits(source.circuit, keep=len(source.circuit.outputs)):
            yield replace(one, source=CircuitLearner(smaller, source.inputs, source.first))


def _with_inputs(one: Program, inputs: tuple[tuple[Any, ...], ...]) -> Program:
    options = (
        {**one.options, "inputs": list(inputs)} if target_named(one.target).built_for_inputs else one.options
    )
    return replace(one, inputs=inputs, options=options)


def _with_rules(machine: Any, rules: Mapping[Any, Any]) -> Any:
    """The machine with these rules, and without the states that no rule speaks of any more."""
    used = {machine.start_state, *(state for state, _ in rules), *(rule.state for rule in rules.values())}
    states = tuple(state for state in machine.states if state in used)
    return replace(machine, rules=rules, states=states)


def _smaller_circuits(circuit: Circuit, keep: int) -> Iterator[Circuit]:
    """An output less, while there are more than to keep; or a gate less, whose readers have its first operand
    instead."""
    for out in range(len(circuit.outputs) if len(circuit.outputs) > keep else 0):
        kept = [i for i in range(len(circuit.outputs)) if i != out]
        names = tuple(circuit.outputs[i] for i in kept)
        yield replace(circuit, outputs=names, output_wires=circuit.output_wires[kept])
    first = len(circuit.inputs)
    for gate in range(circuit.size - 1, -1, -1):
        if Gate(int(circuit.kinds[gate])).arity == 0 and first == 0:
            continue
        instead = circuit.left[gate] if Gate(int(circuit.kinds[gate])).arity else 0

        def moved(wires: Any, gate: int = gate, instead: int = int(instead)) -> Any:
            renamed = np.where(wires == first + gate, instead, wires)
            return np.where(renamed > first + gate, renamed - 1, renamed).astype(np.int32)

        yield replace(
            circuit,
            kinds=np.delete(circuit.kinds, gate),
            left=moved(np.delete(circuit.left, gate)),
            right=moved(np.delete(circuit.right, gate)),
            output_wires=moved(circuit.output_wires),
        )
