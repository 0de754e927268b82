"""Reading costs time and memory in proportion to the file, whatever its header claims."""

import time
import tracemalloc

import pytest

from tapegrad._sources import find_text
from tapegrad.errors import FormatError

MANY = 40_000
SYMBOLS = "".join(chr(0x20000 + code) for code in range(MANY))
YAML = "blank: 0\nstart state: A\n{}table:\n  A:\n    0: R\n{}"
LARGE = {
    "an input of many symbols": YAML.format(f"input: '{SYMBOLS}'\n", ""),
    "a long alphabet": YAML.format(f"alphabet: [{', '.join(SYMBOLS)}]\n", ""),
    "a table of many symbols": YAML.format("", "".join(f"    {symbol}: R\n" for symbol in SYMBOLS)),
    "a table of many states": YAML.format("", "".join(f"  {symbol}:\n    0: R\n" for symbol in SYMBOLS)),
    "a cover of many rows": ".model m\n.inputs a b\n.outputs o\n.names a b o\n" + "11 1\n" * MANY + ".end\n",
    "many continuations": ".model m\n.inputs a" + " \\\n" * MANY + "\n.outputs o\n.names a o\n1 1\n.end\n",
    "many nets": ".model m\n.inputs a\n.outputs n1\n"
    + "".join(f".names n{net + 1} n{net}\n1 1\n" for net in range(1, MANY))
    + f".names a n{MANY}\n1 1\n.end\n",
}


@pytest.mark.parametrize("what", LARGE)
def test_large_texts_are_read_in_linear_time(what: str) -> None:
    """Each takes well under a second of processor time. The bound is for a step that is quadratic, which took
    13 s for the first of these, and not for noise."""
    began = time.process_time()
    find_text(LARGE[what])
    assert time.process_time() - began < 6


@pytest.mark.parametrize(
    "header",
    [
        "aig 1048576 1048576 0 0 0\n",
        "aig 200000000 0 0 0 200000000\n",
        "aag 200000000 100000000 0 0 100000000\n",
        "1 1000001\n1 1000000\n1 1\n",
        "100000000 200000000\n1 1\n1 100000000\n",
    ],
)
def test_a_short_header_cannot_claim_memory(header: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(FormatError):
            find_text(header)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
