"""RV32IM in microcode: one Turing machine with four tapes that runs every RV32IM program.

    word 0 of A     the number of a word of memory, or of a register
    word 1 of A     the second operand: a register, or an immediate
    words 2 to 5    what multiplication and division work with
    word 0 of B     the first operand, and the result
    words 1 to 4    pc; how many bytes a system call has moved; the instruction; a place to spare

An instruction is fetched and told apart bit by bit. Its operands are brought to where they are worked with,
the result goes back to its register, and pc is moved on. Whatever can stop the program is found before
anything is changed.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache

from tapegrad.lowering import rv32_bits as bitwise
from tapegrad.lowering.microcode import (
    FETCH,
    LEFT,
    MEMORY,
    PC,
    RIGHT,
    RULER,
    A,
    Action,
    B,
    Microcode,
    Operation,
    Reading,
    State,
    adds,
    constant,
    copy,
    highest,
)
from tapegrad.lowering.rv32_operands import IR, Operands
from tapegrad.machines.model import TuringMachine
from tapegrad.programs.rv32 import RV32

COPIED, SPARE = 2, 4
OUTPUT = 5
"""The word of B with which the output begins."""
LOW, SAVED, OTHER, COUNT = 2, 3, 4, 5
"""Words of A: low half of a product, or quotient; the operands as they were; rounds to go."""


@cache
def rv32_machine() -> TuringMachine:
    """One machine for all RV32IM programs."""
    return _RV32().machine


class _RV32(Operands):
    """The microcode, written once."""

    def __init__(self) -> None:
        self.code = code = Microcode()
        self.fetch = fetch = State(FETCH, entered=True)
        self.exit, self.breakpoint, self.illegal, self.misaligned, self.jump_outside, self.outside = (
            State(trap) for trap in RV32.traps
        )
        self.shifts: dict[tuple[int, bool], State] = {}
        # Every instruction but a system call that goes on leaves it at 0 how many bytes were moved: one that
        # reads may write over itself, and what is there then is another instruction.
        self.uncounted = code.at(None, COPIED, False, "number", fetch, constant(B), 0)
        self.follow = code.at(None, PC, False, "next instruction's address", self.uncounted, adds(B), 4)
        self.result = self.to_register((7, 5), self.follow)
        found = code.at(None, IR, True, "fetch", code.home(RIGHT, self.decode()), copy(MEMORY, B))
        begin = code.at(
            0,
            PC,
            False,
            "address of the instruction",
            self.quarter(lambda at: code.reach(RIGHT, found, self.jump_outside)),
            copy(B, A),
        )
        fetch.rule = lambda read: begin
        self.machine = code.machine(fetch, "RV32IM", accept=RV32.traps[:1])

    # Telling instructions apart

    def decode(self) -> State:
        """First by the opcode, which says where the operands come from; then, when they are in their places,
        by all that tells instructions apart. So operands are fetched in one place for all."""
        code = self.code
        dispatch = code.at(None, IR, False, "which instruction?", self.instruction, bitwise.decoded, (0, 0))
        one = self.register((15, 5), B, dispatch)
        immediate = self.immediate("I", one)
        auipc = code.at(0, 0, False, "to B", self.both("add", self.result, bitwise.add), copy(A, B))
        opcodes = {
            0x03: immediate,
            0x0F: dispatch,
            0x13: immediate,
            0x17: self.immediate("U", code.at(0, PC, False, "save", auipc, copy(B, A))),
            0x23: self.immediate("S", one),
            0x33: self.register((20, 5), A, one),
            0x37: self.immediate("U", code.at(1, 0, False, "to B", self.result, copy(A, B))),
            0x63: self.register((20, 5), A, one),
            0x67: immediate,
            0x6F: self.immediate("J", self.jump_by(self.link(self.follow_to()))),
            0x73: dispatch,
        }

        def by_opcode(carried: Hashable) -> State:
            assert isinstance(carried, tuple)
            return opcodes.get(carried[1], self.illegal) if carried[0] == 7 else self.illegal

        return code.at(None, IR, False, "which opcode?", by_opcode, bitwise.opcode, (0, 0))

    def instruction(self, key: Hashable) -> State:
        """What an instruction does once its operands are there, by the bits that tell it apart."""
        assert isinstance(key, tuple)
        position, bits = key
        if position < 32 or bits is None:
            return self.illegal
        if bits in (0x73, 0x100073):
            return self.system_call() if bits == 0x73 else self.breakpoint
        opcode, f3, f7 = bits & 0x7F, bits >> 12 & 7, bits >> 25
        if opcode == 0x03:
            return self.address(lambda at: self.load(8 << (f3 & 3), f3 < 4, at, self.result))
        if opcode == 0x23:
            data = lambda after: self.register((20, 5), B, after)  # noqa: E731
            return self.address(lambda at: self.store(8 << f3, at, self.follow), data)
        if opcode == 0x63:
            return self.branch(f3)
        if opcode == 0x67:
            return self.both("add", self.jump_to(), bitwise.add)
        if opcode in (0x13, 0x33):
            return self.multiplication(f3) if f7 == 1 else self.arithmetic(f3, f7 == 0x20)
        return self.follow  # a fence: there is one processor; or one that the opcode alone has decided

    def branch(self, f3: int) -> State:
        """Jumps or goes on."""
        taken = self.immediate("B", self.jump_by(self.follow_to()))

        def going(holds: bool) -> State:
            return taken if holds else self.follow

        if f3 < 2:
            return self.both("equal?", lambda c: going((c == 0) == (f3 == 0)), bitwise.differ)
        return self.both(
            "less?", lambda c: going(bitwise.less(c, f3 < 6) == (f3 % 2 == 0)), bitwise.compare, (0, 0, 0)
        )

    # Arithmetic

    def arithmetic(self, f3: int, changed: bool) -> State:
        """What OP and OP-IMM do with their operands."""
        if f3 == 0:
            return (
                self.both("subtract", self.result, bitwise.subtract)
                if changed
                else self.both("add", self.result, bitwise.add)
            )
        if f3 in (2, 3):
            return self.both(
                "less?",
                lambda c: self.flag(int(bitwise.less(c, f3 == 2)), self.result),
                bitwise.compare,
                (0, 0, 0),
            )
        if f3 in (1, 5):
            if (f3, changed) not in self.shifts:
                self.shifts[f3, changed] = self.shift(left=f3 == 1, arithmetic=changed)
            return self.shifts[f3, changed]
        return self.both(
            {4: "xor", 6: "or", 7: "and"}[f3],
            self.result,
            {4: bitwise.xor_bits, 6: bitwise.or_bits, 7: bitwise.and_bits}[f3],
        )

    def shift(self, *, left: bool, arithmetic: bool) -> State:
        """By one bit at a time, while the low five bits of the other operand are counted down."""
        code = self.code
        top = State("shift")
        if left:
            once = code.at(None, 0, False, "double", top, bitwise.double, 0)
        elif arithmetic:
            once = code.at(None, 0, False, "halve signed", top, bitwise.halve_signed, "first", upwards=False)
        else:
            once = code.at(None, 0, False, "halve B", top, bitwise.shifts_down(B), 0, upwards=False)

        def more(carried: Hashable) -> State:
            assert isinstance(carried, tuple)
            return self.result if carried[1] else once

        count = code.at(1, None, False, "rounds", more, bitwise.five_bits_down, (0, 1))
        top.rule = lambda read: count
        return count

    def multiplication(self, f3: int) -> State:
        return self.product(f3) if f3 < 4 else self.quotient(f3)

    def rounds(self, once: Callable[[State], State], after: State) -> State:
        """Something done 32 times over."""
        code = self.code
        top = State("round")
        count = code.at(
            COUNT, None, False, "count round", lambda c: after if c else once(top), bitwise.count_down, 1
        )
        top.rule = lambda read: count
        return code.at(COUNT, None, False, "32 rounds", top, constant(A), 32)

    def product(self, f3: int) -> State:
        """High half in word 0 of B, low half in a word of A which first holds one of the operands. Shifting
        both down by a bit 32 times, the other operand is added to the high half wherever a 1 falls out."""
        code = self.code

        def once(after: State) -> State:
            def low(bit: Hashable) -> State:
                return code.at(LOW, None, False, "halve", after, bitwise.shifts_down(A), bit, upwards=False)

            def high(carry: Hashable) -> State:
                return code.at(None, 0, False, "halve B", low, bitwise.shifts_down(B), carry, upwards=False)

            add = self.both("add", high, bitwise.add)
            return code.at(
                LOW, None, False, "lowest?", lambda c: add if c == 1 else high(0), bitwise.lowest, "first"
            )

        if f3 == 0:
            end = code.at(LOW, 0, False, "to B", self.result, copy(A, B))
        else:
            # A signed number is the unsigned one less 2^32 where its sign is 1.
            less_a = code.at(SAVED, 0, False, "subtract", self.result, bitwise.subtract, 0)
            b_sign = code.at(
                1, None, False, "negative?", lambda c: less_a if c else self.result, highest(A), 0
            )
            after_a = b_sign if f3 == 1 else self.result
            less_b = self.both("subtract", after_a, bitwise.subtract)
            a_sign = code.at(
                SAVED, None, False, "negative?", lambda c: less_b if c else after_a, highest(A), 0
            )
            end = a_sign if f3 < 3 else self.result
        rounds = self.rounds(once, end)
        clear = code.at(None, 0, False, "number", rounds, constant(B), 0)
        saved = code.at(SAVED, 0, False, "save", clear, copy(B, A))
        return code.at(LOW, 0, False, "save", saved, copy(B, A))

    def quotient(self, f3: int) -> State:
        """Long division of the absolute values: bits of the dividend go up into the remainder, in word 0 of
        B; where the divisor can be subtracted, a 1 goes into the quotient, in the dividend's place."""
        code = self.code
        signed = f3 in (4, 6)

        def once(after: State) -> State:
            one = code.at(LOW, None, False, "set lowest", after, bitwise.set_lowest, "first")
            subtract = self.both("subtract", one, bitwise.subtract)

            def compared(carried: Hashable) -> State:
                return after if bitwise.less(carried, False) else subtract

            compare = self.both("less?", compared, bitwise.compare, (0, 0, 0))

            def remainder(bit: Hashable) -> State:
                return code.at(
                    None, 0, False, "double", lambda over: subtract if over else compare, bitwise.double, bit
                )

            return code.at(LOW, None, False, "double A", remainder, bitwise.double_a, 0)

        negate = code.at(None, 0, False, "negate", self.result, bitwise.negate(B), 1)
        if f3 < 6:
            kept = code.at(LOW, 0, False, "to B", self.result, copy(A, B))
            negated = code.at(LOW, 0, False, "to B", negate, copy(A, B))
            some = code.at(OTHER, None, False, "zero?", lambda c: negated if c else kept, bitwise.some, 0)

            def by_other(a_negative: Hashable) -> State:
                return code.at(
                    OTHER,
                    None,
                    False,
                    "negative?",
                    lambda c: some if c != a_negative else kept,
                    highest(A),
                    0,
                )

            end = code.at(SAVED, None, False, "negative?", by_other, highest(A), 0) if signed else kept
        else:
            end = (
                code.at(
                    SAVED, None, False, "negative?", lambda c: negate if c else self.result, highest(A), 0
                )
                if signed
                else self.result
            )
        state = code.at(None, 0, False, "number", self.rounds(once, end), constant(B), 0)
        if signed:
            for word in (LOW, 1):
                negated = code.at(word, None, False, "negate A", state, bitwise.negate(A), 1)
                state = code.at(word, None, False, "negative?", bitwise.either(negated, state), highest(A), 0)
        state = code.at(SAVED, 0, False, "save", state, copy(B, A))
        state = code.at(LOW, 0, False, "save", state, copy(B, A))
        # The other operand goes by way of B, which gets the first one back from its register.
        state = self.register((15, 5), B, state)
        state = code.at(OTHER, 0, False, "save", state, copy(B, A))
        return code.at(1, 0, False, "to B", state, copy(A, B))

    # Jumps

    def jump_by(self, after: State) -> State:
        """pc + word 1 of A to word 2 of A; stops if that is misaligned."""
        code = self.code
        to_a = code.at(LOW, 0, False, "save", self.aligned(after), copy(B, A))
        add = self.both("add", to_a, bitwise.add)
        to_b = code.at(LOW, 0, False, "to B", add, copy(A, B))
        return code.at(LOW, PC, False, "save", to_b, copy(B, A))

    def aligned(self, after: State) -> State:
        """Stops if word 2 of A is no address of an instruction."""
        return self.code.at(
            LOW, None, False, "aligned?", bitwise.either(self.misaligned, after), bitwise.bit_one, -2
        )

    def jump_to(self) -> State:
        """Word 0 of B, without its lowest bit, is where it goes on."""
        code = self.code
        link = self.link(self.follow_to())
        return code.at(LOW, 0, False, "even to A", self.aligned(link), bitwise.copy_even, "first")

    def link(self, after: State) -> State:
        """The address of the next instruction to rd."""
        code = self.code
        to = self.to_register((7, 5), after)
        add = code.at(None, 0, False, "four more", to, adds(B), 4)
        back = code.at(0, 0, False, "pc to B", add, copy(A, B))
        return code.at(0, PC, False, "pc", back, copy(B, A))

    def follow_to(self) -> State:
        return self.code.at(LOW, PC, False, "jump", self.uncounted, copy(A, B))

    # Loads and stores: from the bit at which they begin, bit by bit, over the end of a word if need be

    def address(self, found: Callable[[int], State], data: Operation | None = None) -> State:
        """Word 0 of B + word 1 of A is an address: takes the heads of MEMORY and RULER to its word, with
        `data` in word 0 of B, if there are any. `found` takes the number of the byte in the word."""
        code = self.code
        reached = self.quarter(lambda at: code.reach(RIGHT, found(at), self.outside))
        if data is None:
            state = code.at(0, 0, False, "save", reached, copy(B, A))
        else:
            back = code.at(0, SPARE, False, "save", reached, copy(B, A))
            state = data(code.at(1, SPARE, False, "to B", back, copy(A, B)))
            state = code.at(1, 0, False, "save", state, copy(B, A))
        return self.both("add", state, bitwise.add)

    def onto_bit(self, at: int, after: State) -> State:
        """From the separator of a word of memory to the first bit of a byte."""
        for _ in range(8 * at + 1):
            after = self.code.acting("to the byte", {MEMORY: RIGHT, RULER: RIGHT}, after)
        return after

    def off_word(self, cells: int, after: State) -> State:
        """The head of B back to its separator, those of MEMORY and RULER to cell 0."""
        after = self.code.home(RIGHT, after, within=True)
        for _ in range(cells):
            after = self.code.acting("back in the word", {B: LEFT}, after)
        return after

    def over_bits(
        self,
        label: str,
        number: int,
        moves: Mapping[int, int],
        ends: State | Sequence[State],
        write: Mapping[int, int],
    ) -> State:
        """So many bits of memory, over separators, but not over the end; `write` takes tapes to those that
        are written to them. Where there are two ends, the last bit chooses."""
        code = self.code
        state, new = code.state(label, number, ends if isinstance(ends, State) else tuple(ends))
        if not new:
            return state
        if number > 1:
            after: Sequence[State] = [self.over_bits(label, number - 1, moves, ends, write)] * 2
        else:
            after = [ends, ends] if isinstance(ends, State) else ends
        memory = {MEMORY: moves[MEMORY], RULER: moves[RULER]}

        def rule(read: Reading) -> Action | State:
            if read[RULER]:
                return self.outside if read[MEMORY] else Action({}, memory, state)
            return Action({to: read[of] for to, of in write.items()}, moves, after[read[MEMORY]])

        state.rule = rule
        return state

    def load(self, size: int, signed: bool, at: int, after: State) -> State:
        """So many bits to word 0 of B."""
        code = self.code
        done = self.off_word(33, after)
        fills = [done, done]
        for _ in range(32 - size):
            fills = [code.acting("extend", {B: RIGHT}, fills[bit], {B: bit}) for bit in (0, 1)]
        ends = fills if signed and size < 32 else fills[0]
        bits = self.over_bits("load bit", size, {MEMORY: RIGHT, RULER: RIGHT, B: RIGHT}, ends, {B: MEMORY})
        return code.acting("into the word", {B: RIGHT}, self.onto_bit(at, bits))

    def store(self, size: int, at: int, after: State) -> State:
        """The low bits of word 0 of B; where they reach into the next word, it is first seen that there is
        one."""
        code = self.code
        done = self.off_word(size + 1, after)
        bits = self.over_bits("store bit", size, {MEMORY: RIGHT, RULER: RIGHT, B: RIGHT}, done, {MEMORY: B})
        state = code.acting("into the word", {B: RIGHT}, bits)
        if 8 * at + size > 32:
            back = {MEMORY: LEFT, RULER: LEFT}
            for _ in range(size + 1):  # all bits and the separator between
                state = code.acting("back to the first bit", back, state)
            state = self.over_bits("is there room?", size, {MEMORY: RIGHT, RULER: RIGHT}, state, {})
        return self.onto_bit(at, state)

    # System calls

    def system_call(self) -> State:
        """One step of an `ecall`: reading and writing move a byte."""
        code = self.code
        finished = self.to_known(10, self.follow)
        result = {number: self.flag(number, self.to_known(10, self.follow)) for number in (-9, -38)}
        some = code.at(1, 0, False, "to B", finished, copy(A, B))
        stop_here = code.at(1, COPIED, False, "save", some, copy(B, A))
        last = code.at(1, 0, False, "to B", finished, copy(A, B))
        over = code.at(1, COPIED, False, "equal?", lambda c: self.fetch if c else last, bitwise.differ, 0)
        moved = code.at(None, COPIED, False, "one more", self.known(12, A, over), adds(B), 1)

        def at_place(access: State) -> State:
            """The address of the next byte as operands, if any are to be moved."""
            place = code.at(1, COPIED, False, "save", access, copy(B, A))
            move = self.known(11, B, place)
            return self.known(
                12, A, code.at(1, None, False, "zero?", lambda c: move if c else stop_here, bitwise.some, 0)
            )

        unread = State("no byte of input")  # cannot be: it has just been seen that there is one
        reading = self.address(
            lambda at: self.store(8, at, code.taken(moved)), lambda after: code.peek(after, unread)
        )
        put = code.at(1, 0, False, "save", code.put(1, OUTPUT, moved), copy(B, A))
        writing = self.address(lambda at: self.load(8, False, at, put))
        read = code.peek(at_place(reading), self.known(12, A, stop_here))
        write = at_place(writing)

        def by_number(cases: Mapping[int, State], otherwise: State) -> State:
            label = f"which of {', '.join(map(str, cases))}?"
            return code.at(
                None,
                0,
                False,
                label,
                lambda c: cases.get(bitwise.number_found(c), otherwise),
                bitwise.one_of(tuple(cases)),
                (0, 0),
            )

        files = {
            63: self.known(10, B, by_number({0: read}, result[-9])),
            64: self.known(10, B, by_number({1: write, 2: write}, result[-9])),
        }
        return self.known(17, B, by_number({93: self.exit, 94: self.exit, **files}, result[-38]))
