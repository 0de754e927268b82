"""The fast engine of machines with memories: every output as by the reference, and other arrays refused."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.programs.library import READY, random_subleq
from tapegrad.programs.model import Program
from tapegrad.targets.transformer.gates import read_gates, table_of
from tapegrad.targets.transformer.mapping import VARIABLES, WIDEST, merged
from tapegrad.targets.transformer.memory_net import LONG_BY_REFERENCE, MemoryNet
from tests.targets.memory_nets import same_outputs


def compiled(program: Program, **options) -> MemoryNet:
    net = tg.compile(program, "transformer", **({"steps": 64, "input": 2, "output": 4} | options)).net
    assert isinstance(net, MemoryNet)
    return net


@pytest.mark.parametrize(
    "options",
    [{}, {"attention": "softmax"}, {"steps": 1 << 22}, {"steps": 1 << 24, "attention": "softmax"}],
    ids=["hardmax", "softmax", "two digits", "softmax and two digits"],
)
def test_subleq(options):
    for seed in range(2):
        program = random_subleq(seed, words=12 + 5 * seed, width=(8, 16)[seed % 2])
        same_outputs(compiled(program, **options), program, b"ab", 40)


@pytest.fixture(scope="module")
def echo() -> MemoryNet:
    return compiled(READY["subleq-echo"].build())


def test_engines_do_not_mix(echo):
    net = echo
    carry = net.advance(net.start(READY["subleq-echo"].build().start(b"a")), 1, "fast")
    with pytest.raises(InputError, match="another engine"):
        net.advance(carry, 1)
    carry = net.advance(net.start(READY["subleq-echo"].build().start(b"a")), 1)
    with pytest.raises(InputError, match="another engine"):
        net.advance(carry, 1, "fast")


def test_engine_is_chosen_for_the_length_of_the_run(echo):
    program = READY["subleq-echo"].build()
    start = echo.start(program.start(b"a"))
    assert echo.engine_for(start, 10**9) == "reference"  # for it was compiled for 64 steps
    long = compiled(program, steps=1 << 22)
    most = LONG_BY_REFERENCE // long.parameters
    assert most < 1 << 22
    for steps, engine in ((most, "reference"), (most + 1, "fast"), (10**9, "fast")):
        assert long.engine_for(long.start(program.start(b"a")), steps) == engine


KINDS = {
    "query.bias": (".query", "bias"),
    "key.values": (".token_key", "values"),
    "key.bias": (".key", "bias"),
    "null_key": ("first_keys", ""),
    "null key of tokens": ("constant", "value"),
    "value.values": (".value", "values"),
    "units.bias": ("layers", "biases"),
    "units.values": (".0", "values"),
    "sums.values": ("layers", "values"),
    "sums.bias": (".1", "values"),
    "last.values": (".2", "values"),
    "ends.values": ("halting", "values"),
}
"""What weights are of: an end or a beginning of the node's name, and the part."""


@pytest.mark.parametrize("name", KINDS)
def test_changed_weights_are_refused(name, echo):
    """A weight that was changed a little, of any kind."""
    of, part = KINDS[name]
    network, random = echo.network, np.random.default_rng(0)
    own = [
        array
        for array in network.arrays
        if array == of
        or (array.endswith(f".{part}") and (array.startswith(of) or array.endswith(f"{of}.{part}")))
    ]
    places = [(array, at) for array in own for at in np.argwhere(network.arrays[array])]
    for number in random.choice(len(places), 2):
        array, at = places[number]
        changed = network.arrays[array].copy()
        changed[tuple(at)] *= 0.75
        net = replace(echo, network=replace(network, arrays={**network.arrays, array: changed}))
        with pytest.raises((Refused, BrokenNet), match="gates"):
            read_gates(net.decoder, 64, 64)


def test_softmax_that_is_not_sharp_enough_is_refused():
    net = compiled(READY["subleq-echo"].build(), attention="softmax")
    for temperature in (2.0, 12.0):
        with pytest.raises(Refused):
            read_gates(replace(net.decoder, temperature=temperature), 64, 64)


def test_tables():
    conjunction = [((0, 1), (1.0, 1.0), -1.0)]
    assert table_of(conjunction, [1.0], 0.0, [False, False], 0.1) == 0b1000
    rounded = [((0,), (1.0,), -0.25), ((0,), (1.0,), -0.75)]
    assert table_of(rounded, [2.0, -2.0], 0.0, [True], 0.125) == 0b10
    for wrong in (conjunction, [((0,), (1.0,), 0.0)]):
        with pytest.raises(Refused):
            table_of(wrong, [1.0], 0.0, [True] * len(wrong[0][0]), 0.125)
    with pytest.raises(Refused):
        table_of(rounded, [2.0, -2.0], 0.0, [True], 0.3)
    with pytest.raises(Refused):
        table_of(conjunction, [2.0], 0.0, [False, False], 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_merged_gates(seed):
    """The same values for all inputs, of the gates that are needed, by fewer gates."""
    random = np.random.default_rng(seed)
    inputs, count = 6, 80
    gates = []
    for gate in range(count):
        reads = random.choice(np.arange(-gate, inputs), 2, replace=False).tolist()
        gates.append((reads, int(random.integers(16))))
    needed = [-count + own for own in range(6)] + [0, 3]
    found = merged(gates, needed)
    assert len(found) < count / 2
    for bits in product((0, 1), repeat=inputs):
        values: dict[int, int] = dict(enumerate(bits))
        for gate, (reads, table) in enumerate(gates):
            values[-1 - gate] = table >> sum(values[wire] << i for i, wire in enumerate(reads)) & 1
        own: dict[int, int] = dict(enumerate(bits))
        for gate, (reads, table) in found.items():
            assert len(reads) <= WIDEST
            own[-1 - gate] = table >> sum(own[wire] << i for i, wire in enumerate(reads)) & 1
        assert all(own[wire] == values[wire] for wire in needed)


def test_variables():
    for row in range(1 << WIDEST):
        assert [variable >> row & 1 for variable in VARIABLES] == [row >> i & 1 for i in range(WIDEST)]


@pytest.mark.slow
def test_a_million_instructions():
    """Sums in a loop, 2^20 steps, compared every 2^16 with the compiled interpreter."""
    program = tg.read(LOOP)
    net = tg.compile(program, "transformer", steps=1 << 20)
    report = tg.verify(net, [()], steps=1 << 20, engine="fast", every=1 << 16)
    assert report.agreed
    assert report.steps == 1 << 20


LOOP = """
        .equ __ram, 4096
_start: la s1, data
outer:  li t0, 0
        mv t1, s1
inner:  lw t2, (t1)
        add t2, t2, t0
        mul s0, t2, t1
        xor s0, s0, t2
        sw s0, 1(t1)
        divu t3, s0, t2
        sra t4, t2, t0
        addi t1, t1, 4
        addi t0, t0, 1
        li t5, 64
        blt t0, t5, inner
        j outer
        .data
data:   .space 512
"""


@pytest.mark.parametrize("attention", ["hardmax", "softmax"])
@pytest.mark.parametrize("width", [1, 31, 32, 63, 64, 130])
def test_words_of_any_length(width, attention):
    """Two inputs of so many bits are one word of the token, which lies in as many tables as it takes."""
    circuit = tg.trace(lambda a, b: a ^ (b << 1), tg.UInt(width), tg.UInt(width), name="mixed").circuit
    net = tg.compile(circuit, "transformer", attention=attention)
    random = np.random.default_rng(width)
    for _ in range(4):
        a, b = (int.from_bytes(random.bytes(17)) % (1 << width) for _ in range(2))
        for engine in ("auto", "fast", "reference"):
            assert net.run(a, b, engine=engine).value == (a ^ b << 1) % (1 << width)
        assert net(a, b) == (a ^ b << 1) % (1 << width)
    assert tg.verify(net, [(random.integers(0, 2, (1, 2 * width)),)], engine="fast").agreed
