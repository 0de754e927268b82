"""The metaalgorithm of Corollary 1 (Abbe, Sandon): every program of at most k bits, all trained on the same
samples, and the most accurate one answers.

The machine has a word V, which is x when a program starts, and a word A, which stays from sample to sample
and starts with all bits at 1. An instruction has three bits:

    NOT     V := not V
    LABEL   every bit of V: whether it equals the label
    WHEN    skips the next instruction unless the label is 1
    NARROW  A := A and V
    MASK    V := V and A
    ALL     every bit of V: whether V is 1 wherever A is
    SHIFT   V one place further, 0 comes in
    AGAIN   back to the first instruction, if any bit of V is 1

A program ends after its last instruction, and its answer is whether V and A meet. To learn from a sample it
runs with the label. To answer it runs as if the label were 1, and NARROW does nothing. A program that has not
ended after `limit` instructions is interrupted: the sample leaves A as it was, and an answer counts as wrong.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from tapegrad.circuits import Bit, UInt, all_of, any_of, where
from tapegrad.errors import SourceError
from tapegrad.learners.functions import FunctionLearner

INSTRUCTIONS = ("NOT", "LABEL", "WHEN", "NARROW", "MASK", "ALL", "SHIFT", "AGAIN")
BITS = 3
"""Of an instruction."""
MOST_PROGRAM_BITS = 12

Program = tuple[str, ...]


def programs_up_to(bits: int) -> list[Program]:
    """Every program of at most so many bits, the shortest first."""
    return [one for length in range(bits // BITS + 1) for one in product(INSTRUCTIONS, repeat=length)]


class Ended(NamedTuple):
    """How a run came out: whether it ended in time, the answer, and A."""

    in_time: Any
    answer: Any
    kept: Any


class _At(NamedTuple):
    """A place in the program that the run may have reached: whether it has, V and A."""

    reached: Any
    v: Any
    a: Any


def learn(program: Program, x: Any, label: Any, a: Any, limit: int) -> Ended:
    """One run on a sample to learn from, for words and bits as `tapegrad.circuits` computes with them. The
    program is known, so only what depends on the words becomes gates."""
    return _run(program, x, label, a, limit)


def answer(program: Program, x: Any, a: Any, limit: int) -> Ended:
    """One run to answer: NARROW, which does nothing then, still takes its time."""
    return _run(tuple("IDLE" if one == "NARROW" else one for one in program), x, Bit(1), a, limit)


def _run(program: Program, x: Any, label: Any, a: Any, limit: int) -> Ended:
    places, end = {0: _At(Bit(1), x, a)}, len(program)
    for _ in range(limit):
        after: dict[int, _At] = {}
        for place, at in sorted(places.items()):
            for target, reached in _step(program, place, at, label) if place < end else [(place, at)]:
                _join(after, target, reached)
        places = after
        if places.keys() == {end}:
            break
    last = places.get(end, _At(Bit(0), x, a))
    return Ended(last.reached, any_of(last.v & last.a), last.a)


def _step(program: Program, place: int, at: _At, label: Any) -> Iterator[tuple[int, _At]]:
    """Where the instruction at this place may lead."""
    reached, v, a = at
    ones, none = v.type((1 << v.type.width) - 1), v.type(0)
    match program[place]:
        case "WHEN":
            yield place + 1, _At(reached & label, v, a)
            yield min(place + 2, len(program)), _At(reached & ~label, v, a)
            return
        case "AGAIN":
            again = any_of(v)
            yield 0, _At(reached & again, v, a)
            yield place + 1, _At(reached & ~again, v, a)
            return
        case "NOT":
            v = ~v
        case "LABEL":
            v = v ^ where(label, none, ones)
        case "NARROW":
            a = a & v
        case "MASK":
            v = v & a
        case "ALL":
            v = where(all_of(v | ~a), ones, none)
        case "SHIFT":
            v = v << 1
    yield place + 1, _At(reached, v, a)


def _join(places: dict[int, _At], place: int, at: _At) -> None:
    """Two ways to one place, of which a run takes one."""
    if place in places:
        other = places[place]
        at = _At(
            at.reached | other.reached, where(at.reached, at.v, other.v), where(at.reached, at.a, other.a)
        )
    places[place] = at


def metaalgorithm(n: int, bits: int, train: int, compare: int, limit: int = 8) -> FunctionLearner:
    """Learning-Metaalgorithm: trains every program of at most `bits` bits on the same `train` samples of n
    bits, counts their errors on `compare` more, and answers with the best, the earliest at a tie."""
    if not 0 <= bits <= MOST_PROGRAM_BITS or min(n, train, compare, limit) < 1:
        raise SourceError(
            f"programs of {bits} bits on {n}-bit samples, {train} to train on and {compare} to compare by",
            advice=f"Programs may have up to {MOST_PROGRAM_BITS} bits; all other numbers must be positive.",
        )
    programs, word = programs_up_to(bits), UInt(n)
    seen, errors = UInt((train + compare).bit_length()), UInt(compare.bit_length())

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        training = memory["seen"] < train
        kept, counts = [], []
        for program, a, count in zip(programs, memory["kept"], memory["errors"], strict=True):
            learned = learn(program, x, y, a, limit)
            kept.append(where(training & learned.in_time, learned.kept, a))
            said = answer(program, x, a, limit)
            wrong = ~said.in_time | (said.answer ^ y)
            counts.append(where(~training & wrong, count + 1, count))
        return {"kept": kept, "errors": counts, "seen": memory["seen"] + 1}

    def predict(memory: Any, x: Any) -> Any:
        said = [answer(one, x, a, limit) for one, a in zip(programs, memory["kept"], strict=True)]
        answers = [one.answer & one.in_time for one in said]
        return _best(list(zip(memory["errors"], answers, strict=True)))

    return FunctionLearner(
        name=f"all programs of at most {bits} bits on {n} bits",
        x=word,
        memory={"kept": [word] * len(programs), "errors": [errors] * len(programs), "seen": seen},
        update=update,
        predict=predict,
        done=lambda memory: memory["seen"] == train + compare,
        first_memory={"kept": [(1 << n) - 1] * len(programs), "errors": [0] * len(programs), "seen": 0},
    )


def _best(pairs: Sequence[tuple[Any, Any]]) -> Any:
    """The answer that comes with the fewest errors, in a tournament: its depth is a logarithm."""
    while len(pairs) > 1:
        rounds = []
        for (errors, answer), (others, other) in zip(pairs[::2], pairs[1::2], strict=False):
            better = others < errors
            rounds.append((where(better, others, errors), where(better, other, answer)))
        pairs = [*rounds, *pairs[len(pairs) - len(pairs) % 2 :]]
    return pairs[0][1]
