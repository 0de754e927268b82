"""C files: compiled for RISC-V and run here, and compiled for this machine and run there."""

import hashlib
import shutil
import subprocess
from itertools import groupby
from pathlib import Path

import pytest

from tapegrad._sources import source_from_json, source_to_json
from tapegrad.errors import FormatError, InputError
from tapegrad.programs import compiler, read_c
from tapegrad.programs.compiled import run
from tapegrad.programs.model import Program
from tapegrad.programs.view import ProgramView, listing_text

needs_compiler = pytest.mark.skipif(compiler.compiler() is None, reason="no compiler for RISC-V")
needs_host = pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler for this machine")
EXAMPLES = Path(__file__).parents[2] / "examples" / "programs"

ARITHMETIC = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static uint32_t seed = 12345;
static uint32_t next(void) { return seed = seed * 1664525u + 1013904223u; }
struct pair { int16_t a; int8_t b; uint64_t c; };
int main(void)
{
    for (int i = 0; i < 200; i++) {
        int32_t a = (int32_t)next() >> (next() & 31), b = (int32_t)next() >> (next() & 31);
        uint32_t u = (uint32_t)a, v = (uint32_t)b;
        int64_t x = (int64_t)a * b + (int64_t)u, y = b ? b : 1;
        uint64_t z = (uint64_t)u << 32 | v;
        printf("%d %d %u %x ", a + b, (int)(u * v), u >> (v & 31), a >> (v & 31));
        if (b && !(a == INT32_MIN && b == -1)) printf("%d %d ", a / b, a % b);
        if (v) printf("%u %u ", u / v, u % v);
        printf("%lld %lld %lld ", (long long)x, (long long)(x / y), (long long)(x % y));
        printf("%llu %llu %llx\\n", (unsigned long long)(z / (v | 1)), (unsigned long long)(z % (v | 1)),
               (unsigned long long)(z >> (u & 63)));
        struct pair p = {(int16_t)a, (int8_t)b, z}, q = p;
        double d = a / 3.0, e = d * b;
        float f = (float)a * 0.5f;
        printf("%d %d %d %d %d\\n", q.a, q.b, memcmp(&p.c, &q.c, 8), d < e, (int)(f / 1024.0f));
    }
    return 7;
}
"""
LIBRARY = """
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
    char word[16], text[40];
    int n, count = 0;
    unsigned hex;
    while (scanf("%d", &n) == 1) printf("[%5d|%-6d|%06d|%+d|%x|%X|%o]\\n", n, n, n, n, n, n, n), count++;
    printf("%d then ", count);
    if (scanf("%15s %x", word, &hex) == 2)
        printf("%s %u %10s|%-10s|%.2s|%c%%\\n", word, hex, word, word, word, word[0]);
    strcpy(text, word); strcat(text, "-tail"); memmove(text + 2, text, 5);
    printf("%s %u %d ", text, (unsigned)strlen(text), strcmp("abc", "abd") < 0);
    printf("%d\\n", strncmp("abc", "abd", 2));
    for (char *c = text; *c; c++) putchar(isalpha(*c) ? toupper(*c) : *c);
    char *block = malloc(10), *zeros = calloc(4, 2);
    memset(block, 'z', 9); block[9] = 0;
    printf("\\n%s %d %d %d %s\\n", block, zeros[7], abs(-4), atoi(" -17x"), strchr(text, '-'));
    printf("%d\\n", snprintf(text, 5, "%d-%s", 123, "abc")); puts(text);
    free(block);
    printf("%d ", getchar());
    printf("%d\\n", getchar());
    exit(count);
}
"""


def same_outcomes(source: str, inputs: list[bytes], folder: Path) -> list[bytes]:
    """What the program writes to each input, here as there, with the same exit code."""
    program = read_c(source.encode())
    (folder / "p.c").write_text(source)
    subprocess.run(["cc", "-O1", "-w", "-fwrapv", "-o", "p", "p.c", "-lm"], cwd=folder, check=True)
    outputs = []
    for input in inputs:
        final = run(program, program.start(input), 10**8).final
        done = subprocess.run([folder / "p"], input=input, capture_output=True, check=False)
        assert final.trap == "exit"
        assert (final.registers[10] & 255, final.output) == (done.returncode, done.stdout)
        outputs.append(final.output)
    return outputs


@needs_compiler
@needs_host
@pytest.mark.parametrize(
    ("source", "input"),
    [(ARITHMETIC, b""), (LIBRARY, b" 12 -7 +3 0 end 1F!\n")],
    ids=["arithmetic", "library"],
)
def test_same_as_on_this_machine(source, input, tmp_path):
    same_outcomes(source, [input], tmp_path)


PUZZLE = b"53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
INPUTS = {
    "quicksort": [b"5 3 8 -100 77 3", b"", b"1"],
    "sieve": [b""],
    "sudoku": [b"", PUZZLE, b"55" + PUZZLE[2:]],
    "sha256": [b"", b"abc", bytes(range(1, 120))],
    "life": [b"", b"9"],
    "interpreter": [b"", b"a = 1 [ a < 1000 ! a a = a * 2 + 1 ]"],
}


@needs_compiler
@needs_host
@pytest.mark.parametrize("name", INPUTS)
def test_examples(name, tmp_path):
    source = (EXAMPLES / f"{name}.c").read_text()
    outputs = same_outcomes(source, INPUTS[name], tmp_path)
    if name == "sha256":
        sums = [hashlib.sha256(input).hexdigest() for input in INPUTS[name]]
        assert [output.decode().strip() for output in outputs] == sums


def test_all_examples_are_run():
    assert {path.stem for path in EXAMPLES.glob("*.c")} == INPUTS.keys()


@needs_compiler
def test_memory_and_names():
    program = read_c(b"#include <tapegrad.h>\nTAPEGRAD_RAM(2048);\nint main(void) { return 3; }", "three")
    assert (program.machine.ram, program.name) == (2048, "three")
    assert program.entry == program.symbols["_start"] < program.symbols["main"]
    assert len(program.image) < 100


@needs_compiler
@pytest.mark.parametrize(
    ("source", "where", "message"),
    [
        ("int main(void)\n{ return x; }", "line 2, column 10", "undeclared identifier 'x'"),
        ("int main(void) { return 0 }", "line 1, column 26", "expected ';'"),
        ("#include <signal.h>\nint main(void) { return 0; }", "line 1, column 10", "signal.h"),
        ("int main(void) { return f(); } int f(void);", "", "f"),
        ("int helper(void) { return 1; }", "", "main"),
    ],
)
def test_c_that_does_not_compile(source, where, message):
    with pytest.raises(FormatError, match=message) as caught:
        read_c(source.encode())
    if where and "zig" in " ".join((compiler.compiler() or ([], []))[0]):
        assert caught.value.where == where
        # The compiler's name for the file is not the user's; the wrong line stands below the sentence.
        assert "program.c" not in str(caught.value)
        assert (
            str(caught.value).splitlines()[1].endswith(source.splitlines()[int(where.split(",")[0][5:]) - 1])
        )
    assert "/tmp" not in str(caught.value)


def test_without_a_compiler(monkeypatch):
    monkeypatch.setattr(compiler, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'tapegrad\[c\]'"):
        read_c(b"int main(void) { return 0; }")
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name in ("clang", "ld.lld") else None)
    assert (compiler.compiler() or ([], []))[0][0] == "/bin/clang"
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name in compiler.GCC else None)
    command, last = compiler.compiler() or ([], [])
    assert command[0].endswith(compiler.GCC[0])
    assert last == ["-lgcc"]
    with pytest.raises(InputError, match="cannot be run"):
        read_c(b"int main(void) { return 0; }")


SUM = """
int doubled(int x);
int main(void)
{
    int total = 0;
    for (int i = 0; i < 3; i++)
        total += doubled(i);
    return total;
}
__attribute__((noinline)) int doubled(int x) { return x * 2; }
"""


@needs_compiler
def test_the_lines_of_the_source_are_followed() -> None:
    program = read_c(SUM.encode())
    assert program.source is not None
    states = list(program.run(program.start()))
    lines = [program.source.line(state.pc) for state in states]
    # Start-up code, main, and a call of the function for each of three turns of the loop.
    assert lines[0] == 0
    assert [line for line, _ in groupby(lines) if line == 10] == [10] * 3
    assert set(lines) <= {0, 4, 5, 6, 7, 8, 10}
    assert program.source.line(program.symbols["doubled"]) == 10
    assert program.source.line(program.symbols["_start"]) == 0
    again = source_from_json(*source_to_json(program))
    assert isinstance(again, Program)
    assert again.source == program.source
    view = ProgramView(program)
    at_call = states[lines.index(10)]
    assert view.frame(at_call)[1] == (9, 0)
    assert view.frame(states[0])[1] is None
    text = listing_text(program)
    assert text.index("doubled:") < text.index("; 10: __attribute__((noinline))")
