"""Attention programs: the plain interpreter by hand, scores and temperatures by brute force, weights against
the interpreter."""

from collections.abc import Sequence
from itertools import islice, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tapegrad.attention.analysis import (
    EXACT,
    LONGEST,
    ROUNDING,
    largest_score,
    scales_for,
    softmax_error,
    temperature_for,
)
from tapegrad.attention.build import UNITS, Stream, build, groups_of
from tapegrad.attention.interpreter import run
from tapegrad.attention.program import AttentionProgram, Head, Map, Variable, word
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.errors import Refused, SourceError
from tapegrad.networks.heads import Attention, Decoder, read
from tapegrad.networks.numpy import activate, affine, chain
from tapegrad_papers.wei.watched import WatchedDecoder

BITS = 3


def counting() -> AttentionProgram:
    """Counts in `n`, and looks up the latest step with an `n` whose two lower bits are the same, whose
    `mark` it copies into `seen`; the mark of a step is the parity of its `n`. A token gives `told`."""
    build_ = CircuitBuilder()
    n = [build_.input(bit) for bit in word("n", BITS)]
    found = build_.input("found[0]")
    carry = build_.constant(True)
    for place, bit in enumerate(n):
        build_.output(f"next n[{place}]", build_.xor(bit, carry))
        carry = build_.and_(bit, carry)
    build_.output("next mark[0]", build_.xor(build_.xor(n[0], n[1]), n[2]))
    build_.output("next found[0]", found)
    same = tuple(zip(word("n", 2), word("n", 2), strict=True))
    return AttentionProgram(
        "counting",
        (
            Variable("n", BITS),
            Variable("mark", 1),
            Variable("seen", 1),
            Variable("told", 1),
            Variable("end", 1),
        ),
        (Variable("name", BITS), Variable("said", 1)),
        (
            # This step has the same bits, but its mark is 0 at odd n: only earlier marks of 1 count.
            Head("latest", "steps", (*same, (1, "mark[0]")), (("n[2]", "copied[0]"),), "found[0]"),
            Head(
                "token",
                "input",
                tuple(zip(word("n", BITS), word("name", BITS), strict=True)),
                (("said[0]", "saying[0]"),),
                "named[0]",
            ),
            Map("sums", build_.circuit()),
        ),
        {
            **{bit: f"next {bit}" for bit in word("n", BITS)},
            "mark[0]": "next mark[0]",
            "seen[0]": "copied[0]",
            "told[0]": "saying[0]",
            "end[0]": "end[0]",
        },
        ("end[0]",),
    )


TOKENS = [{**{f"name[{i}]": n >> i & 1 for i in range(BITS)}, "said[0]": n % 2} for n in (1, 2, 5)]
FIRST = dict.fromkeys((*word("n", BITS), "mark[0]", "seen[0]", "told[0]", "end[0]"), 0)


def test_interpreter():
    """Against a few lines that know what the program is about."""
    states = list(islice(run(counting(), FIRST, TOKENS), 40))
    numbers, marks = [0], [0]
    for step in range(1, 40):
        before = numbers[-1]
        fits = [n for n, mark in zip(numbers, marks, strict=True) if n % 4 == before % 4 and mark]
        assert states[step]["seen[0]"] == (fits[-1] >> 2 if fits else 0)
        assert states[step]["told[0]"] == (before in (1, 5))
        numbers.append((before + 1) % 8)
        marks.append(before.bit_count() % 2)
        assert sum(states[step][f"n[{i}]"] << i for i in range(BITS)) == numbers[-1]


def test_the_end_ends_it():
    assert len(list(run(counting(), FIRST | {"end[0]": 1}, TOKENS))) == 1


def test_only_one_token_may_fit():
    with pytest.raises(SourceError, match="only one may fit"):
        list(islice(run(counting(), FIRST | {"n[0]": 1}, [*TOKENS, TOKENS[0]]), 3))


def decoded(decoder: Decoder, carried: Sequence[str], steps: int) -> list[dict[str, int]]:
    """What the decoder hands on, step by step, in plain NumPy."""
    tokens = np.array([list(token.values()) for token in TOKENS], np.float32)
    watched = WatchedDecoder(decoder, tokens)
    watched.output[: len(carried)] = [FIRST[bit] for bit in carried]
    found = []
    for _ in range(steps):
        assert not watched.output[len(carried) :].any()
        found.append(dict(zip(carried, watched.output.tolist(), strict=False)))
        watched.step()
    return found


@pytest.mark.parametrize("temperature", [None, temperature_for(64)])
@pytest.mark.parametrize("steps", [40, 1 << 23])
def test_weights_against_interpreter(steps, temperature):
    """The second needs two digits for the number of a step."""
    program = counting()
    network, scales = build("counting", program, steps, temperature)
    assert len(scales.digits) == (1 if steps == 40 else 2)
    carried = [bit for own in program.carried for bit in own.bits]
    assert list(network.state["output"].port.columns[: len(carried)]) == carried
    assert decoded(read(network).decoder, carried, 40) == list(islice(run(program, FIRST, TOKENS), 40))


def test_digits_are_searched_from_the_highest(monkeypatch):
    """With digits of one bit, nearly as in the paper, the same comes out."""
    monkeypatch.setattr("tapegrad.attention.analysis.EXACT", 18)
    program = counting()
    network, scales = build("counting", program, 40, None)
    assert scales.digits == (2, 1, 1, 1, 1)
    carried = [bit for own in program.carried for bit in own.bits]
    assert decoded(read(network).decoder, carried, 40) == list(islice(run(program, FIRST, TOKENS), 40))


def scores(attention: Attention, here: np.ndarray, there: np.ndarray) -> tuple[float, np.ndarray]:
    query = affine(attention.query, here)
    return float(np.asarray(attention.null_key) @ query), affine(attention.key, there.T).T @ query


def test_scores():
    """Every place that fits beats the null key, which beats every other, by 1 at least; the later the better;
    and no score is larger than is claimed."""
    program = counting()
    network, scales = build("counting", program, 16, None)
    stream = Stream(tuple((g, n) for g, count in groups_of(program, scales) for n in range(count)))
    (attention,) = read(network).decoder.blocks[0].attentions()
    places = np.array(list(product((0, 1), repeat=BITS + 1 + scales.time)), np.float32)
    there = np.zeros((len(places), stream.width), np.float32)
    there[:, [*stream.group("n"), *stream.group("mark"), *stream.group("step")]] = places
    times = there[:, stream.group("step")] @ (1 << np.arange(scales.time))
    for n in range(8):
        here = np.zeros(stream.width, np.float32)
        here[stream.group("n")] = [n >> i & 1 for i in range(BITS)]
        null, found = scores(attention, here, there)
        fits = (there[:, stream.group("n")[:2]] == here[stream.group("n")[:2]]).all(1)
        fits &= there[:, stream.group("mark")[0]] == 1
        assert found[fits].min() >= null + 1
        assert found[~fits].max() <= null - 1
        assert len(set(found[fits] - times[fits])) == 1
        assert max(abs(null), np.abs(found).max()) <= largest_score(3, scales.time)


def test_horizon():
    program = counting()
    for steps in (1, 2, 3, 1 << 20, LONGEST):
        scales = scales_for(program, steps)
        assert 1 << scales.time >= steps
        known = [sum(scales.digits[:number]) for number in range(len(scales.digits))]
        assert all(
            largest_score(3 + before, d) <= EXACT for before, d in zip(known, scales.digits, strict=True)
        )
        covered = [bit for number in range(len(scales.digits)) for bit in scales.digit(number)]
        assert sorted(covered) == list(range(scales.time))
    assert LONGEST == 2**24
    for steps in (0, LONGEST + 1):
        with pytest.raises(Refused, match="single precision"):
            scales_for(program, steps)


def comparing(bits) -> Any:
    """As much of a program as digits depend on: one head compares so many bits, another fewer."""
    return SimpleNamespace(heads=[SimpleNamespace(compared=range(n)) for n in (1, bits, 1) if bits])


@pytest.mark.parametrize(
    ("bits", "steps", "digits"),
    [
        (0, 1 << 24, (24,)),  # 2^24 itself
        (3, 1, (1,)),
        (3, 2, (1,)),
        (3, 3, (2,)),
        (3, 4, (2,)),
        (3, 5, (3,)),
        (3, 1 << 22, (22,)),  # (3 + 1) 2^22 is 2^24
        (4, 1 << 22, (11, 11)),
        (3, (1 << 22) + 1, (12, 11)),
        (3, 1 << 23, (12, 11)),
        (8180, 1 << 22, (11, 11)),  # the second head compares 11 bits more: 8192 * 2^11 is 2^24
        (8181, 1 << 22, (8, 7, 7)),
    ],
)
def test_digits_are_as_few_as_scores_allow(bits, steps, digits):
    assert scales_for(comparing(bits), steps).digits == digits


def test_heads_that_compare_too_much_are_refused():
    """With one bit a digit, the last head compares all but one of them besides: (n + 2) 2 is to be 2^24."""
    most = (1 << 23) - 2
    assert scales_for(comparing(most), 4).digits == (1, 1)
    with pytest.raises(Refused, match="too large for single precision"):
        scales_for(comparing(most + 1), 4)


def test_temperatures_by_hand():
    """4 n e^-8 is 1/8 for n between 93 and 94, and 4 n e^-4 between 1 and 2."""
    assert [temperature_for(keys) for keys in (1, 2, 93, 94)] == [4.0, 8.0, 8.0, 16.0]
    assert softmax_error(93, 8.0) == pytest.approx(0.1248 + 2.0**-23, abs=1e-4)
    assert softmax_error(1, 100.0) == pytest.approx(2.0**-23, rel=1e-9)


@pytest.mark.parametrize("keys", [3, 1000, 1 << 20])
def test_temperature(keys):
    """The worst case, in single precision: all other keys 1 below the best, one after the other; and a power
    of two, so that scores are not rounded."""
    beta = temperature_for(keys)
    assert np.log2(beta) == int(np.log2(beta))
    assert softmax_error(keys, beta / 2) > 1 / 8
    astray = np.exp(np.float32(-beta))
    total = np.full(keys - 1, astray, np.float32)
    for best_value in (0.0, 1.0):
        sums = np.cumsum(np.concatenate([[np.float32(1)], total]), dtype=np.float32)[-1]
        others = np.cumsum(np.concatenate([[np.float32(best_value)], total]), dtype=np.float32)[-1]
        for value in (others, np.float32(best_value)):
            assert abs(value / sums - best_value) <= softmax_error(keys, beta) <= 1 / 8


def test_rounding_gives_bits_exactly():
    near = np.linspace(-0.25, 0.25, 1001, dtype=np.float32)
    for bit in (0.0, 1.0):
        assert (activate(ROUNDING, (near + np.float32(bit))) == bit).all()


@pytest.mark.parametrize("kind", list(Gate))
def test_gates(kind):
    """Every kind of gate as a layer that adds to its coordinate."""
    assert kind in UNITS
    second = np.array([int(kind.arity == 2)])
    circuit = Circuit(("a[0]", "b[0]"), ("c[0]",), np.array([kind]), np.array([0]), second, np.array([2]))
    carried = tuple(Variable(name, 1) for name in "ab")
    program = AttentionProgram(
        "gate", carried, (), (Map("gates", circuit),), {"a[0]": "a[0]", "b[0]": "c[0]"}, ()
    )
    decoder = read(build("gate", program, 1, None)[0]).decoder
    for a, b in product((0, 1), repeat=2):
        h = np.zeros(len(decoder.start), np.float32)
        h[:2] = a, b
        block = decoder.blocks[0]
        h[np.asarray(block.adds_to)] += chain(block.feed_forward, h)
        assert h[np.asarray(block.adds_to)[0]] == int(kind) >> 2 * a + b & 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"output": {"n[0]": "n[0]"}}, "not about the bits that are carried"),
        ({"ends": ("nowhere[0]",)}, "not about the bits that are carried"),
        ({"layers": (Head("h", "steps", (("m[0]", "n[0]"),), (), "f[0]"),)}, "which is not known"),
        ({"layers": (Head("h", "input", (("n[0]", "n[0]"),), (), "f[0]"),)}, "which is not known"),
        ({"layers": (Head("h", "steps", (("n[0]", "n[0]"),), (("n[0]", "n[1]"),), "f[0]"),)}, "twice"),
    ],
)
def test_programs_that_contradict_themselves(change, message):
    program = counting()
    own = {name: getattr(program, name) for name in ("carried", "token", "layers", "output", "ends")}
    with pytest.raises(SourceError, match=message):
        AttentionProgram("wrong", **(own | change))
