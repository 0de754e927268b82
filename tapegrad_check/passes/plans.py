"""Passes from circuits and learners to machines: the plan that the folder carries is shown to compute the
circuit, and then the machine of the plan is written down anew.

A plan is a list of moments. In each the machine reads wires from the cells under its heads, computes gates,
and writes wires to the cells under its heads; where the heads are depends on the time alone. Executed on
formulas in place of bits, it must leave the formulas of the circuit's outputs in the cells of the outputs.
That is the proof; the machine is then nothing but the plan, with the bits of the wires that it carries in its
state.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.folder import NotProved, require
from tapegrad_check.passes.machines import LEFT, RIGHT, STAY, Rules, most_rules, with_rules
from tapegrad_check.passes.step import Step
from tapegrad_check.sources import Circuit, Learner, Machine, Model, Rule
from tapegrad_check.sources.circuits import OPERANDS

Wire = int
Place = tuple[int, int]
"""A tape and a cell on it."""
Bits = tuple[int, ...]

BITS = ("0", "1")


@dataclass(frozen=True)
class Gate:
    """Bit i of the table is the value where the operands, read as a binary number, are i."""

    wire: Wire
    table: int
    operands: tuple[Wire, ...]

    def value(self, values: Mapping[Wire, int]) -> int:
        index = 0
        for operand in self.operands:
            index = 2 * index + values[operand]
        return self.table >> index & 1

    def formula(self, nodes: Nodes, values: Mapping[Wire, int]) -> int:
        """The same on formulas. A table of fewer operands is a table of two that ignores the rest."""
        a, b = (*(values[operand] for operand in self.operands), FALSE, FALSE)[:2]
        match len(self.operands):
            case 0:
                return (FALSE, TRUE)[self.table]
            case 1:
                return nodes.gate((self.table & 1) * 3 | (self.table >> 1) * 12, a, b)
        return nodes.gate(self.table, a, b)


@dataclass(frozen=True)
class Moment:
    """What happens in one step, in this order; reads and writes by tape."""

    reads: Mapping[int, Wire]
    gates: tuple[Gate, ...]
    writes: Mapping[int, Wire]

    @classmethod
    def of(cls, data: Sequence[Any], tapes: int) -> "Moment":
        reads, gates, writes = data
        for wires in (reads, writes):
            fits = all(_numbers(pair) and len(pair) == 2 and 0 <= pair[0] < tapes for pair in wires)
            require(fits and len({tape for tape, _ in wires}) == len(wires), "a moment of the plan is broken")
        for gate in gates:
            fits = _numbers(gate) and 2 <= len(gate) <= 4 and 0 <= gate[1] < 1 << (1 << len(gate) - 2)
            require(fits, "a gate of the plan is broken")
        return cls(
            dict(reads), tuple(Gate(wire, table, tuple(rest)) for wire, table, *rest in gates), dict(writes)
        )


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) is int for number in value)


NOTHING = Moment({}, (), {})


def carried(moments: Sequence[Moment]) -> list[tuple[Wire, ...]]:
    """Before each moment and at the end, the wires that are used before they are read or computed again:
    found backwards, and in order."""
    needed: set[Wire] = set()
    found: list[tuple[Wire, ...]] = [()]
    for moment in reversed(moments):
        needed |= set(moment.writes.values())
        for gate in reversed(moment.gates):
            needed.discard(gate.wire)
            needed.update(gate.operands)
        needed -= set(moment.reads.values())
        found.append(tuple(sorted(needed)))
    require(not needed, "the plan uses a wire that it has not read or computed")
    return found[::-1]


def executed(
    moments: Sequence[Moment], heads: Sequence[Sequence[int]], nodes: Nodes, cells: dict[Place, int]
) -> None:
    """The plan on formulas: changes the cells, of which those not named hold the blank, 0. `heads` says, for
    each moment, where the head of each tape is."""
    values: dict[Wire, int] = {}
    for moment, places in zip(moments, heads, strict=True):
        for tape, wire in moment.reads.items():
            values[wire] = cells.get((tape, places[tape]), FALSE)
        for gate in moment.gates:
            values[gate.wire] = gate.formula(nodes, values)
        for tape, wire in moment.writes.items():
            cells[tape, places[tape]] = values[wire]


def after(moment: Moment, held: Mapping[Wire, int], read: Bits) -> dict[Wire, int]:
    """The bits of all wires at the end of a moment."""
    values = {**held, **{wire: read[tape] for tape, wire in moment.reads.items()}}
    for gate in moment.gates:
        values[gate.wire] = gate.value(values)
    return values


def _relation(step: Step) -> dict[str, Any]:
    if step.relation is None:
        raise NotProved(f"the folder holds no plan for the pass {step.name!r}; save the net again")
    require(isinstance(step.relation, dict), "the plan is no JSON object")
    return step.relation


def straight_line(before: Model, step: Step) -> Model:
    """A state for each time and each value of the carried wires."""
    require(isinstance(before, Circuit), "a straight-line machine is made of a circuit")
    assert isinstance(before, Circuit)
    plan = _relation(step)
    paths = plan["heads"]
    require(all(map(_numbers, paths)) and len(set(map(len, paths))) == 1, "the heads have no paths")
    steps, tapes = len(paths[0]) - 1, len(paths)
    require(steps >= 1 and all(path[0] == 0 for path in paths), "a head does not start at cell 0")
    one_by_one = all(abs(a - b) == 1 for path in paths for a, b in pairwise(path))
    require(one_by_one, "a head of the plan does not move from cell to cell")
    moments, last = [NOTHING] * steps, -1
    for time, *rest in plan["moments"]:
        require(type(time) is int and last < time < steps, "the times of the plan are not in order")
        moments[time], last = Moment.of(rest, tapes), time
    _evaluates(before, moments, list(zip(*paths, strict=True))[:-1], plan, step)
    moves = list(zip(*([b - a for a, b in pairwise(path)] for path in paths), strict=True))
    rules = _straight_rules(moments, moves, 1 << tapes, most_rules(step))
    machine = Machine(tapes, "0", "0", ("done",), (), BITS, (), {}, before.name)
    return with_rules(machine, rules)


def _evaluates(
    circuit: Circuit,
    moments: Sequence[Moment],
    heads: Sequence[Sequence[int]],
    plan: dict[str, Any],
    step: Step,
) -> None:
    inputs, outputs = ([tuple(place) for place in plan[name]] for name in ("inputs", "outputs"))
    require(len(set(inputs)) == len(inputs) == len(circuit.inputs), "not every input has a place of its own")
    require(len(outputs) == len(circuit.outputs), "not every output has a place")
    nodes = Nodes()
    bits = nodes.variables(len(inputs))
    cells = dict(zip(inputs, bits, strict=True))
    executed(moments, heads, nodes, cells)
    found = [cells.get(place, FALSE) for place in outputs]
    nodes.require_same(found, nodes.outputs(circuit, bits), "the plan does not compute the circuit")
    step.statements.append(
        f"the plan of {len(moments):,} steps leaves the circuit's {len(outputs)} outputs on its tapes, "
        "shown on formulas in place of bits"
    )


def _straight_rules(
    moments: Sequence[Moment], moves: Sequence[tuple[int, ...]], fan: int, most: int
) -> Rules:
    wires = carried(moments)
    rules: Rules = {}
    possible: set[Bits] = {()}
    for time, moment in enumerate(moments):
        require(len(rules) + len(possible) * fan <= most, "the straight-line machine lacks rules")
        following: set[Bits] = set()
        for held in sorted(possible):
            for read in product((0, 1), repeat=fan.bit_length() - 1):
                values = after(moment, dict(zip(wires[time], held, strict=True)), read)
                write = tuple(
                    BITS[values[moment.writes[tape]] if tape in moment.writes else bit]
                    for tape, bit in enumerate(read)
                )
                bits = tuple(values[wire] for wire in wires[time + 1])
                following.add(bits)
                to = "done" if time == len(moments) - 1 else _named(str(time + 1), bits)
                case = _named(str(time), held), tuple(BITS[bit] for bit in read)
                rules[case] = Rule(write, moves[time], to)
        possible = following
    return rules


def _named(place: str, bits: Bits) -> str:
    return f"{place}:{''.join(map(str, bits))}" if bits else place


# A learner: a block of cells for each sample, with a flag in its first cell; one round for each block.


def block_by_block(before: Model, step: Step) -> Model:
    """A round begins at a flag that is 1, evaluates one step of the learner on the block, leaves what it has
    come to in the next block, and ends at its flag; at a flag that is 0 the machine halts."""
    require(isinstance(before, Learner), "only a learner takes sample by sample")
    assert isinstance(before, Learner)
    plan = _relation(step)
    width, state, sample = plan["width"], plan["state"], plan["sample"]
    require(_numbers([width]) and _numbers(state) and _numbers(sample), "the block of a sample is broken")
    inside = all(0 < cell < width for cell in (*state, *sample))
    require(
        inside and len({*state, *sample}) == len(state) + len(sample), "two bits share a cell of the block"
    )
    require(len(state) == 2 + len(before.first) and len(sample) == before.bits + 3, "a bit has no cell")
    stops = [(cell, Moment.of(rest, 1)) for cell, *rest in plan["stops"]]
    require(stops and _numbers([cell for cell, _ in stops]), "the plan has no stops")
    written = {width + cell for cell in state}
    require(all(0 < cell < width or cell in written for cell, _ in stops), "a stop lies beside the block")
    _learns(before, stops, plan, step)
    walks = _Walks(most_rules(step))
    wires = carried([moment for _, moment in stops])
    possible: set[Bits] = {()}
    for number, (cell, moment) in enumerate(stops):
        reached: set[Bits] = set()
        for held in sorted(possible):
            for bit in (0, 1):
                values = after(moment, dict(zip(wires[number], held, strict=True)), (bit,))
                bits = tuple(values[wire] for wire in wires[number + 1])
                reached.add(bits)
                write = BITS[values[moment.writes[0]] if 0 in moment.writes else bit]
                last = number + 1 == len(stops)
                there, to = (width, "next sample") if last else (stops[number + 1][0], None)
                to = to or _named(f"step {number + 1}", bits)
                walks.go(_named(f"step {number}", held), {BITS[bit]: write}, cell, there, to)
        possible = reached
    walks.go("next sample", {"1": "1"}, 0, stops[0][0], "step 0")
    return with_rules(Machine(1, "next sample", "0", (), (), BITS, (), {}), walks.rules)


def _learns(learner: Learner, stops: Sequence[tuple[int, Moment]], plan: dict[str, Any], step: Step) -> None:
    """A round on formulas. The memory changes where the answer was wrong; the sample stays where it is."""
    state, sample, moments = plan["state"], plan["sample"], [moment for _, moment in stops]
    nodes = Nodes()
    before, given = nodes.variables(len(state)), nodes.variables(len(sample))
    cells = {(0, cell): bit for cell, bit in zip((*state, *sample), (*before, *given), strict=True)}
    executed(moments, [(cell,) for cell, _ in stops], nodes, cells)
    left = [cells.get((0, plan["width"] + cell), FALSE) for cell in state]
    memory, x, (label, random, guess) = before[2:], given[: learner.bits], given[learner.bits :]
    answer, finished, *if_wrong = nodes.outputs(learner.circuit, [*memory, *x, random, guess])
    wrong = nodes.xor(answer, label)
    wanted = [answer, finished]
    for found, new, old in zip(left[2:], if_wrong, memory, strict=True):
        ways = _choices(nodes, wrong, new, old)
        wanted.append(found if found in ways else ways[0])
    nodes.require_same(left, wanted, "a round of the plan is not a step of the learner")
    require([cells[0, cell] for cell in sample] == given, "the plan writes over the sample")
    step.statements.append(
        f"a round of {len(stops):,} stops leaves the learner's answer and memory in the next block, and the "
        "sample as it was, shown on formulas in place of bits"
    )


def _choices(nodes: Nodes, condition: int, a: int, b: int) -> list[int]:
    """Formulas for "a if the condition holds, else b"; where something is known, there are shorter ones."""
    found = [nodes.xor(b, nodes.and_(condition, nodes.xor(a, b)))]
    if a in (condition, TRUE):
        found.append(nodes.or_(condition, b))
    if b in (condition, FALSE):
        found.append(nodes.and_(condition, a))
    if a == FALSE:
        found.append(nodes.and_(condition ^ 1, b))
    if b == TRUE:
        found.append(nodes.or_(condition ^ 1, a))
    return found


class _Walks:
    """The rules of a machine that walks from cell to cell of a line."""

    def __init__(self, most: int) -> None:
        self.rules: Rules = {}
        self.most = most

    def go(self, state: str, written: Mapping[str, str], here: int, there: int, to: str) -> None:
        """What the way still to go looks like depends on its end and the cell alone, so ways join."""
        require(here != there, "the plan stops twice at one cell")
        move = RIGHT if there > here else LEFT
        for cell in range(here + move, there + move, move):
            following = to if cell == there else f"{to} from 0,{cell}"
            joins = (following, ("0",)) in self.rules
            for old, new in written.items():
                self.rules[state, (old,)] = Rule((new,), (move,), following)
            require(len(self.rules) <= self.most, "the machine of the learner lacks rules")
            if joins:
                return
            state, written = following, {bit: bit for bit in BITS}


# One machine for all circuits: tape 0 holds the gates as signs and arrows, tape 1 the values of the wires.

SIGNS = {0: "0", 15: "1", 12: "=", 3: "~", 8: "&", 14: "|", 6: "^", 7: "A", 1: "O", 9: "E"}


def evaluator(before: Model, step: Step) -> Model:
    """In `start` and `put` the head of tape 0 is on the sign of the next gate. Then it follows the arrows
    `<` to the farther operand, `>` from there to the nearer one; `put` runs to the first blank cell."""
    require(isinstance(before, Circuit), "the evaluator takes a circuit")
    rules: Rules = {}
    kinds = {sign: kind for kind, sign in SIGNS.items()}
    ends = (*kinds, "_")

    def add(state: str, sign: str, bit: str, write: str, moves: tuple[int, int], to: str) -> None:
        rules[state, (sign, bit)] = Rule((sign, write), moves, to)

    def begin(sign: str) -> str:
        if sign == "_":
            return "done"
        return f"{'walk' if OPERANDS[kinds[sign]] else 'put'} {sign}"

    for sign in ends:
        add("start", sign, "_", "_", (RIGHT, STAY), begin(sign))
        for result in BITS:
            add(f"put {result}", sign, "_", result, (RIGHT, RIGHT), begin(sign))
            for bit in BITS:
                add(f"put {result}", sign, bit, bit, (STAY, RIGHT), f"put {result}")
    for kind, sign in SIGNS.items():
        if not OPERANDS[kind]:
            continue
        value = {(x, y): BITS[kind >> 2 * int(x) + int(y) & 1] for x, y in product(BITS, BITS)}
        for bit in (*BITS, "_"):
            add(f"walk {sign}", "<", bit, bit, (RIGHT, LEFT), f"walk {sign}")
        for end, x in product(ends, BITS):
            add(f"walk {sign}", end, x, x, (STAY, RIGHT), f"put {value[x, x]}")
        for x, y in product(BITS, BITS) if OPERANDS[kind] == 2 else ():
            add(f"walk {sign}", ">", x, x, (RIGHT, RIGHT), f"back {sign} {x}")
            add(f"back {sign} {x}", ">", y, y, (RIGHT, RIGHT), f"back {sign} {x}")
            for end in ends:
                add(f"back {sign} {x}", end, y, y, (STAY, RIGHT), f"put {value[x, y]}")
    step.statements.append("the machine evaluates the gates that stand on its first tape, whatever they are")
    return with_rules(Machine(2, "start", "_", ("done",), (), ("_", *BITS), (), {}), rules)


PASSES: dict[str, Callable[[Model, Step], Model]] = {
    "straight-line machine": straight_line,
    "evaluator machine": evaluator,
    "block by block": block_by_block,
}
