"""Circuits of many like rounds, each of which takes a row of bits to the next.

A network of R ReLUs in layers of w units has matrices of R w entries in all: a million ReLUs in layers of
three thousand would take twelve gigabytes, and a file in protobuf holds two. So a large question is asked bit
by bit, by rounds that are alike. Each is laid out for itself, and its matrices are stored once, however often
it is repeated. What differs from round to round stands in few kinds of rounds (the next bit of a number is 0
or 1), and what is read in turn is a register that is turned by one place each time.
"""

from collections.abc import Callable, Iterator, Sequence

from tapegrad.circuits.builder import CircuitBuilder, Wire, copied
from tapegrad.circuits.evaluator import evaluate
from tapegrad.circuits.model import Bits, Circuit

Word = list[Wire]
Step = Callable[..., Sequence[Word]]
"""From a builder and the words of the row to the words of the next."""


def one_round(name: str, widths: Sequence[int], step: Step) -> Circuit:
    """A round: the row is made of words of these widths, and so is what comes out."""
    build = CircuitBuilder()
    words = [[build.input(f"{place}[{bit}]") for bit in range(width)] for place, width in enumerate(widths)]
    for place, word in enumerate(step(build, *words)):
        for bit, wire in enumerate(word):
            build.output(f"{place}[{bit}]", wire)
    return build.circuit(name)


def chained(rounds: Sequence[Circuit], name: str) -> Circuit:
    """All rounds as one circuit, with the inputs of the first and the outputs of the last."""
    build = CircuitBuilder()
    wires = [build.input(own) for own in rounds[0].inputs]
    for own in rounds:
        wires = copied(own, build, wires)
    for own, wire in zip(rounds[-1].outputs, wires, strict=True):
        build.output(own, wire)
    return build.circuit(name)


def rows(rounds: Sequence[Circuit], bits: Bits) -> Iterator[Bits]:
    """The rows before the first round and after every one, for a batch of patterns."""
    yield bits
    for own in rounds:
        bits = evaluate(own, bits)
        yield bits


def turned(word: Word) -> Word:
    """By one place: the second bit comes first."""
    return [*word[1:], word[0]]


def added(build: CircuitBuilder, s: Word, c: Word, row: Word | None) -> tuple[Word, Word]:
    """Three numbers, or two without a row, as two with the same sum: in every column the parity, and the
    carry, which counts twice."""
    parities = [build.xor(*pair) for pair in zip(s, c, strict=True)]
    carries = [build.and_(*pair) for pair in zip(s, c, strict=True)]
    if row is None:
        return parities, carries
    both = [build.and_(*pair) for pair in zip(parities, row, strict=True)]
    sums = [build.xor(*pair) for pair in zip(parities, row, strict=True)]
    return sums, [build.or_(*pair) for pair in zip(carries, both, strict=True)]


def halved(build: CircuitBuilder, s: Word) -> Word:
    """Without the lowest bit, which has come out; carries, which count twice, then count as they stand."""
    return [*s[1:], build.constant(False)]


def bits_of(number: int, count: int) -> list[int]:
    """The lowest first."""
    return [number >> place & 1 for place in range(count)]
