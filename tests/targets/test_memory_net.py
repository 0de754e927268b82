"""Machines with memories on `transformer`: weights, the form in between and the plain interpreters agree."""

import copy
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import ClassVar

import jax
import numpy as np
import pytest

import tapegrad as tg
from tapegrad._precision import with_promotion
from tapegrad.attention.analysis import temperature_for
from tapegrad.attention.interpreter import run
from tapegrad.attention.memory import layout_of, memory_program
from tapegrad.attention.program import word
from tapegrad.attention.sources import ProgramPorts
from tapegrad.circuits import UInt
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.networks.backends.jax import Jax
from tapegrad.networks.saving import from_json, to_json
from tapegrad.programs.library import READY, random_rv32, random_subleq
from tapegrad.programs.model import Effect, Machine, Memory, Program, ProgramState, Read, Step, Write
from tapegrad.targets.transformer.memory_net import Decoding, MemoryNet
from tapegrad_check.folder import COMPUTES_SOURCE, CheckError
from tapegrad_papers.wei.watched import WatchedDecoder
from tests.check.altering import Net
from tests.check.of_heads import taken_apart
from tests.networks.written import with_decoder
from tests.targets.memory_nets import same_outputs

TESTS = Path(os.environ.get("TAPEGRAD_CORPUS") or "none") / "programs" / "riscv-tests"


def net_of(compiled: tg.Compiled) -> MemoryNet:
    assert isinstance(compiled.net, MemoryNet)
    return compiled.net


@pytest.fixture(scope="module")
def hello() -> tg.Compiled:
    return tg.compile(READY["subleq-hello"].build(), "transformer", steps=32, input=4, output=4)


@pytest.fixture(scope="module")
def sort() -> Iterator[tg.Compiled]:
    """Without division, which makes most of the layers; the long runs have it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tapegrad.programs.rv32._quotient", lambda a, b, f3: a)
        yield tg.compile(READY["rv32-sort"].build(), "transformer", steps=1024, input=16, output=16)


def interpreted(program: Program, net: MemoryNet, input: bytes) -> Iterator[ProgramState]:
    """The states of a program, by the plain interpreter of the form that its net is built from."""
    carry = net.start(program.start(input))
    own = memory_program(net.machine, "program")
    first = dict.fromkeys((bit for part in own.carried for bit in part.bits), 0)
    for name, of in net.layout.registers.items():
        values = carry.output[net.stream.group(name)].astype(int).tolist()
        first |= zip(word(name, of.width), values, strict=True)
    names = [bit for part in own.token for bit in part.bits]
    tokens = [dict(zip(names, token, strict=True)) for token in carry.tokens.astype(int).tolist()]
    for bits in run(own, first, tokens):
        output = np.zeros(net.stream.width, np.float32)
        for part in own.carried:
            output[net.stream.group(part.name)] = [bits[bit] for bit in part.bits]
        # Nothing is cached here: the writes are those of the outputs.
        for write in net._pending(output):
            place = write.address if write.bank.side is None else 2 * write.address + write.bank.side
            carry.memories[write.bank.memory][place] = write.word
        yield net.decode(replace(carry, output=output))


@pytest.mark.parametrize("name", READY)
@pytest.mark.sampled(2)
def test_the_form_against_the_program(name, hello, sort):
    entry = READY[name]
    program = entry.build()
    net = net_of(sort if name.startswith("rv32") else hello)
    assert list(interpreted(program, net, entry.example)) == list(program.run(program.start(entry.example)))


@pytest.mark.parametrize("kind", ["hardmax", "softmax"])
def test_subleq(kind):
    for seed in range(3):
        program = random_subleq(seed, words=16 + seed, width=(8, 16, 32)[seed % 3])
        compiled = tg.compile(program, "transformer", steps=60, input=3, output=4, attention=kind)
        report = tg.verify(compiled, [(b"ab",)], steps=60)
        assert report.agreed, (seed, report)
        assert report.deviation == 0


def test_rv32(sort):
    assert tg.verify(sort, [(b"tapegrad",), (b"",), (b"zyxwvutsrqponmlk",)]).agreed


def test_rv32_by_softmax(sort):
    """Temperature is all that differs."""
    net = net_of(sort)
    soft = with_decoder(net, replace(net.decoder, temperature=temperature_for(1 << 10)))
    report = tg.verify(replace(sort, net=soft), [(b"tapegrad",)])
    assert report.agreed
    assert report.complete
    assert report.deviation == 0


def test_one_net_for_every_program(sort):
    """The weights are the machine: other programs are other inputs."""
    program = READY["rv32-fibonacci"].build()
    assert same_outputs(net_of(sort), program, b"", 200) == 56


@pytest.mark.slow
def test_rv32_by_both_engines():
    """Random programs of all instructions, every output of both engines."""
    options = {"steps": 256, "input": 1, "output": 1}
    net = net_of(tg.compile(random_rv32(0, ram=256), "transformer", **options))
    for seed in range(30):
        program = random_rv32(seed, ram=256)
        assert same_outputs(net, program, b"", 200) < 200


def test_many_steps_at_once(sort, monkeypatch):
    """With room for few entries at first, so that it must grow."""
    monkeypatch.setattr("tapegrad.targets.transformer.differences.ROOM", 6)
    net = net_of(sort)
    for name in ("rv32-sort", "rv32-fibonacci"):
        program = READY[name].build()
        carry = net.start(program.start(b"ba"))
        *_, last = program.run(program.start(b"ba"))
        for steps in (1, 10, 245):
            carry = net.advance(carry, steps, "fast")
        assert net.done(carry)
        assert net.decode(carry) == last


def outputs(net: MemoryNet, carry: Decoding, steps: int) -> list[np.ndarray]:
    found = []
    for _ in range(steps):
        carry = net.advance(carry, 1)
        found.append(carry.output)
    return found


def test_reference_against_numpy():
    """Every output, bit for bit, by evaluations that share no code; JAX is a third."""
    entry = READY["subleq-hello"]
    options = {"steps": 20, "input": 1, "output": 4, "attention": "softmax"}
    net = net_of(tg.compile(entry.build(), "transformer", **options))
    carry = net.start(entry.build().start())
    expected = outputs(net, carry, 20)
    watched = WatchedDecoder(net.decoder, carry.tokens)
    watched.output = carry.output
    for output in expected:
        watched.step()
        assert np.array_equal(watched.output, output)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hardmax", "softmax"])
def test_reference_against_jax(kind):
    entry = READY["subleq-hello"]
    options = {"steps": 20, "input": 1, "output": 4, "attention": kind}
    net = net_of(tg.compile(entry.build(), "transformer", **options))
    carry = net.start(entry.build().start())
    assert np.array_equal(_by_jax(net, carry, 19), outputs(net, carry, 20)[-1])


@with_promotion
def _by_jax(net: MemoryNet, carry: Decoding, last: int) -> np.ndarray:
    network = net.network
    step = jax.jit(lambda given: Jax(network).run(given))
    outputs, state = {}, network.first_state()
    for _ in range(last + 1):
        outputs, state = step(net.given(carry) | state)
    return np.asarray(outputs["output"])[0]


def test_saved(hello, tmp_path):
    tg.save(hello, tmp_path / "net")
    loaded = tg.load(tmp_path / "net")
    ours, theirs = net_of(hello).network.arrays, net_of(loaded).network.arrays
    assert str(loaded.net.network) == str(hello.net.network)
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    assert loaded.net.config() == hello.net.config()
    assert tg.verify(loaded, [()]).agreed


@pytest.mark.parametrize(
    "options", [{}, {"attention": "softmax"}, {"steps": 1 << 23}], ids=["hardmax", "softmax", "two digits"]
)
def test_checked(options, tmp_path):
    echo = READY["subleq-echo"].build()
    compiled = tg.compile(echo, "transformer", **({"steps": 32, "input": 4, "output": 4} | options))
    tg.save(compiled, tmp_path / "net")
    report = tg.check(tmp_path / "net")
    assert report.verdict == COMPUTES_SOURCE


FORGED = {
    "query.bias": "sign",
    "key.values": "sign|digit",
    "null_key": "null key",
    "value.values": "copies something else",
    "units.bias": "gate|rounded",
    "sums.values": "gate|rounded",
    "last.values": "handed on",
    "ends.values": "the end",
}


def unsourced(compiled: tg.Compiled) -> Net:
    """A net whose source is not known to the checker."""
    net = net_of(compiled)
    config, arrays = taken_apart(net)
    return Net(copy.deepcopy(config), arrays, net.certificate(), None, form="heads")


@pytest.mark.parametrize("name", FORGED)
def test_forged(name, hello):
    """Any weight of any kind, changed a little."""
    net = unsourced(hello)
    random, own = np.random.default_rng(0), net.arrays[name]
    net.verdict("transformer")
    for place in random.choice(np.flatnonzero(own), 2):
        net.arrays[name] = own
        net.put(name, place, own[place] * 1.5)
        with pytest.raises(CheckError, match=FORGED[name]):
            net.verdict("transformer")
    net.arrays[name] = own
    net.claims["steps"] = 33
    with pytest.raises(CheckError, match="certificate"):
        net.verdict("transformer")


def test_swapped_wires_are_a_different_table(hello):
    """A gate that reads another bit is still a gate: this is what the source would have to decide, but what
    is no longer known when it is read is found."""
    net = unsourced(hello)
    net.put("units.columns", 0, net_of(hello).stream.width - 1)
    with pytest.raises(CheckError, match=r"no bit|rounded"):
        net.verdict("transformer")


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("block_.*0.columns", 0, 10**6),
        ("layers_2.starts", -1, -1),
        ("put_17.to", 3, 10**6),
        ("layers_2.relu", 0, 7),
        ("first_keys", (0, 0), 1),
    ],
)
def test_networks_that_do_not_fit_are_refused(hello, name, at, value):
    net = net_of(hello)
    arrays = {key: array.copy() for key, array in net.network.arrays.items()}
    found = next(key for key in arrays if re.fullmatch(name, key))
    arrays[found][at] = value
    if name == "first_keys":
        changed = replace(net, network=replace(net.network, arrays=arrays))
        with pytest.raises(Refused, match="gates and look-ups"):
            changed.advance(changed.start(READY["subleq-hello"].build().start()), 1, "fast")
        return
    with pytest.raises(BrokenNet):
        from_json(to_json(net.network), arrays)


@pytest.mark.parametrize("change", [{"steps": 1 << 20}, {"banks": []}], ids=lambda change: next(iter(change)))
def test_configs_that_do_not_fit_are_refused(hello, change):
    net = net_of(hello)
    with pytest.raises((BrokenNet, ValueError, IndexError)):
        MemoryNet.from_saved(net.config() | change, {}, net.network)
    with pytest.raises(BrokenNet, match="no network"):
        MemoryNet.from_saved(net.config(), {})


def test_a_network_of_another_kind_is_refused(hello):
    other = tg.compile("adder2", "relu").net.network
    with pytest.raises(BrokenNet, match="heads and gates"):
        MemoryNet.from_saved(net_of(hello).config(), {}, other)


def test_estimate(hello):
    cost = tg.estimate(hello.source, "transformer", steps=32, input=4, output=4)
    net = net_of(hello)
    assert (cost.width, cost.depth) == (net.stream.width, len(net.decoder.blocks))
    assert cost.parameters == net.parameters
    assert cost.bytes == sum(array.nbytes for array in net.network.arrays.values())


def test_explain(hello):
    net = net_of(hello)
    assert "carried from step to step" in net.explain("pc[0]")
    assert "number of this step" in net.explain("step[0]")
    gate = next(name for name in net.units() if name.startswith("map 2["))
    assert "relu(" in net.explain(gate)
    layers = [net.explain(f"layer {number}") for number in range(len(net.decoder.blocks))]
    (found,) = (text for text in layers if "read 6 of ram, written" in text)
    assert "ram write at[0]" in found
    assert "1 = ram write on[0]" in found
    (given,) = (text for text in layers if "read 6 of ram, given" in text)
    assert "attention to the token" in given
    raw = net.explain("raw read 6 of ram, written[0]")
    assert "copies ram write[0] from the place" in raw
    with pytest.raises(InputError, match="no unit"):
        net.explain("nothing")


def test_every_coordinate_and_layer_is_explained(hello):
    for unit in list(hello.net.units())[::7]:
        assert len(hello.net.explain(unit)) > len(unit) + 3


def test_limits(hello):
    echo = READY["subleq-echo"].build()
    compiled = tg.compile(echo, "transformer", steps=3, input=2, output=2)
    with pytest.raises(Refused, match="has not stopped after 3 steps"):
        compiled.run(b"ab")
    with pytest.raises(InputError, match="room for"):
        compiled.run(b"abc")
    with pytest.raises(Refused, match="single precision"):
        tg.compile(echo, "transformer", steps=1 << 25)
    with pytest.raises(Refused, match="for Turing machines alone"):
        tg.compile(echo, "transformer", correction="thirds")


class Pairs(Machine):
    """A counter that reads single words of a memory that it writes in pairs, at even and odd addresses up to
    its end: ports that neither of the two machines has together."""

    kind: ClassVar[str] = "pairs"
    traps: ClassVar[tuple[str, ...]] = ("end",)

    @property
    def word(self):
        return 8

    @property
    def memories(self):
        return {"ram": Memory(8, self.ram), "input": Memory(9, 1), "output": Memory(8, 1)}

    def run(self, state):
        contents = self.contents(state)
        while True:
            yield self.state(contents)
            if contents.registers["trap"]:
                return
            contents = self.after(contents)

    def step(self, registers) -> Step:
        pc = registers["pc"]
        here, pair = yield (Read("ram", pc[:3]), Read("ram", pc[:3], 2))
        change = (here.to(UInt(16)) << 7) ^ pair ^ 0x101 ^ (pc.to(UInt(16)) << 4)
        return Effect({"pc": pc + 3, "trap": UInt(1)(0)}, (Write("ram", pc[:3], pair, change, 2),))


def test_pairs_and_single_words():
    machine = Pairs(7, input=1, output=1)
    program = Program("pairs", machine, bytes(range(1, 8)))
    net = MemoryNet.build(ProgramPorts(machine), "pairs", 64, "hardmax")
    carry = net.start(program.start())
    for expected in islice(program.run(program.start()), 60):
        assert net.decode(carry) == expected
        carry = net.advance(carry, 1)


def test_two_writes_are_refused():
    class Twice(Pairs):
        def step(self, registers) -> Step:
            (old,) = yield (Read("ram", registers["pc"]),)
            return Effect({}, [Write("ram", registers["pc"], old, old)] * 2)

    with pytest.raises(Refused, match="two ports write"):
        layout_of(Twice(4))


@pytest.mark.slow
@pytest.mark.skipif(not TESTS.is_dir(), reason="TAPEGRAD_CORPUS does not point to a corpus")
@pytest.mark.parametrize("engine", MemoryNet.engines)
def test_riscv_tests(engine):
    """All of them by one net for each size of memory, registers and memory compared after every step."""
    nets: dict[int, MemoryNet] = {}
    paths: list[Path] = sorted(TESTS.glob("*.elf"))
    assert len(paths) == 50
    for path in paths:
        program = tg.read(str(path))
        assert isinstance(program, Program)
        ram = program.machine.ram
        if ram not in nets:
            nets[ram] = net_of(tg.compile(program, "transformer", steps=4096, input=1, output=1))
        net = nets[ram]
        carry = net.start(program.start())
        for expected in program.run(program.start()):
            assert net.decode(carry) == expected, path
            if not net.done(carry):
                carry = net.advance(carry, 1, engine)
        assert net.done(carry)
        last = net.decode(carry)
        assert (last.trap, last.registers[10]) == ("exit", 0)
