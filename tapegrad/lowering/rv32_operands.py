"""Operands of RV32IM on tapes: fields of an instruction, registers and immediates, brought to where they are
worked with. See `tapegrad.lowering.rv32_machine` for what lies where.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import cache

from tapegrad.lowering.microcode import (
    LEFT,
    MEMORY,
    RIGHT,
    RULER,
    A,
    Action,
    B,
    Bitwise,
    Microcode,
    State,
    constant,
    copy,
)
from tapegrad.lowering.rv32_bits import IMMEDIATES, shifts_down

IR = 3
"""The word of B that holds the instruction."""


class Operands:
    """The part of the microcode that fetches and puts back."""

    code: Microcode

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
                shifts_down(A),
                0,
                upwards=False,
            )

        return code.at(0, None, False, "halve", again, shifts_down(A), 0, upwards=False)

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
