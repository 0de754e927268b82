"""The pass from a program to a Turing machine: the table of an instruction set.

The program lies on four tapes (`on_tapes.layout`), and the table is the same for all programs. That it is the
instruction set, for all that tapes can hold, is proved in `on_tapes.one_instruction`, and case by case in
`on_tapes.rv32`. Where that fails the table is run beside the definition of the instruction set (`execution`),
and after every instruction the tapes must show the same state. If a program ends then, and neither it nor a
head has looked at the input, this run is the run on every input, and the proof is complete. Of a `simplex`
each pair of vertices with one instruction between them is looked at, so that it is complete too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from tapegrad_check.fields import whole
from tapegrad_check.folder import NotProved, require
from tapegrad_check.graph import graph_in
from tapegrad_check.instructions import proved
from tapegrad_check.instructions.execution import State, first, stepped
from tapegrad_check.instructions.ports import Layout
from tapegrad_check.instructions.rv32 import PAGE
from tapegrad_check.on_tapes import one_instruction, own
from tapegrad_check.on_tapes import rv32 as rv32_on_tapes
from tapegrad_check.on_tapes.layout import FETCH, INPUT, Ones, end_of, laid_out, shown, traps_of
from tapegrad_check.passes.step import Step
from tapegrad_check.sources import Machine, Model, Program
from tapegrad_check.targets import simplex

INPUTS = (b"", b"7", b"ab\n")
"""On which a program is tried that reads its input."""
STEPS_AT_LEAST, STEPS_PER_RULE = 1 << 18, 8
"""Steps of the table on each of them. The table of RV32IM has 88,960 rules, that of SUBLEQ 3,008."""
WORDS_PER_STEP = 4
"""A comparison of so many words, or bytes, of memory takes the time of a step at most."""
STEPS_OF_ONE = 1 << 18
"""Steps of one instruction on the small memory on which instructions are tried by themselves."""
SMALL = 64
"""Bytes of that memory."""
TIMES = {"rv32im": 3, "subleq": 64}
"""How often each instruction is tried so."""
TIMES_OF_OTHERS, STEPS_OF_OTHERS = 256, 1 << 21
"""How many random states of an instruction set are tried that a folder tells, and steps on all of them."""


@dataclass
class Table:
    """The rules of a machine on four tapes of two symbols, by number, and how it is run."""

    machine: Machine
    used: set[tuple[int, int]] = field(default_factory=set)
    """States and symbols that have occurred."""

    def __post_init__(self) -> None:
        number = {name: index for index, name in enumerate(self.machine.states)}
        self.rules: dict[tuple[int, int], tuple[tuple[int, ...], tuple[int, ...], int]] = {
            (number[state], _code(read)): (tuple(map(int, rule.write)), rule.moves, number[rule.state])
            for (state, read), rule in self.machine.rules.items()
        }
        self.number = number

    @property
    def states_used(self) -> set[int]:
        """Those in which something has occurred, and those that followed."""
        return {state for case in self.used for state in (case[0], self.rules[case][2])}

    def instruction(self, name: str, tapes: list[set[int]], heads: list[int], most: int) -> "After":
        """From a state between two instructions to the next such state, or the end. The tapes and heads are
        changed. None where that takes more steps."""
        state, fetch, lowest = self.number[name], self.number[FETCH], heads[INPUT]
        for steps in range(1, most + 1):
            case = state, sum((heads[tape] in tapes[tape]) << tape for tape in range(4))
            rule = self.rules.get(case)
            if rule is None:
                return After(self.machine.states[state], steps - 1, lowest)
            self.used.add(case)
            write, moves, state = rule
            for tape, head in enumerate(heads):
                (tapes[tape].add if write[tape] else tapes[tape].discard)(head)
                heads[tape] = head + moves[tape]
            lowest = min(lowest, heads[INPUT])
            if state == fetch:
                return After(FETCH, steps, lowest)
        return After(None, most, lowest)


@dataclass(frozen=True)
class After:
    """The state that an instruction leads to, None if it takes too long; its steps; and the leftmost cell of
    tape 2 that a head was at."""

    state: str | None
    steps: int
    lowest: int


def _code(read: Sequence[str]) -> int:
    return sum((symbol == "1") << tape for tape, symbol in enumerate(read))


@dataclass(frozen=True)
class Run:
    """How far a program was followed."""

    instructions: int
    ended: bool
    blind: bool
    """Whether neither the program nor the table has looked at the input."""


def followed(program: Program, table: Table, given: bytes, most: int) -> Run:
    """The table on a program and an input, beside the definition of its instructions."""
    state, name = first(program, given), FETCH
    tapes, heads = laid_out(program, state), [0] * 4
    blind = True
    for instructions in count():
        if state.trap:
            return Run(instructions, True, blind)
        after = table.instruction(name, tapes, heads, most)
        if after.state is None:
            return Run(instructions, False, blind)
        most -= after.steps + len(state.memory) // WORDS_PER_STEP
        wanted = stepped(program, state)
        blind = blind and not wanted.looked and after.lowest >= 0
        _same(program, after.state, tapes, heads, wanted.state, f"after {instructions + 1:,} instructions")
        state, name = wanted.state, after.state
    raise AssertionError


def _same(program: Program, name: str, tapes: Ones, heads: Sequence[int], wanted: State, when: str) -> None:
    found = shown(program, name, tapes)
    require(found is not None, f"the table stops in the state {name!r}, in the middle of an instruction")
    home = wanted.trap or not any(heads)
    require(found == wanted and home, f"{when} the table shows something else than {program.kind}")


def _memory_on_tapes(before: Model, step: Step) -> Model:
    after = step.saved()
    require(isinstance(before, Program) and isinstance(after, Machine), "a program becomes no machine")
    assert isinstance(before, Program)
    assert isinstance(after, Machine)
    fits = after.tapes == 4 and after.alphabet == ("0", "1") and after.start == FETCH
    require(fits, "the machine has other tapes than those of a program")
    _right_ends(before, after)
    if not step.proves:
        return after
    if before.kind == "rv32im" and before.entry % 4:
        raise NotProved("the program starts at an address that is no multiple of 4")
    target = step.folder.config["target"]
    if target not in _ON_TARGETS:
        raise NotProved(f"the checker does not know programs on the target {target!r}")
    step.statements.extend(proved(before, Layout.of(before, 1, 1)) if before.instruction else ())
    _ON_TARGETS[target](before, after, step)
    return after


def _right_ends(program: Program, machine: Machine) -> None:
    """Where a program has stopped the table halts, whatever it reads; and what is accepted is a program that
    has come to its end."""
    traps = traps_of(program)
    require(all(state not in traps for state, _ in machine.rules), "a program that has stopped goes on")
    end = {traps[0]} & {*machine.states}
    require({*machine.accept} == end and not machine.reject, "the table ends well where no program does")


# A net for every input


def _tried(program: Program, machine: Machine, step: Step) -> None:
    """Runs of the program and single instructions. Says what was tried, and on how many inputs, unless the
    first of them stands for all."""
    assert step.folder.network is not None
    cells = whole(step.folder.network["inputs"]["H"]["shape"][0], "the number of cells", 2, 1 << 22)
    if end_of(program) >= cells:
        raise NotProved("the program does not fit on the tapes of the net")
    kind = program.kind
    try:
        ways = PROOFS.get(kind, own.own_table)(program, machine)
        step.statements.append(
            f"one instruction of the table is one of {kind}, for all that pc, memory, input and output can "
            f"be and all that earlier ones have left: on each of {ways:,} ways the tapes show the same then"
        )
        return
    except NotProved as reason:
        unproved = str(reason)
    table = Table(machine)
    most = STEPS_AT_LEAST + STEPS_PER_RULE * len(machine.rules)
    run = followed(program, table, INPUTS[0], most)
    if run.ended and run.blind:
        step.statements.append(
            f"the program ends after {run.instructions:,} instructions without a look at its input; the "
            f"table was run beside {kind} to that end, and shows the same after each of them"
        )
        return
    runs = [run, *(followed(program, table, given, most) for given in INPUTS[1:])]
    if not all(one.instructions for one in runs):
        raise NotProved(f"an instruction on a memory of this size takes more than {most:,} steps")
    alone = _one_by_one(program, table)
    step.tested.append(len(runs))
    lengths = ", ".join(f"{one.instructions:,}{'' if one.ended else ' (not to its end)'}" for one in runs)
    step.statements.append(
        f"on {len(runs)} inputs the program was run by the table and by {kind}, for {lengths} instructions, "
        "and both show the same after each"
    )
    step.statements.append(
        f"so they do after {alone:,} single instructions on random memories; {len(table.used):,} of "
        f"{len(machine.rules):,} rules of the table were used, in {len(table.states_used):,} of "
        f"{len(machine.states):,} states; it is not proved for all inputs: {unproved}"
    )


def _one_by_one(program: Program, table: Table) -> int:
    """Every kind of instruction by itself, on a small memory if the table does not depend on its size."""
    random, own = np.random.default_rng(0), program.instruction is not None
    small = program if own else replace(program, ram=SMALL, image=b"", entry=0)
    left, tried = STEPS_OF_OTHERS, 0
    for state in _random_states(small, random):
        tapes, heads = laid_out(small, state), [0] * 4
        after = table.instruction(FETCH, tapes, heads, left if own else STEPS_OF_ONE)
        if own and after.state is None:
            break  # the ways in a large memory take as long
        left -= after.steps
        require(after.state is not None, "the table does not come to the end of an instruction")
        assert after.state is not None
        _same(small, after.state, tapes, heads, stepped(small, state).state, "after a single instruction")
        tried += 1
    return tried


def _random_states(program: Program, random: np.random.Generator) -> Iterator[State]:
    def draw(most: int) -> int:
        return int(random.integers(most))

    if (own := program.instruction) is not None:
        for _ in range(TIMES_OF_OTHERS):
            words = {
                name: tuple(int.from_bytes(random.bytes(8)) >> 64 - width for _ in range(count))
                for name, (width, count) in own.memories.items()
            }
            registers = {
                name: int.from_bytes(random.bytes(8)) >> 64 - width for name, width in own.registers.items()
            }
            pc, given = registers.pop("pc") % len(words["ram"]), INPUTS[draw(len(INPUTS))]
            del registers["trap"]
            yield State(pc, words.pop("ram"), words.pop("x", ()), given, own={**registers, **words})
        return
    if program.kind == "subleq":
        words = SMALL * 8 // program.width
        for _ in range(TIMES[program.kind]):
            memory = [draw(words) if draw(4) else draw(1 << program.width) for _ in range(words)]
            ones = [at for at in range(3) if not draw(4)]
            memory = [(1 << program.width) - 1 if at in ones else word for at, word in enumerate(memory)]
            yield State(0, tuple(memory), (), INPUTS[draw(len(INPUTS))])
        return
    for _, fixed, _ in PAGE:
        for _ in range(TIMES[program.kind]):
            code = draw(1 << 32)
            for bit, value in fixed.items():
                code = code & ~(1 << bit) | value << bit
            memory = [*code.to_bytes(4, "little"), *(draw(256) for _ in range(SMALL - 4))]
            # Small numbers are addresses, large ones operands; 10 to 12 and 17 are those of system calls.
            x = [draw(SMALL) if draw(2) else draw(1 << 32) for _ in range(32)]
            x[0], x[10], x[12], x[17] = 0, draw(3), draw(4), (63, 64, 93, 62)[draw(4)]
            yield State(0, tuple(memory), tuple(x), INPUTS[draw(len(INPUTS))])


# A net for some inputs: a vertex for every configuration


def _vertices(program: Program, machine: Machine, step: Step) -> None:
    """From each vertex between two instructions the successors lead to the next one, and what it shows is
    what the instruction makes of the first. That the vertices are a machine's, and that no way goes on for
    ever, is proved first."""
    config, arrays, graph = step.folder.config["net"], step.folder.own, graph_in(step.folder)
    assert graph is not None
    simplex.check(config, arrays, step.folder.certificate["claims"], None, graph)
    first_cell, states = config["first_cell"], config["states"]
    cells, successor = arrays["cells"], simplex.successors(graph)
    end = end_of(program)
    require(end < first_cell + cells.shape[2], "the vertices have no room for the program")
    require(cells.shape[1] == 4 and config["symbols"] == ["0", "1"], "the vertices have other tapes")
    between = {number for number, name in enumerate(states) if name in (FETCH, *traps_of(program))}
    number = arrays["state"].tolist()

    def seen(vertex: int) -> State | None:
        ones = [{*(np.flatnonzero(tape) + first_cell).tolist()} for tape in cells[vertex]]
        return shown(program, states[number[vertex]], ones)

    following = _next_of(successor, [one in between for one in number])
    pairs = 0
    for vertex, one in enumerate(number):
        if one not in between:
            continue
        state = seen(vertex)
        require(state is not None, "a vertex shows no state of the program")
        assert state is not None
        if state.trap:
            continue
        require(not arrays["heads"][vertex].any(), "a head is not at home between two instructions")
        after = following[vertex]
        require(after is not None, "the vertices end in the middle of an instruction")
        assert after is not None
        wanted = stepped(program, state).state
        require(seen(after) == wanted, f"from one vertex to the next is no instruction of {program.kind}")
        pairs += 1
    step.statements.append(
        f"between {pairs:,} pairs of vertices lies one instruction each, and they show what {program.kind} "
        "makes of it, for every input that has a vertex"
    )


def _next_of(successor: Sequence[int], between: Sequence[bool]) -> list[int | None]:
    """For each vertex the next one between two instructions. Every vertex is followed once."""
    found: list[int | None] = [None] * len(successor)
    done = [False] * len(successor)
    for start in range(len(successor)):
        way = [start]
        while not done[way[-1]] and successor[way[-1]] != way[-1]:
            way.append(successor[way[-1]])
        for vertex in reversed(way):
            if not done[vertex] and successor[vertex] != vertex:
                after = successor[vertex]
                found[vertex] = after if between[after] else found[after]
            done[vertex] = True
    return found


_ON_TARGETS: dict[str, Callable[[Program, Machine, Step], None]] = {"tape": _tried, "simplex": _vertices}
PROOFS: dict[str, Callable[[Program, Machine], int]] = {
    "subleq": one_instruction.subleq_table,
    "rv32im": rv32_on_tapes.prove,
}
PASSES: dict[str, Callable[[Model, Step], Model]] = {"memory on tapes": _memory_on_tapes}
