"""SUBLEQ as formulas: what one step makes of registers and memory.

    memory[b] -= memory[a]; if the result is 0 or negative, go to c, otherwise to the next three words

The address -1 is the outside: with a = -1 a byte of input goes to memory[b], or -1 where there is none left;
with b = -1 the low byte of memory[a] is written. A jump to a negative address ends the program. Instruction
and addresses must lie in memory; where they do not, the program is stopped, and pc stays.
"""

from collections.abc import Mapping

from tapegrad_check.core.nodes import Nodes
from tapegrad_check.formulas.words import (
    Word,
    above,
    add,
    chosen,
    differing,
    either,
    number,
    only,
    padded,
    subtract,
)
from tapegrad_check.instructions.ports import Effect, Layout, Read, Write, ring

END, JUMP_OUTSIDE, OUTSIDE = 1, 2, 3


def step(n: Nodes, layout: Layout, registers: Mapping[str, Word], read: Read) -> Effect:
    """One instruction."""
    pc, written = registers["pc"], registers["written"]
    width, words = layout.memories["ram"]
    index = (words - 1).bit_length() or 1
    a, b, c = (read("ram", add(n, pc, number(i, width))[:index], 1) for i in range(3))
    arriving, slot = read("input", registers["taken"], 1), ring(layout, written)
    oldest = read("output", slot, 1)

    here = above(n, pc, words - 3) ^ 1
    takes, puts = n.and_(here, n.all_of(a)), n.and_(here, n.all_of(b))
    wrong = n.and_(above(n, a, words - 1), takes ^ 1)
    wrong = n.or_(wrong, n.and_(above(n, b, words - 1), puts ^ 1))
    outside = n.and_(here, n.or_(wrong, n.and_(takes, puts)))
    runs = n.and_(here, outside ^ 1)
    subtrahend = read("ram", only(n, n.and_(runs, takes ^ 1), a[:index]), 1)
    old = read("ram", b[:index], 1)

    there, byte = arriving[8], padded(arriving[:8], width)
    difference = subtract(n, old, subtrahend)
    new = either(n, takes, either(n, there, byte, number(-1, width)), difference)
    subtracts = n.and_(n.and_(runs, takes ^ 1), puts ^ 1)
    jumps = n.and_(subtracts, n.or_(n.any_of(difference) ^ 1, difference[-1]))
    ends, emits = n.and_(jumps, c[-1]), n.and_(runs, puts)
    stays = n.or_(runs ^ 1, ends)
    goes = stays ^ 1
    return Effect(
        {
            "pc": chosen(
                n, (stays, pc), (n.and_(goes, jumps), c),
                (n.and_(goes, jumps ^ 1), add(n, pc, number(3, width))),
            ),
            "trap": chosen(
                n, (ends, number(END, 2)), (here ^ 1, number(JUMP_OUTSIDE, 2)), (outside, number(OUTSIDE, 2))
            ),
            "taken": add(
                n, registers["taken"], padded([n.and_(n.and_(runs, takes), there)], len(registers["taken"]))
            ),
            "written": add(n, written, padded([emits], len(written))),
        },
        [
            Write("ram", b[:index], old, only(n, n.and_(runs, puts ^ 1), differing(n, old, new))),
            Write("output", slot, oldest, only(n, emits, differing(n, oldest, subtrahend[:8]))),
        ],
    )  # fmt: skip
