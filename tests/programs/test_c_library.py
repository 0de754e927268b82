"""The library that C programs get, beside this machine's own; and how much memory they get."""

from pathlib import Path

import pytest

from tapegrad import _sources
from tapegrad._compile import compile_for
from tapegrad._files import no_files
from tapegrad.errors import FormatError, Refused
from tapegrad.programs import read_assembler, read_c
from tapegrad.programs.compiled import run
from tapegrad.programs.fitting import fitted
from tapegrad.programs.model import Program
from tapegrad.programs.rv32 import RV32
from tests.programs.test_c import needs_compiler, needs_host, same_outcomes

SOURCES = Path(__file__).parent / "c"
INPUT = b"one line\n\na line that is longer than the buffer\nlast"

LARGE_ARRAY = b"""
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    int n = 1000000, count = 0;
    char *crossed = calloc(n + 1, 1);
    for (int i = 2; i <= n; i++) {
        if (!crossed[i]) {
            count++;
            for (long j = (long)i + i; j <= n; j += i) crossed[j] = 1;
        }
    }
    printf("%d", count);
}
"""


@needs_compiler
@needs_host
@pytest.mark.parametrize(
    ("name", "input"),
    [("floats", b"pi 3.14159 2.5 -1e3 tiny -4e-3 .5 12.25"), ("texts", INPUT), ("numbers", b"")],
)
def test_same_as_the_library_of_this_machine(name: str, input: bytes, tmp_path: Path) -> None:
    same_outcomes((SOURCES / f"{name}.c").read_text(), [input], tmp_path)


@needs_compiler
def test_programs_without_floats_do_not_carry_them() -> None:
    """6 KiB are a network of two million weights."""
    plain, floats = (
        read_c(f'#include <stdio.h>\nint main(void) {{ printf("%{form}", 1.5); return 0; }}'.encode())
        for form in ("d", "f")
    )
    assert len(plain.image) < 3000
    assert run(floats, floats.start()).final.output == b"1.500000"
    assert len(floats.image) > len(plain.image) + 2000


@needs_compiler
@needs_host
def test_a_program_may_have_functions_by_the_names_of_the_library(tmp_path: Path) -> None:
    text = r"""
    #include <stdio.h>
    int read(int *a) { return scanf("%d", a); }
    void write(int a) { printf("<%d>", a); }
    static int digits = 3, heap = 4;
    int emit(int a) { return a + digits + heap; }
    size_t strlen(const char *text) { return 1000; }
    int main(void) { int a, b; read(&a); read(&b); write(a); write(emit(b)); puts("all of it"); return 0; }
    """
    same_outcomes(text, [b"4 5"], tmp_path)


@needs_compiler
def test_assertions_say_where_they_fail() -> None:
    program = read_c(b"#include <assert.h>\nint main(void) {\n  int x = 2;\n  assert(x == 3);\n}")
    final = run(program, program.start()).final
    assert final.output == b"program.c:4: assertion failed: x == 3\n"
    assert final.registers[10] == 134


@needs_compiler
def test_files_beside_a_program_are_included(tmp_path: Path) -> None:
    main = '#include "parts/add.h"\nint main(void) { return add(40, 2); }'
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "add.h").write_text('#include "add.c"\n')
    (tmp_path / "parts" / "add.c").write_text("static int add(int a, int b) { return a + b; }\n")
    (tmp_path / "main.c").write_text(main)
    program = _sources.find(str(tmp_path / "main.c")).source
    *_, final = program.run(program.start())
    assert final.registers[10] == 42
    with pytest.raises(
        FormatError, match=r"(?s)add\.h.*There are assert\.h, ctype\.h, .*, unistd\.h, and files in"
    ):
        _sources.find_text(main)


@needs_compiler
@pytest.mark.parametrize(
    "line",
    [
        '#include "/etc/hostname"',
        "#  include </etc/hostname>",
        '#inc\\\nlude "/etc/hostname"',
        '%:include "/etc/hostname"',
        '#/**/include "/etc/hostname"',
        "#define NAME </etc/hostname>\n#include NAME",
        '__asm__(".inc" "bin \\"/etc/hostname\\"");',
        "#define both(a, b) a##b",
        "const char text[] = {\n#embed </etc/hostname>\n};",
        '_Pragma("once")',
    ],
)
def test_a_page_of_the_studio_cannot_open_files(line: str) -> None:
    with no_files(), pytest.raises(FormatError, match="no files are opened for this C program"):
        _sources.find_text(f"{line}\nint main(void) {{ return 0; }}")


@needs_compiler
def test_a_page_of_the_studio_has_the_headers() -> None:
    with no_files():
        program = _sources.find_text(
            '#include <stdio.h>\n#include "ctype.h"\nint main(void) { return 7; }'
        ).source
    *_, final = program.run(program.start())
    assert final.registers[10] == 7


# How much memory

DEEP = b"""
#include <stdio.h>
#include <stdlib.h>
int depth(int n) { volatile int kept = n; return n ? 1 + depth(n - 1) + kept - n : 0; }
int main(void)
{
    int n, *block;
    if (scanf("%d", &n) != 1) return 1;
    block = malloc(4 * (size_t)n);
    if (!block) return 2;
    for (int i = 0; i < n; i++) block[i] = i;
    printf("%d", depth(n) + block[n - 1]);
    return 0;
}
"""


@needs_compiler
def test_memory_is_as_large_as_the_run_needs() -> None:
    program = read_c(DEEP)
    sizes = []
    for n in (1, 200, 600):
        one = fitted(program, (b"%d" % n,), 10**6)
        assert run(one, one.start(b"%d" % n)).final.output == b"%d" % (2 * n - 1)
        sizes.append(one.machine.ram)
    assert sizes == [8192, 16384, 32768]
    assert program.machine.ram == 8192  # with which the last of them does something else
    assert run(program, program.start(b"600")).final.output != b"1199"
    assert compile_for(program, "transformer", (b"600",), 10**6).source.machine.ram == 32768  # type: ignore[attr-defined]


@needs_compiler
def test_a_program_that_takes_more_than_a_network_is_refused_by_its_size() -> None:
    """With less memory, `calloc` gives NULL, and the program would overwrite itself."""
    program = read_c(LARGE_ARRAY)
    found = fitted(program, (b"",), 100_000_000)
    assert found.machine.ram == 1 << 20
    assert run(found, found.start()).final.output == b"78498"
    with pytest.raises(Refused, match="memory of 1,048,576 bytes"):
        compile_for(program, "emulator", (b"",), 100_000_000)


def test_memory_that_is_asked_for_stays() -> None:
    asked = read_assembler(b".equ __ram, 8192\nli a7, 93\necall")
    assert fitted(asked, (b"",), 100) is asked
    built = Program("built", RV32(4096), asked.image)
    assert fitted(built, (b"",), 100) is built
    free = read_assembler(b"li a7, 93\necall")
    assert (free.machine.ram, fitted(free, (b"",), 100).machine.ram) == (4096, 16)
    told = read_assembler(b"mv a0, sp\nli a7, 93\necall")  # ends with the size of its memory
    assert fitted(told, (b"",), 100) is told
    endless = read_assembler(b"next: addi sp, sp, -16\nsw sp, 0(sp)\nj next")
    assert fitted(endless, (b"",), 3 * 100).machine.ram == 2048
    assert fitted(endless, (b"",), 10**7) is endless
