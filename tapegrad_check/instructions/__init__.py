"""Instruction sets as formulas: what one step makes of registers and memory, and what is proved of it.

`rv32` is the definition of RV32IM and `datapath` the one formula that nets are built on; `cases` proves that
they are the same. `subleq` is short enough to be both. `recorded` is what a folder says of any other.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial

from tapegrad_check.core.nodes import Nodes
from tapegrad_check.folder import NotProved
from tapegrad_check.formulas.words import Word
from tapegrad_check.instructions import cases, datapath, recorded, subleq
from tapegrad_check.instructions.ports import Effect, Layout, Read
from tapegrad_check.sources import Program

Formulas = Callable[[Nodes, Layout, Mapping[str, Word], Read], Effect]
"""From registers, and what is read of memories, to what a step makes of them."""
STEPS: Mapping[str, Formulas] = {
    "rv32im": datapath.step,
    "subleq": subleq.step,
}


def formulas(program: Program) -> Formulas:
    """A step of the machine of a program."""
    if program.instruction is None:
        return STEPS[program.kind]
    return partial(recorded.step, program.instruction)


def proved(program: Program, layout: Layout) -> list[str]:
    """What holds of the formulas of a machine, as far as they are not their own definition."""
    if (own := program.instruction) is not None:
        return [
            f"the instruction set {program.kind!r} is what the folder says: {len(own.circuit.kinds):,} gates "
            f"between {len(own.ports)} ports, of the sum {own.digest[:16]}; whether it is the one that is "
            "meant was not checked"
        ]
    if program.kind != "rv32im":
        return []
    if program.entry % 4:
        raise NotProved("the program starts at an address that is no multiple of 4")
    count = _cases(layout.ram, layout.memories["input"][1], layout.output)
    return [
        f"the formulas of a step are the {len(cases.PAGE)} instructions of RV32IM, one by one, and all other "
        f"words are illegal: {count} cases, which are all"
    ]


@cache
def _cases(ram: int, taken: int, kept: int) -> int:
    return cases.prove(Layout.sized("rv32im", 32, ram, taken, kept))
