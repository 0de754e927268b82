"""An instruction set on the tapes of a Turing machine: its recorded gates, between walks to words of memory.

    MEMORY  the words of all memories from cell 0 on, one memory after the other, and after the last a spare
            word of 0, which stands for whatever is beyond the end of one; the separator of word 0 is 1
    RULER   1 at every separator, 0 between, as far as words go and two further
    A       word 0 is the number of a word, or a byte to put out; the input to the left, every byte with a
            ninth bit of 1
    B       word 0 is the byte that is read next, with its ninth bit; the output from word 1 on

Bits of registers lie to the left on MEMORY and RULER in turn, words that were read and words to write to the
left on B; wires between gates lie in whatever cell is near. An instruction is planned in stages (`stages`):
gates until the number of a word is known, a walk to that word, more gates. All four heads compute. In the end
words are written, a byte is put out, one is taken, and registers change.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product, starmap

from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.circuits.types import UInt
from tapegrad.circuits.values import IntValue
from tapegrad.errors import Refused, SourceError
from tapegrad.lowering.microcode import (
    FETCH,
    LEFT,
    MEMORY,
    RIGHT,
    RULER,
    A,
    B,
    Bitwise,
    Microcode,
    State,
    constant,
    copy,
)
from tapegrad.lowering.schedule import Operation, Place
from tapegrad.lowering.stages import ONE, ZERO, Stage, Stages, Way, states_of
from tapegrad.machines.model import TuringMachine
from tapegrad.programs.model import Machine, Memory, Next, Read, Write, follow
from tapegrad.programs.recording import BYTE

OUTPUT = 1
"""The word of B with which the output begins."""
BEYOND = 2
"""Words that the ruler has beyond the last."""
WAYS = tuple(starmap(Way, product((1, 2), (1, 3), (0, 0.02))))
"""All that are tried: none is the best for all gates. With more wires in the state there are fewer steps, and
more states for each."""
MOST_GATES, MOST_STATES = 3000, 16_000
"""A gate takes a dozen states and more. On `tape` the folder of more states would be larger than the checker
reads, and the net of 20,000 larger than any that is built."""

Word = Sequence[Wire]


class Places:
    """Where words and registers lie, for one machine. The checker has the same rules."""

    def __init__(self, machine: Machine) -> None:
        self.memories: Mapping[str, Memory] = {
            name: of for name, of in machine.memories.items() if name not in ("input", "output")
        }
        self.bases: dict[str, int] = {}
        self.words = 0
        for name, of in self.memories.items():
            self.bases[name] = self.words
            self.words += of.words
        self.number = self.words.bit_length()
        """Bits of the number of a word, the spare one among them."""
        self.width = max(BYTE + 1, self.number, *(of.width for of in self.memories.values()))
        self.pitch = self.width + 1
        registers = {name: of.width for name, of in machine.own_registers.items() if name != "trap"}
        bits = [(name, bit) for name, width in registers.items() for bit in range(width)]
        self.registers: dict[tuple[str, int], Place] = {
            bit: ((MEMORY, RULER)[i % 2], -1 - i // 2) for i, bit in enumerate(bits)
        }

    def block(self, number: int) -> list[Place]:
        """The cells of a word that was read, or that is to be written."""
        return [(B, -1 - number * self.width - bit) for bit in range(self.width)]


@dataclass
class _Traced:
    """An instruction as one circuit, and what its wires are."""

    circuit: Circuit
    places: dict[Wire, Place]
    """Of its inputs."""
    kept: list[Wire]
    """Inputs whose cells are not written over before the end: registers, and the next byte."""
    copies: dict[Wire, Wire]
    """Wires that are to be the same as registers, which may have changed when they are needed."""
    reads: list[Word]
    """The number of each word that is read."""
    writes: list[tuple[Word, Word]]
    """The number of each word that is written, and the word."""
    puts: Word
    """Whether a byte is put out, and which."""
    takes: Word
    trap: Word
    changed: list[tuple[Wire, Place]]
    """What registers become."""
    looks: bool
    """Whether it reads the next byte of input."""

    @property
    def asked(self) -> list[Wire]:
        """Every wire that is taken somewhere, as often as it is."""
        ends = [*self.puts, *self.takes, *self.trap, *(wire for wire, _ in self.changed)]
        written = [word for pair in self.writes for word in pair]
        return [*(wire for word in (*self.reads, *written) for wire in word), *ends]


class _Tracer:
    """Takes an instruction once, word by word."""

    def __init__(self, machine: Machine, places: Places) -> None:
        self.machine, self.places, self.build = machine, places, CircuitBuilder()
        self.inputs: list[Place] = []
        self.reads: list[Word] = []
        self.looks = False

    def traced(self) -> _Traced:
        build, places = self.build, self.places
        # The trap is 0: nothing has stopped the program when an instruction begins.
        typed = {name: of(0) for name, of in self.machine.own_registers.items()}
        for name in {name: 0 for name, _ in places.registers}:
            cells = [cell for (own, _), cell in places.registers.items() if own == name]
            typed[name] = self._word(cells)
        registers = range(len(self.inputs))
        effect = follow(self.machine.instruction(typed), self._answered)
        writes = [pair for port in effect.writes for pair in self._written(port)]
        takes, emits, byte = effect.ends()
        ends = [[*emits.wires(build), *byte.wires(build)], takes.wires(build)]
        new = {name: value.wires(build) for name, value in effect.registers.items()}
        ends += [new.pop("trap", []), *new.values()]
        outputs = (*self.reads, *(word for pair in writes for word in pair), *ends)
        for number, wire in enumerate(wire for word in outputs for wire in word):
            build.output(str(number), wire)
        circuit = build.circuit(self.machine.kind)
        final = iter(_wires(circuit))
        cells = dict(enumerate(self.inputs))
        copies: dict[Wire, Wire] = {}

        def taken(word: Word) -> list[Wire]:
            return [next(final) for _ in word]

        def safe(wire: Wire) -> Wire:
            if wire not in registers:
                return wire
            copies[(copy := len(circuit.inputs) + len(circuit.kinds) + len(copies))] = wire
            return copy

        return _Traced(
            circuit,
            cells,
            kept=[wire for wire, (tape, cell) in cells.items() if tape != B or cell > 0],
            copies=copies,
            reads=[taken(number) for number in self.reads],
            writes=[(taken(number), taken(word)) for number, word in writes],
            puts=taken(ends[0]),
            takes=taken(ends[1]),
            trap=[safe(wire) for wire in taken(ends[2])],
            changed=[
                (safe(wire), places.registers[name, bit])
                for name, word in new.items()
                for bit, wire in enumerate(taken(word))
                if cells.get(wire) != places.registers[name, bit]
            ],
            looks=self.looks,
        )

    def _word(self, cells: Sequence[Place]) -> IntValue:
        wires = [self.build.input(str(number)) for number, _ in enumerate(cells, len(self.inputs))]
        self.inputs += cells
        return IntValue(UInt(len(cells)), wires, self.build)

    def _answered(self, ports: tuple[Read | Next, ...]) -> tuple[IntValue, ...]:
        return tuple(self._read(port) for port in ports)

    def _read(self, port: Read | Next) -> IntValue:
        if isinstance(port, Next):
            self.looks = True
            return self._word([(B, 1 + bit) for bit in range(BYTE + 1)])
        address, width = port.address.wires(self.build), self.places.memories[port.memory].width
        cells: list[Place] = []
        for i in range(port.span):
            cells += self.places.block(len(self.reads))[:width]
            self.reads.append(self._number(port.memory, address, i)[0])
        return self._word(cells)

    def _written(self, port: Write) -> Iterator[tuple[Word, Word]]:
        build, width = self.build, self.places.memories[port.memory].width
        address, old, change = (word.wires(build) for word in (port.address, port.old, port.change))
        for i in range(port.span):
            number, inside = self._number(port.memory, address, i)
            bits = range(i * width, (i + 1) * width)
            yield number, [build.xor(old[bit], build.and_(inside, change[bit])) for bit in bits]

    def _number(self, memory: str, address: Word, further: int) -> tuple[Word, Wire]:
        """The number among all words of the word at an address, or so many further on; that of the spare word
        where the memory has ended. And whether it has not."""
        build, places = self.build, self.places
        first, size = places.bases[memory], places.memories[memory].words
        length = max(len(address), size.bit_length()) + 1
        at = words.resized(build, address, length, signed=False)
        if further:
            at = words.add(build, at, words.constant(build, further, length))
        inside = words.less(build, at, words.constant(build, size, length))
        if (1 << len(address)) - 1 + further < size:
            inside = build.constant(True)
        own = words.resized(build, at, places.number, signed=False)
        own = words.add(build, own, words.constant(build, first, places.number)) if first else own
        spare = words.constant(build, places.words, places.number)
        return words.choose(build, inside, own, spare), inside


def _wires(circuit: Circuit) -> list[Wire]:
    """The outputs, with `ZERO` and `ONE` for those that are constant."""
    constants = {int(Gate.FALSE): ZERO, int(Gate.TRUE): ONE}
    kinds = [-1] * len(circuit.inputs) + circuit.kinds.tolist()
    return [constants.get(kinds[wire], int(wire)) for wire in circuit.output_wires]


@lru_cache(maxsize=8)
def instruction_machine(machine: Machine) -> tuple[TuringMachine, Places]:
    """The table of an instruction set with so much memory, and where its words lie."""
    if FETCH in machine.traps:
        raise SourceError(f"what stops {machine.kind!r} is called {FETCH!r}, as a state of every table is")
    places = Places(machine)
    traced = _Tracer(machine, places).traced()
    gates = traced.circuit.size
    plans = [_Planned(places, traced, way) for way in WAYS if gates <= MOST_GATES]
    best = min((plan for plan in plans if plan.states <= MOST_STATES), key=_Planned.cost, default=None)
    if best is None:
        states = f"some {min(plan.states for plan in plans):,}" if plans else f"more than {MOST_STATES:,}"
        raise Refused(
            f"the table of the instruction set {machine.kind!r} would have {states} states, for "
            f"{gates:,} gates of an instruction on {places.words:,} words of {places.width} bits; the limit "
            f"is {MOST_STATES:,}",
            advice="Use the target relu, transformer or emulator, which take gates as they are.",
        )
    return _Table(machine, traced, best).machine, places


class _Planned:
    """All stages of an instruction, in order."""

    def __init__(self, places: Places, traced: _Traced, way: Way) -> None:
        self.traced, self.width = traced, places.width
        self.blocks = [places.block(i) for i in range(len(traced.reads) + len(traced.writes))]
        used = [0] * 4
        for tape, cell in places.registers.values():
            used[tape] = max(used[tape], -cell)
        used[A], used[B] = places.width, len(self.blocks) * places.width
        self.plan = Stages(traced.circuit, traced.copies, traced.places, traced.kept, used, traced.asked, way)
        self.operations: Mapping[Wire, Operation] = self.plan.operations
        self.stages = list(self._planned())
        self.steps = sum(len(stage.moments) for stage in self.stages)
        self.states = sum(stage.states(self.operations) for stage in self.stages)

    def cost(self) -> int:
        """A step costs time, and a state memory."""
        return self.states * self.steps

    def _planned(self) -> Iterator[Stage]:
        traced, plan, reads = self.traced, self.plan, len(self.traced.reads)
        for number, block in zip(traced.reads, self.blocks, strict=False):
            yield self._to_word(number, block)
        for (number, word), block in zip(traced.writes, self.blocks[reads:], strict=True):
            whole = [*word, *[ZERO] * (self.width - len(word))]
            yield self._to_word(number, block, zip(whole, block, strict=True))
        if traced.puts[0] != ZERO:
            yield plan.stage(self._on_a(traced.puts[1:]), traced.puts[:1])
        if traced.takes[0] != ZERO:
            yield plan.stage((), traced.takes)
        yield plan.stage(traced.changed, traced.trap)

    def _to_word(self, number: Word, block: list[Place], before: Iterable[tuple[Wire, Place]] = ()) -> Stage:
        """The number of a word to A; the head of B beside a block, over which it will go."""
        (_, first), (_, last) = block[0], block[-1]
        found = self.plan.stage([*before, *self._on_a(number)], ends={B: first + 1})
        self.plan.begin((0, 0, 0, last - 1))
        return found

    def _on_a(self, bits: Word) -> list[tuple[Wire, Place]]:
        whole = [*bits, *[ZERO] * (self.width - len(bits))]
        return [(wire, (A, 1 + bit)) for bit, wire in enumerate(whole)]


class _Table:
    """The microcode of an instruction."""

    def __init__(self, machine: Machine, traced: _Traced, plan: _Planned) -> None:
        self.code, self.traced = Microcode(), traced
        self.operations, self.parts = plan.operations, list(plan.stages)
        traps = [State(trap) for trap in machine.traps]
        fetch = State(FETCH, entered=True)
        state = self._whole(fetch, traps)
        fetch.rule = lambda read: state
        self.machine = self.code.machine(fetch, machine.kind, machine.traps[:1], ends=traps)

    def _whole(self, fetch: State, traps: list[State]) -> State:
        """Written from its end."""
        code, traced, parts = self.code, self.traced, self.parts

        ends = [fetch, *traps]
        ends += [State(f"no trap {number}") for number in range(len(ends), 1 << len(traced.trap))]

        def ended(bits: tuple[int, ...]) -> State:
            return ends[sum(bit << place for place, bit in enumerate(bits))]

        state = states_of(code, "registers", parts.pop(), self.operations, ended)
        if traced.takes[0] != ZERO:
            state = self._chosen("input", parts.pop(), code.taken(state), state)
        if traced.puts[0] != ZERO:
            state = self._chosen("output", parts.pop(), code.put(0, OUTPUT, state), state)
        for _ in traced.writes:
            state = self._at_word("write", parts.pop(), copy(B, MEMORY), state)
        for _ in traced.reads:
            state = self._at_word("read", parts.pop(), copy(MEMORY, B), state)
        if traced.looks:
            none = code.at(None, 0, False, "no byte", state, constant(B), 0)
            state = code.peek(state, none)
        return state

    def _chosen(self, label: str, stage: Stage, yes: State, no: State) -> State:
        return states_of(self.code, label, stage, self.operations, lambda bits: yes if bits[0] else no)

    def _at_word(self, label: str, stage: Stage, bitwise: Bitwise, after: State) -> State:
        """A stage, the way to the word whose number it leaves on A, its bits one by one with those of a word
        on B, and the way home."""
        code = self.code
        home = code.home(RIGHT, after, within=True)
        found = code.sweep(label, {MEMORY: RIGHT, RULER: RIGHT, B: LEFT}, home, bitwise)
        reached = code.reach(RIGHT, found)
        return states_of(code, f"number to {label}", stage, self.operations, lambda _: reached)
