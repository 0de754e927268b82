"""That a table is RV32IM: a proof by cases, one for each instruction of `rv32`, as in `cases`.

In each case the fixed bits of the instruction are constants, and all else is free: registers, memory, the
rest of the instruction. pc is a multiple of 4, and is so after every instruction.

`copied` counts the bytes that a system call has moved, and is 0 unless one goes on. A call that goes on
leaves its registers alone, so a1 + copied <= the size of memory as long as it does, without a carry: the
last byte that it moved was inside. This is known before a system call, and shown after it.

Products and quotients have no small diagrams. They are made in rounds (`rounds`), and words that are free
stand for what these make of the words with which they begin; those must be the right ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.folder import NotProved, require
from tapegrad_check.formulas.words import Word, above, add, number, only, padded
from tapegrad_check.instructions.cases import cases
from tapegrad_check.instructions.ports import Write
from tapegrad_check.instructions.rv32 import (
    A1,
    AUIPC,
    BRANCH,
    JAL,
    LUI,
    STORE,
    Fixed,
    Hart,
    Outcome,
    Rule,
    at_byte,
    divided_with_signs,
    effect,
    system_call,
    turned,
    with_signs,
)
from tapegrad_check.on_tapes.layout import COPIED, FETCH, VARIABLES
from tapegrad_check.on_tapes.one_instruction import Instruction
from tapegrad_check.on_tapes.paths import HOME, Path, Table
from tapegrad_check.sources import Machine, Program

FORMS: Mapping[int, Sequence[int]] = {
    STORE: (*range(7, 12), *range(25, 32)),
    BRANCH: (0, *range(8, 12), *range(25, 31), 7, 31),
    JAL: (0, *range(21, 31), 20, *range(12, 20), 31),
    LUI: (*range(12), *range(12, 32)),
    AUIPC: (*range(12), *range(12, 32)),
}
"""Where the bits of an immediate stand, by opcode; all others are in the highest twelve."""
OTHERS = range(20, 32)


ROUNDED: Mapping[str, tuple[str, bool, Callable[[Nodes, Word, Word, Word, Word], Word]]] = {
    "mul": ("product", False, lambda n, a, b, high, low: low),
    "mulh": ("product", False, lambda n, a, b, high, low: with_signs(n, high, a, b, True, True)),
    "mulhsu": ("product", False, lambda n, a, b, high, low: with_signs(n, high, a, b, True, False)),
    "mulhu": ("product", False, lambda n, a, b, high, low: high),
    "div": ("division", True, lambda n, a, b, high, low: divided_with_signs(n, a, b, low, high)[0]),
    "divu": ("division", False, lambda n, a, b, high, low: low),
    "rem": ("division", True, lambda n, a, b, high, low: divided_with_signs(n, a, b, low, high)[1]),
    "remu": ("division", False, lambda n, a, b, high, low: high),
}
"""What is made in rounds, and of absolute values or not; and the result, by the operands and what the rounds
have left. These are the rows of the page, with that in the place of `multiply` and `divide`."""


def prove(program: Program, machine: Machine) -> int:
    """Every case, for a machine of the program's size; gives the number of ways."""
    if program.ram % 4:
        raise NotProved("memory is no whole number of words")
    table, every = Table(machine), list(cases())
    require(sum(1 << 32 - len(fixed) for _, fixed, _ in every) == 1 << 32, "the cases leave something out")
    return sum(case(program, table, name, fixed, rule) for name, fixed, rule in every)


def case(program: Program, table: Table, name: str, fixed: Fixed, rule: Rule) -> int:
    """One case."""
    opcode = sum(fixed.get(bit, 0) << bit for bit in range(7))
    one = Instruction(program, table, fixed, FORMS.get(opcode, OTHERS))
    try:
        paths = one.paths()
        for path in paths:
            with (
                one.tapes.aside()
            ):  # of 17 ways that `ecall` can go, most need more nodes than all have so far
                _Compared(one, one.consistent(path), name, rule).check()
    except NotProved as reason:
        raise NotProved(f"{name}: {reason}") from reason
    return len(paths)


class _Compared:
    """The end of a path, beside the page."""

    def __init__(self, one: Instruction, path: Path, name: str, rule: Rule) -> None:
        self.one, self.n = one, one.n
        self.path = path
        if rule is system_call:  # no other instruction looks at the count
            self.path = replace(path, guard=one.n.and_(path.guard, self._counted(one.tapes.copied)))
        self.rule = self._in_rounds(*ROUNDED[name]) if name in ROUNDED else rule

    def _in_rounds(
        self, kind: str, absolute: bool, result: Callable[[Nodes, Word, Word, Word, Word], Word]
    ) -> Rule:
        """A rule for what rounds have made of its operands, where they have."""
        n, tapes = self.n, self.one.tapes
        made = [anchor.number for anchor in self.path.seen if anchor.kind == kind]
        after = [tapes.word(("rounds" if made else "no rounds", word)) for word in ("high", "low")]

        def rule(h: Hart) -> Outcome:
            a, b = h.rs1, h.rs2
            for begins in made:
                begun = [turned(n, word[31], word) if absolute else word for word in (a, b)]
                what = "rounds begin with other words"
                self.one.same(self.path, begins, [*begun[0], *begun[1]], what)
            return Outcome(rd=result(n, a, b, *after))

        return rule

    def check(self) -> None:
        one, n, layout = self.one, self.n, self.one.layout
        registers = {name: number(0, width) for name, width in layout.registers.items()}
        registers["pc"], registers["copied"] = one.tapes.pc, one.tapes.copied
        if self.path.guard == FALSE:
            return
        code = self._first()
        hart = Hart(n, layout, code, registers, self._x, self._memory, one.arriving)
        does = self.rule(hart)
        new = effect(hart, does, registers, number(0, 8))
        one.compare(self.path, new, new["output"])
        one.changes(self.path, "x", Write("x", hart.rd, (), new["x"]))
        address = does.address[2:] if does.address is not None else number(0, 30)
        one.changes(self.path, "ram", Write("ram", address, (), new["ram"], 2))
        copied = one.word(self.path, VARIABLES, (HOME, COPIED), 32)
        one.same(self.path, copied, padded(new["copied"], 32), "another number of bytes is counted")
        if self.path.state == FETCH:
            counted = self._counted(new["copied"]) if any(new["copied"]) else TRUE
            one.require(self.path, counted, "the count of bytes runs over")
            one.same(self.path, new["pc"][:2], [FALSE, FALSE], "pc is no multiple of 4")

    def _counted(self, copied: Word) -> int:
        """That nothing was copied, or that all of it is inside."""
        n, a1 = self.n, self._x(0, A1)
        total = add(n, padded(a1, 33), padded(copied, 33))
        return n.or_(n.any_of(copied) ^ 1, above(n, total, self.one.program.ram) ^ 1)

    def _first(self) -> list[int]:
        first = self.one.tapes.first
        return self.one.tapes.word("not reached") if first is None else self.one.tapes.port(first)

    def _x(self, which: int, register: Word) -> list[int]:
        found = self.one.read(self.path, "x", register)
        return self._told(self._free(("register", *register)) if found is None else found)

    def _told(self, word: Word) -> list[int]:
        """A word with constants for the bits that are known on the path: formulas stay small."""
        n, guard = self.n, self.path.guard
        sides = [(bit, n.disjoint(guard, bit), n.disjoint(guard, bit ^ 1)) for bit in word]
        return [FALSE if never else TRUE if always else bit for bit, never, always in sides]

    def _memory(self, accesses: int, address: Word) -> list[int]:
        n, where = self.n, only(self.n, accesses, address)
        pair = [
            bit
            for further in (0, 1)
            for bit in self.one.read(self.path, "ram", where[2:], further) or self._free(("word", further))
        ]
        return at_byte(n, pair, where[:2])

    def _free(self, name: object) -> list[int]:
        return self.one.tapes.word(name)
