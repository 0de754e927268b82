"""Assembler texts: encodings written out from the RISC-V manual, directives, and bad texts."""

import contextlib
import subprocess
import sys
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.errors import FormatError, TapegradError
from tapegrad.programs import read_assembler, read_elf
from tapegrad.programs.compiled import run
from tapegrad.programs.instructions import INSTRUCTIONS, disassembled
from tapegrad.programs.library import FIBONACCI, SORT

ENCODINGS = {
    "lui a0, 0x12345": 0x12345537,
    "auipc t0, 0xfffff": 0xFFFFF297,
    "jal ra, 16": 0x010000EF,
    "jal x0, -0": 0x0000006F,
    "jalr ra, 4(a5)": 0x004780E7,
    "jalr a5": 0x000780E7,
    "jalr x0, a5, 8": 0x00878067,
    "beq a0, a1, 8": 0x00B50463,
    "bgeu s11, t6, 2046": 0x7FFDFF63,
    "lb a0, -1(sp)": 0xFFF10503,
    "lhu t6, 2047(x31)": 0x7FFFDF83,
    "lw a0, (sp)": 0x00012503,
    "sw ra, 12(sp)": 0x00112623,
    "sb a0, -2048(s0)": 0x80A40023,
    "addi sp, sp, -16": 0xFF010113,
    "sltiu a0, a0, 1": 0x00153513,
    "slli a0, a0, 31": 0x01F51513,
    "srai a0, a0, 4": 0x40455513,
    "sub a0, a1, a2": 0x40C58533,
    "sra s1, s1, s2": 0x4124D4B3,
    "mul a0, a0, a1": 0x02B50533,
    "mulhsu a0, a0, a1": 0x02B52533,
    "remu t0, t1, t2": 0x027372B3,
    "fence": 0x0FF0000F,
    "fence.i": 0x0000100F,
    "ecall": 0x00000073,
    "ebreak": 0x00100073,
    "nop": 0x00000013,
    "ret": 0x00008067,
    "mv a0, a1": 0x00058513,
    "not a0, a1": 0xFFF5C513,
    "neg a0, a1": 0x40B00533,
    "seqz a0, a1": 0x0015B513,
    "snez a0, a1": 0x00B03533,
    "sltz a0, a1": 0x0005A533,
    "sgtz a0, a1": 0x00B02533,
    "bgt a0, a1, 8": 0x00A5C463,
    "bleu a0, a1, 8": 0x00A5F463,
    "blez a0, 8": 0x00A05463,
    "bgtz a0, 8": 0x00A04463,
    "beqz a0, 8": 0x00050463,
    "j 8": 0x0080006F,
    "jr t0": 0x00028067,
    "li a0, -1": 0xFFF00513,
    "li a0, 0x12345000": 0x12345537,
    "li a0, 0xffffffff": 0xFFF00513,
    "li a0, 'A'": 0x04100513,
}


def words(text: str) -> list[int]:
    image = read_assembler(text.encode()).image
    image = image.ljust(-(-len(image) // 4) * 4, b"\0")
    return [int.from_bytes(image[i : i + 4], "little") for i in range(0, len(image), 4)]


@pytest.mark.parametrize("text", ENCODINGS)
def test_encodings(text):
    assert words(text) == [ENCODINGS[text]]


def test_pairs_of_instructions():
    assert words("li t0, 0x12345678") == [0x123452B7, 0x67828293]
    assert words("li t0, 0x12345fff") == [0x123462B7, 0xFFF28293]
    assert words("la a0, x\n.data\nx: .word 7") == [0x00000517, 0x00850513, 7]
    assert words("lui a0, %hi(x)\naddi a0, a0, %lo(x)\n.data\n.space 4092\nx: .word 1")[:2] == [
        0x00001537,
        0x00450513,
    ]
    assert words("lui a0, %hi(x)\naddi a0, a0, %lo(x)\n.data\n.space 2040\nx: .word 1")[:2] == [
        0x00001537,
        0x80050513,
    ]
    assert words("li t0, 0x12345800") == [0x123462B7, 0x80028293]
    assert words("lw a0, x\nsw a0, x, t0\n.data\nx: .word 7") == [
        *(0x00000517, 0x01052503),
        *(0x00000297, 0x00A2A423),
        7,
    ]


def test_the_two_ways_agree():
    """What the assembler reads is what the disassembler writes."""
    for of in INSTRUCTIONS.values():
        code = of.encoded(rd=10, rs1=11, rs2=12, imm={"B": -8, "J": -8, "H": 7, "U": 99}.get(of.form, -3))
        assert words(".space 8\n" + disassembled(code, 8))[2] == code, of.name
    assert disassembled(0) == ".word 0x00000000"
    assert disassembled(0x40000013 | 1 << 12) == ".word 0x40001013"


def test_directives():
    program = read_assembler(
        b"""
        .equ size, 3 * (1 + 1)
        limit = size << 2       # and `=` is the same
        .text
_start: nop                     // comments
        j 1f /* of all
        kinds */ ; nop
1:      j 1b
        .section .rodata.str1.1, "aMS", @progbits, 1
text:   .asciz "a#b;\\n\\x41\\101\\"" , "c"
        .ascii "d"
        .data
        .balign 8
here:   .word here, . , text - _start, -1
        .half 0x1234, 'x'
        .byte size, limit, ~0 & 255
        .p2align 2
        .bss
room:   .space size
        .comm more, 8, 4
        """
    )
    code, rodata = program.image[:16], program.image[16:]
    assert code == b"".join(word.to_bytes(4, "little") for word in (0x13, 0x0080006F, 0x13, 0x0000006F))
    assert rodata.startswith(b'a#b;\nAA"\0c\0d')
    data = program.image[program.symbols["here"] :]
    assert program.symbols["here"] % 8 == 0
    here = program.symbols["here"].to_bytes(4, "little")
    following = (program.symbols["here"] + 4).to_bytes(4, "little")
    assert data == here + following + (16).to_bytes(4, "little") + b"\xff" * 4 + b"\x34\x12x\0\x06\x18\xff"
    assert program.symbols["more"] - program.symbols["room"] == 8


def test_memory_is_as_large_as_it_says():
    assert read_assembler(b"nop").machine.ram == 4096
    assert read_assembler(b"nop\n.bss\n.space 3000").machine.ram == 8192
    assert read_assembler(b".equ __ram, 48\nnop").machine.ram == 48
    with pytest.raises(TapegradError, match="multiple of 16"):
        read_assembler(b".equ __ram, 50\nnop")
    with pytest.raises(TapegradError, match="asks for a memory of 16"):
        read_assembler(b".equ __ram, 16\n.space 20\nnop")


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("nop\n  ad a0, a1, a2", 2, 3, "Did you mean .*add"),
        ("x: flw f0, 0(a0)", 1, 4, "unknown instruction 'flw'"),
        ("nop\nj nowhere", 2, 1, "unknown label 'nowhere'.* Define it: `nowhere:` before"),
        ("j nowhere\nnowhre: nop", 1, 1, "unknown label 'nowhere'.* Did you mean nowhre"),
        ("j 3f\n3: nop\nj 4b", 3, 1, "no label 4 above"),
        (".wrod 3", 1, 1, "Did you mean .*word"),
        ("add a0, a1", 1, 1, "3 operand.* not 2"),
        ("add a0, a1, b2", 1, 1, "'b2' is no register"),
        ("addi a0, a1, 2048", 1, 1, "does not fit the 12 bits.* li first"),
        ("slli a0, a0, 32", 1, 1, "0 to 31"),
        ("lui a0, 0x100000", 1, 1, "20 bits"),
        ("x: .space 5000\nbeq a0, a1, x", 2, 1, "cannot reach"),
        ("li a0, 0x100000000", 1, 1, "32 bits"),
        ("li a0, 1 +", 1, 1, "no number"),
        ("li a0, (1", 1, 1, "no number"),
        ("li a0, " + "(" * 10_000, 1, 1, "no number"),
        ("li a0, 1 / 0", 1, 1, "divides by zero"),
        ("li a0, 1 << 1000000000", 1, 1, "shifts by"),
        (".byte 256\nnop", 1, 1, "does not fit 1 byte"),
        ('.ascii "abc', 1, 8, "does not end"),
        ('.ascii "\\q"', 1, 1, "unknown escape"),
        ("nop /* never", 1, 5, "does not end"),
        ("a: nop\na: nop", 2, 1, "defined twice"),
        (".space 99999999999", 1, 1, "not possible"),
        (".align 99", 1, 1, "not possible"),
        (".balign 3", 1, 1, "power of two"),
        (".equ a, b\nnop", 1, 1, "not known yet"),
        ("lw a0, 4(sp", 1, 1, "no number"),
        ("addi a0, a0, %pcrel_lo(x)\nx: nop", 1, 1, "pcrel_hi"),
        ("lw a0, 5000(sp)", 1, 1, "12 bits"),
    ],
)
def test_mistakes(text, line, column, message):
    with pytest.raises(FormatError, match=message) as caught:
        read_assembler(text.encode())
    assert caught.value.where == f"line {line}, column {column}"
    assert len(str(caught.value)) < 300


def test_texts_without_instructions():
    for data in (b"", b"# nothing\n", b".data\n.word 1"):
        with pytest.raises(FormatError, match="no instructions"):
            read_assembler(data)
    with pytest.raises(FormatError, match="UTF-8"):
        read_assembler(b"nop\n\xff")


PIECES = st.sampled_from(
    (
        *("add ", "a0", ", ", "(", ")", "lw ", ".word ", "x:", "x", "\n", '"', "'", "\\", "/*", "*/", "#"),
        *(
            ";",
            "1f",
            "1:",
            "%hi(",
            "%pcrel_hi(",
            "-",
            "<<",
            "0x",
            "9999999999",
            ".align ",
            ".space ",
            ".equ ",
        ),
        *("la ", "=", "\0", "é"),
    )
)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=60)))
def test_anything_at_all(text):
    with contextlib.suppress(TapegradError):
        read_assembler(text.encode())


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_programs_with_a_mistake(data):
    text = data.draw(st.sampled_from([FIBONACCI, SORT]))
    at = data.draw(st.integers(0, len(text) - 1))
    text = text[:at] + data.draw(st.sampled_from(["", "(", ",", "x", '"', "\n", " ", "0"])) + text[at + 1 :]
    try:
        program = read_assembler(text.encode())
    except TapegradError:
        return
    run(program, program.start(b"ba"), 1000)


C_TEXT = """
static int memo[24]; const char *name = "fib"; extern int putchar(int);
static int fib(int n) { if (n < 2) return n; if (memo[n]) return memo[n];
  return memo[n] = fib(n - 1) + fib(n - 2); }
unsigned long long mix(unsigned a, int b) { return (unsigned long long)a * 0x12345678u / 3u + (b >> 3) % 7; }
int main(void) { int s = 0; for (int i = 0; i < 23; i++) s += fib(i) * name[i % 3];
  for (volatile short k = -300; k < 300; k += 77) s ^= mix(s, k); return s & 255; }
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed")
def test_what_clang_writes(tmp_path):
    """The text that clang writes, assembled here and by clang: the same exit code."""
    (tmp_path / "p.c").write_text(C_TEXT)
    start = "_start: call main\nli a7, 93\necall\n"
    (tmp_path / "s.s").write_text(".globl _start\n" + start)
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", "riscv32-freestanding-none"]
    zig += ["-mcpu=generic_rv32+m", "-ffreestanding", "-fno-pic", "-fno-asynchronous-unwind-tables"]
    for level in ("-O0", "-O1", "-O2", "-Os"):
        flags = [level, "-fno-sanitize=undefined", "-fno-stack-protector"]
        subprocess.run([*zig, *flags, "-S", "p.c", "-o", "p.s"], cwd=tmp_path, check=True)
        if "__udivdi3" in (text := (tmp_path / "p.s").read_text()):
            text = text.replace("__udivdi3", "divide")
            text += "\ndivide: mv t0, zero\n li t1, 64\n mv a4, zero\n"
            text += "1: srli t2, a1, 31\n slli a4, a4, 1\n or a4, a4, t2\n srli t2, a0, 31\n slli a1, a1, 1\n"
            text += " or a1, a1, t2\n slli a0, a0, 1\n bltu a4, a2, 2f\n sub a4, a4, a2\n ori a0, a0, 1\n"
            text += "2: addi t1, t1, -1\n bnez t1, 1b\n ret\n"
        program = read_assembler((start + text).encode())
        linked = ["-nostartfiles", "-static", "-Wl,-e,_start", "-o", "p.elf"]
        subprocess.run([*zig, *flags, "s.s", "p.c", *linked], cwd=tmp_path, check=True, capture_output=True)
        other = read_elf((tmp_path / "p.elf").read_bytes())
        found = run(program, program.start(), 10**6).final
        expected = run(other, other.start(), 10**6).final
        assert (found.trap, found.registers[10]) == (expected.trap, expected.registers[10])
        assert found.trap == "exit"
