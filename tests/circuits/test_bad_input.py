"""Files that cannot be read: one paragraph with a position, never anything else."""

import pytest

from tapegrad.circuits.formats import read
from tapegrad.errors import FormatError

BAD = {
    "aag no numbers": (b"aag \n", "header"),
    "aag too many numbers": (b"aag 0 0 0 0 0 0 0 0 0 0\n", "five to nine numbers"),
    "aag words": (b"aag 1 x 0 0 0\n", "'x'.*line 1"),
    "aag negative": (b"aag -1 0 0 0 0\n", "'-1'"),
    "aag huge": (b"aag 1000000000000 1 0 0 1000000000000\n2\n", "too large.*line 1"),
    "aag digits": (b"aag " + b"9" * 5000 + b" 0 0 0 0\n", "too large"),
    "aag cut off": (b"aag 3 2 0 1 1\n2\n4\n6\n", "ends where an AND gate was expected.*line 5"),
    "aag claims": (b"aag 100000000 0 0 0 100000000\n", "ends where an AND gate"),
    "aag latch": (b"aag 1 0 1 2 0\n2 3\n2\n3\n", "sequential circuit with 1 latches"),
    "aag latch alone": (b"aag 1 0 1 0 0\n2\n", "a latch, its next value.*line 2"),
    "aag latch twice": (b"aag 2 1 1 0 0\n2\n2 2\n", "literal 2 is defined twice.*line 3"),
    "aag latch undefined": (b"aag 9 0 1 0 0\n2 18\n", "literal 18 is read.*line 2"),
    "aag reset": (b"aag 1 0 1 0 0\n2 2 4\n", "reset to '4'.*line 2"),
    "aag latches": (b"aag 1 0 2 0 0\n2 2\n", "2 latches.*1 variables"),
    "aag property": (b"aag 1 1 0 0 0 0 0 1\n2\n1\n2\n", "without end"),
    "aag odd input": (b"aag 1 1 0 0 0\n3\n", "literal 3 cannot be defined.*line 2"),
    "aag constant input": (b"aag 1 1 0 0 0\n0\n", "literal 0 cannot be defined"),
    "aag input twice": (b"aag 2 2 0 0 0\n2\n2\n", "defined twice.*line 3"),
    "aag gate twice": (b"aag 3 1 0 0 2\n2\n4 2 2\n4 2 3\n", "literal 4 is defined twice.*line 4"),
    "aag gate is input": (b"aag 3 1 0 0 1\n2\n2 2 2\n", "literal 2 is defined twice"),
    "aag cycle": (b"aag 3 1 0 1 2\n2\n4\n4 6 2\n6 4 2\n", "depends on itself.*line 4"),
    "aag self": (b"aag 2 1 0 1 1\n2\n4\n4 5 2\n", "depends on itself"),
    "aag undefined operand": (b"aag 9 1 0 1 1\n2\n4\n4 2 18\n", "literal 18 is read.*line 4"),
    "aag undefined output": (b"aag 9 1 0 1 0\n2\n18\n", "literal 18 is read.*line 3"),
    "aag beyond M": (b"aag 1 1 0 1 0\n2\n4\n", "too large.*line 3"),
    "aag two literals": (b"aag 3 2 0 0 1\n2\n4\n6 2\n", "three literals"),
    "aag name": (b"aag 1 1 0 0 0\n2\ni1 x\n", "'i1'.*line 3"),
    "aag name twice": (b"aag 1 1 0 0 0\n2\ni0 x\ni0 y\n", "named twice"),
    "aag same names": (b"aag 2 2 0 0 0\n2\n4\ni0 x\ni1 x\n", "two have the name 'x'"),
    "aag garbage after": (b"aag 1 1 0 0 0\n2\nhello\n", "no name of an input.*line 3"),
    "aag binary": (b"aag 1 1 0 1 0\n\xff\xfe\n", "binary data.*line 2"),
    "aig wrong M": (b"aig 5 2 0 1 1\n6\n\x02\x02", "M = I"),
    "aig inputs": (b"aig 200000000 200000000 0 0 0\n", "plus the bytes of the file"),
    "aig cut off": (b"aig 3 2 0 1 1\n6\n\x02", "ends within AND gate 0 of 1"),
    "aig cut off in number": (b"aig 3 2 0 1 1\n6\n\x02\x82", "ends within AND gate 0 of 1"),
    "aig claims": (b"aig 200000000 0 0 0 200000000\n\x01", "ends within AND gate 0"),
    "aig zero delta": (b"aig 3 2 0 1 1\n6\n\x00\x02", "AND gate 0 .literal 6..*byte 17"),
    "aig delta too large": (b"aig 3 2 0 1 1\n6\n\x7f\x00", "reads literals -121"),
    "aig second delta too large": (b"aig 3 2 0 1 1\n6\n\x02\x05", "reads literals 4 and -1"),
    "aig overflow": (b"aig 3 2 0 1 1\n6\n" + b"\xff" * 40, "more than 5 bytes.*byte 17"),
    "aig overflow in the middle": (b"aig 4 2 0 1 2\n6\n\x02\x02" + b"\x81" * 7 + b"\x01\x01", "byte 19"),
    "aig latch": (b"aig 1 0 1 0 0\n3\n", "sequential"),
    "aig latch beyond M": (b"aig 1 0 1 0 0\n4\n", "too large.*line 2"),
    "aig latch empty": (b"aig 1 0 1 0 0\n\n", "next value of a latch.*line 2"),
    "aig reset": (b"aig 1 0 1 0 0\n2 3\n", "reset to '3'.*line 2"),
    "blif latch": (b".model m\n.inputs a\n.outputs q\n.latch a q 0\n.end\n", "sequential"),
    "blif latch alone": (b".model m\n.latch q\n", "no latch.*line 2"),
    "blif reset": (b".model m\n.inputs a\n.latch a q 4\n", "no latch.*line 3"),
    "blif level": (b".model m\n.inputs a c\n.latch a q ah c 0\n", "while a level is held.*line 3"),
    "blif type": (b".model m\n.inputs a c\n.latch a q up c 0\n", "'up' is no type.*line 3"),
    "blif two clocks": (
        b".model m\n.inputs a c d\n.latch a q re c 0\n.latch a p re d 0\n",
        "two clocks, re c and re d.*line 4",
    ),
    "blif two edges": (
        b".model m\n.inputs a c\n.latch a q re c 0\n.latch a p fe c 0\n",
        "two clocks, re c and fe c",
    ),
    "blif clock read": (
        b".model m\n.inputs c\n.outputs c\n.latch q q re c 0\n",
        "clock 'c' is read as a value.*line 4",
    ),
    "blif clock": (b".model m\n.latch q q re c 0\n", "clock 'c' is no input"),
    "blif latch driven": (b".model m\n.names q\n1\n.latch q q 0\n", "driven twice.*lines 2 and 4"),
    "blif latch undriven": (b".model m\n.latch d q 0\n", "'d', which 'q' reads.*line 2"),
    "blif subckt": (b".model m\n.subckt n a=b\n.end\n", "Flatten"),
    "blif second model": (b".model m\n.end\n.model n\n.end\n", "second .model.*line 3"),
    "blif command": (b".model m\n.nonsense\n", "no command of BLIF.*line 2"),
    "blif outside": (b".model m\n11 1\n", "outside of any cover"),
    "blif names": (b".model m\n.names\n", "without a net"),
    "blif row": (b".model m\n.inputs a b\n.names a b y\n1 1 1\n", "no row of a cover.*line 4"),
    "blif place": (b".model m\n.inputs a\n.names a y\n2 1\n", "no row of a cover"),
    "blif width": (b".model m\n.inputs a\n.names a y\n11 1\n", "cube of 2 places for 1"),
    "blif mixed": (b".model m\n.inputs a\n.names a y\n1 1\n0 0\n", "value 0 and of value 1.*line 5"),
    "blif twice": (b".model m\n.names y\n1\n.names y\n", "driven twice.*lines 2 and 4"),
    "blif input driven": (b".model m\n.inputs a\n.names a\n1\n", "once as an input.*lines 2 and 3"),
    "blif input twice": (b".model m\n.inputs a a\n", "driven twice"),
    "blif output twice": (b".model m\n.inputs a\n.outputs a a\n", "listed twice"),
    "blif undriven": (b".model m\n.outputs y\n.names a y\n1 1\n", "'a', which 'y' reads.*line 3"),
    "blif undriven output": (b".model m\n.outputs y\n", "output 'y' is driven by nothing.*line 2"),
    "blif cycle": (b".model m\n.names a b\n1 1\n.names b a\n1 1\n", "depends on itself: b <- a <- b"),
    "blif continuation": (b".model m\n.inputs a \\", "ends in a continuation"),
    "blif not utf-8": (b".model m\n.inputs \xff\n", "0xff is not UTF-8.*line 2"),
    "blif zero byte": (b".model m\n.inputs a\0\n", "binary file.*line 2"),
    "bench flip-flop": (b"INPUT(a)\nOUTPUT(q)\nq = DFF(a)\n", "sequential"),
    "bench flip-flop of two": (b"INPUT(a)\nq = DFF(a, a)\n", "one operand, not 2.*line 2"),
    "bench latch": (b"INPUT(a)\nq = LATCH(a)\n", "LATCH is not read.*line 2"),
    "bench gate": (b"INPUT(a)\ny = FROB(a)\n", "no gate 'FROB'.*line 2"),
    "bench line": (b"INPUT(a)\ny == AND(a)\n", "no line of a .bench"),
    "bench arity": (b"INPUT(a)\ny = NOT(a, a)\n", "takes one operand"),
    "bench no operand": (b"INPUT(a)\ny = AND()\n", "without operands"),
    "bench empty operand": (b"INPUT(a)\ny = AND(a, )\n", "no name of a net"),
    "bench cycle": (b"INPUT(a)\nb = AND(a, c)\nc = NOT(b)\n", "depends on itself.*line 2"),
    "bench undriven": (b"INPUT(a)\nOUTPUT(y)\n", "output 'y' is driven by nothing"),
    "bristol sign": (
        b"1 4\n2 1 1\n1 1\n\n2 1 0 1 2 AND\n2 1 0 +1 3 XOR\n",
        "a wire was expected, not .\\+1..*line 6",
    ),
    "bristol underscore": (b"1 4\n2 1 1\n1 1\n\n2 1 0 1 2 AND\n2 1 0 0_1 3 XOR\n", "not '0_1'"),
    "bristol other digits": (
        "1 4\n2 1 1\n1 1\n\n2 1 0 1 2 AND\n2 1 0 \u0661 3 XOR\n".encode(),
        "a wire was expected",
    ),
    "bristol long number": (b"1 4\n2 1 1\n1 1\n\n2 1 0 1 0000000000000000003 XOR\n", "too large"),
    "bristol two to one": (b"1 4\n2 1 1\n1 1\n\n2 1 0 1 3 INV\n", "no gate 'INV' with 2 operands"),
    "bristol count": (b"2 4\n2 1 1\n1 1\n\n2 1 0 1 3 XOR\n", "promises 2 gates.*line 5"),
    "bristol too many": (b"0 4\n2 1 1\n1 1\n\n2 1 0 1 3 XOR\n", "promises 0 gates"),
    "bristol undriven": (b"1 4\n2 1 1\n1 1\n\n2 1 0 1 2 XOR\n", "wire 3, which nothing drives"),
    "bristol order": (b"1 4\n2 1 1\n1 1\n\n2 1 0 2 3 XOR\n", "wire 2 is read before.*line 5"),
    "bristol twice": (b"1 4\n2 1 1\n1 1\n\n2 1 0 1 1 XOR\n", "driven twice.*line 5"),
    "bristol wire": (b"1 4\n2 1 1\n1 1\n\n2 1 0 1 4 XOR\n", "too large.*line 5"),
    "bristol gate": (b"1 4\n2 1 1\n1 1\n\n2 1 0 1 3 FROB\n", "no gate 'FROB'"),
    "bristol arity": (b"1 4\n2 1 1\n1 1\n\n1 1 0 3 XOR\n", "no gate 'XOR' with 1 operands"),
    "bristol announces": (b"1 4\n2 1 1\n1 1\n\n3 1 0 1 3 XOR\n", "3 . 1 wires are announced"),
    "bristol sizes": (b"1 4\n3 1 1\n1 1\n\n2 1 0 1 3 XOR\n", "3 values are announced.*line 2"),
    "bristol huge": (b"1 100000000\n1 90000000\n1 1\n\n", "90,000,000 inputs"),
    "bristol mand twice": (b"1 5\n2 1 1\n1 1\n\n4 2 0 1 0 1 2 2 MAND\n", "driven twice"),
    "bristol huge number": (b"1 4\n2 1 99999999999999999999\n1 1\n", "too large"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_a_paragraph(case: str) -> None:
    data, message = BAD[case]
    with pytest.raises(FormatError, match=message) as caught:
        read(data)
    assert caught.value.where
    assert "\n" not in str(caught.value)


def test_deep_and_wide_definitions_need_no_recursion_and_no_quadratic_time() -> None:
    count = 50_000
    backwards = "".join(f"n{i} = NOT(n{i + 1})\n" for i in range(count))
    circuit = read(f"OUTPUT(n0)\nINPUT(n{count})\n{backwards}".encode())
    assert circuit.depth == count
    with pytest.raises(FormatError, match=r"depends on itself: .* \.\.\. <- "):
        read(f"OUTPUT(n0)\nn{count} = NOT(n0)\n{backwards}".encode())
    wide = read(
        f".model m\n.inputs {' '.join(f'x{i}' for i in range(count))}\n.outputs y\n.names ".encode()
        + " ".join(f"x{i}" for i in range(count)).encode()
        + b" y\n"
        + b"1" * count
        + b" 1\n.end\n"
    )
    assert wide.depth == 16
