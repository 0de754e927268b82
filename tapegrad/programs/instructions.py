"""The instructions of RV32IM in binary and as text: one table for the assembler and the disassembler."""

from collections.abc import Mapping
from dataclasses import dataclass

REGISTERS = (
    *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1"),
    *(f"a{i}" for i in range(8)),
    *(f"s{i}" for i in range(2, 12)),
    *(f"t{i}" for i in range(3, 7)),
)
"""The registers by the names of the calling convention."""
NUMBERS = {name: i for i, name in enumerate(REGISTERS)} | {f"x{i}": i for i in range(32)} | {"fp": 8}


@dataclass(frozen=True)
class Instruction:
    """An instruction of one of the forms

    R  rd, rs1, rs2      I  rd, rs1, imm    H  rd, rs1, shift    L  rd, imm(rs1)    S  rs2, imm(rs1)
    B  rs1, rs2, target  U  rd, imm         J  rd, target        N  without operands

    `f7` is, for the form N, the upper twelve bits."""

    name: str
    form: str
    opcode: int
    f3: int = 0
    f7: int = 0

    def encoded(self, rd: int = 0, rs1: int = 0, rs2: int = 0, imm: int = 0) -> int:
        """The instruction as a word. The immediate is a number of bytes for jumps, and the upper 20 bits as a
        number for the form U; it is taken to be in range."""
        word = self.opcode | self.f3 << 12
        if self.form == "R":
            return word | rd << 7 | rs1 << 15 | rs2 << 20 | self.f7 << 25
        if self.form in "IL":
            return word | rd << 7 | rs1 << 15 | (imm & 0xFFF) << 20
        if self.form == "H":
            return word | rd << 7 | rs1 << 15 | imm << 20 | self.f7 << 25
        if self.form == "S":
            return word | (imm & 31) << 7 | rs1 << 15 | rs2 << 20 | (imm >> 5 & 127) << 25
        if self.form == "B":
            low = (imm >> 11 & 1) << 7 | (imm >> 1 & 15) << 8
            return word | low | rs1 << 15 | rs2 << 20 | (imm >> 5 & 63) << 25 | (imm >> 12 & 1) << 31
        if self.form == "U":
            return self.opcode | rd << 7 | (imm & 0xFFFFF) << 12
        if self.form == "J":
            middle = (imm >> 12 & 255) << 12 | (imm >> 11 & 1) << 20
            return self.opcode | rd << 7 | middle | (imm >> 1 & 1023) << 21 | (imm >> 20 & 1) << 31
        return word | self.f7 << 20


def _table() -> dict[str, Instruction]:
    rows = [Instruction("lui", "U", 0x37), Instruction("auipc", "U", 0x17), Instruction("jal", "J", 0x6F)]
    rows.append(Instruction("jalr", "L", 0x67))
    for f3, name in enumerate(("beq", "bne", "", "", "blt", "bge", "bltu", "bgeu")):
        rows.append(Instruction(name, "B", 0x63, f3))
    for f3, name in enumerate(("lb", "lh", "lw", "", "lbu", "lhu")):
        rows.append(Instruction(name, "L", 0x03, f3))
    for f3, name in enumerate(("sb", "sh", "sw")):
        rows.append(Instruction(name, "S", 0x23, f3))
    for f3, name in enumerate(("addi", "", "slti", "sltiu", "xori", "", "ori", "andi")):
        rows.append(Instruction(name, "I", 0x13, f3))
    for f3, f7, name in ((1, 0, "slli"), (5, 0, "srli"), (5, 0x20, "srai")):
        rows.append(Instruction(name, "H", 0x13, f3, f7))
    for f3, name in enumerate(("add", "sll", "slt", "sltu", "xor", "srl", "or", "and")):
        rows.append(Instruction(name, "R", 0x33, f3))
    rows += [Instruction("sub", "R", 0x33, 0, 0x20), Instruction("sra", "R", 0x33, 5, 0x20)]
    for f3, name in enumerate(("mul", "mulh", "mulhsu", "mulhu", "div", "divu", "rem", "remu")):
        rows.append(Instruction(name, "R", 0x33, f3, 1))
    rows += [Instruction("fence", "N", 0x0F, 0, 0xFF), Instruction("fence.i", "N", 0x0F, 1)]
    rows += [Instruction("ecall", "N", 0x73), Instruction("ebreak", "N", 0x73, 0, 1)]
    return {row.name: row for row in rows if row.name}


INSTRUCTIONS = _table()
_SYSTEM = {0x73: "ecall", 0x100073: "ebreak"}
_BY_FIELDS = {(i.opcode, i.f3, i.f7 if i.form in "RH" else 0): i for i in INSTRUCTIONS.values()}


def _found(code: int) -> Instruction | None:
    opcode, f3, f7 = code & 127, code >> 12 & 7, code >> 25
    if opcode == 0x73:
        name = _SYSTEM.get(code)
        return INSTRUCTIONS[name] if name else None
    if opcode in (0x37, 0x17, 0x6F):
        return _BY_FIELDS[opcode, 0, 0]
    named = opcode == 0x33 or (opcode == 0x13 and f3 in (1, 5))
    return _BY_FIELDS.get((opcode, f3, f7 if named else 0))


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 & 1 else value


def disassembled(code: int, pc: int = 0, names: Mapping[int, str] | None = None) -> str:
    """An instruction as text; a word that is none as `.word`. Addresses with a name are shown by it."""
    found = _found(code)
    if found is None:
        return f".word {code:#010x}"
    rd, rs1, rs2 = (REGISTERS[code >> at & 31] for at in (7, 15, 20))
    imm = _signed(code >> 20, 12)

    def place(offset: int) -> str:
        address = pc + offset & 0xFFFF_FFFF
        return (names or {}).get(address, f"{address:#x}")

    if found.form == "R":
        operands = f"{rd}, {rs1}, {rs2}"
    elif found.form == "I":
        operands = f"{rd}, {rs1}, {imm}"
    elif found.form == "H":
        operands = f"{rd}, {rs1}, {code >> 20 & 31}"
    elif found.form == "L":
        operands = f"{rd}, {imm}({rs1})"
    elif found.form == "S":
        operands = f"{rs2}, {_signed(code >> 25 << 5 | code >> 7 & 31, 12)}({rs1})"
    elif found.form == "B":
        offset = code >> 31 << 12 | (code >> 7 & 1) << 11 | (code >> 25 & 63) << 5 | (code >> 8 & 15) << 1
        operands = f"{rs1}, {rs2}, {place(_signed(offset, 13))}"
    elif found.form == "U":
        operands = f"{rd}, {code >> 12:#x}"
    elif found.form == "J":
        offset = code >> 31 << 20 | (code >> 12 & 255) << 12 | (code >> 20 & 1) << 11
        operands = f"{rd}, {place(_signed(offset | (code >> 21 & 1023) << 1, 21))}"
    else:
        operands = ""
    return f"{found.name} {operands}".rstrip()
