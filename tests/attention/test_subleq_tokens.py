"""SUBLEQ told in tokens, beside the plain interpreter: every state of every step."""

from functools import cache
from itertools import islice

import numpy as np
import pytest

from tapegrad.attention.language import build, scales_for
from tapegrad.attention.prompts import Blocks, digits_for
from tapegrad.attention.subleq_tokens import PUT, SubleqTokens
from tapegrad.attention.tokens import Interpreter
from tapegrad.errors import Refused
from tapegrad.networks.texts import Reading, parts_of
from tapegrad.programs.library import READY, random_subleq
from tapegrad.programs.model import Program
from tapegrad.programs.subleq import Subleq, read_subleq


@cache
def words_of(machine: Subleq) -> SubleqTokens:
    """Programs on the same machine share a token program."""
    return SubleqTokens(machine, 2)


def follow(program: Program, data: bytes = b"", steps: int = 40) -> SubleqTokens:
    """Compares what tokens tell with the interpreter."""
    assert isinstance(program.machine, Subleq)
    words = words_of(program.machine)
    first = program.start(data)
    text = Interpreter(words.program).run(words.prompt(first, 100_000))
    story = words.follow(first)
    for state in islice(program.run(first), steps):
        story.read(list(islice(text, words.record)))
        assert story.configuration() == state
    return words


@pytest.mark.parametrize("width", [8, 16, 32])
def test_random_programs(width):
    ends = set()
    for seed in range(9):
        program = random_subleq(seed, words=100 if seed % 3 else 16, width=width)
        follow(program, b"ab\xff", 20)
        ends.add(list(islice(program.run(program.start(b"ab\xff")), 40))[-1].trap)
    assert ends >= {"end", "address outside memory"}


def test_ready_programs():
    for name, data in (("subleq-hello", b""), ("subleq-echo", b"Hi"), ("subleq-echo", b"")):
        follow(READY[name].build(), data, 100)


@pytest.mark.parametrize(
    ("text", "trap"),
    [
        ("subleq 8 6\n0 0 4 0 0 0", "jump outside memory"),
        ("subleq 8 3\n1 1 -1", "end"),
        ("subleq 8 6\n0 0 3 0 0 3", ""),
        ("subleq 8 7\n0 0 4 0 0 0 0", ""),
        ("subleq 8 6\n6 0 0 0 0 0", "address outside memory"),
        ("subleq 8 6\n0 6 0 0 0 0", "address outside memory"),
        ("subleq 8 6\n-1 -1 0 0 0 0", "address outside memory"),
        ("subleq 8 6\n-2 0 0 0 0 0", "address outside memory"),
        ("subleq 16 300\n299 299 0x7fff 0 0 0", "jump outside memory"),
        ("subleq 16 300\n300 0 0 0 0 0", "address outside memory"),
        ("subleq 8 2\n0 0", "jump outside memory"),
        ("subleq 8 1\n0", "jump outside memory"),
    ],
)
def test_where_programs_stop(text, trap):
    program = read_subleq(text.encode())
    states = list(islice(program.run(program.start()), 20))
    assert states[-1].trap == trap
    follow(program)


@pytest.mark.parametrize(
    ("x", "y"), [(1, 0), (0, 0), (0xFFFF, 1), (0x8000, 0x8000), (1, 0x8000), (7, 0x1000)]
)
def test_borrows_and_signs(x, y):
    program = read_subleq(f"subleq 16 8\n3 4 9 {x} {y}".encode())
    follow(program)


def test_more_input_than_a_block_and_bytes_in_words():
    program = read_subleq(b"subleq 8 16\nloop: -1 x ? x -1 ? z z loop x: 0 z: 0")
    data = bytes(range(100, 140))
    words = follow(program, data, 120)
    assert words.bytes.words < len(data)
    shown = [words.program.tokens[PUT + byte].word for byte in b"A\n"]
    assert shown == ["put:A", "put:\\0a"]


def test_weights_give_the_same_tokens():
    program = READY["subleq-hello"].build()
    assert isinstance(program.machine, Subleq)
    words = words_of(program.machine)
    network = build(words.program, 3000)
    assert len(parts_of(network).layers) == 1 + len(scales_for(words.program, 3000).digits)
    random = np.random.default_rng(1)
    text = words.prompt(program.start(), 3000)
    text += list(islice(Interpreter(words.program).run(text), 10 * words.record))
    # Digits that no run would have, in all places.
    for place in random.integers(1, len(text), 60):
        if 64 <= text[place] < 128:
            text[place] = int(random.integers(64, 128))
    reading, interpreter = Reading(network), Interpreter(words.program)
    for token in text:
        logits = reading.feed([token])
        assert logits.argmax() == interpreter.feed([token])
        first, second = np.sort(logits)[[-1, -2]]
        assert first - second >= 2


def test_blocks():
    blocks = Blocks(40, 2, 8, 1)
    assert blocks.words == 16
    assert blocks.fits
    assert not Blocks(20, 2, 8, 1).fits
    found = list(blocks.records(2, {0: [70, 71], 17: [72, 73]}, 64))
    assert [record[:2] for record in found] == [[2, 64], [2, 65]]
    assert found[0][2:6] == [70, 71, 64, 64]
    assert found[1][2:6] == [64, 64, 72, 73]
    assert [digits_for(values) for values in (1, 16, 17, 256, 257)] == [1, 1, 2, 2, 3]


def test_prompts_that_do_not_fit():
    program = READY["subleq-hello"].build()
    assert isinstance(program.machine, Subleq)
    words = words_of(program.machine)
    least = len(words.prompt(program.start(), 10_000)) + words.record
    words.prompt(program.start(), least)
    with pytest.raises(Refused, match="program and input take"):
        words.prompt(program.start(), least - 1)
