"""Rosenblatt's rule as a Turing machine with as many states for any data: what grows is the tapes.

    for each of `epochs` rounds, until one has no mistake:
        for each sample:
            unless w . x + b > 0 where the label is positive, and < 0 where it is not:
                w += x, b += 1 where it is positive, else w -= x, b -= 1

A sum of 0 is on no side, as in scikit-learn's `Perceptron`. Numbers are whole: the data in units of the last
place of their format. Three tapes hold words, the lowest bit first, between marks `#`:

    data      # x_1 # x_2 ... # 1 # label #  and the next sample, to the first blank
    weights   # w_1 # w_2 ... # b #
    sum       a 1 for every further round, # w . x + b #, and a 1 there if this round had a mistake

A product is made from the lowest bit of x up: where it is 1 the weight is added to the sum, and then the
weight is doubled in its place; the highest bit, which counts as negative, is subtracted. On its way back over
x the head of the data halves the weight as often. So no state counts anything: the marks say where words end.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from tapegrad.errors import InputError, Refused
from tapegrad.machines.model import LEFT, RIGHT, STAY, Rule, TuringMachine
from tapegrad.targets.extended.build import Procedure
from tapegrad.targets.extended.formats import MOST_BITS, FixedPoint

BLANK, MARK = "_", "#"
ALPHABET = (BLANK, "0", "1", MARK)
DATA, WEIGHTS, SUM = range(3)
START, DONE = "start", "done"


Carried = tuple[Any, ...]


class State(NamedTuple):
    """What the machine is doing, and the few bits that it carries from cell to cell."""

    doing: str
    carried: Carried = ()

    def __str__(self) -> str:
        return " ".join([self.doing, *(str(one) for one in self.carried)])


class Act(NamedTuple):
    """What a rule does: the next state, how the heads of data, weights and sum move, and what is written."""

    to: State
    data: int = STAY
    weights: int = STAY
    sum: int = STAY
    weight: str | None = None
    total: str | None = None


def followed(rule: Callable[[State, tuple[str, ...]], tuple[Rule, State] | None], name: str) -> TuringMachine:
    """The machine with three tapes whose rules these are, by following its states from the first."""
    rules: dict[tuple[str, tuple[str, ...]], Rule] = {}
    first = State(START)
    found, waiting = {first}, [first]
    while waiting:
        state = waiting.pop()
        for read in product(ALPHABET, repeat=3):
            known = rule(state, read)
            if known is None:
                continue
            rules[str(state), read], after = known
            if after not in found:
                found.add(after)
                waiting.append(after)
    return TuringMachine(rules, START, blank=BLANK, alphabet=ALPHABET, accept=frozenset([DONE]), name=name)


@cache
def perceptron_machine() -> TuringMachine:
    """The machine of Rosenblatt's rule."""

    def rule(state: State, read: tuple[str, ...]) -> tuple[Rule, State] | None:
        act = _act(state, *read)
        if act is None:
            return None
        write = (read[DATA], act.weight or read[WEIGHTS], act.total or read[SUM])
        return Rule(write, (act.data, act.weights, act.sum), str(act.to)), act.to

    return followed(rule, "perceptron rule")


ASKING = "first sample"
"""The state that ends a round of `batch_machine`, with the data's head at the blank before the first sample:
neither this cell nor the next depends on the data, so that others may come in their place."""


@cache
def batch_machine() -> TuringMachine:
    """The same machine, for which the data of every round are another batch: a round without a mistake is not
    the last."""
    machine = perceptron_machine()
    rules = {
        (state, read): replace(machine.rules[state, (*read[:SUM], "1")], write=read)
        if state == "was there a mistake" and read[SUM] != "1"
        else rule
        for (state, read), rule in machine.rules.items()
    }
    return replace(machine, rules=rules, name="perceptron rule, batch after batch")


def _act(state: State, d: str, w: str, p: str) -> Act | None:
    """The rule for a state and the symbols of data, weights and sum; None where none is needed."""
    for rules in (_multiplying, _deciding, _updating, _between):
        act = rules(state.doing, state.carried, d, w, p)
        if act is not None:
            return act
    return None


NEXT_FEATURE = State("bit", (None,))
"""The head of the data is on the lowest bit of x_i, the others on the marks before w_i and the sum."""


def _multiplying(doing: str, carried: Carried, d: str, w: str, p: str) -> Act | None:
    """w_i x_i is added to the sum. The bit of x that is worked on is carried, its head being one further: so
    it is known whether it was the highest."""
    match doing, carried:
        case "bit", (None,):
            return Act(State("bit", (d,)), data=RIGHT) if d in "01" else None
        case "bit", (bit,):
            last = int(d == MARK)
            sign = 0 if bit == "0" else -1 if last else 1
            return Act(State("add", (sign, last, 0, "0")), weights=RIGHT, sum=RIGHT)
        case "add", (sign, last, carry, doubled):
            if w == MARK:
                return Act(State("added", (last,)), weights=LEFT, sum=LEFT)
            if w not in "01" or p not in "01":
                return None
            bit, carry = _added(p, sign * int(w), sign * carry)
            after = State("add", (sign, last, carry, w))
            return Act(after, weights=RIGHT, sum=RIGHT, weight=doubled, total=bit)
        case "added", (last,):
            if w != MARK:
                return Act(State("added", (last,)), weights=LEFT, sum=LEFT)
            if last:
                return Act(State("halve"), data=LEFT)
            return Act(State("bit", (d,)), data=RIGHT) if d in "01" else None
        case "halve", ():
            if d == MARK:
                return Act(State("advance"), data=RIGHT, weights=RIGHT)
            return Act(State("to the highest bit"), weights=RIGHT)
        case "to the highest bit", ():
            if w != MARK:
                return Act(State("to the highest bit"), weights=RIGHT)
            return Act(State("move down", (None,)), weights=LEFT)
        case "move down", (above,):
            if w == MARK:
                return Act(State("halve"), data=LEFT)
            return Act(State("move down", (w,)), weights=LEFT, weight=above or w)
        case "advance", ():
            if d == MARK and w == MARK:
                return Act(State("is there another"), weights=RIGHT)
            return Act(State("advance"), data=_until_mark(d), weights=_until_mark(w))
        case "is there another", ():
            if w == BLANK:
                return Act(State("label", (0,)), data=RIGHT, weights=LEFT)
            return Act(NEXT_FEATURE, data=RIGHT, weights=LEFT)
    return None


def _added(bit: str, number: int, carry: int) -> tuple[str, int]:
    """A bit of a sum, or of a difference, and what is carried: never below 0."""
    total = int(bit) + number + carry
    return str(total & 1), abs(total >> 1)


def _until_mark(symbol: str) -> int:
    return STAY if symbol == MARK else RIGHT


def _deciding(doing: str, carried: Carried, d: str, w: str, p: str) -> Act | None:
    """Label and sum have signs: that of the highest bit, or 0 if there is no 1. Unless both are positive, or
    the sum is negative and the label not positive, it is a mistake, which is noted beyond the sum; the sum is
    cleared."""
    match doing, carried:
        case "label", (sign,):
            if d == MARK:
                return Act(State("sign", (max(sign, 0), 0)), sum=RIGHT)
            return Act(State("label", (_sign_so_far(sign, d),)), data=RIGHT)
        case "sign", (label, sign):
            if p != MARK:
                return Act(State("sign", (label, _sign_so_far(sign, p))), sum=RIGHT)
            if sign == (1 if label else -1):
                return Act(State("clear", (0,)), sum=LEFT)
            return Act(State("noted", (1 if label else -1,)), sum=RIGHT)
        case "noted", (change,):
            return Act(State("to the sum", (change,)), sum=LEFT, total="1")
        case "to the sum", (change,):
            return Act(State("clear", (change,)), sum=LEFT)
        case "clear", (change,):
            if p != MARK:
                return Act(State("clear", (change,)), sum=LEFT, total="0")
            return Act(State("first weight", (change,)), weights=LEFT)
        case "first weight", (change,):
            if w != BLANK:
                return Act(State("first weight", (change,)), weights=LEFT)
            if not change:
                return Act(State("next sample"), data=RIGHT, weights=RIGHT)
            return Act(State("back", (change,)), data=LEFT, weights=RIGHT)
    return None


def _sign_so_far(sign: int, bit: str) -> int:
    """Of a number in two's complement with one bit more, which is now the highest."""
    return -1 if bit == "1" else abs(sign)


def _updating(doing: str, carried: Carried, d: str, w: str, p: str) -> Act | None:
    """Back to the first mark of the sample, which stands beside another mark or a blank; then x is added to
    the weights, or subtracted, word by word."""
    match doing, carried:
        case "back", (change,):
            return Act(State("first" if d == MARK else "back", (change,)), data=LEFT)
        case "first", (change,):
            if d in "01":
                return Act(State("back", (change,)), data=LEFT)
            return Act(State("update", (change,)), data=RIGHT)
        case "update", (change,):
            return Act(State("change", (change, 0, 0)), data=RIGHT, weights=RIGHT)
        case "change", (change, carry, above):
            if w == MARK:
                return Act(State("is there one more", (change,)), weights=RIGHT)
            if w not in "01" or d == BLANK:
                return None
            x = above if d == MARK else int(d)  # beyond the highest bit are copies of it
            bit, carry = _added(w, change * x, change * carry)
            return Act(State("change", (change, carry, x)), data=_until_mark(d), weights=RIGHT, weight=bit)
        case "is there one more", (change,):
            if w == BLANK:
                return Act(State("skip the label"), data=RIGHT, weights=LEFT)
            return Act(State("update", (change,)), weights=LEFT)
        case "skip the label", ():
            if d != MARK:
                return Act(State("skip the label"), data=RIGHT)
            return Act(State("first weight", (0,)), weights=LEFT)
    return None


def _between(doing: str, carried: Carried, d: str, w: str, p: str) -> Act | None:
    """From sample to sample, and from round to round: one more costs a 1 before the sum."""
    match doing, carried:
        case "start", ():
            return Act(State("find the sum"), data=RIGHT, weights=RIGHT, sum=RIGHT)
        case "find the sum", ():
            if p != MARK:
                return Act(State("find the sum"), sum=RIGHT)
            return Act(NEXT_FEATURE, data=RIGHT)
        case "next sample", ():
            if d == MARK:
                return Act(NEXT_FEATURE, data=RIGHT)
            return Act(State("end of a round"), sum=RIGHT)
        case "end of a round", ():
            after = State("was there a mistake") if p == MARK else State("end of a round")
            return Act(after, sum=RIGHT)
        case "was there a mistake", ():
            if p != "1":
                return Act(State(DONE))
            return Act(State("over the sum", (0,)), sum=LEFT, total=BLANK)
        case "over the sum", (marks,):
            if marks and p == MARK:
                return Act(State("one more round"), sum=LEFT)
            return Act(State("over the sum", (1 if p == MARK else marks,)), sum=LEFT)
        case "one more round", ():
            if p == "0":
                return Act(State("one more round"), sum=LEFT)
            if p == "1":
                return Act(State("to the sum again"), data=LEFT, sum=RIGHT, total="0")
            return Act(State(DONE))
        case "to the sum again", ():
            if p != MARK:
                return Act(State("to the sum again"), sum=RIGHT)
            return Act(State("first sample"))
        case "first sample", ():
            if d != BLANK:
                return Act(State("first sample"), data=LEFT)
            return Act(State("round"), data=RIGHT)
        case "round", ():
            return Act(NEXT_FEATURE, data=RIGHT)
    return None


# Where everything lies


def perceptron_rule(
    x_shape: tuple[int, ...],
    y_shape: tuple[int, ...],
    data_format: FixedPoint,
    epochs: int,
    batches: int = 1,
) -> tuple[Procedure, FixedPoint]:
    """The machine with its tapes laid out for data of these shapes, and the format of the weights: as wide as
    they can become, since every sample of every round adds at most a number of the data to one. With one
    epoch it leaves its tapes as it found them, but for the weights, and so can go on with a next batch."""
    if len(x_shape) != 2 or y_shape != (x_shape[0], 1):
        raise InputError(
            f"the perceptron rule takes rows of inputs and one label for each, not {x_shape} and {y_shape}"
        )
    if epochs < 1:
        raise InputError(f"the perceptron rule needs at least one round, not {epochs}")
    samples, inputs = x_shape
    bits, one = data_format.width, 1 << data_format.fraction
    largest = batches * samples * epochs * max(1 << bits - 1, one)
    width = largest.bit_length() + 1
    if width > MOST_BITS:
        raise Refused(
            f"after {epochs:,} rounds of {samples:,} samples a weight may need {width} bits",
            advice=f"Weights have up to {MOST_BITS}; use fewer rounds or narrower data.",
        )
    word = width + max(bits, one.bit_length() + 1) + (inputs + 1).bit_length()
    data, places = _data_tape(samples, inputs, bits, one)
    weights = {1 + word_ * (word + 1): MARK for word_ in range(inputs + 2)}
    result = [1 + number * (word + 1) + 1 + bit for number in range(inputs + 1) for bit in range(width)]
    zeros = {1 + number * (word + 1) + 1 + bit: "0" for number in range(inputs + 1) for bit in range(word)}
    total = dict.fromkeys(range(1, epochs), "1") | {epochs: MARK, epochs + word + 1: MARK}
    total |= dict.fromkeys(range(epochs + 1, epochs + word + 1), "0")
    procedure = Procedure(
        perceptron_machine(),
        (data, weights | zeros, total),
        tuple(((DATA, cell),) for cell in places),
        tuple((WEIGHTS, cell) for cell in result),
        {"name": "perceptron", "epochs": epochs},
    )
    return procedure, FixedPoint(width, data_format.fraction)


def _data_tape(samples: int, inputs: int, bits: int, one: int) -> tuple[dict[int, str], list[int]]:
    """The tape with all data 0, and the cell of each bit of x, row by row, and then of the labels."""
    tape: dict[int, str] = {}
    inputs_at: list[int] = []
    labels_at: list[int] = []
    cell = 1

    def put(word: str) -> range:
        nonlocal cell
        tape.update({cell: MARK, **{cell + 1 + i: symbol for i, symbol in enumerate(word)}})
        placed = range(cell + 1, cell + 1 + len(word))
        cell += 1 + len(word)
        return placed

    for _ in range(samples):
        for _ in range(inputs):
            inputs_at += put("0" * bits)
        put(f"{one:b}"[::-1] + "0")  # never the highest bit, which would count as negative
        labels_at += put("0" * bits)
        put("")
    return tape, [*inputs_at, *labels_at]
