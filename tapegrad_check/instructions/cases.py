"""The data path of `datapath` is RV32IM: a proof by cases, one for each instruction of `rv32`, and some for
the words that are none.

In each case the fixed bits of the instruction are constants, and everything else that the data path sees is
free: registers, what its ports read, the rest of the instruction. Most of it folds away, and what remains is
compared with what the page says. The cases are disjoint, and their sizes add up to 2^32: no word is left out.

pc is a multiple of 4. It is so at first, and after every step: that is part of what is proved.
"""

from collections.abc import Iterator, Mapping, Sequence

from tapegrad_check.core.nodes import FALSE, Likely, Nodes
from tapegrad_check.folder import require
from tapegrad_check.formulas.words import Word, only
from tapegrad_check.instructions import datapath
from tapegrad_check.instructions.likely import likely
from tapegrad_check.instructions.ports import Effect, Layout
from tapegrad_check.instructions.rv32 import PAGE, Fixed, Hart, Rule, at_byte, effect, illegal

ORDER = [*range(7), *range(25, 32), *range(12, 15), *range(21, 25), *range(15, 20), *range(7, 12), 20]
"""Bits of an instruction, those first that tell instructions apart."""


def cases() -> Iterator[tuple[str, Fixed, Rule]]:
    """All instructions, and what is left of all words: what is not the one at some bit, like it before."""
    yield from PAGE
    for cube in others([fixed for _, fixed, _ in PAGE]):
        yield "no instruction", cube, illegal


def others(known: Sequence[Fixed]) -> list[Fixed]:
    """All words but these, in disjoint parts."""
    rest: list[Fixed] = [{}]
    for fixed in known:
        rest = [part for cube in rest for part in _without(cube, fixed)]
    return rest


def _without(cube: Fixed, fixed: Fixed) -> list[Fixed]:
    if any(cube.get(bit, value) != value for bit, value in fixed.items()):
        return [cube]
    parts, so_far = [], dict(cube)
    for bit in ORDER:
        if bit in fixed and bit not in cube:
            parts.append({**so_far, bit: 1 - fixed[bit]})
            so_far[bit] = fixed[bit]
    return parts


def prove(layout: Layout) -> int:
    """Every case, for a machine with these sizes; gives their number."""
    every = list(cases())
    require(sum(1 << 32 - len(fixed) for _, fixed, _ in every) == 1 << 32, "the cases leave something out")
    for name, fixed, rule in every:
        _prove(layout, name, fixed, rule)
    return len(every)


class _Seen:
    """The ports of the data path, whose answers are free, and what is left to prove about their addresses."""

    def __init__(self, n: Nodes, layout: Layout, code: Word) -> None:
        self.n, self.layout, self.code = n, layout, code
        self.ports: dict[str, list[tuple[Word, int, list[int]]]] = {name: [] for name in layout.memories}
        self.found: list[int] = []
        self.wanted: list[int] = []

    def read(self, memory: str, address: Word, span: int) -> list[int]:
        first = memory == "ram" and not self.ports["ram"]
        answer = list(self.code) if first else self.n.variables(self.layout.memories[memory][0] * span)
        self.ports[memory].append((address, span, answer))
        return answer

    def same(self, found: Word, wanted: Word) -> None:
        self.found += found
        self.wanted += wanted

    def x(self, which: int, register: Word) -> list[int]:
        address, _, answer = self.ports["x"][which]
        self.same(address, register)
        return answer

    def memory(self, accesses: int, address: Word) -> list[int]:
        at, _, pair = self.ports["ram"][1]
        self.same(at, only(self.n, accesses, address[2 : 2 + len(at)]))
        return at_byte(self.n, pair, only(self.n, accesses, address[:2]))


def _prove(layout: Layout, name: str, fixed: Fixed, rule: Rule) -> None:
    n = Nodes(1 << 18)
    code = [fixed.get(bit, variable) for bit, variable in enumerate(n.variables(32))]
    registers = {name: n.variables(width) for name, width in layout.registers.items()}
    registers["pc"][:2] = [FALSE, FALSE]
    seen = _Seen(n, layout, code)
    found = datapath.step(n, layout, registers, seen.read)
    arriving, oldest = (seen.ports[memory][0][2] for memory in ("input", "output"))
    hart = Hart(n, layout, code, registers, seen.x, seen.memory, arriving)
    wanted = effect(hart, rule(hart), registers, oldest)
    _ports(layout, registers, seen, found, hart.rd)
    for register in layout.registers:
        seen.same(found.registers.get(register, registers[register]), wanted[register])
    for port in found.writes:
        seen.same(port.change, wanted[port.memory])
    seen.same(found.registers["pc"][:2], [FALSE, FALSE])
    n.require_same(
        seen.found, seen.wanted, f"the data path is not {name}", likely=_states(layout, registers, seen)
    )


def _states(layout: Layout, registers: Mapping[str, Word], seen: _Seen) -> Likely:
    """Where a difference may be, if there is one. The ports of a system call are a1, a2, a0 and a7."""
    x = zip((11, 12, 10, 17), (answer for _, _, answer in seen.ports["x"]), strict=True)
    held = [(name, 0, word) for name, word in registers.items()]
    return likely(layout, [*held, *(("x", place, word) for place, word in x)])


def _ports(layout: Layout, registers: Mapping[str, Word], seen: _Seen, found: Effect, rd: Word) -> None:
    """The instruction is read where pc is, input and output where they have got to; and what is written to is
    what a port of the same address has read."""
    at, pc = seen.ports["ram"][0][0], registers["pc"]
    require(list(at) == list(pc[2 : 2 + len(at)]), "the instruction is read elsewhere")
    require(seen.ports["input"][0][0] == registers["taken"], "input is read elsewhere")
    written = registers["written"][: (layout.output - 1).bit_length()]
    require(list(seen.ports["output"][0][0]) == list(written or [FALSE]), "output is kept elsewhere")
    require([port.memory for port in found.writes] == ["ram", "x", "output"], "something else is written")
    for port, which in zip(found.writes, (1, 2, 0), strict=True):
        read = seen.ports[port.memory][which]
        require(read == (port.address, port.span, port.old), "what is written was read elsewhere")
    seen.same(found.writes[1].address, rd)
