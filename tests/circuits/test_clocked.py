"""Circuits with state against counters, registers and sums that are written here a second time."""

import itertools
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad._sources import find, find_text, inputs_for, source_from_json, source_to_json, written
from tapegrad.circuits import Bit, Circuit, UInt
from tapegrad.circuits.clocked import model
from tapegrad.circuits.clocked.kind import ClockedView, history, state_json
from tapegrad.circuits.clocked.library import READY, TICKS, clocked, random_sequential
from tapegrad.circuits.clocked.model import ANY, SequentialCircuit, SequentialState, look_ahead
from tapegrad.circuits.clocked.traces import parse_trace
from tapegrad.circuits.evaluator import evaluate
from tapegrad.circuits.formats import FORMATS, detect
from tapegrad.circuits.inputs import named_bits
from tapegrad.errors import InputError, Refused, SourceError

WRITERS = [known for known in FORMATS if known.write is not None]


def last(source: SequentialCircuit, *inputs) -> SequentialState:
    *_, state = source.run(source.start(*inputs))
    return state


def by_name(source: SequentialCircuit, state: SequentialState) -> list[dict[str, int]]:
    return [named_bits(source.outputs, row) for row in state.outputs]


# Ready ones.


def test_counter() -> None:
    source = READY["counter8"].build()
    rng = np.random.default_rng(1)
    trace = np.stack([rng.random(700) < 0.9, rng.random(700) < 0.01], axis=1).astype(int)
    count, expected = 0, []
    for enable, clear in trace.tolist():
        expected.append({"count": count, "full": int(enable and count == 255)})
        count = 0 if clear else (count + enable) % 256
    assert by_name(source, last(source, trace)) == expected
    assert any(row["full"] for row in expected)


def test_shift_register() -> None:
    source = READY["lfsr16"].build()
    state, bits = 0xACE1, []
    for _ in range(1000):
        bits.append(state & 1)
        fed = (state ^ state >> 2 ^ state >> 3 ^ state >> 5) & 1
        state = state >> 1 | fed << 15
    assert last(source, 1000).outputs[:, 0].tolist() == bits


def test_sum() -> None:
    source = READY["crc32"].build()
    text = b"The quick brown fox jumps over the lazy dog"
    bits = [[byte >> place & 1] for byte in text for place in range(8)]
    rows = by_name(source, last(source, bits))
    for length in (1, 9, len(text)):
        assert rows[8 * length - 1]["sum"] == zlib.crc32(text[:length])


def received(line: list[int]) -> bytes:
    """What a receiver makes of a serial line: it looks in the middle of each bit."""
    at, found = 0, []
    while at < len(line):
        if line[at]:
            at += 1
            continue
        middles = [line[at + TICKS * place + TICKS // 2] for place in range(10)]
        assert middles[0] == 0
        assert middles[9] == 1
        found.append(sum(bit << place for place, bit in enumerate(middles[1:9])))
        at += 10 * TICKS
    return bytes(found)


def sending(text: bytes) -> list[list[int]]:
    """Each byte is offered until it is taken; what lies there while one is sent does not matter."""
    rows = []
    for byte in text:
        bits = [byte >> place & 1 for place in range(8)]
        rows += [[*bits, 1], *([[1 - bit for bit in bits] + [1]] * (10 * TICKS))]
    return [*rows, [0] * 9]


def test_transmitter() -> None:
    source = READY["uart"].build()
    state = last(source, sending(b"tapegrad\x00\xff"))
    assert received(state.outputs[:, 0].tolist()) == b"tapegrad\x00\xff"
    assert state.outputs[:: 10 * TICKS + 1, 1].tolist() == [0] * 11


# The model.


@given(seed=st.integers(0, 10**6), latches=st.integers(0, 5), inputs=st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_a_run_is_the_logic_cycle_by_cycle(seed: int, latches: int, inputs: int) -> None:
    source = random_sequential(seed, inputs=inputs, latches=latches)
    rng = np.random.default_rng(seed)
    trace = rng.integers(0, 2, (9, inputs))
    first = rng.integers(0, 2, len(source.open_latches))
    begins = iter(first.tolist())
    held = [next(begins) if reset == ANY else reset for reset in source.resets]
    states = list(source.run(source.start(trace, first)))
    assert [state.cycle for state in states] == list(range(10))
    for row, state, after in zip(trace.tolist(), states[:-1], states[1:], strict=True):
        assert list(state.latches) == held
        found = evaluate(source.logic, [[*row, *held]])[0].astype(int).tolist()
        assert after.outputs[-1].tolist() == found[: len(source.outputs)]
        held = found[len(source.outputs) :]
    assert list(states[-1].latches) == held
    ahead = look_ahead(source, states[3], 4)
    assert ahead.final == states[7]
    assert (ahead.steps, ahead.halted) == (4, False)
    assert look_ahead(source, states[3]).halted


def test_states_are_compared_as_far_as_both_know() -> None:
    rows, trace = np.array([[0], [1]], np.uint8), np.zeros((2, 0), np.uint8)
    whole = SequentialState((1,), 2, rows, trace)
    assert whole == SequentialState((1,), 2, rows[1:], trace)
    assert whole != SequentialState((1,), 2, rows[:1], trace)
    assert whole != SequentialState((0,), 2, rows, trace)
    assert whole != SequentialState((1,), 1, rows, trace)
    assert whole != SequentialState((1,), 2, 1 - rows, trace)


def test_what_does_not_fit_is_refused() -> None:
    source = READY["counter8"].build()
    with pytest.raises(InputError, match="2 inputs, but 3 bits"):
        source.start([[1, 0, 1]])
    with pytest.raises(InputError, match="bits, 0 or 1"):
        source.start([[1, 2]])
    with pytest.raises(InputError, match="have no inputs"):
        source.start(5)
    with pytest.raises(InputError, match="1 first values"):
        source.start([[1, 0]], [1])
    with pytest.raises(InputError, match="1 first values"):
        random_sequential(4, latches=1).start([[0, 0]], [2])
    with pytest.raises(SourceError, match="last inputs"):
        SequentialCircuit(source.logic, (0,) * 18)
    with pytest.raises(SourceError, match="reset to something else"):
        SequentialCircuit(source.logic, (3,) * 8)
    assert READY["lfsr16"].build().start(0).trace.shape == (0, 0)


def test_steps_of_python() -> None:
    def step(registers, inputs):
        total = registers["total"] + inputs["x"]
        return {"total": total, "seen": Bit(1)}, {"total": total, "first": ~registers["seen"]}

    source = clocked(
        step,
        registers={"total": UInt(4), "seen": Bit},
        inputs={"x": UInt(4)},
        resets={"total": 3},
    )
    assert source.resets == (1, 1, 0, 0, 0)
    assert source.inputs == ("x[0]", "x[1]", "x[2]", "x[3]")
    trace, _ = parse_trace(source, ["x=5 x=9 *2"])
    assert [row["total"] for row in by_name(source, last(source, trace))] == [8, 1, 10, 3]
    assert [row["first"] for row in by_name(source, last(source, trace))] == [1, 0, 0, 0]
    with pytest.raises(SourceError, match="no register 'y'"):
        clocked(step, registers={"total": UInt(4), "seen": Bit}, inputs={"x": UInt(4)}, resets={"y": 3})
    with pytest.raises(SourceError, match="register 'total'"):
        clocked(step, registers={"total": UInt(3), "seen": Bit}, inputs={"x": UInt(4)})


# Traces as they are typed.


def test_words_of_a_trace(tmp_path: Path) -> None:
    source = READY["uart"].build()
    trace, first = parse_trace(source, ["data=0x41,send=1", "send=0*3", "1000_0000_1 *2 data[1]=1"])
    numbers = [named_bits(source.inputs, row) for row in trace]
    assert numbers == [
        {"data": 0x41, "send": 1},
        *[{"data": 0x41, "send": 0}] * 3,
        *[{"data": 1, "send": 1}] * 3,
        {"data": 3, "send": 1},
    ]
    assert first.size == 0
    (tmp_path / "trace.txt").write_text("# a byte\ndata=0x41,send=1 # now\nsend=0*3\n")
    again, _ = parse_trace(source, [str(tmp_path / "trace.txt"), "100000001*3", "data[1]=1"])
    assert again.tolist() == trace.tolist()
    assert parse_trace(READY["lfsr16"].build(), ["*7"])[0].shape == (7, 0)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("0110", "4 bits were given for the 9 inputs.*data, send"),
        ("hello", "no cycle of inputs"),
        ("date=1", "no input 'date'.*data, send"),
        ("data=256", "256 does not fit the 8 bits"),
        ("data=-1", "'-1' is no whole number"),
        ("data=x", "'x' is no whole number"),
        ("send=1*", "'' is no whole number"),
        ("send=1*99999999999", "longer than"),
        ("@tick=1", "no open latch 'tick'"),
    ],
)
def test_bad_words(word: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_trace(READY["uart"].build(), ["100000000", word])


def test_first_values_are_typed_too() -> None:
    source = tg.read(ANY_LATCHES)
    assert isinstance(source, SequentialCircuit)
    trace, first = parse_trace(source, ["@b=1 1 0*2"])
    assert (first.tolist(), trace.ravel().tolist()) == ([1], [1, 0, 0])
    assert last(source, trace, first).outputs.tolist() == [[1], [1], [0]]
    assert last(source, trace).outputs.tolist() == [[0], [1], [0]]
    with pytest.raises(InputError, match="needs an input"):
        inputs_for(source, None)


# Files.

ANY_LATCHES = ".model m\n.inputs a clk\n.outputs b\n.latch a c re clk 1\n.latch a b re clk 2\n.end\n"
TOGGLES = {
    "aiger-ascii": b"aag 3 1 1 2 1\n2\n4 7 1\n4\n6\n6 2 4\ni0 up\nl0 q\no0 q\no1 both\n",
    "aiger-binary": b"aig 3 1 1 2 1\n7 1\n4\n6\n\x02\x02i0 up\nl0 q\no0 q\no1 both\n",
    "blif": b".model m\n.inputs up\n.outputs q both\n.latch n q 1\n.names up q both\n11 1\n"
    b".names both n\n0 1\n.end\n",
    "bench": b"INPUT(up)\nOUTPUT(q)\nOUTPUT(both)\nq = DFF(n)\nboth = AND(up, q)\nn = NAND(up, q)\n",
}
"""q becomes NAND(up, q), in every format."""


@pytest.mark.parametrize("name", TOGGLES)
def test_latches_are_read(name: str) -> None:
    source = tg.read(TOGGLES[name].decode("latin-1"))
    assert isinstance(source, SequentialCircuit)
    assert (source.inputs, source.latches, source.outputs) == (("up",), ("q",), ("q", "both"))
    assert source.resets == ((ANY,) if name == "bench" else (1,))
    state = last(source, [[1], [1], [0], [1]], [1] if name == "bench" else [])
    assert state.outputs.tolist() == [[1, 1], [0, 0], [1, 0], [1, 1]]
    assert state.latches == (0,)


def test_properties_are_outputs_and_open_latches_stay_open() -> None:
    source = tg.read("aag 2 1 1 0 0 1 1\n2\n4 2 4\n4\n3\nb0 bad\n")
    assert isinstance(source, SequentialCircuit)
    assert (source.outputs, source.resets) == (("bad", "c0"), (ANY,))
    assert last(source, [[0], [1]], [1]).outputs.tolist() == [[1, 1], [0, 0]]


def test_names_of_inputs_and_latches_are_told_apart() -> None:
    source = tg.read("aag 2 1 1 2 0\n2\n4 2\n4\n2\ni0 x\nl0 x\no0 x\n")
    assert isinstance(source, SequentialCircuit)
    assert (source.inputs, source.latches, source.outputs) == (("x",), ("x'",), ("x", "o1"))


@pytest.mark.parametrize("known", WRITERS, ids=lambda known: known.name)
@given(seed=st.integers(0, 10**6), latches=st.integers(1, 5), inputs=st.integers(0, 4))
@settings(max_examples=40, deadline=None)
def test_what_is_written_reads_back(known, seed: int, latches: int, inputs: int) -> None:
    source = random_sequential(seed, inputs=inputs, latches=latches, outputs=3)
    assert known.write is not None
    text = known.write(source)
    data = text.encode() if isinstance(text, str) else text
    assert detect(data) is known
    again = known.read(data)
    assert (again.inputs, again.latches, again.outputs) == (source.inputs, source.latches, source.outputs)
    assert again.resets == source.resets
    rows = list(itertools.product((0, 1), repeat=inputs + latches))
    bits = np.array(rows).reshape(len(rows), -1)
    assert np.array_equal(evaluate(again.logic, bits), evaluate(source.logic, bits))


def test_json() -> None:
    source = random_sequential(7)
    again = source_from_json(*source_to_json(source))
    assert isinstance(again, SequentialCircuit)
    assert source_to_json(again)[0] == source_to_json(source)[0]
    assert again.resets == source.resets
    found = find_text(written(source).decode()).source
    assert isinstance(found, SequentialCircuit)
    assert found.resets == source.resets


def test_results_by_name() -> None:
    source = READY["counter8"].build()
    state = last(source, [[1, 0]] * 5)
    assert state_json(source, state) == {
        "cycles": 5,
        "outputs": {"count": 4, "full": 0},
        "registers": {"count": 5},
    }
    assert history(source, state, 3) == (5, [{"count": 3, "full": 0}, {"count": 4, "full": 0}])


def test_waves() -> None:
    """A row for every bit: outputs in the cycle that gives them, latches in the one that they are held in."""
    source = READY["counter8"].build()
    view = ClockedView(source)
    *_, (clock, registers, waves) = map(view.frame, source.run(source.start([[1, 0]] * 6)))
    assert clock == {
        "cycle": "6 of 6", "enable (in)": "1", "clear (in)": "0", "count (out)": "5", "full (out)": "0",
    }  # fmt: skip
    assert registers == {"count": "6"}
    lit = {(r, c) for r, c, _ in waves.cells}
    assert [c for c in range(7) if (0, c) in lit] == [1, 3, 5]
    held = len(source.outputs)  # the row of the first latch, count[0]
    assert [c for c in range(7) if (held, c) in lit] == [1, 3, 5]
    assert [c for c in range(7) if (held + 1, c) in lit] == [2, 3, 6]
    assert waves.focus == 6


def test_combinational_files_stay_what_they_are() -> None:
    assert isinstance(tg.read("aag 1 1 0 1 0\n2\n3\n"), Circuit)


def test_levels_and_many_cycles_are_refused_with_numbers() -> None:
    source = READY["uart"].build()
    with pytest.raises(Refused, match=r"100,000 cycles of 'uart'.* of them would take .* gates in layers"):
        tg.compile(source, "relu", cycles=100_000)
    with pytest.raises(Refused, match="cannot be unrolled"):
        tg.compile(source, "relu", cycles=0)
    example = find("uart").inputs
    assert tg.compile(source, "relu").options == {"cycles": len(source.start(*example).trace)}
    with pytest.raises(Refused, match="cannot be run"):
        tg.compile(source, "transformer", steps=0)


# Bounds, and runs that begin in the middle.


def test_bounds_of_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    assert model.MOST_TRACED == 1 << 28
    monkeypatch.setattr(model, "MOST_TRACED", 6)
    shift, counter = READY["lfsr16"].build(), READY["counter8"].build()
    assert shift.start(6).trace.shape == (6, 0)
    assert shift.start(0).trace.shape == (0, 0)
    assert counter.start(np.zeros((3, 2))).trace.shape == (3, 2)
    assert counter.start([]).trace.shape == (0, 2)
    assert shift.start(np.zeros((4, 0))).trace.shape == (4, 0)
    for cycles in (7, -1):
        with pytest.raises(InputError, match="have no inputs"):
            shift.start(cycles)
    with pytest.raises(InputError, match="have no inputs"):
        counter.start(3)
    with pytest.raises(InputError, match="8 bits is longer than 6"):
        counter.start(np.zeros((4, 2)))
    single = tg.read(".model m\n.inputs a\n.outputs q\n.latch a q 0\n.end\n")
    assert isinstance(single, SequentialCircuit)
    assert single.start([[1]]).trace.tolist() == [[1]]
    assert single.start([1]).trace.tolist() == [[1]]


def test_a_run_goes_on_from_the_middle() -> None:
    """Whether all outputs so far are known, the last, or none; and no more are made up."""
    source = READY["counter8"].build()
    every = list(source.run(source.start([[1, 0]] * 6)))
    for known in (0, 1, 4):
        middle = replace(every[4], outputs=every[4].outputs[4 - known :])
        for state, own in zip(source.run(middle), every[4:], strict=True):
            assert state == own
            assert state.outputs.tolist() == own.outputs[4 - known :].tolist()
        ahead = look_ahead(source, middle, 1)
        assert (ahead.steps, ahead.halted, ahead.final.cycle) == (1, False, 5)
        assert len(ahead.final.trace) == 6
        ahead = look_ahead(source, middle)
        assert (ahead.steps, ahead.halted, ahead.final) == (2, True, every[-1])


def test_states_differ_where_anything_does() -> None:
    source = READY["counter8"].build()
    *_, state = source.run(source.start([[1, 0]] * 3))
    assert state == replace(state, outputs=state.outputs[1:])
    assert state != replace(state, outputs=1 - state.outputs)
    assert state != replace(state, cycle=2)
    assert state != replace(state, latches=(1 - state.latches[0], *state.latches[1:]))
    assert state != 3
    assert repr(state).startswith("<after 3 cycles, latches 1")
    assert repr(source.start([[1, 0]])).endswith("outputs none yet>")


def test_latches_that_do_not_fit() -> None:
    logic = READY["counter8"].build().logic
    count = min(len(logic.inputs), len(logic.outputs))
    assert len(SequentialCircuit(logic, (0,) * count).latches) == count
    with pytest.raises(SourceError, match=f"has {count + 1} latches"):
        SequentialCircuit(logic, (0,) * (count + 1))
    for reset in (3, -1):
        with pytest.raises(SourceError, match="something else than 0, 1"):
            SequentialCircuit(logic, (reset,))
    assert model.with_latches(logic, ()) is logic
    assert model.next_names(("a", "q'"), ("q", "a")) == ["q''", "a'"]


@pytest.mark.parametrize("name", READY)
@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_ready_circuits_on_transformer(name: str, engine: str) -> None:
    """Those of which most bits are carried have a last layer that gives the whole vector."""
    source, inputs = READY[name].build(), READY[name].example()
    steps = len(source.start(*inputs).trace)
    assert tg.verify(tg.compile(source, "transformer", steps=steps), [inputs], engine=engine).agreed
