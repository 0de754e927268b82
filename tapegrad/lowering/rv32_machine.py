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
    Bitwise,
    Microcode,
    Operation,
    Reading,
    State,
    adds,
    constant,
    copy,
    highest,
)
from tapegrad.machines.model import TuringMachine
from tapegrad.programs.rv32 import RV32

COPIED, IR, SPARE = 2, 3, 4
OUTPUT = 5
"""The word of B with which the output begins."""
LOW, SAVED, OTHER, COUNT = 2, 3, 4, 5
"""Words of A: low half of a product, or quotient; the operands as they were; rounds to go."""

Written = tuple[Hashable, Mapping[int, int]]


@cache
def rv32_machine() -> TuringMachine:
    """One machine for all RV32IM programs."""
    return _RV32().machine


class _RV32:
    """The microcode, written once."""

    def __init__(self) -> None:
        self.code = code = Microcode()
        self.fetch = fetch = State(FETCH, entered=True)
        self.exit, self.breakpoint, self.illegal, self.misaligned, self.jump_outside, self.outside = (
            State(trap) for trap in RV32.traps
        )
        self.shifts: dict[tuple[int, bool], State] = {}
        self.follow = code.at(None, PC, False, "next instruction's address", fetch, adds(B), 4)
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

    # Words and registers

    def quarter(self, after: Callable[[int], State]) -> State:
        """Word 0 of A, divided by 4; what is left over is told to what comes after."""
        code = self.code

        def again(low: Hashable) -> State:
            assert isinstance(low, int)
            return code.at(
                0,
                None,
                False,
                "halve",
                lambda c: after(low + 2 * int(str(c))),
                _shifts_down(A),
                0,
                upwards=False,
            )

        return code.at(0, None, False, "halve", again, _shifts_down(A), 0, upwards=False)

    def bits_of_ir(
        self, bits: Sequence[int], a: int, after: State, *, signed: bool = False, if_zero: State | None = None
    ) -> State:
        """Bits of the instruction, in this order, become word `a` of A, filled up with the last of them or
        with 0; -1 stands for a 0. `if_zero` is where it goes on if they are all 0."""
        code = self.code
        side = max(a, IR) % 2
        ruler = LEFT if side else RIGHT

        def returned(end: State) -> State:
            return code.sweep("back", {A: LEFT, RULER: -ruler}, code.hops(a, IR, LEFT, ruler, end))

        def from_cell(place: int, end: State) -> State:
            for _ in range(place):
                end = code.acting("back in the instruction", {B: LEFT}, end)
            return end

        zero = after if if_zero is None else if_zero
        finish = [from_cell(bits[-1] + 1, returned(end)) for end in (zero, after)]

        def filled(value: int, some: int) -> State:
            state, new = code.state("fill up", value, finish[some], ruler)
            if new:
                state.rule = lambda read: (
                    finish[some] if read[RULER] else Action({A: value}, {A: RIGHT, RULER: ruler}, state)
                )
            return state

        @cache
        def copied(number: int, place: int, some: int, value: int) -> State:
            """Bit `number` is next; the head of B is at `place` cells from its separator."""
            if number == len(bits):
                return filled(value if signed else 0, some)
            if bits[number] < 0:
                return code.acting("0", {A: RIGHT, RULER: ruler}, copied(number + 1, place, some, 0), {A: 0})
            away = bits[number] + 1 - place
            if away:
                step = RIGHT if away > 0 else LEFT
                return code.acting("in the instruction", {B: step}, copied(number, place + step, some, value))
            last, noted = number == len(bits) - 1, if_zero is not None
            ends = [
                copied(number + 1, place, bit if noted and bit else some, bit if signed and last else 0)
                for bit in (0, 1)
            ]
            state, new = code.state("copy bit", ruler, *ends)
            if new:
                state.rule = lambda read: Action({A: read[B]}, {A: RIGHT, RULER: ruler}, ends[read[B]])
            return state

        state = code.acting("into the word", {A: RIGHT, RULER: ruler}, copied(0, 0, 0, 0))
        return code.hops(a, IR, RIGHT, RIGHT, state)

    def register(self, field: tuple[int, int], to: int, after: State) -> State:
        """The register that a field of the instruction names, to word 0 of B or word 1 of A."""
        return self.bits_of_ir(range(field[0], field[0] + field[1]), 0, self.loaded(to, after))

    def known(self, number: int, to: int, after: State) -> State:
        """The register of this number, to word 0 of B or word 1 of A."""
        return self.code.at(0, None, False, "register", self.loaded(to, after), constant(A), number)

    def loaded(self, to: int, after: State) -> State:
        code = self.code
        home = code.home(LEFT, after)
        if to == B:
            state = code.at(None, 0, True, "register to B", home, copy(MEMORY, B))
        else:
            state = code.at(1, None, True, "register to A", home, copy(MEMORY, A))
        return code.reach(LEFT, state)

    def written(self, after: State) -> State:
        """Word 0 of B to the register with the number on A."""
        home = self.code.home(LEFT, after)
        return self.code.reach(LEFT, self.code.at(None, 0, True, "to register", home, copy(B, MEMORY)))

    def to_register(self, field: tuple[int, int], after: State) -> State:
        """Word 0 of B to the register that a field names; x0 stays 0."""
        return self.bits_of_ir(range(field[0], field[0] + field[1]), 0, self.written(after), if_zero=after)

    def to_known(self, number: int, after: State) -> State:
        return self.code.at(0, None, False, "register", self.written(after), constant(A), number)

    def immediate(self, kind: str, after: State) -> State:
        """An immediate of the instruction, to word 1 of A."""
        return self.bits_of_ir(IMMEDIATES[kind], 1, after, signed=kind != "U")

    def both(
        self, label: str, after: State | Callable[[Hashable], State], bitwise: Bitwise, carried: Hashable = 0
    ) -> State:
        """Something done to the operands, word 1 of A and word 0 of B."""
        return self.code.at(1, 0, False, label, after, bitwise, carried)

    def flag(self, value: int, after: State) -> State:
        """0 or 1 as word 0 of B."""
        return self.code.at(None, 0, False, "number", after, constant(B), value)

    # Telling instructions apart

    def decode(self) -> State:
        """First by the opcode, which says where the operands come from; then, when they are in their places,
        by all that tells instructions apart. So operands are fetched in one place for all."""
        code = self.code
        dispatch = code.at(None, IR, False, "which instruction?", self.instruction, _decoded, (0, 0))
        one = self.register((15, 5), B, dispatch)
        immediate = self.immediate("I", one)
        auipc = code.at(0, 0, False, "to B", self.both("add", self.result, _add), copy(A, B))
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

        return code.at(None, IR, False, "which opcode?", by_opcode, _opcode, (0, 0))

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
            return self.both("add", self.jump_to(), _add)
        if opcode in (0x13, 0x33):
            return self.multiplication(f3) if f7 == 1 else self.arithmetic(f3, f7 == 0x20)
        return self.follow  # a fence: there is one processor; or one that the opcode alone has decided

    def branch(self, f3: int) -> State:
        """Jumps or goes on."""
        taken = self.immediate("B", self.jump_by(self.follow_to()))

        def going(holds: bool) -> State:
            return taken if holds else self.follow

        if f3 < 2:
            return self.both("equal?", lambda c: going((c == 0) == (f3 == 0)), _differ)
        return self.both("less?", lambda c: going(_less(c, f3 < 6) == (f3 % 2 == 0)), _compare, (0, 0, 0))

    # Arithmetic

    def arithmetic(self, f3: int, changed: bool) -> State:
        """What OP and OP-IMM do with their operands."""
        if f3 == 0:
            return (
                self.both("subtract", self.result, _subtract)
                if changed
                else self.both("add", self.result, _add)
            )
        if f3 in (2, 3):
            return self.both(
                "less?", lambda c: self.flag(int(_less(c, f3 == 2)), self.result), _compare, (0, 0, 0)
            )
        if f3 in (1, 5):
            if (f3, changed) not in self.shifts:
                self.shifts[f3, changed] = self.shift(left=f3 == 1, arithmetic=changed)
            return self.shifts[f3, changed]
        return self.both({4: "xor", 6: "or", 7: "and"}[f3], self.result, {4: _xor, 6: _or, 7: _and}[f3])

    def shift(self, *, left: bool, arithmetic: bool) -> State:
        """By one bit at a time, while the low five bits of the other operand are counted down."""
        code = self.code
        top = State("shift")
        if left:
            once = code.at(None, 0, False, "double", top, _double, 0)
        elif arithmetic:
            once = code.at(None, 0, False, "halve signed", top, _halve_signed, "first", upwards=False)
        else:
            once = code.at(None, 0, False, "halve B", top, _shifts_down(B), 0, upwards=False)

        def more(carried: Hashable) -> State:
            assert isinstance(carried, tuple)
            return self.result if carried[1] else once

        count = code.at(1, None, False, "rounds", more, _five_bits_down, (0, 1))
        top.rule = lambda read: count
        return count

    def multiplication(self, f3: int) -> State:
        return self.product(f3) if f3 < 4 else self.quotient(f3)

    def rounds(self, once: Callable[[State], State], after: State) -> State:
        """Something done 32 times over."""
        code = self.code
        top = State("round")
        count = code.at(COUNT, None, False, "count round", lambda c: after if c else once(top), _down, 1)
        top.rule = lambda read: count
        return code.at(COUNT, None, False, "32 rounds", top, constant(A), 32)

    def product(self, f3: int) -> State:
        """High half in word 0 of B, low half in a word of A which first holds one of the operands. Shifting
        both down by a bit 32 times, the other operand is added to the high half wherever a 1 falls out."""
        code = self.code

        def once(after: State) -> State:
            def low(bit: Hashable) -> State:
                return code.at(LOW, None, False, "halve", after, _shifts_down(A), bit, upwards=False)

            def high(carry: Hashable) -> State:
                return code.at(None, 0, False, "halve B", low, _shifts_down(B), carry, upwards=False)

            add = self.both("add", high, _add)
            return code.at(
                LOW, None, False, "lowest?", lambda c: add if c == 1 else high(0), _lowest, "first"
            )

        if f3 == 0:
            end = code.at(LOW, 0, False, "to B", self.result, copy(A, B))
        else:
            # A signed number is the unsigned one less 2^32 where its sign is 1.
            less_a = code.at(SAVED, 0, False, "subtract", self.result, _subtract, 0)
            b_sign = code.at(
                1, None, False, "negative?", lambda c: less_a if c else self.result, highest(A), 0
            )
            after_a = b_sign if f3 == 1 else self.result
            less_b = self.both("subtract", after_a, _subtract)
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
            one = code.at(LOW, None, False, "set lowest", after, _set_lowest, "first")
            subtract = self.both("subtract", one, _subtract)

            def compared(carried: Hashable) -> State:
                return after if _less(carried, False) else subtract

            compare = self.both("less?", compared, _compare, (0, 0, 0))

            def remainder(bit: Hashable) -> State:
                return code.at(
                    None, 0, False, "double", lambda over: subtract if over else compare, _double, bit
                )

            return code.at(LOW, None, False, "double A", remainder, _double_a, 0)

        negate = code.at(None, 0, False, "negate", self.result, _negate(B), 1)
        if f3 < 6:
            kept = code.at(LOW, 0, False, "to B", self.result, copy(A, B))
            negated = code.at(LOW, 0, False, "to B", negate, copy(A, B))
            some = code.at(OTHER, None, False, "zero?", lambda c: negated if c else kept, _some, 0)

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
                negated = code.at(word, None, False, "negate A", state, _negate(A), 1)
                state = code.at(word, None, False, "negative?", _either(negated, state), highest(A), 0)
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
        add = self.both("add", to_a, _add)
        to_b = code.at(LOW, 0, False, "to B", add, copy(A, B))
        return code.at(LOW, PC, False, "save", to_b, copy(B, A))

    def aligned(self, after: State) -> State:
        """Stops if word 2 of A is no address of an instruction."""
        return self.code.at(LOW, None, False, "aligned?", _either(self.misaligned, after), _bit_one, -2)

    def jump_to(self) -> State:
        """Word 0 of B, without its lowest bit, is where it goes on."""
        code = self.code
        link = self.link(self.follow_to())
        return code.at(LOW, 0, False, "even to A", self.aligned(link), _copy_even, "first")

    def link(self, after: State) -> State:
        """The address of the next instruction to rd."""
        code = self.code
        to = self.to_register((7, 5), after)
        add = code.at(None, 0, False, "four more", to, adds(B), 4)
        back = code.at(0, 0, False, "pc to B", add, copy(A, B))
        return code.at(0, PC, False, "pc", back, copy(B, A))

    def follow_to(self) -> State:
        return self.code.at(LOW, PC, False, "jump", self.fetch, copy(A, B))

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
        return self.both("add", state, _add)

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
        clear = code.at(None, COPIED, False, "number", self.follow, constant(B), 0)
        finished = self.to_known(10, clear)
        result = {number: self.flag(number, self.to_known(10, self.follow)) for number in (-9, -38)}
        some = code.at(1, 0, False, "to B", finished, copy(A, B))
        stop_here = code.at(1, COPIED, False, "save", some, copy(B, A))
        last = code.at(1, 0, False, "to B", finished, copy(A, B))
        over = code.at(1, COPIED, False, "equal?", lambda c: self.fetch if c else last, _differ, 0)
        moved = code.at(None, COPIED, False, "one more", self.known(12, A, over), adds(B), 1)

        def at_place(access: State) -> State:
            """The address of the next byte as operands, if any are to be moved."""
            place = code.at(1, COPIED, False, "save", access, copy(B, A))
            move = self.known(11, B, place)
            return self.known(
                12, A, code.at(1, None, False, "zero?", lambda c: move if c else stop_here, _some, 0)
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
                lambda c: cases.get(_number(c), otherwise),
                _one_of(tuple(cases)),
                (0, 0),
            )

        files = {
            63: self.known(10, B, by_number({0: read}, result[-9])),
            64: self.known(10, B, by_number({1: write, 2: write}, result[-9])),
        }
        return self.known(17, B, by_number({93: self.exit, 94: self.exit, **files}, result[-38]))


IMMEDIATES: dict[str, Sequence[int]] = {
    "I": range(20, 32),
    "S": (*range(7, 12), *range(25, 32)),
    "B": (-1, *range(8, 12), *range(25, 31), 7, 31),
    "U": (*[-1] * 12, *range(12, 32)),
    "J": (-1, *range(21, 31), 20, *range(12, 20), 31),
}
"""Where the bits of an immediate stand in the instruction, the lowest first; -1 where it has a 0."""

_KINDS = {
    0x03: (0, 1, 2, 4, 5),
    0x0F: (0, 1),
    0x13: range(8),
    0x17: range(8),
    0x23: (0, 1, 2),
    0x33: range(8),
    0x37: range(8),
    0x63: (0, 1, 4, 5, 6, 7),
    0x67: (0,),
    0x6F: range(8),
}
"""Opcodes, and the numbers that their field funct3 may have."""


def _opcode(carried: Hashable, m: int, a: int, b: int) -> Written:
    """The low seven bits of an instruction, and how many were looked at."""
    assert isinstance(carried, tuple)
    position, bits = carried
    return (carried if position == 7 else (position + 1, bits | b << position)), {}


def _decoded(carried: Hashable, m: int, a: int, b: int) -> Written:
    """What tells an instruction apart: as many of its bits as that takes, and how many were looked at. None
    in their place if there is no such instruction."""
    assert isinstance(carried, tuple)
    position, bits = carried
    if bits is None or position == 32:
        return carried, {}
    bits |= b << position
    position += 1
    opcode = bits & 0x7F
    if position <= 7:
        known = [*_KINDS, 0x73]
        legal = any((kind ^ opcode) & (1 << position) - 1 == 0 for kind in known)
    elif opcode == 0x73:
        legal = any((code ^ bits) & (1 << position) - 1 == 0 for code in (0x73, 0x100073))
    else:
        f3 = bits >> 12 & 7
        bits &= (
            0x7F
            | (0x7000 if opcode not in (0x17, 0x37, 0x6F) else 0)
            | (~0 << 25 if _has_f7(opcode, f3) else 0)
        )
        legal = position < 15 or f3 in _KINDS[opcode]
        if position > 25 and _has_f7(opcode, f3):
            legal = any((f7 << 25 ^ bits) >> 25 & (1 << position - 25) - 1 == 0 for f7 in _f7(opcode, f3))
    return (position, bits) if legal else (32, None), {}


def _has_f7(opcode: int, f3: int) -> bool:
    return opcode == 0x33 or (opcode == 0x13 and f3 in (1, 5))


def _f7(opcode: int, f3: int) -> Sequence[int]:
    changed = (0x20,) if f3 == 5 or (f3 == 0 and opcode == 0x33) else ()
    return (0, *changed, *((1,) if opcode == 0x33 else ()))


def _one_of(numbers: tuple[int, ...]) -> Bitwise:
    """Whether word 0 of B is one of these, all below 256, and which."""

    def looked(carried: Hashable, m: int, a: int, b: int) -> Written:
        if carried is None:
            return None, {}
        assert isinstance(carried, tuple)
        position, value = carried
        value |= b << position
        position = min(position + 1, 8)
        fits = any((value ^ number) & (1 << position) - 1 == 0 for number in numbers) and value < 256
        return (position, value) if fits else None, {}

    return looked


def _number(carried: Hashable) -> int:
    return carried[1] if isinstance(carried, tuple) and carried[0] == 8 else -1


def _either(yes: State, no: State) -> Callable[[Hashable], State]:
    return lambda carried: yes if carried == 1 else no


# What is done to single bits: a of word 1 of A (or another of its words), b of word 0 of B


def _add(carried: Hashable, m: int, a: int, b: int) -> Written:
    assert isinstance(carried, int)
    total = a + b + carried
    return total >> 1, {B: total & 1}


def _subtract(carried: Hashable, m: int, a: int, b: int) -> Written:
    assert isinstance(carried, int)
    difference = b - a - carried
    return int(difference < 0), {B: difference & 1}


def _compare(carried: Hashable, m: int, a: int, b: int) -> Written:
    """The borrow of b - a, and the two highest bits."""
    assert isinstance(carried, tuple)
    return (int(b - a - carried[0] < 0), a, b), {}


def _less(carried: Hashable, signed: bool) -> bool:
    assert isinstance(carried, tuple)
    borrow, a, b = carried
    return bool(borrow ^ a ^ b if signed else borrow)


def _differ(carried: Hashable, m: int, a: int, b: int) -> Written:
    return int(carried == 1 or a != b), {}


def _some(carried: Hashable, m: int, a: int, b: int) -> Written:
    return int(carried == 1 or a == 1), {}


def _xor(carried: Hashable, m: int, a: int, b: int) -> Written:
    return carried, {B: a ^ b}


def _or(carried: Hashable, m: int, a: int, b: int) -> Written:
    return carried, {B: a | b}


def _and(carried: Hashable, m: int, a: int, b: int) -> Written:
    return carried, {B: a & b}


def _double(carried: Hashable, m: int, a: int, b: int) -> Written:
    assert isinstance(carried, int)
    return b, {B: carried}


def _double_a(carried: Hashable, m: int, a: int, b: int) -> Written:
    assert isinstance(carried, int)
    return a, {A: carried}


def _shifts_down(tape: int) -> Bitwise:
    """From the highest bit downwards, each to the place below it."""

    def shifted(carried: Hashable, m: int, a: int, b: int) -> Written:
        assert isinstance(carried, int)
        return (a if tape == A else b), {tape: carried}

    return shifted


def _halve_signed(carried: Hashable, m: int, a: int, b: int) -> Written:
    return (b, {}) if carried == "first" else (b, {B: int(carried == 1)})


def _down(carried: Hashable, m: int, a: int, b: int) -> Written:
    return int(carried == 1 and a == 0), {A: a ^ int(carried == 1)}


def _five_bits_down(carried: Hashable, m: int, a: int, b: int) -> Written:
    assert isinstance(carried, tuple)
    position, borrow = carried
    if position == 5:
        return carried, {}
    return (position + 1, int(borrow and not a)), {A: a ^ borrow}


def _lowest(carried: Hashable, m: int, a: int, b: int) -> Written:
    return (a if carried == "first" else carried), {}


def _set_lowest(carried: Hashable, m: int, a: int, b: int) -> Written:
    return None, {A: 1} if carried == "first" else {}


def _bit_one(carried: Hashable, m: int, a: int, b: int) -> Written:
    """Begins with -2, and ends with bit 1."""
    assert isinstance(carried, int)
    return (carried + 1 if carried == -2 else a if carried == -1 else carried), {}


def _copy_even(carried: Hashable, m: int, a: int, b: int) -> Written:
    return None, {A: 0 if carried == "first" else b}


def _negate(tape: int) -> Bitwise:
    """All bits turned, and 1 added."""

    def negated(carried: Hashable, m: int, a: int, b: int) -> Written:
        assert isinstance(carried, int)
        total = 1 - (a if tape == A else b) + carried
        return total >> 1, {tape: total & 1}

    return negated
