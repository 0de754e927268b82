"""RISC-V assembler text: two passes, the first for sizes and labels, the second for the words.

The usual directives and pseudo-instructions, with the encodings of the manual's tables. `call` and `tail`
are single jumps, as linkers make them: they reach a megabyte either way. Sections follow each other from
address 0: code, constants, data, zeros. The program starts at `_start`, or else at its first instruction.
"""

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from tapegrad.errors import FormatError
from tapegrad.programs.elf import RAM_SYMBOL, room_for
from tapegrad.programs.instructions import INSTRUCTIONS, NUMBERS, Instruction
from tapegrad.programs.model import LARGEST_RAM, Program
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.text import Place, Undefined, did_you_mean, evaluated, separated, statements, unescaped

LONGEST = 1 << 24
"""Bytes of text."""
SECTIONS = (".text", ".rodata", ".data", ".bss")
IGNORED = frozenset(
    (
        *(".globl", ".global", ".local", ".weak", ".hidden", ".type", ".size", ".file", ".ident", ".loc"),
        *(
            ".option",
            ".attribute",
            ".addrsig",
            ".addrsig_sym",
            ".cfi_startproc",
            ".cfi_endproc",
            ".cfi_sections",
        ),
        *(".cfi_def_cfa_offset", ".cfi_def_cfa", ".cfi_offset", ".cfi_restore"),
    )
)
"""Directives for linkers and debuggers, which have nothing to say here."""


@dataclass
class Piece:
    """Bytes of a section, known in the second pass."""

    place: Place
    offset: int
    size: int
    content: "Callable[[int], bytes]"
    """Takes the address of the piece."""


@dataclass
class Section:
    """Pieces one after the other."""

    size: int = 0
    alignment: int = 4
    address: int = 0
    pieces: list[Piece] = field(default_factory=list)


_LABEL = re.compile(r"\s*([A-Za-z_.$][\w.$]*|\d+)\s*:")

# Pseudo-instructions: the form of their operands, and what they become. `d`, `s` and `t` are registers, and
# `p` is a place.

PSEUDO: dict[str, tuple[str, str]] = {
    "nop": ("", "addi x0, x0, 0"),
    "mv": ("ds", "addi {d}, {s}, 0"),
    "not": ("ds", "xori {d}, {s}, -1"),
    "neg": ("ds", "sub {d}, x0, {s}"),
    "seqz": ("ds", "sltiu {d}, {s}, 1"),
    "snez": ("ds", "sltu {d}, x0, {s}"),
    "sltz": ("ds", "slt {d}, {s}, x0"),
    "sgtz": ("ds", "slt {d}, x0, {s}"),
    "zext.b": ("ds", "andi {d}, {s}, 255"),
    "zext.h": ("ds", "slli {d}, {s}, 16; srli {d}, {d}, 16"),
    "sext.b": ("ds", "slli {d}, {s}, 24; srai {d}, {d}, 24"),
    "sext.h": ("ds", "slli {d}, {s}, 16; srai {d}, {d}, 16"),
    "sgt": ("dst", "slt {d}, {t}, {s}"),
    "sgtu": ("dst", "sltu {d}, {t}, {s}"),
    "beqz": ("sp", "beq {s}, x0, {p}"),
    "bnez": ("sp", "bne {s}, x0, {p}"),
    "blez": ("sp", "bge x0, {s}, {p}"),
    "bgez": ("sp", "bge {s}, x0, {p}"),
    "bltz": ("sp", "blt {s}, x0, {p}"),
    "bgtz": ("sp", "blt x0, {s}, {p}"),
    "bgt": ("stp", "blt {t}, {s}, {p}"),
    "ble": ("stp", "bge {t}, {s}, {p}"),
    "bgtu": ("stp", "bltu {t}, {s}, {p}"),
    "bleu": ("stp", "bgeu {t}, {s}, {p}"),
    "j": ("p", "jal x0, {p}"),
    "call": ("p", "jal ra, {p}"),
    "tail": ("p", "jal x0, {p}"),
    "jr": ("s", "jalr x0, 0({s})"),
    "ret": ("", "jalr x0, 0(ra)"),
    "unimp": ("", ".word 0xc0001073"),
}
SHORT = {("jal", 1): "jal ra, {0}", ("jalr", 1): "jalr ra, 0({0})"}
"""Instructions that may leave out their first register."""
_TWO_PARTS = ("li", "la", "lla")
_OPERATIONS = [*INSTRUCTIONS, *PSEUDO, *_TWO_PARTS]
_DIRECTIVES = [
    ".text",
    ".data",
    ".rodata",
    ".bss",
    ".section",
    ".word",
    ".half",
    ".byte",
    ".asciz",
    ".string",
]
_DIRECTIVES += [
    ".ascii",
    ".space",
    ".zero",
    ".skip",
    ".align",
    ".p2align",
    ".balign",
    ".equ",
    ".set",
    ".globl",
]
_NUMBERS = {".word": 4, ".long": 4, ".4byte": 4, ".half": 2, ".short": 2, ".2byte": 2, ".byte": 1}
_PART = re.compile(r"%(hi|lo|pcrel_hi|pcrel_lo)\((.*)\)\Z", re.DOTALL)
_BASED = re.compile(r"(.*)\(\s*([\w$]+)\s*\)\Z", re.DOTALL)


class Assembler:
    """The first pass fills sections and symbols, the second makes bytes of them."""

    def __init__(self) -> None:
        self.sections = {name: Section() for name in SECTIONS}
        self.section = self.sections[".text"]
        self.labels: dict[str, tuple[Section, int]] = {}
        self.constants: dict[str, int] = {}
        self.local: dict[str, list[tuple[Section, int]]] = {}
        self.local_at: dict[str, list[int]] = {}
        self.parts_at: dict[tuple[int, int], str] = {}
        """What the %pcrel_hi of an instruction was about, by section and offset."""

    # First pass

    def statement(self, place: Place, text: str) -> None:
        """Labels, then an instruction or a directive."""
        while found := _LABEL.match(text):
            self._label(place, found[1])
            rest = text[found.end() :].lstrip()
            place, text = place.further(len(text) - len(rest)), rest
        if not text.strip():
            return
        if given := re.match(r"\s*([A-Za-z_.$][\w.$]*)\s*=(?!=)(.*)\Z", text, re.DOTALL):
            self.constants[given[1]] = self._now(place, given[2])
            return
        operation, rest = [*text.split(None, 1), ""][:2]
        operands = separated(rest)
        if operation.startswith("."):
            self._directive(place, operation.lower(), operands, rest)
        else:
            self._operation(place, operation.lower(), operands)

    def _label(self, place: Place, name: str) -> None:
        here = self.section, self.section.size
        if name.isdigit():
            self.local.setdefault(name, []).append(here)
        elif name in self.labels or name in self.constants:
            raise place.error(f"the label {name!r} is defined twice")
        else:
            self.labels[name] = here

    def _add(self, place: Place, size: int, content: Callable[[int], bytes]) -> None:
        self.section.pieces.append(Piece(place, self.section.size, size, content))
        self.section.size += size
        if self.section.size > LARGEST_RAM:
            raise place.error(f"the program is larger than {LARGEST_RAM:,} bytes")

    def _directive(self, place: Place, name: str, operands: list[str], rest: str) -> None:
        if name in IGNORED:
            return
        if name == ".section" or name in self.sections:
            wanted = operands[0] if name == ".section" and operands else name
            known = [own for own in SECTIONS if wanted == own or wanted.startswith(own + ".")]
            if not known and wanted.startswith((".sdata", ".sbss", ".srodata")):
                known = [{"d": ".data", "b": ".bss", "r": ".rodata"}[wanted[2]]]
            # What is not for memory, such as comments of the compiler, is put aside.
            self.section = self.sections[known[0]] if known else Section()
        elif name in _NUMBERS:
            self._numbers(place, _NUMBERS[name], operands)
        elif name in (".asciz", ".string", ".ascii"):
            end = b"" if name == ".ascii" else b"\0"
            data = b"".join(unescaped(place, operand) + end for operand in operands)
            self._add(place, len(data), lambda _: data)
        elif name in (".space", ".zero", ".skip"):
            count, fill = self._now(place, operands[0] if operands else ""), 0
            if len(operands) > 1:
                fill = self._now(place, operands[1])
            if not 0 <= count <= LARGEST_RAM or not 0 <= fill < 256:
                raise place.error(f"{name} of {count:,} bytes is not possible")
            self._add(place, count, lambda _: bytes([fill]) * count)
        elif name in (".align", ".p2align", ".balign"):
            self._align(place, name, operands)
        elif name in (".equ", ".set") and len(operands) == 2:
            self.constants[operands[0]] = self._now(place, operands[1])
        elif name in (".comm", ".lcomm") and len(operands) > 1:
            self.section = self.sections[".bss"]
            self._align(place, ".balign", operands[2:3] or ["4"])
            self._label(place, operands[0])
            self._directive(place, ".space", operands[1:2], "")
        else:
            raise place.error(
                f"unknown directive {name}{' ' + rest.strip() if name in _DIRECTIVES else ''}",
                did_you_mean(name, _DIRECTIVES),
            )

    def _numbers(self, place: Place, size: int, operands: list[str]) -> None:
        for operand in operands:

            def content(address: int, operand: str = operand) -> bytes:
                value = self._value(place, operand, address)
                if not -(1 << 8 * size - 1) <= value < 1 << 8 * size:
                    raise place.error(f"{value} does not fit {size} byte(s)")
                return (value & (1 << 8 * size) - 1).to_bytes(size, "little")

            self._add(place, size, content)

    def _align(self, place: Place, name: str, operands: list[str]) -> None:
        asked = self._now(place, operands[0] if operands else "")
        if not 0 <= asked <= (LARGEST_RAM if name == ".balign" else 26):
            raise place.error(f"{name} {asked} is not possible")
        step = asked if name == ".balign" else 1 << asked
        if step & (step - 1):
            raise place.error(f"{name} {asked} is not a power of two")
        self.section.alignment = max(self.section.alignment, step)
        gap = -self.section.size % max(step, 1)
        code = self.section is self.sections[".text"] and gap % 4 == 0
        filler = INSTRUCTIONS["addi"].encoded().to_bytes(4, "little") * (gap // 4) if code else bytes(gap)
        self._add(place, gap, lambda _: filler)

    def _operation(self, place: Place, name: str, operands: list[str]) -> None:
        if name in PSEUDO:
            form, text = PSEUDO[name]
            if len(operands) != len(form):
                raise place.error(f"{name} has {len(form)} operand(s), not {len(operands)}")
            for part in text.format(**dict(zip(form, operands, strict=True))).split(";"):
                self.statement(place, part)
        elif (name, len(operands)) in SHORT:
            self.statement(place, SHORT[name, len(operands)].format(*operands))
        elif name == "li":
            self._load_number(place, operands)
        elif name in ("la", "lla"):
            register, symbol = self._counted(place, name, operands, 2)
            self._far(place, "addi", register, register, symbol)
        elif name not in INSTRUCTIONS:
            raise place.error(
                f"unknown instruction {name!r}",
                did_you_mean(name, _OPERATIONS, "The instructions are those of RV32IM."),
            )
        elif name.startswith("fence"):
            code = INSTRUCTIONS[name].encoded().to_bytes(4, "little")
            self._add(place, 4, lambda _: code)
        else:
            self._instruction(place, INSTRUCTIONS[name], operands)

    def _load_number(self, place: Place, operands: list[str]) -> None:
        """`li`: a single instruction where the number is known and small, or a multiple of 4096."""
        register, text = self._counted(place, "li", operands, 2)
        try:
            value: int | None = evaluated(place, text, self._constant)
        except Undefined:
            value = None  # a label that is yet to come
        if value is not None and not -(1 << 31) <= value < 1 << 32:
            raise place.error(f"{value} does not fit 32 bits")
        word = None if value is None else (value & 0xFFFF_FFFF) - ((value & 0x8000_0000) << 1)
        if word is not None and -2048 <= word < 2048:
            self.statement(place, f"addi {register}, x0, {word}")
        elif word is not None:
            self.statement(place, f"lui {register}, {(word + 0x800 >> 12) & 0xFFFFF}")
            if word & 0xFFF:
                self.statement(place, f"addi {register}, {register}, {(word & 0xFFF ^ 0x800) - 0x800}")
        else:
            self.statement(place, f"lui {register}, %hi({text})")
            self.statement(place, f"addi {register}, {register}, %lo({text})")

    def _far(self, place: Place, name: str, first: str, base: str, symbol: str) -> None:
        """A symbol from where pc is: `auipc`, then an instruction with the rest of the distance."""
        at = len(self.section.pieces), self.section.size
        self.statement(place, f"auipc {base}, %pcrel_hi({symbol})")
        label = f".far{id(self.section)}.{at[1]}"
        self.labels[label] = self.section, at[1]
        rest = f"%pcrel_lo({label})"
        self.statement(
            place, f"{name} {first}, {base}, {rest}" if name == "addi" else f"{name} {first}, {rest}({base})"
        )

    def _instruction(self, place: Place, of: Instruction, operands: list[str]) -> None:
        if of.form in "LS" and _BASED.match(operands[-1] if operands else "") is None:
            if of.name == "jalr" and len(operands) in (2, 3):  # jalr rd, rs1[, imm]
                register, base, *rest = operands
                operands = [register, f"{rest[0] if rest else 0}({base})"]
            elif (of.form, len(operands)) in (("L", 2), ("S", 3)):  # lw rd, symbol and sw rs2, symbol, rd
                first, symbol, base = operands if of.form == "S" else (operands[0], operands[1], operands[0])
                self._far(place, of.name, first, base, symbol)
                return
        counts = {"R": 3, "I": 3, "H": 3, "L": 2, "S": 2, "B": 3, "U": 2, "J": 2, "N": 0}
        self._counted(place, of.name, operands, counts[of.form])
        registers: dict[str, int] = {}
        immediate = operands[-1] if operands and of.form != "R" else "0"
        if of.form in "LS":
            based = _BASED.match(operands[1])
            if based is None:
                raise place.error(f"{of.name} needs an address such as 8(sp)")
            immediate = based[1].strip() or "0"
            registers["rs1"] = self._register(place, based[2])
            registers["rd" if of.form == "L" else "rs2"] = self._register(place, operands[0])
        else:
            named = {"R": ("rd", "rs1", "rs2"), "B": ("rs1", "rs2"), "N": ()}.get(
                of.form, ("rd", "rs1") if of.form in "IH" else ("rd",)
            )
            registers |= {
                key: self._register(place, text) for key, text in zip(named, operands, strict=False)
            }
        if part := re.match(r"%pcrel_hi\((.*)\)\Z", immediate):
            self.parts_at[id(self.section), self.section.size] = part[1]

        def content(address: int) -> bytes:
            imm = self._immediate(place, of, immediate, address)
            return of.encoded(**registers, imm=imm).to_bytes(4, "little")

        self._add(place, 4, content)

    def _counted(self, place: Place, name: str, operands: list[str], count: int) -> list[str]:
        if len(operands) != count or "" in operands:
            raise place.error(
                f"{name} has {count} operand(s), not {len([text for text in operands if text])}"
            )
        return operands

    def _register(self, place: Place, text: str) -> int:
        if text.strip().lower() not in NUMBERS:
            advice = did_you_mean(
                text, list(NUMBERS), "Registers are x0 to x31, or zero, ra, sp, a0, t0, s0, ..."
            )
            raise place.error(f"{text!r} is no register", advice)
        return NUMBERS[text.strip().lower()]

    # Values

    def _now(self, place: Place, text: str) -> int:
        """A value that must be known in the first pass."""
        try:
            return evaluated(place, text, self._constant)
        except Undefined as missing:
            raise place.error(
                f"{missing} is not known yet",
                did_you_mean(str(missing), list(self.constants), "Define it above."),
            ) from None

    def _constant(self, name: str) -> int:
        if name not in self.constants:
            raise Undefined(name)
        return self.constants[name]

    def _value(self, place: Place, text: str, address: int) -> int:
        """A value in the second pass, with labels."""

        def symbol(name: str) -> int:
            if name == ".":
                return address
            if found := re.fullmatch(r"(\d+)([bf])", name):
                return self._nearest(place, found[1], address, backwards=found[2] == "b")
            if name in self.labels:
                section, offset = self.labels[name]
                return section.address + offset
            return self._constant(name)

        try:
            return evaluated(place, text, symbol)
        except Undefined as missing:
            known = [*(label for label in self.labels if not label.startswith(".far")), *self.constants]
            advice = did_you_mean(str(missing), known) or f"Define it: `{missing}:` before an instruction."
            raise place.error(f"unknown label {str(missing)!r}", advice) from None

    def _nearest(self, place: Place, name: str, address: int, *, backwards: bool) -> int:
        places = self.local_at.get(name, [])
        following = bisect_right(places, address)
        if following == (0 if backwards else len(places)):
            raise place.error(f"there is no label {name} {'above' if backwards else 'below'}")
        return places[following - 1 if backwards else following]

    def _immediate(self, place: Place, of: Instruction, text: str, address: int) -> int:
        part = _PART.match(text)
        if part is not None:
            value = self._part(place, part[1], part[2], address)
        else:
            value = self._value(place, text, address)
        if of.form in "BJ":
            value -= address
            reach = 1 << (12 if of.form == "B" else 20)
            if value % 2 or not -reach <= value < reach:
                raise place.error(f"{of.name} cannot reach a target that is {value:,} bytes away")
        elif of.form == "U":
            if not -(1 << 19) <= value < 1 << 20:
                raise place.error(f"{value} does not fit the 20 bits of {of.name}")
        elif of.form == "H":
            if not 0 <= value < 32:
                raise place.error(f"a shift is by 0 to 31, not {value}")
        elif of.form in "ILS" and not -2048 <= value < 2048:
            advice = "Load it into a register with li first." if of.form == "I" else ""
            raise place.error(f"{value} does not fit the 12 bits of {of.name} (-2048 to 2047)", advice)
        return value

    def _part(self, place: Place, which: str, text: str, address: int) -> int:
        """%hi and %lo: the upper 20 and the lower 12 bits, such that the lower, with its sign, makes the sum
        right."""
        value = self._value(place, text, address)
        if which == "pcrel_lo":
            section, offset = self.labels.get(text.strip(), (None, 0))
            about = self.parts_at.get((id(section), offset))
            if section is None or about is None:
                raise place.error(f"%pcrel_lo({text}) needs the label of an instruction with %pcrel_hi")
            value = self._value(place, about, value) - value
        elif which == "pcrel_hi":
            value -= address
        return value + 0x800 >> 12 & 0xFFFFF if which.endswith("hi") else (value & 0xFFF ^ 0x800) - 0x800

    # Second pass

    def program(self, name: str) -> Program:
        """All sections, one after the other."""
        end = 0
        for section in self.sections.values():
            section.address = -(-end // section.alignment) * section.alignment
            end = section.address + section.size
        if end > LARGEST_RAM:
            raise FormatError(f"the program takes {end:,} bytes; the largest memory has {LARGEST_RAM:,}")
        self.local_at = {
            label: sorted(section.address + offset for section, offset in places)
            for label, places in self.local.items()
        }
        image = bytearray(end)
        for section in self.sections.values():
            for piece in section.pieces:
                at = section.address + piece.offset
                image[at : at + piece.size] = piece.content(at)
        symbols = {
            label: section.address + offset
            for label, (section, offset) in self.labels.items()
            if not label.startswith(".")
        }
        if not self.sections[".text"].size:
            raise FormatError("the assembler text has no instructions")
        symbols |= {RAM_SYMBOL: asked} if (asked := self.constants.get(RAM_SYMBOL)) is not None else {}
        machine = RV32(room_for(end, asked))
        entry, content = symbols.get("_start", 0), bytes(image).rstrip(b"\0")
        return Program(name, machine, content, entry, symbols, any_memory=asked is None)


def read_assembler(data: bytes, name: str = "program") -> Program:
    """The program of an assembler text."""
    if len(data) > LONGEST:
        raise FormatError(f"the assembler text is longer than {LONGEST >> 20} MiB")
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise FormatError(f"the assembler text is not UTF-8, at byte {error.start}") from error
    assembler = Assembler()
    for place, statement in statements(text):
        assembler.statement(place, statement)
    return assembler.program(name)
