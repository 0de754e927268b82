"""The Little Man Computer as a network: an instruction set of one's own, in one function.

Stuart Madnick's Little Man Computer (MIT, 1965) has a hundred mailboxes of three decimal digits, a
calculator, an in-tray and an out-tray. Eleven instructions: ADD, SUB, STA, LDA, BRA, BRZ, BRP, INP, OUT, OTC
and HLT. What its simulators leave open is fixed here: a sum is taken modulo 1000; a difference below 0 too,
and it sets a flag that BRP reads, until another number is loaded, added, subtracted or taken in; an empty
in-tray leaves the calculator as it is; OUT and OTC put out a byte, the number modulo 256.

    python examples/little_man.py            a multiplication by repeated addition, on two targets
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import tapegrad as tg
from tapegrad.circuits.types import IntType
from tapegrad.circuits.values import IntValue
from tapegrad.programs.model import (
    Effect,
    Instruction,
    Machine,
    Memory,
    Next,
    Program,
    Read,
    Write,
    chosen,
    only,
)

ROOM = 100
NUMBER = tg.UInt(10)
"""Three decimal digits."""
CODES = {"ADD": 100, "SUB": 200, "STA": 300, "LDA": 500, "BRA": 600, "BRZ": 700, "BRP": 800}
ALONE = {"INP": 901, "OUT": 902, "OTC": 922, "HLT": 0, "COB": 0}


@dataclass(frozen=True)
class LittleMan(Machine):
    """A mailbox is a word of 16 bits."""

    ram: int = 2 * ROOM

    kind: ClassVar[str] = "little man"
    traps: ClassVar[tuple[str, ...]] = ("end", "no such instruction")
    extra: ClassVar[Mapping[str, IntType | Memory]] = {"calculator": NUMBER, "negative": tg.UInt(1)}

    @property
    def word(self) -> int:
        return 16

    @property
    def counter(self) -> IntType:
        return tg.UInt(7)

    def instruction(self, registers: Mapping[str, IntValue]) -> Instruction:
        pc, calculator, negative = (registers[name] for name in ("pc", "calculator", "negative"))
        box, byte = yield Read("ram", pc), Next()
        code = box[:10]
        hundreds = code // 100
        address = (code - hundreds * 100)[:7]
        (held,) = yield (Read("ram", address),)

        add, sub, sta, lda = (hundreds == number for number in (1, 2, 3, 5))
        bra, brz, brp = (hundreds == number for number in (6, 7, 8))
        takes, out, otc = (code == number for number in (901, 902, 922))
        arrives = takes & byte[8]
        ends = hundreds == 0
        wrong = ~tg.any_of([ends, add, sub, sta, lda, bra, brz, brp, takes, out, otc])
        jumps = bra | (brz & (calculator == 0)) | (brp & ~negative[0])
        stays = ends | wrong

        total = calculator.to(tg.UInt(11)) + held[:10]
        below = calculator < held[:10]
        difference = calculator.to(tg.UInt(11)) - held[:10]
        number = chosen(
            (add, tg.where(total >= 1000, total - 1000, total)[:10]),
            (sub, tg.where(below, difference + 1000, difference)[:10]),
            (lda, held[:10]),
            (arrives, tg.concat(byte[:8], 0, 0)),
        )
        new = tg.any_of([add, sub, lda, arrives])
        return Effect(
            {
                "pc": chosen((jumps, address), (stays, pc), (~(jumps | stays), pc + 1)),
                "trap": chosen((ends, tg.UInt(2)(1)), (wrong, tg.UInt(2)(2))),
                "calculator": chosen((new, number), (~new, calculator)),
                "negative": tg.concat(tg.where(new, sub & below, negative[0])),
            },
            [Write("ram", address, held, only(sta, held ^ calculator.to(tg.UInt(16))))],
            takes=arrives,
            puts=(out | otc, calculator[:8]),
        )


def assembled(text: str, name: str = "program") -> Program:
    """The program of a text: lines of a label, an instruction, and a label or a number; DAT is a number."""
    lines = [re.findall(r"\w+", line.split("//")[0]) for line in text.splitlines()]
    rows = [words for words in lines if words]
    places = {words[0]: at for at, words in enumerate(rows) if words[0] not in {*CODES, *ALONE, "DAT"}}
    boxes = []
    for words in rows:
        operation, *operand = words[1:] if words[0] in places else words
        number = places.get(operand[0]) if operand else 0
        number = int(operand[0]) if number is None else number
        boxes.append(ALONE[operation] if operation in ALONE else CODES.get(operation, 0) + number)
    image = b"".join(box.to_bytes(2, "little") for box in boxes)
    return Program(name, LittleMan(), image, symbols=places)


MULTIPLY = """
        INP             // the first factor
        STA first
        INP             // the second
        STA count
again   LDA count
        BRZ done
        SUB one
        STA count
        LDA product
        ADD first
        STA product
        BRA again
done    LDA product
        OUT
        HLT
first   DAT
count   DAT
product DAT
one     DAT 1
"""


def main() -> None:
    """Two products, by two networks."""
    tg.register(LittleMan)
    program = assembled(MULTIPLY, "multiply")
    for target in ("transformer", "emulator"):
        net = tg.compile(program, target, steps=200)
        for factors in ((6, 7), (12, 12)):
            run = net.run(bytes(factors), engine="fast")
            assert run.state is not None
            print(f"{target}: {factors[0]} x {factors[1]} = {run.state.output[0]}, after {run.steps} steps")


if __name__ == "__main__":
    main()
