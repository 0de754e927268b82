"""Instruction sets as formulas: what one step makes of registers and memory, and what is proved of it.

`rv32` is the definition of RV32IM and `datapath` the one formula that nets are built on; `cases` proves that
they are the same. `subleq` is short enough to be both.
"""

from collections.abc import Callable, Mapping
from functools import cache

from tapegrad_check.folder import NotProved
from tapegrad_check.formulas.nodes import Nodes
from tapegrad_check.formulas.words import Word
from tapegrad_check.instructions import cases, datapath, subleq
from tapegrad_check.instructions.ports import Effect, Layout, Read
from tapegrad_check.sources import Program

Formulas = Callable[[Nodes, Layout, Mapping[str, Word], Read], Effect]
"""From registers, and what is read of memories, to what a step makes of them."""
STEPS: Mapping[str, Formulas] = {
    "rv32im": datapath.step,
    "subleq": subleq.step,
}


def proved(program: Program, layout: Layout) -> list[str]:
    """What holds of the formulas of a machine, as far as they are not their own definition."""
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
