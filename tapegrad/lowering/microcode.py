"""Microcode: words on the tapes of a Turing machine, and what can be done with them bit by bit.

Four tapes with two symbols. A word of w bits takes w + 1 cells: a separator, then its bits, the lowest first.

    MEMORY  words of RAM from cell 0 on; general registers to the left of it. The separators of the first word
            and of the end of RAM are 1, all others 0.
    RULER   1 at every separator, 0 between. A loop over the bits of a word ends where the ruler shows a 1, so
            that the table of the machine depends neither on the size of words nor on that of memory.
    A       the address that is counted down, and operands; to the left, the input.
    B       data, what the machine must remember; to the right, the output.

Between operations every head is at cell 0. An operation is written with what comes after it: it takes the
next state and gives the first of its own. States that do the same and go on alike are the same state, so
that common ends of many instructions are there once.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType

from tapegrad.machines.model import Names, Rule, TuringMachine

MEMORY, RULER, A, B = range(4)
TAPES = 4
RIGHT, LEFT = 1, -1

FETCH = "next instruction"
"""The state between two instructions."""
PC = 1
"""The word of B that holds the address of the instruction."""

SYMBOLS = "01"

Reading = Mapping[int, int]
"""The bit under each head."""


@dataclass(frozen=True)
class Action:
    """What a step writes, how the heads move, and the next state."""

    write: Mapping[int, int]
    moves: Mapping[int, int]
    after: "State"


@dataclass(eq=False)
class State:
    """A state of the machine. Its rule gives an action, or another state that acts in its place. In a state
    that is `entered` the machine is seen; one without a rule halts."""

    label: str
    rule: Callable[[Reading], "Action | State"] | None = None
    entered: bool = False


Operation = Callable[[State], State]
Bitwise = Callable[[Hashable, int, int, int], tuple[Hashable, Mapping[int, int]]]
"""What happens to a bit: from what is carried and the bits on MEMORY, A and B, to what is carried on and the
bits that are written."""
Exits = Callable[[Hashable], State] | State
"""Where it goes on, by what is carried at the end."""


def sequence(*operations: Operation) -> Operation:
    """One operation after the other."""

    def whole(after: State) -> State:
        for operation in reversed(operations):
            after = operation(after)
        return after

    return whole


def keep(carried: Hashable, m: int, a: int, b: int) -> tuple[Hashable, Mapping[int, int]]:
    """Nothing happens to a bit."""
    return carried, {}


class Microcode:
    """The states of a machine while they are written."""

    def __init__(self) -> None:
        self._made: dict[Hashable, State] = {}

    def state(self, label: str, *key: Hashable) -> tuple[State, bool]:
        """The state of this description, and whether it is new and needs a rule."""
        found = self._made.get((label, *key))
        if found is None:
            found = self._made[label, *key] = State(label)
            return found, True
        return found, False

    def acting(
        self,
        label: str,
        moves: Mapping[int, int],
        after: State,
        write: Mapping[int, int] | None = None,
    ) -> State:
        """One step, whatever is read."""
        written = write or {}
        state, new = self.state(label, *_items(moves), "writes", *_items(written), after)
        if new:
            state.rule = lambda read: Action(written, moves, after)
        return state

    def on_mark(self, label: str, tape: int, one: State, zero: State) -> State:
        """Goes on by the bit under a head, without a step of its own."""
        state, new = self.state(label, tape, one, zero)
        if new:
            state.rule = lambda read: one if read[tape] else zero
        return state

    def sweep(
        self,
        label: str,
        moves: Mapping[int, int],
        exits: Exits,
        bitwise: Bitwise = keep,
        carried: Hashable = None,
    ) -> State:
        """Moves heads from separator to separator, the ruler's among them, with something done to every bit
        between. `label` names what is done."""
        reachable = _carried(bitwise, carried)
        ends = {c: exits if isinstance(exits, State) else exits(c) for c in reachable}
        key = (*_items(moves), *ends.items())

        def inner(carried: Hashable) -> State:
            state, new = self.state(label, carried, *key)
            if new:
                state.rule = lambda read: _in_word(read, carried)
            return state

        def _in_word(read: Reading, carried: Hashable) -> Action | State:
            if read[RULER]:
                return ends[carried]
            if bitwise is keep:
                return Action({}, moves, inner(carried))
            following, written = bitwise(carried, read[MEMORY], read[A], read[B])
            return Action(written, moves, inner(following))

        first, new = self.state(label, "begins", carried, *key)
        if new:
            first.rule = lambda read: Action({}, moves, inner(carried))
        return first

    def hops(self, a: int, b: int, direction: int, ruler: int, after: State) -> State:
        """Takes the heads on A and B so many words on, the ruler's to and fro; `ruler` is its first move."""
        turns = [ruler * (-1) ** i for i in range(max(a, b))]
        for i, turn in reversed(list(enumerate(turns))):
            far = i if direction == RIGHT else max(a, b) - 1 - i
            moves = {RULER: turn} | {tape: direction for tape, n in ((A, a), (B, b)) if far < n}
            after = self.sweep("hop", moves, after)
        return after

    def at(
        self,
        a: int | None,
        b: int | None,
        memory: bool,
        label: str,
        exits: Exits,
        bitwise: Bitwise = keep,
        carried: Hashable = None,
        *,
        upwards: bool = True,
    ) -> State:
        """Something done to the bits of word `a` of A, word `b` of B, and the word that the head on MEMORY is
        at; where they are None or false, to none. Upwards, or downwards from the highest bit."""
        out = max(a or 0, b or 0)
        ruler = _turn(out)
        heads = [tape for tape, used in ((A, a is not None), (B, b is not None), (MEMORY, memory)) if used]
        on = {RULER: ruler} | dict.fromkeys(heads, RIGHT)
        back = {RULER: -ruler} | dict.fromkeys(heads, LEFT)

        def returned(carried: Hashable) -> State:
            end = exits if isinstance(exits, State) else exits(carried)
            return self.hops(a or 0, b or 0, LEFT, ruler, end)

        if upwards:
            state = self.sweep(label, on, lambda c: self.sweep("back", back, returned(c)), bitwise, carried)
        else:
            state = self.sweep("on", on, self.sweep(label, back, returned, bitwise, carried))
        return self.hops(a or 0, b or 0, RIGHT, RIGHT, state)

    # Reaching a word of memory: its number is word 0 of A, and is counted down.

    def reach(self, side: int, found: State, outside: State | None = None) -> State:
        """Takes the heads of MEMORY and RULER to the word with the number on A: to the right, or to the left
        for registers. Two words for each 1 that is subtracted from half of the number: on the first the head
        of A goes up over its bits, on the second down again. The number is used up."""
        on, back = {MEMORY: side, RULER: side}, {MEMORY: -side, RULER: -side}
        top, new = self.state("reach", side, found, outside)
        if not new:
            return self._reach_first(side, top)
        again = self.sweep("two words on", {A: LEFT, **on}, self._unless_end(top, outside))
        here = self.sweep("one word back", {A: LEFT, **back}, found)
        halved = self.sweep(
            "count down",
            {A: RIGHT, **on},
            lambda borrow: here if borrow == 1 else self._unless_end(again, outside),
            _count_down,
            "lowest",
        )
        top.rule = lambda read: halved
        checked = self._unless_end(top, outside)
        odd = self.sweep("odd word", on, checked)
        self._made["first", side, top] = self._by_lowest(odd, top)
        return self._reach_first(side, top)

    def _reach_first(self, side: int, top: State) -> State:
        first = self._made["first", side, top]
        return first if side == RIGHT else self.sweep("word on", {MEMORY: LEFT, RULER: LEFT}, first)

    def _unless_end(self, inside: State, outside: State | None) -> State:
        return inside if outside is None else self.on_mark("end of memory?", MEMORY, outside, inside)

    def _by_lowest(self, odd: State, even: State) -> State:
        look, new = self.state("lowest bit", odd, even)
        if new:
            look.rule = lambda read: Action({}, {A: LEFT}, odd if read[A] else even)
        return self.acting("to lowest bit", {A: RIGHT}, look)

    def home(self, side: int, after: State, *, within: bool = False) -> State:
        """Takes the heads of MEMORY and RULER back to cell 0; `within` if they may be at the end."""
        state, new = self.state("home", side, after)
        moves = {MEMORY: -side, RULER: -side}
        if new:
            state.rule = lambda read: after if read[RULER] and read[MEMORY] else Action({}, moves, state)
        return self.acting("from the end", moves, state) if within else state

    # Input, to the left on A: the separator of the next byte is 1, and so is that beyond the end.

    def _seek(
        self, label: str, tape: int, direction: int, wanted: int, found: tuple[State, State]
    ) -> tuple[State, State]:
        """Two states, for the ruler's head at the lower and at the upper separator: words on until the
        separator on a tape is as wanted."""
        states = [self.state(label, side, tape, direction, wanted, *found) for side in range(2)]
        for side, (state, new) in enumerate(states):
            if new:
                on = self.sweep(label, {tape: direction, RULER: _turn(side)}, states[1 - side][0])
                state.rule = _found_or_on(tape, wanted, found[side], on)
        return states[0][0], states[1][0]

    def _settled(self, after: State) -> tuple[State, State]:
        """The ruler's head back at cell 0."""
        return after, self.sweep("ruler back", {RULER: LEFT}, after)

    def _a_home(self, after: State) -> tuple[State, State]:
        return self._seek("to the variables", A, RIGHT, 1, self._settled(after))

    def _to_next_byte(self, found: tuple[State, State]) -> State:
        return self.sweep(
            "to the input", {A: LEFT, RULER: RIGHT}, self._seek("to the input", A, LEFT, 1, found)[1]
        )

    def _word(
        self, label: str, moves: Mapping[int, int], after: tuple[State, State], *args: object
    ) -> tuple[State, State]:
        """A sweep by one word, from the ruler's lower and upper separator."""
        return (
            self.sweep(label, {RULER: RIGHT, **moves}, after[1], *args),  # type: ignore[arg-type]
            self.sweep(label, {RULER: LEFT, **moves}, after[0], *args),  # type: ignore[arg-type]
        )

    def peek(self, byte: State, end: State) -> State:
        """The next byte of the input to word 0 of B; it stays the next."""
        off = lambda after: self._word("from the input", {A: RIGHT}, self._a_home(after))  # noqa: E731
        back = self._word("back", {A: LEFT, B: LEFT}, off(byte))
        copied = self._word("take", {A: RIGHT, B: RIGHT}, back, copy(A, B))
        there = self._word("a byte", {A: RIGHT}, copied)
        ended = self._word("no byte", {A: RIGHT}, off(end))
        look = tuple(self.on_mark("end of input?", A, ended[i], there[i]) for i in range(2))
        return self._to_next_byte(self._word("what follows", {A: LEFT}, (look[0], look[1])))

    def taken(self, after: State) -> State:
        """The byte after the next one is the next."""
        home = self._word("from the input", {A: RIGHT}, self._a_home(after))
        marked = tuple(self.acting("next byte", {}, home[i], {A: 1}) for i in range(2))
        on = self._word("next byte", {A: LEFT}, (marked[0], marked[1]))
        cleared = tuple(self.acting("taken", {}, on[i], {A: 0}) for i in range(2))
        return self._to_next_byte((cleared[0], cleared[1]))

    def put(self, a: int, first: int, after: State) -> State:
        """Word `a` of A to the end of the output, which begins with word `first` of B; used words of it have
        a 1 as separator."""
        below = first - 1

        def finish(side: int) -> State:  # B at the separator below the output, the ruler at `side`
            then = (side + below) % 2
            settled = self._settled(after)[(then + a) % 2]
            return self.hops(0, below, LEFT, _turn(side), self.hops(a, 0, LEFT, _turn(then), settled))

        down = self._seek("to the variables", B, LEFT, 0, (finish(0), finish(1)))
        back = self._word("back", {A: LEFT, B: LEFT}, down)
        copied = self._word("write out", {A: RIGHT, B: RIGHT}, back, copy(A, B))
        marked = tuple(self.acting("next place", {}, copied[i], {B: 1}) for i in range(2))
        up = self._seek("to the end of the output", B, RIGHT, 0, (marked[0], marked[1]))
        return self.hops(a, 0, RIGHT, RIGHT, self.hops(0, first, RIGHT, _turn(a), up[(a + first) % 2]))

    def on_a(self, direction: int, after: State) -> State:
        """Takes the head of A a word on, and no other."""
        return self.hops(1, 0, direction, RIGHT, self._settled(after)[1])

    # The table

    def machine(
        self, start: State, name: str, accept: Sequence[str], ends: Sequence[State] = ()
    ) -> TuringMachine:
        """The machine that begins in this state. States that are `ends` have their labels as names, whatever
        other states are called."""
        names = Names()
        called: dict[State, str] = {}
        waiting = [start]

        def of(state: State) -> str:
            if state not in called:
                called[state] = names(state, state.label)
                waiting.append(state)
            return called[state]

        for state in (start, *ends):
            of(state)
        waiting = [start]
        rules: dict[tuple[str, tuple[str, ...]], Rule] = {}
        for state in waiting:
            if state.rule is None:
                continue
            for asked, action in _actions(state):
                moves = tuple(action.moves.get(tape, 0) for tape in range(TAPES))
                after = of(action.after)
                given = [(asked[tape],) if tape in asked else (0, 1) for tape in range(TAPES)]
                for read in product(*given):
                    write = tuple(SYMBOLS[action.write.get(tape, bit)] for tape, bit in enumerate(read))
                    rules[called[state], tuple(SYMBOLS[bit] for bit in read)] = Rule(write, moves, after)
        return TuringMachine(
            rules,
            called[start],
            "0",
            frozenset(accept) & set(called.values()),
            name=name,
            alphabet=("0", "1"),
            tapes=TAPES,
        )


def _turn(side: int) -> int:
    """How the head of the ruler moves on from its lower (0) or upper (1) separator."""
    return LEFT if side % 2 else RIGHT


def _items(mapping: Mapping[int, int]) -> tuple[Hashable, ...]:
    return tuple(sorted(mapping.items()))


def _carried(bitwise: Bitwise, first: Hashable) -> list[Hashable]:
    """All that may be carried."""
    found = {first: None}
    waiting = [first]
    for carried in waiting:
        for m, a, b in product((0, 1), repeat=3):
            following, _ = bitwise(carried, m, a, b)
            if following not in found:
                found[following] = None
                waiting.append(following)
    return waiting


def _found_or_on(tape: int, wanted: int, found: State, on: State) -> Callable[[Reading], Action | State]:
    return lambda read: found if read[tape] == wanted else on


class _Unknown(Exception):
    """A rule has asked for the bit of a tape."""


class _Known(dict[int, int]):
    """The bits that are known of a reading."""

    def __missing__(self, tape: int) -> int:
        raise _Unknown(tape)


def _actions(
    state: State, known: Mapping[int, int] = MappingProxyType({})
) -> Iterator[tuple[Mapping[int, int], Action]]:
    """What is done in a state, by as many bits of the reading as its rule asks for."""
    try:
        yield known, _resolved(state, _Known(known))
    except _Unknown as unknown:
        for bit in (0, 1):
            yield from _actions(state, {**known, unknown.args[0]: bit})


def _resolved(state: State, read: Reading) -> Action:
    """States that are not entered act in the place of others."""
    while True:
        assert state.rule is not None
        found = state.rule(read)
        if isinstance(found, Action):
            return found
        if found.entered or found.rule is None:
            return Action({}, {}, found)
        state = found


# What is done to single bits


def copy(source: int, to: int) -> Bitwise:
    def copied(carried: Hashable, m: int, a: int, b: int) -> tuple[Hashable, Mapping[int, int]]:
        return carried, {to: {MEMORY: m, A: a, B: b}[source]}

    return copied


def _count_down(carried: Hashable, m: int, a: int, b: int) -> tuple[Hashable, Mapping[int, int]]:
    """1 less, the lowest bit left out; 1 at the end where it was 0."""
    if carried == "lowest":
        return 1, {}
    return (int(carried == 1 and not a), {A: 1 - a}) if carried else (0, {})


def adds(tape: int) -> Bitwise:
    """Adds the number that is carried to a word: what is left of it, and the carry, go on to the next bit."""

    def added(carried: Hashable, m: int, a: int, b: int) -> tuple[Hashable, Mapping[int, int]]:
        assert isinstance(carried, int)
        total = carried + (a if tape == A else b)
        return total >> 1, {tape: total & 1}

    return added


def constant(tape: int) -> Bitwise:
    """Writes the number that is carried; a negative one in two's complement."""

    def written(carried: Hashable, m: int, a: int, b: int) -> tuple[Hashable, Mapping[int, int]]:
        assert isinstance(carried, int)
        return carried >> 1, {tape: carried & 1}

    return written


def highest(tape: int) -> Bitwise:
    """The last bit that is looked at; 0 is carried first."""

    def looked(carried: Hashable, m: int, a: int, b: int) -> tuple[Hashable, Mapping[int, int]]:
        return (a if tape == A else b), {}

    return looked
