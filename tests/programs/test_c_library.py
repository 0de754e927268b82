"""The library that C programs get, beside this machine's own; and how much memory they get."""

import shutil
import struct
import subprocess
import sys
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest

from tapegrad import _sources
from tapegrad._compile import compile_for
from tapegrad._files import no_files
from tapegrad._verify import run_and_verify
from tapegrad.errors import FormatError, Refused
from tapegrad.programs import compiler, confined, read_assembler, read_c
from tapegrad.programs.compiled import run
from tapegrad.programs.fitting import fitted
from tapegrad.programs.model import Program
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.view import state_text
from tests.programs.test_c import needs_compiler, needs_host, same_outcomes

needs_landlock = pytest.mark.skipif(not confined.can_confine(), reason="no Landlock")
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


def decimals() -> list[str]:
    """Numbers at the edges of doubles, of all sizes, and half-way between two of them."""
    draw = np.random.default_rng(3)
    found = ["1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "1e400", "-1e-400"]
    found += [
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072011e-308",
        "0",
    ]
    found += [
        "9007199254740993",
        "9007199254740993.00000000000000000000001",
        "1e23",
        "8.5e22",
        "-.5e1x",
        "1e+",
    ]
    found += ["0." + "0" * 400 + "1e390", "1" + "0" * 400 + "e-390", "3.14159265358979323846264338327950288"]
    with localcontext(prec=1200):
        for bits in draw.integers(0, 2046 << 52, 12).tolist():
            one, next_up = (
                Decimal(struct.unpack("<d", struct.pack("<q", own))[0]) for own in (bits, bits + 1)
            )
            found += [repr(float(one)), f"{(one + next_up) / 2:e}", f"{one + (next_up - one) / 3:.25e}"]
    return found


@needs_compiler
@needs_host
@pytest.mark.parametrize(
    ("name", "input"),
    [
        ("floats", b"pi 3.14159 2.5 -1e3 tiny -4e-3 .5 12.25"),
        ("texts", INPUT),
        ("numbers", b""),
        ("nearest", "\n".join(decimals()).encode()),
    ],
    ids=["floats", "texts", "numbers", "nearest"],
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
        '#inc\\ \nlude "/etc/hostname"',
        '#inc\\\t \v\f\r\nlude "/etc/hostname"',
        '#inc\\\rlude "/etc/hostname"',
        '??=include "/etc/hostname"',
        '#if __has_include("/etc/hostname")\n#endif',
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


READS = [
    '#include "/etc/hostname"',
    '#inc\\ \nlude "/etc/hostname"',
    '#if __has_include("/etc/hostname")\n#error it is there\n#endif',
    '__asm__(".incbin \\"/etc/hostname\\"");',
    '__asm__(".include \\"/etc/hostname\\"");',
    "const char text[] = {\n#embed </etc/hostname>\n};",
]


@needs_compiler
@needs_landlock
@pytest.mark.parametrize("line", READS)
def test_nor_can_the_compiler(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel keeps it from that, whatever our own look at the text has missed."""
    monkeypatch.setattr(compiler, "_refuse_names_of_files", lambda data: None)
    with no_files():
        assert isinstance(_sources.find_text("int main(void) { return 0; }").source, Program)
        with pytest.raises(FormatError, match="does not compile") as caught:
            _sources.find_text(f"{line}\nint main(void) {{ return 0; }}")
    assert Path("/etc/hostname").read_text().strip() not in str(caught.value)


@needs_landlock
def test_a_confined_command_reads_nothing_else(tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("open", "closed")}
    for place in places.values():
        place.mkdir()
        (place / "file").write_text("found")
    system = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache")
    command = [
        sys.executable,
        "-I",
        confined.__file__,
        *system,
        str(places["open"]),
        "--",
        shutil.which("cat") or "",
    ]
    done = {
        name: subprocess.run([*command, place / "file"], capture_output=True, text=True)
        for name, place in places.items()
    }
    assert (done["open"].stdout, done["open"].returncode) == ("found", 0)
    assert (done["closed"].stdout, done["closed"].returncode) == ("", 1)


@needs_compiler
def test_a_page_of_the_studio_has_the_headers() -> None:
    with no_files():
        program = _sources.find_text(
            '#include <stdio.h>\n#include "ctype.h"\n#define SEVEN \\\n  7\n'
            'int main(void) { puts("\\\\ \\n"); return SEVEN; }'
        ).source
    *_, final = program.run(program.start())
    assert final.registers[10] == 7


# Guards

NULL = """#include <stdio.h>
#include <string.h>
#include <unistd.h>
struct many { int a, b[9], c; };
static struct many *volatile where;
static struct pair { int a, b; } *volatile both;
static char *volatile text;
static volatile int k = 3;
int main(void)
{
    char here[9] = "abc";
    switch (getchar()) {
    %s
    }
    printf("alive %%d", here[0]);
    return 0;
}
"""
STATEMENTS = [
    *("where->a = 1", "where->c = k", "where->b[k] = 1", "*text = 1", "text[k] = 1", "*(text + k) = 1"),
    *("k = where->c", "k = text[k]", "*both = (struct pair){1, 2}", "memset(text, 1, 8)", "puts(text)"),
    *("memcpy(text, here, 4)", "strcpy(text, here)", 'sprintf(text, "%d", k)', "fgets(text, 9, stdin)"),
    *('scanf("%d", (int *)text)', "read(0, text, 3)", "k = strlen(text)", "memcpy(here, text, 4)"),
    "*(volatile char *)text = 1",
]


@pytest.fixture(scope="module")
def with_null() -> Program:
    cases = [f"case 'a' + {number}: {one}; break;" for number, one in enumerate(STATEMENTS)]
    return read_c((NULL % "\n".join(cases)).encode())


@needs_compiler
@pytest.mark.parametrize("number", range(len(STATEMENTS)), ids=STATEMENTS)
def test_null_pointers_stop_a_program(with_null: Program, number: int) -> None:
    start = with_null.start(bytes([ord("a") + number]) + b"12 abc\n")
    final = run(with_null, start, 10**6).final
    *_, plainly = with_null.run(start)
    assert final == plainly
    at_the_end = STATEMENTS[number].startswith(("*both", "*(volatile"))  # clang does not check that
    assert (final.trap, b"alive" in final.output) == ("illegal instruction", at_the_end)
    said = state_text(with_null, final)
    assert "(a null pointer, or another trap of the compiler)" in said
    if number < 8:
        assert f", line {13 + number}\n" in said
    nothing = run(with_null, with_null.start(b"?"), 10**6).final
    assert (nothing.trap, nothing.output) == ("exit", b"alive 97")


@needs_compiler
@pytest.mark.parametrize(
    "target",
    ["emulator", "transformer", *(pytest.param(t, marks=pytest.mark.slow) for t in ("decoder", "tape"))],
)
def test_networks_stop_at_null_pointers(target: str) -> None:
    text = b"int *volatile where;\nint main(void) { *where = 5; return 0; }"
    net = compile_for(read_c(text), target, (b"",), 100)
    ran, report = run_and_verify(net, b"", engine="fast", steps=10**6, every=1000 if target == "tape" else 1)
    assert report.agreed
    assert ran.state is not None
    assert ran.state.trap == "illegal instruction"


@needs_compiler
@needs_host
def test_a_stack_without_room_stops_a_program(tmp_path: Path) -> None:
    """Before it overwrites what is below it: variables, or what was allocated."""
    text = """
    #include <stdio.h>
    #include <stdlib.h>
    %s
    static int first[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int depth(int n) { volatile int kept[4] = {n}; return n ? 1 + depth(n - 1) + kept[0] - n : 0; }
    int main(void)
    {
        int n, *block = malloc(400);
        scanf("%%d", &n);
        for (int i = 0; i < 100; i++) block[i] = i;
        printf("%%d %%d %%d", depth(n), block[99], first[7]);
        return 0;
    }
    """
    same_outcomes(text % "", [b"1", b"9"], tmp_path)
    program = read_c((text % "#include <tapegrad.h>\nTAPEGRAD_RAM(8192);").encode())
    outputs = set()
    for n in (*range(1, 120, 7), 1000):
        final = run(program, program.start(b"%d" % n), 10**6).final
        if final.trap == "exit":
            assert final.output == b"%d 99 8" % n
        else:
            assert "breakpoint (the stack has no room left)" in state_text(program, final)
        outputs.add(final.trap)
    assert outputs == {"exit", "breakpoint"}


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
